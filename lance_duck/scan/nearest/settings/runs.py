"""Runs of consecutive rows drawn by chance from the fragments of a segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.index.catalog import Segment
from lance_duck.snapshot import Snapshot

Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Numbering:
    """Consecutive numbers of all rows of a segment's fragments, deleted ones included, in the order of the table.

    Attributes:
        fragments: uint32 (n,): ids of the fragments.
        ends: int64 (n,): one more than the number of the last row of each fragment.
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
        """Return the addresses of rows by their numbers."""
        places = np.searchsorted(self.ends, numbers, "right")
        starts = np.concatenate([[0], self.ends[:-1]])
        offsets = (numbers - starts[places]).astype(np.uint64)
        addresses: NDArray[np.uint64] = (self.fragments.astype(np.uint64)[places] << np.uint64(32)) | offsets
        return addresses


def sample_runs(total: int, count: int, length: int, rng: np.random.Generator) -> Numbers:
    """Return the numbers of the rows of at most `count` runs, ascending; of all rows if runs would hold as many.

    Args:
        total: Rows to draw from.
        count: Runs to draw.
        length: Rows of a run.
        rng: Source of randomness.
    """
    slots = -(-total // length)
    starts = np.arange(slots) if slots <= count else distinct(rng.integers(0, slots, count))
    numbers = (starts[:, None] * length + np.arange(length)).ravel()
    return numbers[numbers < total]
