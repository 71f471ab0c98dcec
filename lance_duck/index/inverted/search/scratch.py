"""Arrays that searches reuse. New arrays of a megabyte cost a page fault for each page that is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from lance_duck.index.inverted.costs import DOCUMENT_POSITIONS
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.positions import GROUP
from lance_duck.kernels.postings.search.intersect import ROWS_BEFORE
from lance_duck.kernels.postings.search.phrases import POSITION_STATE

_MOST_TERMS: Final = 8
"""Maximum number of terms for which arrays are kept. They take up to 1.3 MB. This limits memory."""
_MOST_SIZES: Final = 8
_MOST_OF_A_SIZE: Final = 2
_FIRST_BLOCKS: Final = 1 << 10
_FIRST_BYTES: Final = 1 << 17
_MOST_BYTES: Final = 4 << 20


class SpareArrays:
    """Groups of arrays by their sizes. The first size is the number of terms. Safe to use from several threads.

    Args:
        make: Returns new arrays, given the sizes.
    """

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._kept: dict[tuple[int, ...], list[Any]] = {}

    def take(self, *sizes: int) -> Any:
        """Return arrays that no other search uses until `give`."""
        kept = self._kept.get(sizes)
        try:
            return kept.pop() if kept else self._make(*sizes)
        except IndexError:  # another thread took the last group
            return self._make(*sizes)

    def give(self, arrays: Any, *sizes: int) -> None:
        """Keep arrays after a successful search. After an error, their contents may be invalid."""
        if sizes[0] > _MOST_TERMS:
            return
        kept = self._kept.get(sizes)
        if kept is None:
            if len(self._kept) >= _MOST_SIZES:
                self._kept = {}
            kept = self._kept.setdefault(sizes, [])
        if len(kept) < _MOST_OF_A_SIZE:
            kept.append(arrays)


class _Arenas(SpareArrays):
    """Room for the postings of terms. Its size is that of the largest search so far, up to a limit."""

    def __init__(self) -> None:
        super().__init__(lambda _: _arena(_FIRST_BLOCKS, _FIRST_BYTES))

    def larger(self, blocks: int, size: int) -> Any:
        """Return an arena for this many blocks and bytes. The next searches take one of this size, too."""
        return _arena(max(blocks, _FIRST_BLOCKS), max(size, _FIRST_BYTES))

    def give(self, arrays: Any, *sizes: int) -> None:
        """See `SpareArrays.give`. Very large arenas are not kept."""
        if arrays[0].nbytes <= _MOST_BYTES:
            super().give(arrays, *sizes)


def _arena(blocks: int, size: int) -> Any:
    return (
        np.empty(size, np.uint8),
        np.empty(blocks + 1, np.int64),
        np.empty(blocks, np.int64),
        np.empty(blocks, np.float64),
        np.empty(blocks, np.int64),
        np.empty((2, blocks), np.int64),
    )


def _meeting(count: int, block_size: int, window: int) -> Any:
    return (
        np.empty((2, count, block_size), np.uint32),
        np.empty((2, count), np.int64),
        np.zeros(window, np.uint32),
        np.zeros(1, np.int64),
        np.empty((ROWS_BEFORE + count, window + 1), np.int64),
    )


def _sums(count: int, window: int) -> Any:
    return (
        np.zeros((count, window), np.float32),
        np.empty(window, np.float32),
        np.empty(window + 1, np.int64),
        np.empty(count, np.int64),
    )


def _phrases(count: int, waiting: int) -> Any:
    pool = np.empty(waiting, np.float32), np.empty((1 + count, waiting), np.int64), np.empty(waiting, np.int64)
    state = np.empty((count, POSITION_STATE), np.int64)
    return pool, (np.empty(count * GROUP, np.uint32), state, np.empty((2, DOCUMENT_POSITIONS), np.int64))


NO_MASK: Final = readonly(np.empty(0, np.bool_))
ARENAS: Final = _Arenas()
"""The argument `arena` of `kernels.postings.search.direct`."""
MEETING: Final = SpareArrays(_meeting)
"""Arrays of `work` in `kernels.postings.search.intersect` without the sequence of the terms, by the number of terms,
documents in a full block, and documents in a window."""
SUMS: Final = SpareArrays(_sums)
"""The other arrays of `work` in `kernels.postings.search.best_of_any`, by the number of terms, and of documents in a
window."""
PHRASES: Final = SpareArrays(_phrases)
"""The arguments `pool` and `reading` of `kernels.postings.search.phrases`, by the numbers of words and of documents."""
