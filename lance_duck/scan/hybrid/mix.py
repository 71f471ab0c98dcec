"""Ranks the rows of a vector search and a full-text search together, without reading data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arguments import did_you_mean
from lance_duck.arrow.distinct import union_of
from lance_duck.errors import InvalidInputError

METHODS: Final = ("linear", "rrf")
_RANK_CONSTANT: Final = 60
"""Number that is added to a rank before the sum is inverted, as in LanceDB. The scores of the first ranks then differ
little."""
_ABSENT: Final = 0.0
_EQUAL: Final = 0.5
_LARGEST: Final = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False)
class Candidates:
    """The rows that one search finds, best first.

    Attributes:
        row_ids: uint64, without duplicates.
        measures: float32, the distance or score of each row.
    """

    row_ids: NDArray[np.uint64]
    measures: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class HybridRanking:
    """The rows of a hybrid search, best first.

    Attributes:
        nearest: int64, the index of each row in the vector search result, or -1 if the search did not find it.
        matching: int64, the index of each row in the full-text search result, or -1 if the search did not find it.
        scores: float32, the score of each row. Greater is better.
    """

    nearest: NDArray[np.int64]
    matching: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class HybridMethod:
    """How distances and scores are combined into one score.

    "linear" is alpha · (1 - distance) + (1 - alpha) · score. Distances and scores are each scaled to 0 … 1 over their
    candidates. If all distances are equal, they become 0.5, and likewise scores. A search that did not find the row
    contributes 0.

    "rrf", reciprocal rank fusion, is the sum of 1 / (60 + rank) over the searches that found the row. Ranks start at 0,
    as in LanceDB.

    Attributes:
        name: "linear" or "rrf".
        alpha: Weight of the vector search in "linear", clamped to 0 … 1.

    Raises:
        InvalidInputError: The name is unknown, or alpha is not a number.
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
            closeness = 1.0 - scaled(nearest.measures)
            scores = weight * _at(closeness, near) + (1.0 - weight) * _at(scaled(matching.measures), match)
        rounded = scores.astype(np.float32)
        best = np.argsort(-rounded, kind="stable")[:most]
        return HybridRanking(near[best], match[best], rounded[best])


def _places(row_ids: NDArray[np.uint64], all_: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the index in `row_ids` of each id in the ascending `all_`, or -1 if the id is missing."""
    places = np.full(len(all_), -1, np.int64)
    places[np.searchsorted(all_, row_ids)] = np.arange(len(row_ids))
    return places


def _inverse_ranks(places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.where(places < 0, _ABSENT, 1.0 / (_RANK_CONSTANT + np.maximum(places, 0)))


def scaled(measures: NDArray[Any], equal: float = _EQUAL) -> NDArray[np.float64]:
    """Scale numbers to 0 (minimum) … 1 (maximum). If all are equal, they become `equal`."""
    values = np.nan_to_num(measures.astype(np.float64), nan=_LARGEST, posinf=_LARGEST, neginf=-_LARGEST)
    if not len(values):
        return values
    least, span = values.min(), np.ptp(values)
    return np.full(len(values), equal) if span == 0 else (values - least) / span


def _at(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.append(values, _ABSENT)[places]
