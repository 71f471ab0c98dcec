"""Byte ranges of a source as parts of one array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.store.request import ByteRange, Bytes


def join_ranges(ranges: Sequence[ByteRange], pieces: Sequence[Bytes]) -> tuple[Bytes, NDArray[np.int64]]:
    """Return the bytes that hold all ranges of one source, and where each begins in them.

    Views of a mapped file are parts of one array already, which is not copied; other ranges are joined end to end.
    """
    if len(pieces) == 1:
        return pieces[0], np.zeros(1, dtype=np.int64)
    sizes = np.array([r.size for r in ranges], dtype=np.int64)
    whole = pieces[0].base if pieces else None
    if isinstance(whole, np.ndarray) and _holds(whole, ranges, pieces):
        return whole, np.array([r.offset for r in ranges], dtype=np.int64)
    data = joined(pieces, np.uint8)
    return data, np.cumsum(sizes) - sizes


def _holds(whole: Bytes, ranges: Sequence[ByteRange], pieces: Sequence[Bytes]) -> bool:
    if whole.dtype != np.uint8 or whole.ndim != 1 or whole.nbytes != ranges[0].source.size:
        return False
    if not all(part.base is whole for part in pieces):
        return False
    ends = (0, len(pieces) - 1)
    return all(_address(pieces[i]) == _address(whole) + ranges[i].offset for i in ends)


def _address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])
