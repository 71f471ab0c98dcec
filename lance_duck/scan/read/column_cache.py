"""A cache of decoded narrow columns, for repeated takes of a few rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import LanceDuckError
from lance_duck.forks import Lock
from lance_duck.scan.projection import Read
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import is_watched

MOST_BYTES: Final = 64 << 20
"""Of a column that is held."""

MOST_OF_ALL: Final = 4 * MOST_BYTES

_FEW: Final = 1 << 15
_LEAST_TAKES: Final = 16
_ROWS_OF_A_TAKE: Final = 1 << 15
"""So many rows are decoded in the time that one take needs to find its rows."""


def is_few(count: int) -> bool:
    """Return whether a take of so many rows is one that finding the rows takes longest of."""
    return 0 < count <= _FEW and not is_watched()


class HeldColumn:
    """The values of a column, all rows of the table one after the other.

    Args:
        pieces: The column of each fragment, in order, without nulls.
    """

    def __init__(self, pieces: list[pa.Array]) -> None:
        self._type = pieces[0].type
        width = self._type.bit_width // 8
        raw = [np.frombuffer(each.buffers()[1], np.uint8)[each.offset * width :] for each in pieces if len(each)]
        sizes = [len(each) * width for each in pieces if len(each)]
        whole = np.concatenate([bytes_[:size] for bytes_, size in zip(raw, sizes, strict=True)])
        self._values: NDArray[Any] = whole.view(f"u{width}" if width <= 8 else f"V{width}")
        self.nbytes = int(whole.nbytes)

    def take(self, places: NDArray[np.int64]) -> pa.Array:
        """Return the values of rows by their places among all rows, deleted ones among these."""
        chosen = pa.py_buffer(self._values[places])
        return pa.Array.from_buffers(self._type, len(places), [None, chosen])


class HeldColumns:
    """Which columns of a version are held. Safe to use from several threads.

    Args:
        snapshot: The version.
        read: Reads a column of all fragments, without deleted rows left out.
    """

    def __init__(self, snapshot: Snapshot, read: Callable[[Read], list[pa.Array]]) -> None:
        self._snapshot = snapshot
        self._read = read
        self._takes: dict[object, int] = {}
        self._found: dict[object, HeldColumn | None] = {}
        self._lock = Lock()
        self._is_local = local_path(snapshot.uri) is not None

    def find(self, read: Read) -> HeldColumn | None:
        """Return a column, where it is held by now; each call is one take."""
        key = read.key
        if key in self._found:
            return self._found[key]
        takes = self._takes[key] = self._takes.get(key, 0) + 1
        if takes < _LEAST_TAKES or takes < self._num_rows // _ROWS_OF_A_TAKE:
            return None
        with self._lock:
            if key not in self._found:
                self._found[key] = self._made(read)
        return self._found[key]

    def _made(self, read: Read) -> HeldColumn | None:
        if not self._is_local or not self._num_rows or not _is_narrow(read.arrow_type):
            return None
        size = self._num_rows * read.arrow_type.bit_width // 8
        if size > MOST_BYTES or size + self.nbytes > MOST_OF_ALL:
            return None
        try:
            pieces = self._read(read)
        except LanceDuckError:  # rows that are not broken can be taken all the same
            return None
        return None if any(piece.null_count for piece in pieces) else HeldColumn(pieces)

    @property
    def nbytes(self) -> int:
        """Bytes of all columns that are held."""
        return sum(column.nbytes for column in list(self._found.values()) if column is not None)

    @cached_property
    def _num_rows(self) -> int:
        return sum(self._snapshot.physical_rows(fragment) for fragment in self._snapshot.fragments)


def _is_narrow(type_: pa.DataType) -> bool:
    """Return whether values are a few bytes each."""
    if isinstance(type_, pa.BaseExtensionType) or not pa.types.is_primitive(type_) or pa.types.is_boolean(type_):
        return False
    return int(type_.bit_width) in (8, 16, 32, 64)
