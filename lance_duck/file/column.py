"""Column readers: rows of a field as an Arrow array, whichever version its file has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck import lazy
from lance_duck.encoding.layouts.page import Rows
from lance_duck.file.mixed import MixedColumn, located_in, part_versions
from lance_duck.file.nested import Locate, NestedColumn
from lance_duck.store.request import Request
from lance_duck.wire.schema import Field

if TYPE_CHECKING:
    from lance_duck.file.v01 import columns as columns01
    from lance_duck.file.v20 import columns as columns20
else:
    columns01 = lazy.modules(globals(), "lance_duck.file.v01", "columns")
    columns20 = lazy.modules(globals(), "lance_duck.file.v20", "columns")

__all__ = ["ColumnReader", "Locate", "Rows", "open_column"]


class ColumnReader(Protocol):
    """A reader of one top-level column of a fragment. Safe to use from several threads."""

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of the arrays that `read` gives."""

    @property
    def num_rows(self) -> int:
        """Rows of the fragment, deleted ones among them."""

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Return rows of the column.

        Raises:
            CorruptError: A file contradicts itself.
            UnsupportedError: A page has an encoding that is not supported.
        """

    def read_points(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Return the same array as `read`, but at once, without a request: for a few rows of mapped files.

        Args:
            rows: Ascending, at least one.

        Returns:
            The array, or None where nothing is faster than `read`.

        Raises:
            CorruptError: A file contradicts itself.
        """

    def is_dictionary(self) -> bool:
        """Return whether every page is dictionary-encoded, so that `dictionary(int32, value)` costs nothing."""

    def has_no_nulls(self) -> bool:
        """Return whether no row is null by the descriptions of the pages; False where only the values tell."""

    def has_no_null_items(self) -> bool:
        """Return whether each row is null or a fixed-size list without null items, by the descriptions of the pages.

        False where only the values tell.
        """


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
