"""Column readers: rows of a field as an Arrow array, whichever version its file has."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from lance_duck.encoding.page import Rows
from lance_duck.file.nested import Locate, NestedColumn
from lance_duck.store.request import Request
from lance_duck.wire.schema import Field

__all__ = ["ColumnReader", "Locate", "Rows", "open_column"]


class ColumnReader(Protocol):
    """Reads one top-level column of a fragment. Safe to use from several threads.

    Attributes:
        arrow_type: Type of the arrays that `read` gives.
        num_rows: Rows of the fragment, deleted ones among them.
    """

    arrow_type: pa.DataType
    num_rows: int

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Rows of the column.

        Raises:
            CorruptError: A file contradicts itself.
            UnsupportedError: An encoding that is not read.
        """

    def is_dictionary(self) -> bool:
        """Whether every page is dictionary-encoded, so that `dictionary(int32, value)` costs nothing."""


def open_column(field: Field, locate: Locate, num_rows: int, arrow_type: pa.DataType | None = None) -> ColumnReader:
    """Open a top-level field of a fragment.

    Args:
        field: The field.
        locate: From a field id to its file and physical column; None when the fragment has no values for it.
        num_rows: Physical rows of the fragment.
        arrow_type: Form to give the values: `field.to_arrow(scan=True).type` unless given.

    Raises:
        CorruptError: The pages do not have `num_rows` rows.
        UnsupportedError: A type that is not read.
    """
    return NestedColumn(field, locate, num_rows, arrow_type or field.to_arrow(scan=True).type)
