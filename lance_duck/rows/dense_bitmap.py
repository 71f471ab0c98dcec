"""Bitmaps of many row ids in any order, through a bit array instead of a sort.

The bytes of a bitmap that are made here are described in `rows.roaring`; none of its containers holds runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_duck import lazy
from lance_duck.kernels.jit import readonly
from lance_duck.rows.costs import DENSE_NAMES

if TYPE_CHECKING:
    from lance_duck.kernels.keys import bits
else:
    bits = lazy.modules(globals(), "lance_duck.kernels.keys", "bits")

_COOKIE: Final = 12346
_ARRAY_MAX: Final = 4096
_CONTAINER_WORDS: Final = 1024


def dense_parts(names: NDArray[np.uint64]) -> dict[int, BitMap] | None:
    """Return the lower halves of row names by upper half; None where names are too few or too far apart."""
    if len(names) < DENSE_NAMES:
        return None
    names = readonly(names)
    bounds = np.empty(3, np.uint64)
    bits.bounds_of_names(names, bounds)
    least, most, within = (int(bound) for bound in bounds)
    containers = (within >> 16) + 1
    if (most - least + 1) * containers * DENSE_NAMES > len(names):  # nor do the bits take more memory than the names
        return None
    words = np.zeros((most - least + 1, containers * _CONTAINER_WORDS), np.uint64)
    bits.set_bits(names, least, words)
    return {least + i: bitmap_of(row) for i, row in enumerate(words)}


def bitmap_of(words: NDArray[np.uint64]) -> BitMap:
    """Return the bitmap of a set of numbers, given as bits: a multiple of 1024 words."""
    rows = words.reshape(-1, _CONTAINER_WORDS)
    counts = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    keys = np.flatnonzero(counts)
    counts = counts[keys]
    header = np.stack([keys, counts - 1], axis=1).astype("<u2")
    sizes = np.where(counts > _ARRAY_MAX, 8 * _CONTAINER_WORDS, 2 * counts)
    offsets = 8 + 8 * len(keys) + np.cumsum(sizes) - sizes
    pieces = [np.array([_COOKIE, len(keys)], "<u4").tobytes(), header.tobytes(), offsets.astype("<u4").tobytes()]
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        if count > _ARRAY_MAX:
            pieces.append(rows[key].astype("<u8", copy=False).tobytes())
        else:
            bits = np.unpackbits(rows[key].astype("<u8", copy=False).view(np.uint8), bitorder="little")
            pieces.append(np.flatnonzero(bits).astype("<u2").tobytes())
    return BitMap.deserialize(b"".join(pieces))
