"""Paging: collects arrays until they fill a page."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from lance_duck.arrow.limits import OVERFLOW

Part = tuple[pa.Array, int]
"""The values of a page, and the top-level row that contains the first value."""


class Paging:
    """A buffer that joins arrays into pages of about `page_bytes`, and splits larger arrays.

    Args:
        page_bytes: Bytes of values in a page.
        rows_are_top: Whether each value is a top-level row. If not, all values of an array are attributed to its first
            row.
    """

    def __init__(self, page_bytes: int, *, rows_are_top: bool) -> None:
        self._page_bytes = page_bytes
        self._rows_are_top = rows_are_top
        self._waiting: list[Part] = []
        self._num_bytes = 0

    def add(self, array: pa.Array, first_row: int) -> Iterator[Part]:
        """Add an array in a storage type, and yield the pages that are full."""
        if len(array) == 0:
            return
        size = num_bytes(array)
        self._waiting.append((array, first_row))
        self._num_bytes += size
        if self._num_bytes >= self._page_bytes:
            yield from self.rest()
        else:
            # A waiting slice must not keep the buffers of the whole array alive.
            self._waiting[-1] = (pa.concat_arrays([array]), first_row)

    @property
    def waiting_bytes(self) -> int:
        """Number of bytes of the values that wait for a full page."""
        return self._num_bytes

    def rest(self) -> Iterator[Part]:
        """Yield all waiting values as pages."""
        waiting, size = self._waiting, self._num_bytes
        self._waiting, self._num_bytes = [], 0
        if not waiting:
            return
        joined = _joined([array for array, _ in waiting])
        if joined is None:
            yield from waiting
            return
        pages = max(1, round(size / self._page_bytes))
        rows = -(-len(joined) // pages)
        for start in range(0, len(joined), rows):
            yield joined.slice(start, rows), self._row(waiting, start)

    def _row(self, waiting: list[Part], place: int) -> int:
        for array, first_row in waiting:
            if place < len(array):
                return first_row + place if self._rows_are_top else first_row
            place -= len(array)
        return 0


def num_bytes(array: pa.Array) -> int:
    """Return the size of an array's values, in bytes. A dictionary counts only its indices."""
    return int(array.indices.nbytes if pa.types.is_dictionary(array.type) else array.nbytes)


def _joined(arrays: list[pa.Array]) -> pa.Array | None:
    """Concatenate arrays. Returns None if joined dictionaries have too many items for their index type."""
    if len(arrays) == 1:
        return arrays[0]
    if not pa.types.is_dictionary(arrays[0].type):
        return pa.concat_arrays(arrays)
    try:
        unified = pa.chunked_array(arrays).unify_dictionaries().chunks
    except OVERFLOW:
        return None
    indices = pa.concat_arrays([chunk.indices for chunk in unified])
    return pa.DictionaryArray.from_arrays(indices, unified[-1].dictionary)
