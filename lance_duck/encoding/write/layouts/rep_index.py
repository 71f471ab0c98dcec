"""The repetition index of a miniblock page; `encoding.layouts.rep_index` describes the bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.layouts.page import Levels
from lance_duck.kernels.memory import Bytes


def rep_index(rep: Levels, max_rep: int, ends: NDArray[np.int64]) -> Bytes:
    """Return the number of rows that end in each chunk, and of entries at its end of a row that continues.

    Args:
        rep: Levels of the page; the first begins a row.
        max_rep: Level that begins a row.
        ends: int64 (k,), where the entries of each chunk end; the last is len(rep).
    """
    heads = np.flatnonzero(rep == max_rep)
    begun_rows = heads.searchsorted(ends)
    goes_on = np.ones(len(ends), dtype=np.bool_)
    inside = ends < len(rep)
    goes_on[inside] = rep[ends[inside]] != max_rep
    goes_on[-1] = False
    ended = begun_rows - goes_on
    starts = np.maximum(heads[np.maximum(begun_rows - 1, 0)], np.concatenate([[0], ends[:-1]])) if len(heads) else ends
    table = np.zeros((len(ends), 2), dtype="<u8")
    table[:, 0] = np.diff(ended, prepend=0)
    table[:, 1] = np.where(goes_on, ends - starts, 0)
    return table.reshape(-1).view(np.uint8)
