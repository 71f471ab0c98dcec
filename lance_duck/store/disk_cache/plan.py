"""Which pages a read needs, which ranges to fetch for missing pages, and the requested bytes from both."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from lance_duck.store.costs import COALESCED_GAP
from lance_duck.store.disk_cache.blocks import PAGE
from lance_duck.store.request import Bytes

_GAP_PAGES: Final = COALESCED_GAP // PAGE


def pages_of(starts: Sequence[int], lengths: Sequence[int]) -> set[int]:
    """Return the pages of ranges. No range is empty."""
    return {
        page
        for start, length in zip(starts, lengths, strict=True)
        for page in range(start // PAGE, (start + length - 1) // PAGE + 1)
    }


def ranges_to_fetch(pages: Iterable[int], size: int) -> list[tuple[int, int]]:
    """Return the ranges, as (offset, size), that contain pages. Pages that lie close together share a range.

    Args:
        pages: Numbers of pages.
        size: Size of the object in bytes.
    """
    runs: list[list[int]] = []
    for page in sorted(pages):
        if runs and page - runs[-1][1] <= _GAP_PAGES:
            runs[-1][1] = page + 1
        else:
            runs.append([page, page + 1])
    return [(first * PAGE, min(stop * PAGE, size) - first * PAGE) for first, stop in runs]


def split(offset: int, data: Bytes) -> dict[int, Bytes]:
    """Return the pages of a fetched range."""
    first = offset // PAGE
    return {first + at // PAGE: data[at : at + PAGE] for at in range(0, len(data), PAGE)}


class ReadPieces:
    """Bytes of an object, from which ranges are cut.

    Args:
        pages: Pages from the cache.
        runs: Fetched ranges, by offset.
    """

    def __init__(self, pages: Mapping[int, Bytes], runs: Mapping[int, Bytes]) -> None:
        fetched = {page for offset, data in runs.items() for page in pages_of([offset], [len(data)])}
        data_at = {page * PAGE: data for page, data in pages.items() if page not in fetched} | dict(runs)
        self._starts = sorted(data_at)
        self._data = [data_at[start] for start in self._starts]

    def cut(self, start: int, length: int) -> Bytes:
        """Return the bytes of a range. All its pages are there. Bytes are copied only if they are in several pieces."""
        at = bisect_right(self._starts, start) - 1
        offset = start - self._starts[at]
        parts = [self._data[at][offset : offset + length]]
        missing = length - len(parts[0])
        while missing > 0:
            at += 1
            parts.append(self._data[at][:missing])
            missing -= len(parts[-1])
        if len(parts) == 1:
            return parts[0]
        whole = np.concatenate(parts)
        whole.setflags(write=False)
        return whole
