"""The rows of two searches, for vectors and for words, in one order. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arguments import did_you_mean
from lance_duck.arrow.distinct import union_of
from lance_duck.errors import InvalidInputError

METHODS: Final = ("linear", "rrf")
_RANK_CONSTANT: Final = 60
"""Number added to a rank before it is inverted, as in LanceDB: the first ranks then differ little in score."""
_ABSENT: Final = 0.0
_EQUAL: Final = 0.5
_LARGEST: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rows that one search finds, best first.

    Attributes:
        row_ids: uint64, each once.
        measures: Distances, or scores: float32.
    """

    row_ids: NDArray[np.uint64]
    measures: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class HybridRanking:
    """The rows of a hybrid search, best first.

    Attributes:
        nearest: int64: index of each row in the vector search result, or -1 if the search did not find it.
        matching: int64: index of each row in the full-text search result, or -1 if the search did not find it.
        scores: For each row its score, greater is better: float32.
    """

    nearest: NDArray[np.int64]
    matching: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class HybridMethod:
    """How the measures of two searches become one score.

    alpha · (1 - distance) + (1 - alpha) · score, each scaled to 0 … 1 over its candidates; if all are equal, each
    counts 0.5. If a search did not find a row, it contributes 0. "rrf", reciprocal rank fusion: the sum of 1 / (60 +
    rank) over the searches that found the row, ranks from 0 as LanceDB counts them.

    Attributes:
        name: "linear" or "rrf".
        alpha: Weight of vectors in "linear", clamped to 0 … 1.

    Raises:
        InvalidInputError: The name is another one, or alpha is not a number.
    """

    name: str = "linear"
    alpha: float = 0.5

    def __post_init__(self) -> None:
        if self.name not in METHODS:
            expected = " or ".join(map(repr, METHODS))
            remedy = did_you_mean(self.name, METHODS) or "leave it out for 'linear'"
            raise InvalidInputError("method", where="hybrid search", expected=expected, found=self.name, remedy=remedy)
        if np.isnan(self.alpha):
            raise InvalidInputError("alpha", where="hybrid search", expected="a number, 0 to 1", found="NaN")

    def mix(self, nearest: Candidates, matching: Candidates, most: int) -> HybridRanking:
        """Return the `most` best rows of two searches, best first. Ties are ordered by row id."""
        row_ids = union_of(nearest.row_ids, matching.row_ids)
        near, match = _places(nearest.row_ids, row_ids), _places(matching.row_ids, row_ids)
        if self.name == "rrf":
            scores = _inverse_ranks(near) + _inverse_ranks(match)
        else:
            weight = min(max(self.alpha, 0.0), 1.0)
            closeness = 1.0 - _scaled(nearest.measures)
            scores = weight * _at(closeness, near) + (1.0 - weight) * _at(_scaled(matching.measures), match)
        rounded = scores.astype(np.float32)
        best = np.argsort(-rounded, kind="stable")[:most]
        return HybridRanking(near[best], match[best], rounded[best])


def _places(row_ids: NDArray[np.uint64], all_: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the index of each of `all_` (ascending) in `row_ids`, or -1 if it is missing."""
    places = np.full(len(all_), -1, np.int64)
    places[np.searchsorted(all_, row_ids)] = np.arange(len(row_ids))
    return places


def _inverse_ranks(places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(places < 0, _ABSENT, 1.0 / (_RANK_CONSTANT + np.maximum(places, 0)))


def _scaled(measures: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scale numbers to 0 (minimum) … 1 (maximum)."""
    values = np.nan_to_num(measures.astype(np.float64), nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
    if not len(values):
        return values
    least, span = values.min(), np.ptp(values)
    return np.full(len(values), _EQUAL) if span == 0 else (values - least) / span


def _at(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.append(values, _ABSENT)[places]
