"""Streams of rows that match a condition or have certain addresses."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.arrow.distinct import distinct
from lance_duck.rows import split_addresses
from lance_duck.scan.blobs.copies import written_batches
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.arrays import row_width
from lance_duck.scan.predicate.tree import Path
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.read.small_batches import concatenated
from lance_duck.scan.subquery import addresses_where, has_subquery
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import BYTES_AT_ONCE, ROWS_AT_ONCE

if TYPE_CHECKING:
    from lance_duck.scan.text import filter as text_filter
else:
    text_filter = lazy.modules(globals(), "lance_duck.scan.text", "filter")


def find_rows(
    snapshot: Snapshot,
    where: FilterLike | None,
    columns: Sequence[str],
    fragments: Sequence[int] | None = None,
    binary_json: Container[str] = (),
) -> Iterator[pa.RecordBatch]:
    """Stream columns of the rows that match a condition. Blobs are in the form that writers accept.

    Args:
        snapshot: The version.
        where: A SQL string, which may contain subqueries, (SQL string, parameters), a pyarrow expression, or a
            full-text query. None selects all rows.
        columns: Column names, including hidden columns.
        fragments: Ids of the fragments to search. Defaults to all. Subqueries always read the whole table.
        binary_json: Columns whose JSON may be in binary form: see `written_batches`.

    Raises:
        InvalidInputError: The condition is invalid, or a column is unknown.
    """
    text, parameters = where if isinstance(where, tuple) and len(where) == 2 else (where, None)
    if not isinstance(text, str) or not has_subquery(text):
        table = TableScan(snapshot)
        options = ScanOptions(columns=columns, filter=where, fragments=fragments)
        if isinstance(where, FullTextQuery):
            options = text_filter.with_text_filter(table, options)
        return written_batches(table, options, binary_json=binary_json)
    addresses = addresses_where(TableScan(snapshot), text, parameters)
    if fragments is not None:
        addresses = addresses[np.isin(split_addresses(addresses)[0], np.asarray(fragments, np.uint64))]
    return rows_at(snapshot, addresses, columns)


def rows_at(snapshot: Snapshot, addresses: NDArray[np.uint64], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Stream columns of the rows at ascending addresses, in that order. Blobs are in the form that writers accept."""
    fields = [field for field in snapshot.schema.fields if field.name in columns]
    if any(field.blob_version for top in fields for field in top.walk()):
        fragments = distinct(split_addresses(addresses)[0]).tolist()
        options = ScanOptions(columns=columns, fragments=fragments)
        yield from written_batches(TableScan(snapshot, AddressSieve(addresses)), options)
        return
    table = TableScan(snapshot)
    projection = table.projection(columns)
    width = sum(row_width(field.arrow_type) for field in fields) + 8
    step = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // width))
    for start in range(0, len(addresses), step):
        yield from table.taker.batches(table.taker.by_address, addresses[start : start + step], projection)


def joined_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine batches into fewer, larger ones: selective searches yield very small batches."""
    pending: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        pending.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
            yield from concatenated(pending)
            pending, rows, size = [], 0, 0
    if pending:
        yield from concatenated(pending)


@dataclass(frozen=True)
class AddressSieve:
    """Scan filter for rows at certain addresses.

    Args:
        addresses: Ascending addresses of rows in the scanned fragments.
    """

    addresses: NDArray[np.uint64]

    def paths(self) -> tuple[Path, ...]:
        """See `scan.filters.Filter`."""
        return ((ROW_ADDRESS,),)

    def mask(self, columns: Mapping[str, pa.Array], num_rows: int) -> pa.BooleanArray:
        """See `scan.filters.Filter`. The row addresses of a batch must ascend."""
        addresses = columns[ROW_ADDRESS].to_numpy()
        matches = np.zeros(num_rows, np.bool_)
        if num_rows:
            low = np.searchsorted(self.addresses, addresses[0])
            high = np.searchsorted(self.addresses, addresses[-1], side="right")
            matches[np.searchsorted(addresses, self.addresses[low:high])] = True
        return pa.array(matches)

    def __str__(self) -> str:
        return f"{len(self.addresses)} rows by address"
