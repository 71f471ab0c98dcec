"""Rows that match, with their scores, and how matches of several queries become those of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from lance_duck.scan.text.bm25 import Scores

Addresses = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Matches:
    """Rows that match.

    Attributes:
        addresses: Of the rows, ascending, each once.
        scores: float32.
    """

    addresses: Addresses
    scores: Scores

    def __len__(self) -> int:
        return len(self.addresses)

    @classmethod
    def none(cls) -> Matches:
        """Return no rows."""
        return cls(np.empty(0, np.uint64), np.empty(0, np.float32))

    @classmethod
    def of(cls, addresses: Addresses, scores: Scores) -> Matches:
        """Return rows in any order, each once."""
        order = np.argsort(addresses, kind="stable")
        return cls(addresses[order], scores[order])

    @classmethod
    def union(cls, parts: Sequence[Matches]) -> Matches:
        """Return the rows of several places, none of which is in two of them."""
        if len(parts) == 1:
            return parts[0]
        addresses = np.concatenate([np.empty(0, np.uint64), *(part.addresses for part in parts)])
        scores = np.concatenate([np.empty(0, np.float32), *(part.scores for part in parts)])
        return cls.of(addresses, scores)

    def where(self, mask: NDArray[np.bool_]) -> Matches:
        """Return the rows that a mask chooses."""
        return Matches(self.addresses[mask], self.scores[mask])

    def among(self, addresses: Addresses) -> Matches:
        """Return the rows that are among others, which ascend."""
        return self.where(is_among(self.addresses, addresses))

    def times(self, factor: float) -> Matches:
        """Return the same rows with scores that are so many times as high."""
        return self if factor == 1 else Matches(self.addresses, self.scores * np.float32(factor))


def is_among(addresses: Addresses, others: Addresses) -> NDArray[np.bool_]:
    """Return whether each of some rows is among others, which ascend."""
    if not len(others):
        return np.zeros(len(addresses), np.bool_)
    places = np.searchsorted(others, addresses)
    result: NDArray[np.bool_] = others[np.minimum(places, len(others) - 1)] == addresses
    return result


def all_of(parts: Sequence[Matches]) -> Matches:
    """Return the rows that are in all parts, at least one; scores add up in order."""
    rows = reduce(lambda a, b: a[is_among(a, b)], (part.addresses for part in parts))
    return Matches(rows, reduce(np.add, (part.among(rows).scores for part in parts)))


def any_of(parts: Sequence[Matches]) -> Matches:
    """Return the rows that are in any part; scores add up in order."""
    rows = np.unique(np.concatenate([part.addresses for part in parts]))
    return plus(Matches(rows, np.zeros(len(rows), np.float32)), parts)


def plus(matches: Matches, parts: Sequence[Matches], factor: float = 1) -> Matches:
    """Return rows with the scores that they have in parts added, in order, so many times each."""
    scores = matches.scores.copy()
    for part in parts:
        places = np.flatnonzero(is_among(matches.addresses, part.addresses))
        scores[places] += np.float32(factor) * part.among(matches.addresses).scores
    return Matches(matches.addresses, scores)


def best_of(parts: Sequence[Matches]) -> Matches:
    """Return the rows that are in any part, with the highest score of each."""
    rows = np.unique(np.concatenate([part.addresses for part in parts]))
    scores = np.full(len(rows), -np.inf, np.float32)
    for part in parts:
        places = np.searchsorted(rows, part.addresses)
        scores[places] = np.maximum(scores[places], part.scores)
    return Matches(rows, scores)


def without(matches: Matches, others: Matches) -> Matches:
    """Return the rows that are not among others."""
    return matches.where(~is_among(matches.addresses, others.addresses))
