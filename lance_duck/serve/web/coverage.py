"""The layout of a version as strips of bars: fragments with their rows, and what each index covers.

Only the manifest is read. If there are many fragments, neighbours share a bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import IndexDescription

MOST_BARS: Final = 200
_FEWEST: Final = 24  # so that a single fragment is not as wide as the page

_Counts = NDArray[np.int64]


@dataclass(frozen=True)
class BarPart:
    """A rectangle of a strip, in a box whose height is 100 and whose bars are 10 wide.

    Attributes:
        kind: "rows", "deleted", "covered" or "bare".
        x: Left edge.
        y: Upper edge.
        width: Width.
        height: Height.
        title: What the bar shows.
    """

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True)
class CoverageStrips:
    """The strips of a version.

    Attributes:
        width: Width of all strips.
        bars: Number of bars.
        fragments: Number of fragments.
        deleted: Number of deleted rows that are still in data files.
        rows: The strip of the fragments.
        covered: The strip of each index.
    """

    width: int
    bars: int
    fragments: int
    deleted: int
    rows: Sequence[BarPart]
    covered: Sequence[Sequence[BarPart]]


def coverage_strips(snapshot: Snapshot, indexes: Sequence[IndexDescription]) -> CoverageStrips | None:
    """Return the strips of a version, or None if it has no fragments or its manifest lacks row counts."""
    fragments = snapshot.fragments
    if not len(fragments) or fragments.row_counts() is None:
        return None
    physical = np.array([fragment.physical_rows for fragment in fragments], np.int64)
    deleted = np.array([fragment.num_deletions for fragment in fragments], np.int64)
    ids = np.array(fragments.ids(), np.int64)
    starts = np.arange(0, len(ids), -(-len(ids) // MOST_BARS))  # all groups but the last have the same size
    names = _names(ids, starts)
    sums = np.add.reduceat(physical, starts), np.add.reduceat(deleted, starts)
    covered = []
    for index in indexes:
        listed = np.array(sorted(set().union(*(segment.fragment_ids for segment in index.segments))), np.int64)
        inside = np.where(np.isin(ids, listed), physical - deleted, 0)
        covered.append(_index_strip(names, sums[0] - sums[1], np.add.reduceat(inside, starts)))
    rows = _row_strip(names, *sums)
    width = 10 * max(len(starts), _FEWEST)
    return CoverageStrips(width, len(starts), len(ids), int(deleted.sum()), rows, covered)


def _row_strip(names: Sequence[str], physical: _Counts, deleted: _Counts) -> list[BarPart]:
    scale = 100 / max(int(physical.max()), 1)
    parts = []
    for bar, (name, all_, gone) in enumerate(zip(names, physical.tolist(), deleted.tolist(), strict=True)):
        title = f"{name}: {all_ - gone:,} rows" + (f", {gone:,} deleted" if gone else "")
        height, lost = max(all_ * scale, 2), gone * scale
        parts.append(_part("rows", bar, 100 - height + lost, height - lost, title))
        if gone:
            parts.append(_part("deleted", bar, 100 - height, max(lost, 2), title))
    return parts


def _index_strip(names: Sequence[str], rows: _Counts, covered: _Counts) -> list[BarPart]:
    parts = []
    for bar, (name, all_, inside) in enumerate(zip(names, rows.tolist(), covered.tolist(), strict=True)):
        title = f"{name}: {inside:,} of {all_:,} rows covered"
        height = 100 * inside / all_ if all_ else 0
        if height < 100:
            parts.append(_part("bare", bar, 0, 100 - height, title))
        if height:
            parts.append(_part("covered", bar, 100 - height, height, title))
    return parts


def _part(kind: str, bar: int, y: float, height: float, title: str) -> BarPart:
    return BarPart(kind, 10 * bar + 0.5, round(y, 1), 9, round(height, 1), title)


def _names(ids: NDArray[np.int64], starts: NDArray[np.int64]) -> list[str]:
    ends = [*starts[1:].tolist(), len(ids)]
    return [
        f"fragment {ids[start]}" if end - start == 1 else f"fragments {ids[start]} to {ids[end - 1]}"
        for start, end in zip(starts.tolist(), ends, strict=True)
    ]
