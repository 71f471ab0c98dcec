"""Column readers: rows of a field as an Arrow array, for every file version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_duck import lazy
from lance_duck.encoding.layouts.page import Rows
from lance_duck.errors import UnsupportedError
from lance_duck.file.contract import ColumnReader, Locate, PlainColumn
from lance_duck.file.nested import NestedColumn
from lance_duck.store.request import Request, gather
from lance_duck.wire.schema import Field

if TYPE_CHECKING:
    from lance_duck.file.v01 import columns as columns01
    from lance_duck.file.v20 import columns as columns20
else:
    columns01 = lazy.modules(globals(), "lance_duck.file.v01", "columns")
    columns20 = lazy.modules(globals(), "lance_duck.file.v20", "columns")


__all__ = ["ColumnReader", "Locate", "Rows", "open_column"]


def open_column(field: Field, locate: Locate, num_rows: int, arrow_type: pa.DataType | None = None) -> ColumnReader:
    """Open a top-level field of a fragment.

    Args:
        field: The field.
        locate: Returns the file and physical column of a field id, or None if the fragment does not have the field.
        num_rows: Physical rows of the fragment.
        arrow_type: Type of the returned arrays; `field.to_arrow(scan=True).type` by default.

    Raises:
        CorruptError: The page row counts do not add up to `num_rows`.
        UnsupportedError: The type is not supported.
    """
    arrow_type = arrow_type or field.to_arrow(scan=True).type
    kinds = part_versions(field, locate)
    if (0, 1) in kinds:
        return columns01.open_column01(field, locate, num_rows, arrow_type)
    if (2, 0) not in kinds:
        return NestedColumn(field, locate, num_rows, arrow_type)
    if len(kinds) == 1:
        return columns20.open_column20(field, locate, num_rows, arrow_type)
    older = columns20.open_column20(field, located_in(locate, field, older=True), num_rows, arrow_type)
    newer = NestedColumn(field, located_in(locate, field, older=False), num_rows, arrow_type)
    return MixedColumn(field, locate, num_rows, arrow_type, older, newer)


class MixedColumn(PlainColumn):
    """A reader of a struct whose fields are stored partly in 2.0 files and partly in later files.

    Args:
        field: The struct.
        locate: Returns the file and physical column of a field id.
        num_rows: Number of rows of the fragment.
        arrow_type: Type of the returned arrays.
        older: Reader of the fields in 2.0 files.
        newer: Reader of the fields in later files. This reader determines which structs are null, because 2.0 files do
            not store null structs.
    """

    def __init__(
        self,
        field: Field,
        locate: Locate,
        num_rows: int,
        arrow_type: pa.DataType,
        older: ColumnReader,
        newer: ColumnReader,
    ) -> None:
        self.arrow_type = arrow_type
        self.num_rows = num_rows
        self._field = field
        self._older, self._newer = older, newer
        self._locate = locate
        _check(field, locate)

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Read rows from both kinds of files."""
        older, newer = yield from gather([self._older.read(rows), self._newer.read(rows)])
        return self._join(self._field, older, newer)

    def _join(self, field: Field, older: pa.Array, newer: pa.Array) -> pa.Array:
        kinds = part_versions(field, self._locate)
        if kinds <= {(2, 0)}:
            return older
        if (2, 0) not in kinds:
            return newer
        children = [self._join(child, older.field(i), newer.field(i)) for i, child in enumerate(field.children)]
        return pa.Array.from_buffers(newer.type, len(newer), [newer.buffers()[0]], children=children)


def part_versions(field: Field, locate: Locate) -> set[tuple[int, int]]:
    """Return the versions of all files that store a field or its descendants."""
    places = (locate(f.id) for f in field.walk())
    return {place[0].version for place in places if place is not None}


def located_in(locate: Locate, field: Field, older: bool) -> Locate:
    """Return `locate` for the fields in 2.0 files only, or in later files only."""
    places = {f.id: locate(f.id) for f in field.walk()}
    same_version = {
        i: place for i, place in places.items() if place is not None and (place[0].version == (2, 0)) == older
    }
    return same_version.get


def _check(field: Field, locate: Locate) -> None:
    if len(part_versions(field, locate)) == 1 or not part_versions(field, locate):
        return
    kinds = part_versions(field, locate)
    if (2, 0) in kinds and field.logical_type != "struct":
        raise UnsupportedError("list fields cannot be read from another data file", where=f"column {field.name}")
    for child in field.children:
        _check(child, locate)
