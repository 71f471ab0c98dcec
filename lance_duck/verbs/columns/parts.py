"""New columns that many processes write, fragment by fragment. All files are committed together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit.operations import Merge
from lance_duck.errors import IncompatibleError, InvalidInputError
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.snapshot import Snapshot, mem_wal
from lance_duck.verbs.columns.files import ColumnFiles, live_rows, with_file
from lance_duck.verbs.columns.schema_change import ColumnAddition, add_fields, next_field_id
from lance_duck.verbs.costs import ROWS_AT_ONCE
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.wire.fragment import DataFile
from lance_duck.wire.schema import Schema

Offsets = NDArray[np.int64]


@dataclass(frozen=True)
class ColumnValues:
    """Values of new columns for some rows of a fragment.

    Attributes:
        offsets: Ascending row offsets; int64, shape (n,).
        rows: Values of the new columns; n rows.
    """

    offsets: Offsets
    rows: pa.RecordBatch


def plan_columns(snapshot: Snapshot, arrow: pa.Schema) -> ColumnAddition:
    """Return a version's schema with new columns.

    Raises:
        InvalidInputError: A column already exists.
        UnsupportedError: A type cannot be stored.
    """
    mem_wal.refuse_values(snapshot)
    return add_fields(snapshot.schema, arrow, snapshot.data_storage_version, next_field_id(snapshot))


def write_values(
    snapshot: Snapshot, new: Schema, fragment_id: int, values: Iterable[ColumnValues], transaction: UUID | None = None
) -> tuple[DataFile | None, int]:
    """Write a file of new columns for a fragment. Rows without a value are null.

    Args:
        snapshot: The version that is changed.
        new: The new columns, with their ids.
        fragment_id: The fragment.
        values: Values, in row order.
        transaction: UUID of the transaction that will commit the file: see `WriteOptions.transaction`.

    Returns:
        The file, or None if all rows are deleted, and the number of rows with values.

    Raises:
        InvalidInputError: A row does not exist or has several values, or a value does not fit its column.
    """
    if fragment_id not in snapshot.fragments.ids():
        raise _unknown(snapshot, fragment_id << 32)
    fragment = snapshot.fragment(fragment_id)
    placed = _ValuePlacer(snapshot, fragment_id, live_rows(snapshot, fragment))
    files = ColumnFiles(snapshot, new, snapshot.data_storage_version, transaction=transaction)
    try:
        return files.write(fragment, placed.batches(values)), placed.count
    except BaseException:
        files.discard()
        raise


def check_same_rows(base: Snapshot, snapshot: Snapshot) -> None:
    """Reject a version in which row addresses of the base version may refer to different rows.

    Raises:
        IncompatibleError: A fragment of the base version, or one of its rows, no longer exists.
    """
    now = {fragment.id: fragment for fragment in snapshot.fragments}
    for fragment in base.fragments:
        other = now.get(fragment.id)
        if other is None or other.all_files != fragment.all_files or other.deletion_file != fragment.deletion_file:
            raise IncompatibleError(
                f"rows of fragment {fragment.id} were changed since version {base.version}",
                where=f"{snapshot.uri} version {snapshot.version}",
                remedy="compute the values again from the newest version, or join by a key",
            )


def commit_columns(
    snapshot: Snapshot,
    columns: ColumnAddition,
    files: Mapping[int, DataFile],
    draft: UncommittedFiles,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Commit new columns whose files are written.

    Args:
        snapshot: The version that is changed.
        columns: The columns.
        files: Files by fragment id. Rows of all other fragments are null.
        draft: The draft that recorded the files.
        properties: Properties of the transaction.

    Raises:
        InvalidInputError: A fragment does not have values for a non-nullable column.
        RetryableError: Another change was committed first.
    """
    if columns.tightens:
        for fragment in snapshot.fragments:
            if fragment.id not in files and snapshot.num_rows(fragment):
                names = ", ".join(field.name for field in columns.new.fields if not field.nullable)
                raise InvalidInputError(
                    f"non-nullable columns need values for all rows: {names}", where=str(fragment.id)
                )
    fragments = tuple(with_file(fragment, files.get(fragment.id), columns.whole) for fragment in snapshot.fragments)
    return draft.commit(Merge(fragments, columns.whole, not columns.tightens), properties=properties)


class _ValuePlacer:
    """Assigns values to a fragment's live rows."""

    def __init__(self, snapshot: Snapshot, fragment_id: int, live: Offsets | None) -> None:
        self._snapshot = snapshot
        self._first = fragment_id << 32
        rows = snapshot.physical_rows(snapshot.fragment(fragment_id))
        self._live = np.arange(rows) if live is None else live
        self.count = 0

    def batches(self, values: Iterable[ColumnValues]) -> Iterator[pa.RecordBatch]:
        start, last, schema = 0, -1, None
        for each in values:
            if not len(each.offsets):
                continue
            schema = each.rows.schema
            self._check(each.offsets, last)
            last = int(each.offsets[-1])
            end = int(np.searchsorted(self._live, last, side="right"))
            offsets = self._live[start:end]
            places = np.searchsorted(each.offsets, offsets)
            yield each.rows.take(pa.array(places, mask=each.offsets[places] != offsets))
            self.count += len(each.offsets)
            start = end
        while schema is not None and start < len(self._live):
            rows = min(ROWS_AT_ONCE, len(self._live) - start)
            yield pa.RecordBatch.from_arrays([pa.nulls(rows, field.type) for field in schema], names=schema.names)
            start += rows

    def _check(self, offsets: Offsets, last: int) -> None:
        steps = np.diff(offsets, prepend=last)
        if not steps.all():
            address = self._first + int(offsets[steps == 0][0])
            raise InvalidInputError(
                "the data has several values for one row",
                where="add_columns",
                found=f"{ROW_ADDRESS} {address}",
                remedy="keep one row for each row address",
            )
        there = np.isin(offsets, self._live, assume_unique=True)
        if not there.all():
            raise _unknown(self._snapshot, self._first + int(offsets[~there][0]))


def _unknown(snapshot: Snapshot, address: int) -> InvalidInputError:
    return InvalidInputError(
        "the data has a row address that the table does not have",
        where=f"add_columns, {snapshot.uri} version {snapshot.version}",
        found=f"{ROW_ADDRESS} {address}",
        remedy="read the row addresses again, because updates and compaction change them, or join by a key",
    )
