"""Orders a result by score, best first. Rows with equal scores are ordered by row id, then by list position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.rows import split_addresses
from lance_duck.scan.text.bm25 import Scores
from lance_duck.scan.text.matches import Matches
from lance_duck.scan.text.places import Addresses
from lance_duck.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in the order of a result.

    Attributes:
        addresses: uint64 (n,), the address of each row, or of the row that contains the list element.
        scores: float32 (n,).
        elements: See `Place.elements`.
    """

    addresses: Addresses
    scores: Scores
    elements: tuple[NDArray[np.uint32], ...] = ()

    def __len__(self) -> int:
        return len(self.addresses)

    def where(self, mask: NDArray[np.bool_]) -> Ranking:
        """Return the rows that a mask selects."""
        return self.take(np.flatnonzero(mask))

    def take(self, places: NDArray[np.int64]) -> Ranking:
        """Return the rows at these positions, in this order."""
        return Ranking(self.addresses[places], self.scores[places], tuple(level[places] for level in self.elements))

    @property
    def by_row(self) -> Matches:
        """Matches of rows. Each row occurs once, with the highest score of its elements."""
        if not self.elements:
            return Matches.of(self.addresses, self.scores)
        rows, places = np.unique(self.addresses, return_inverse=True)
        scores = np.full(len(rows), -np.inf, np.float32)
        np.maximum.at(scores, places, self.scores)
        return Matches(rows, scores)


def ranked(snapshot: Snapshot, ranking: Ranking, most: int | None = None) -> Ranking:
    """Return the best rows, at most `most` (None for all), best first."""
    if most is not None and most < len(ranking):
        if most == 0:
            return ranking.take(np.empty(0, np.int64))
        least = np.partition(ranking.scores, len(ranking) - most)[len(ranking) - most]
        ranking = ranking.where(ranking.scores >= least)
    keys: list[NDArray[Any]] = [*reversed(ranking.elements), row_ids(snapshot, ranking.addresses), -ranking.scores]
    return ranking.take(np.lexsort(keys)[:most])


def row_ids(snapshot: Snapshot, addresses: Addresses) -> NDArray[np.uint64]:
    """Return the `_rowid` of rows by address."""
    if not snapshot.has_stable_row_ids:
        return addresses
    ids = np.empty(len(addresses), np.uint64)
    fragments, offsets = split_addresses(addresses)
    for fragment_id in distinct(fragments).tolist():
        in_fragment = fragments == fragment_id
        sequence = snapshot.row_ids(snapshot.fragment(fragment_id))
        ids[in_fragment] = addresses[in_fragment] if sequence is None else sequence.take(offsets[in_fragment])
    return ids
