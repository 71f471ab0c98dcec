"""The order of a result: by score, the best first; rows of one score by row id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows import split_addresses
from lance_duck.scan.text.bm25 import Scores
from lance_duck.scan.text.matches import Addresses, Matches
from lance_duck.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class Ranking:
    """Rows in the order of a result.

    Attributes:
        addresses: Of the rows.
        scores: float32.
    """

    addresses: Addresses
    scores: Scores

    def __len__(self) -> int:
        return len(self.addresses)

    def where(self, mask: NDArray[np.bool_]) -> Ranking:
        """Return the rows that a mask chooses."""
        return Ranking(self.addresses[mask], self.scores[mask])

    def slice(self, skip: int, most: int | None) -> Ranking:
        """Return `most` rows, None for all, after the first `skip`."""
        span = slice(skip, None if most is None else skip + most)
        return Ranking(self.addresses[span], self.scores[span])


def ranked(snapshot: Snapshot, matches: Matches, most: int | None = None) -> Ranking:
    """Return the best rows, `most` of them; None: all."""
    addresses, scores = matches.addresses, matches.scores
    if most is not None and most < len(scores):
        if most == 0:
            return Ranking(addresses[:0], scores[:0])
        least = np.partition(scores, len(scores) - most)[len(scores) - most]
        candidates = scores >= least
        addresses, scores = addresses[candidates], scores[candidates]
    order = np.lexsort((row_ids(snapshot, addresses), -scores))[:most]
    return Ranking(addresses[order], scores[order])


def row_ids(snapshot: Snapshot, addresses: Addresses) -> NDArray[np.uint64]:
    """Return the `_rowid` of rows."""
    if not snapshot.has_stable_row_ids:
        return addresses
    ids = np.empty(len(addresses), np.uint64)
    fragments, offsets = split_addresses(addresses)
    for fragment_id in np.unique(fragments).tolist():
        mine = fragments == fragment_id
        sequence = snapshot.row_ids(snapshot.fragment(fragment_id))
        ids[mine] = addresses[mine] if sequence is None else sequence.take(offsets[mine])
    return ids
