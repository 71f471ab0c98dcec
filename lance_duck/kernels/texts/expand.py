"""Kernels that replace indices, each of which the caller has checked, by the texts of a dictionary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes, copy, load_u64, store_u64

Indices = NDArray[np.unsignedinteger[Any]]
Offsets = NDArray[np.int32] | NDArray[np.int64]
SLACK = 16


@kernel
def expand_offsets(ends: Offsets, indices: Indices, offsets: Offsets) -> None:
    """Write the offsets of the texts of indices, from 0; items end at `ends` (items + 1), and the sums fit."""
    place = np.int64(0)
    offsets[0] = place
    for i in range(len(indices)):
        item = np.int64(indices[i])
        place += np.int64(ends[item + 1]) - np.int64(ends[item])
        offsets[i + 1] = place


def expand_offsets_reference(ends: Offsets, indices: Indices, offsets: Offsets) -> None:
    """Compute the plain reference, in Python."""
    offsets[0] = 0
    np.cumsum(np.diff(ends)[indices], out=offsets[1:])


@kernel
def expand_bytes(data: Bytes, ends: Offsets, indices: Indices, offsets: Offsets, out: Bytes) -> None:
    """Write the bytes of the item of each index at its offset; `out` has SLACK bytes more than they take."""
    whole = len(data) - SLACK
    for i in range(len(indices)):
        item = np.int64(indices[i])
        start: Any = np.int64(ends[item])
        size = np.int64(ends[item + 1]) - start
        place = np.int64(offsets[i])
        if size <= SLACK and start <= whole:
            store_u64(out, place, load_u64(data, start))
            store_u64(out, place + 8, load_u64(data, start + 8))
        else:
            copy(out, place, data, start, size)


def expand_bytes_reference(data: Bytes, ends: Offsets, indices: Indices, offsets: Offsets, out: Bytes) -> None:
    """Compute the plain reference, in Python."""
    for i, item in enumerate(indices.tolist()):
        out[offsets[i] : offsets[i + 1]] = data[ends[item] : ends[item + 1]]


@kernel
def expand_views(views: NDArray[np.uint64], indices: Indices, out: NDArray[np.uint64]) -> None:
    """Write the view of the item of each index, see `kernels.texts.views`."""
    for i in range(len(indices)):
        item = np.int64(indices[i])
        out[i, 0] = views[item, 0]
        out[i, 1] = views[item, 1]


def expand_views_reference(views: NDArray[np.uint64], indices: Indices, out: NDArray[np.uint64]) -> None:
    """Compute the plain reference, in Python."""
    out[:] = views[indices]
