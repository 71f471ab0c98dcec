"""Runs of rows drawn by chance, of the fragments of a segment, numbered through in the order of the table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment
from lance_duck.snapshot import Snapshot

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbering:
    """Numbers of all rows of a segment's fragments, deleted ones among them.

    Attributes:
        fragments: Ids.
        ends: int64, for each the number after that of its last row.
    """

    fragments: NDArray[np.uint32]
    ends: Numbers

    @classmethod
    def of(cls, snapshot: Snapshot, segment: Segment) -> Numbering:
        """Return the numbering of a segment's rows."""
        sizes = [snapshot.physical_rows(snapshot.fragment(i)) for i in segment.fragments.tolist()]
        return cls(segment.fragments, np.cumsum(np.array(sizes, np.int64)))

    @property
    def total(self) -> int:
        """Rows of all fragments."""
        return int(self.ends[-1]) if len(self.ends) else 0

    def addresses(self, numbers: Numbers) -> NDArray[np.uint64]:
        """Return the addresses of rows."""
        places = np.searchsorted(self.ends, numbers, "right")
        starts = np.concatenate([[0], self.ends[:-1]])
        offsets = (numbers - starts[places]).astype(np.uint64)
        addresses: NDArray[np.uint64] = (self.fragments.astype(np.uint64)[places] << np.uint64(32)) | offsets
        return addresses


def sample_runs(total: int, count: int, length: int, rng: np.random.Generator) -> Numbers:
    """Return the numbers of rows in runs, ascending: as many runs as are asked for, or fewer; or of all rows.

    Args:
        total: Rows.
        count: Runs.
        length: Rows of each.
        rng: Draws.
    """
    slots = -(-total // length)
    starts = np.arange(slots) if slots <= count else np.unique(rng.integers(0, slots, count))
    numbers = (starts[:, None] * length + np.arange(length)).ravel()
    return numbers[numbers < total]
