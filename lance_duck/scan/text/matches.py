"""Matching documents with their scores, and combinations of several queries' matches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.scan.text.bm25 import Scores

Names = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Matches:
    """Documents that match.

    Attributes:
        names: uint64 (n,), ascending and distinct row addresses or list element numbers: see `Corpus.names`.
        scores: float32 (n,).
    """

    names: Names
    scores: Scores

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def none(cls) -> Matches:
        """Return empty matches."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.float32))

    @classmethod
    def of(cls, names: Names, scores: Scores) -> Matches:
        """Build matches from distinct documents in any order."""
        order = np.argsort(names, kind="stable")
        return cls(names[order], scores[order])

    @classmethod
    def union(cls, parts: Sequence[Matches]) -> Matches:
        """Join the matches of disjoint document sets."""
        if len(parts) == 1:
            return parts[0]
        names = np.concatenate([np.empty(0, np.uint64), *(part.names for part in parts)])
        scores = np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)])
        return cls.of(names, scores)

    def where(self, mask: NDArray[np.bool_]) -> Matches:
        """Return the documents that a mask selects."""
        return Matches(self.names[mask], self.scores[mask])

    def among(self, names: Names) -> Matches:
        """Return the documents whose names are in the ascending `names`."""
        return self.where(is_among(self.names, names))

    def times(self, factor: float) -> Matches:
        """Return the documents with their scores multiplied by a factor."""
        return self if factor == 1 else Matches(self.names, self.scores * np.float32(factor))


def is_among(names: Names, others: Names) -> NDArray[np.bool_]:
    """Return, for each name, whether it is in the ascending `others`."""
    if not len(others):
        return np.zeros(len(names), np.bool_)
    places = np.searchsorted(others, names)
    result: NDArray[np.bool_] = others[np.minimum(places, len(others) - 1)] == names
    return result


def intersect_matches(parts: Sequence[Matches]) -> Matches:
    """Return the documents that occur in all parts (at least one part). Scores are added in order."""
    names = reduce(lambda a, b: a[is_among(a, b)], (part.names for part in parts))
    return Matches(names, reduce(np.add, (part.among(names).scores for part in parts)))


def union_matches(parts: Sequence[Matches]) -> Matches:
    """Return the documents that occur in any part. Scores are added in order."""
    names = distinct(np.concatenate([part.names for part in parts]))
    return plus(Matches(names, np.zeros(len(names), np.float32)), parts)


def plus(matches: Matches, parts: Sequence[Matches], factor: float = 1) -> Matches:
    """Return documents with increased scores: add the scores of each part, in order, multiplied by a factor."""
    scores = matches.scores.copy()
    for part in parts:
        places = np.flatnonzero(is_among(matches.names, part.names))
        scores[places] += np.float32(factor) * part.among(matches.names).scores
    return Matches(matches.names, scores)


def best_of(parts: Sequence[Matches]) -> Matches:
    """Return the documents that occur in any part, each with its highest score."""
    names = distinct(np.concatenate([part.names for part in parts]))
    scores = np.full(len(names), -np.inf, np.float32)
    for part in parts:
        places = np.searchsorted(names, part.names)
        scores[places] = np.maximum(scores[places], part.scores)
    return Matches(names, scores)


def without(matches: Matches, others: Matches) -> Matches:
    """Return the documents that are not in `others`."""
    return matches.where(~is_among(matches.names, others.names))
