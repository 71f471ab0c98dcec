"""The rows that a merge writes: source rows, with missing columns filled in from the rows that they replace."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.encoding.arrow.gather import as_batches
from lance_duck.errors import DataMismatchError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.match import MergeMatches
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.rows.find import rows_at
from lance_duck.wire.schema import Schema
from lance_duck.write.coerce import coerce


def new_rows(snapshot: Snapshot, source: MergeSource, matches: MergeMatches) -> Iterator[pa.RecordBatch]:
    """Yield the rows to write: first updated rows, then inserted rows.

    Args:
        snapshot: The version to merge into.
        source: The source.
        matches: Matches of the merge. `updated` must be ascending.

    Raises:
        InvalidInputError: An inserted row lacks a non-nullable column.
    """
    if len(matches.inserted):
        _refuse_missing(source)
    if source.is_whole:
        yield from _pieces(source, np.concatenate([matches.sources, matches.inserted]))
        return
    if len(matches.updated):
        yield from _completed(snapshot, source, matches)
    yield from _pieces(source, matches.inserted)


def ordered_matches(matches: MergeMatches, *, by_address: bool) -> MergeMatches:
    """Return the matches with updated rows sorted by address, or by source row."""
    order = np.argsort(matches.updated if by_address else matches.sources, kind="stable")
    if bool(np.all(order[1:] > order[:-1])):
        return matches
    ids = matches.row_ids[order] if len(matches.row_ids) else matches.row_ids
    created = matches.created_at[order] if len(matches.created_at) else matches.created_at
    return MergeMatches(matches.updated[order], matches.sources[order], ids, created, matches.deleted, matches.inserted)


def _pieces(source: MergeSource, rows: NDArray[np.int64]) -> Iterator[pa.RecordBatch]:
    step = source.rows_at_once
    for start in range(0, len(rows), step):
        yield from source.rows(rows[start : start + step]).to_batches()


def _completed(snapshot: Snapshot, source: MergeSource, matches: MergeMatches) -> Iterator[pa.RecordBatch]:
    """Yield updated rows, with columns that the source lacks filled in from the table."""
    lacking = Schema((*source.missing, *source.partial))
    names = [field.name for field in source.missing]
    for batch in rows_at(snapshot, matches.updated, [*lacking.names, ROW_ADDRESS]):
        places = np.searchsorted(matches.updated, batch.column(ROW_ADDRESS).to_numpy())
        columns = {name: batch.column(name) for name in names}
        rows = source.rows(matches.sources[places])
        columns |= dict(zip(rows.column_names, rows.columns, strict=True))
        first = 0
        for part in as_batches(pa.table(columns)):
            if source.partial:
                part = _with_old_members(part, source, lacking, batch.slice(first, part.num_rows))
            first += part.num_rows
            yield part


def _with_old_members(
    rows: pa.RecordBatch, source: MergeSource, lacking: Schema, before: pa.RecordBatch
) -> pa.RecordBatch:
    """Return source rows with missing struct fields filled in from the table rows."""
    old = pa.Table.from_batches(coerce([before.select(lacking.names)], lacking))
    for field in source.partial:
        place = rows.schema.get_field_index(field.name)
        column = source.completed(field, rows.column(place), concatenate(old.column(field.name).chunks))
        rows = rows.set_column(place, field.name, column)
    return rows


def _refuse_missing(source: MergeSource) -> None:
    strict = [field.name for field in source.missing if not field.nullable]
    if strict:
        raise DataMismatchError(
            "inserted rows need values for non-nullable columns",
            where="source of a merge",
            expected=", ".join(strict),
            found=", ".join(source.table.column_names),
        )
