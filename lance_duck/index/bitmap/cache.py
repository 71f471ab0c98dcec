"""Caches of an open bitmap file."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from lance_duck.forks import Lock
from lance_duck.rows.row_set import RowSet


class KeptBitmaps:
    """The bitmaps used last, by place. Safe to use from several threads.

    Attributes:
        nbytes: Bytes that are kept, about.

    Args:
        limit: Of these bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = Lock()
        self._found: OrderedDict[int, tuple[RowSet, int]] = OrderedDict()
        self.nbytes = 0

    def get(self, place: int) -> RowSet | None:
        """Return a bitmap, if it is kept."""
        with self._lock:
            bitmap = self._found.get(place)
            if bitmap is None:
                return None
            self._found.move_to_end(place)
            return bitmap[0]

    def put(self, place: int, rows: RowSet, size: int) -> None:
        """Keep a bitmap of some bytes."""
        size += 256  # what a set of rows has besides its values, about
        with self._lock:
            if place in self._found or size > self._limit:
                return
            self._found[place] = rows, size
            self.nbytes += size
            while self.nbytes > self._limit:
                self.nbytes -= self._found.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._found)


@dataclass(frozen=True)
class Present:
    """Rows that have a key other than null.

    Attributes:
        rows: They.
        is_disjoint: Each has one key, as a column has it. Others have what a row had before it was updated, too.
    """

    rows: RowSet
    is_disjoint: bool
