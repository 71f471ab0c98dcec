"""The interface of column readers, for every file version."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.layouts.page import Rows
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import Request

Locate = Callable[[int], tuple[LanceFile, int] | None]
"""Returns the file and the physical column of a field id, or None if the fragment does not have the field."""


class ColumnReader(Protocol):
    """A reader of one top-level column of a fragment. Safe to use from several threads."""

    @property
    def arrow_type(self) -> pa.DataType:
        """Type of the arrays that `read` returns."""

    @property
    def num_rows(self) -> int:
        """Rows of the fragment, including deleted ones."""

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Return rows of the column.

        Raises:
            CorruptError: A file contradicts itself.
            UnsupportedError: A page has an encoding that is not supported.
        """

    def read_points(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Return the same array as `read`, but immediately, without a request: for a few rows of mapped files.

        Args:
            rows: int64, ascending; at least one row.

        Returns:
            The array, or None if the column does not have a faster path than `read`.

        Raises:
            CorruptError: A file contradicts itself.
        """

    def is_dictionary(self) -> bool:
        """Return whether every page is dictionary-encoded.

        Reading the column as `dictionary(int32, value)` is then free.
        """

    def has_no_nulls(self) -> bool:
        """Return whether the page descriptions rule out null rows. False if only the values can show it."""

    def has_no_null_items(self) -> bool:
        """Return whether the page descriptions guarantee that the values are fixed-size lists without null items.

        Whole lists may be null. Returns False if only the values can show it.
        """


class PlainColumn:
    """A base for column readers that only implement `read`, without hints about their values."""

    def read_points(self, rows: NDArray[np.int64]) -> pa.Array | None:
        """Always None: only `read` can read rows."""
        return None

    def is_dictionary(self) -> bool:
        """Always False: the values may not be dictionary-encoded."""
        return False

    def has_no_nulls(self) -> bool:
        """Always False: page descriptions do not rule out nulls."""
        return False

    def has_no_null_items(self) -> bool:
        """Always False: page descriptions do not rule out null items."""
        return False
