"""Column readers: rows of a field as an Arrow array, whichever version its file has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from lance_duck import lazy
from lance_duck.encoding.layouts.page import Rows
from lance_duck.file.contract import ColumnReader, Locate
from lance_duck.file.mixed import MixedColumn, located_in, part_versions
from lance_duck.file.nested import NestedColumn
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
        locate: From a field id to its file and physical column; None when the fragment has no values for it.
        num_rows: Physical rows of the fragment.
        arrow_type: Form of the values; `field.to_arrow(scan=True).type` by default.

    Raises:
        CorruptError: The pages do not have `num_rows` rows.
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
