"""The built-in rerankers, with LanceDB's names, parameters and scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arguments import checked_calls, unknown_value
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.index.vector.vectors import matrix_of
from lance_duck.scan.hybrid.mix import scaled
from lance_duck.scan.nearest.options import only_vector_column, vector_column
from lance_duck.scan.nearest.result import DISTANCE
from lance_duck.scan.rerank.candidates import RerankCandidates, RerankedRows
from lance_duck.scan.scored.layout import SCORE

_HYBRID: Final = "_hybrid_score"


class BuiltInReranker(ABC):
    """A reranker of this package."""

    @abstractmethod
    def rank(self, candidates: RerankCandidates, most: int | None) -> RerankedRows:
        """Return the `most` best candidates (None for all), best first. Equal rows are ordered by row id."""


class FusionReranker(BuiltInReranker):
    """A reranker that computes a score from the results of a vector search and a full-text search."""

    @abstractmethod
    def scores(self, distances: NDArray[np.float64], scores: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
        """Return the relevance of each candidate.

        Args:
            distances: Distance of each candidate, or NaN if the vector search did not find it.
            scores: Score of each candidate, or NaN if the full-text search did not find it.
            ids: Row ids, which order equal distances and equal scores.
        """

    def rank(self, candidates: RerankCandidates, most: int | None) -> RerankedRows:
        """See `BuiltInReranker.rank`."""
        distances, scores = candidates.measures(DISTANCE), candidates.measures(SCORE)
        if distances is None or scores is None:
            raise InvalidInputError(
                f"{type(self).__name__} combines a vector search and a full-text search",
                where="rerank",
                found="only a full-text search" if distances is None else "only a vector search",
                remedy='add the other one: search(vector, full_text_query="…"); "mmr" and functions rerank one search',
            )
        ids = candidates.row_ids
        relevance = self.scores(distances, scores, ids).astype(np.float32)
        places = np.lexsort((ids, -relevance))[:most]
        return RerankedRows(places, relevance[places])


@checked_calls
@dataclass(frozen=True)
class RRFReranker(FusionReranker):
    """Reciprocal rank fusion: the sum of 1 / (K + rank) over the searches that found a row. Ranks start at 1.

    Attributes:
        K: Constant, above 0. The greater it is, the less the first ranks differ.

    Raises:
        InvalidInputError: `K` is not a number above 0.
    """

    K: float = 60

    def __post_init__(self) -> None:
        _check_number("K", self.K, math.ulp(0.0), math.inf, "a number above 0")

    def scores(self, distances: NDArray[np.float64], scores: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
        """See `FusionReranker.scores`."""
        return 1.0 / (self.K + _ranks(distances, ids)) + 1.0 / (self.K + _ranks(-scores, ids))


@checked_calls
@dataclass(frozen=True)
class MRRReranker(FusionReranker):
    """Mean reciprocal rank: the weighted sum of 1 / rank over the searches that found a row. Ranks start at 1.

    Attributes:
        weight_vector: Weight of the vector search, 0 to 1.
        weight_fts: Weight of the full-text search, 0 to 1. The sum of both weights is 1.

    Raises:
        InvalidInputError: A weight is out of range, or the sum is not 1.
    """

    weight_vector: float = 0.5
    weight_fts: float = 0.5

    def __post_init__(self) -> None:
        _check_number("weight_vector", self.weight_vector)
        _check_number("weight_fts", self.weight_fts)
        total = self.weight_vector + self.weight_fts
        if abs(total - 1) > 1e-6:
            raise InvalidInputError(
                "weight_vector + weight_fts", where="rerank", expected="a sum of 1", found=f"{total:g}"
            )

    def scores(self, distances: NDArray[np.float64], scores: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
        """See `FusionReranker.scores`."""
        return self.weight_vector / _ranks(distances, ids) + self.weight_fts / _ranks(-scores, ids)


@checked_calls
@dataclass(frozen=True)
class LinearCombinationReranker(FusionReranker):
    """A weighted sum: weight · (1 - distance) + (1 - weight) · score, each scaled to 0 … 1 over its search's rows.

    Attributes:
        weight: Weight of the vector search, 0 to 1.
        fill: Penalty of a search that did not find the row: it counts as distance `fill` and score 1 - `fill`.

    Raises:
        InvalidInputError: `weight` is out of range, or `fill` is not a finite number.
    """

    weight: float = 0.7
    fill: float = 1.0

    def __post_init__(self) -> None:
        _check_number("weight", self.weight)
        _check_number("fill", self.fill, -math.inf, math.inf, "a finite number")

    def scores(self, distances: NDArray[np.float64], scores: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
        """See `FusionReranker.scores`."""
        closeness = 1.0 - _scaled_or(distances, self.fill)
        return self.weight * closeness + (1.0 - self.weight) * _scaled_or(scores, 1.0 - self.fill)


@checked_calls
@dataclass(frozen=True)
class MMRReranker(BuiltInReranker):
    """Maximal marginal relevance: relevant rows that differ from each other.

    Each step chooses the row with the greatest λ · relevance - (1 - λ) · similarity. The similarity is the greatest
    cosine of its vector and a vector chosen before. In a vector search, the relevance is the cosine of the row's vector
    and the query. In other searches, it is the score of the search, scaled to 0 … 1.

    Attributes:
        lambda_mult: λ, 0 (most diverse) to 1 (most relevant).
        column: Name of the vector column that rows are compared by. None is the searched vector column. For words,
            None is the only vector column.

    Raises:
        InvalidInputError: `lambda_mult` is out of range.
    """

    lambda_mult: float = 0.5
    column: str | None = None

    def __post_init__(self) -> None:
        _check_number("lambda_mult", self.lambda_mult)
        if self.column is not None and not isinstance(self.column, str):
            raise WrongTypeError("column", where="rerank", expected="a name", found=repr(self.column))

    def rank(self, candidates: RerankCandidates, most: int | None) -> RerankedRows:
        """See `BuiltInReranker.rank`."""
        vectors = _unit_vectors(candidates, self.column)
        relevance = _relevance(candidates, vectors, self.column)
        count = len(candidates) if most is None else min(most, len(candidates))
        left = np.ones(len(candidates), bool)
        similar = np.zeros(len(candidates))
        places, scores = np.zeros(count, np.int64), np.zeros(count, np.float32)
        for step in range(count):
            values = self.lambda_mult * relevance - (1.0 - self.lambda_mult) * similar
            best = int(np.argmax(np.where(left, values, -np.inf)))  # candidates are best first, which decides ties
            places[step], scores[step] = best, values[best]
            left[best] = False
            closeness = vectors @ vectors[best]
            similar = closeness if step == 0 else np.maximum(similar, closeness)
        return RerankedRows(places, scores)


BUILT_IN: Final[Mapping[str, type[BuiltInReranker]]] = MappingProxyType(
    {
        "linear": LinearCombinationReranker,
        "mmr": MMRReranker,
        "mrr": MRRReranker,
        "rrf": RRFReranker,
    }
)
"""Classes of rerankers by name."""


def reranker_of(value: Any) -> Any:
    """Return a reranker of this package, by its name or as it is, or a function or object of the user.

    Raises:
        InvalidInputError: The name is unknown.
        WrongTypeError: The value is neither a reranker, a function nor an object with the method `rerank_hybrid`.
    """
    if isinstance(value, str):
        if value not in BUILT_IN:
            raise unknown_value("rerank", value, BUILT_IN)
        return BUILT_IN[value]()
    is_class = isinstance(value, type)
    if is_class or not (isinstance(value, BuiltInReranker) or callable(value) or hasattr(value, "rerank_hybrid")):
        raise WrongTypeError(
            "rerank",
            where="search",
            expected="a name, a reranker of lance_duck.rerankers, or a function of the candidates and the query",
            found=f"the class {value.__name__}" if is_class else type(value).__name__,
            remedy=f"call it: {value.__name__}()" if is_class else None,
        )
    return value


def _ranks(measures: NDArray[np.float64], ids: Any) -> NDArray[np.float64]:
    """Return the rank of each measure, from 1 for the least. The rank of NaN is infinite."""
    ranks = np.full(len(measures), np.inf)
    order = np.lexsort((ids, measures))  # NaN last
    present = order[: len(measures) - int(np.isnan(measures).sum())]
    ranks[present] = np.arange(1, len(present) + 1)
    return ranks


def _scaled_or(measures: NDArray[np.float64], missing: float) -> NDArray[np.float64]:
    """Scale measures to 0 … 1. Equal measures become 0, as in LanceDB, and NaN becomes `missing`."""
    values = np.full(len(measures), missing)
    present = ~np.isnan(measures)
    values[present] = scaled(measures[present], 0.0)
    return values


def _unit_vectors(candidates: RerankCandidates, name: str | None) -> NDArray[np.float64]:
    """Return the vectors of the candidates, (rows, dim), divided by their lengths. A null becomes zeros."""
    table = candidates.table
    column = vector_column(table, name or candidates.column or only_vector_column(table))
    if column.dtype == np.uint8:
        raise InvalidInputError("MMRReranker", where=f"column {column.path}", expected="numbers", found="bits")
    projection = table.projection([column.path])
    rows = table.taker.table(table.taker.by_row_id, candidates.row_ids, projection).column(0)
    array = rows.cast(column.form).combine_chunks() if rows.type != column.form else rows.combine_chunks()
    matrix, present = matrix_of(array, column.dim)
    wide = np.nan_to_num(matrix.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    if present is not None:
        wide[~present] = 0.0
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(wide, lengths, out=np.zeros_like(wide), where=lengths > 0)
    return unit


def _relevance(candidates: RerankCandidates, vectors: NDArray[np.float64], name: str | None) -> NDArray[np.float64]:
    """Return the relevance of each candidate, at most 1."""
    for score in (_HYBRID, SCORE):
        if (measures := candidates.measures(score)) is not None:
            return scaled(measures, 1.0)
    distances = candidates.measures(DISTANCE)
    assert distances is not None  # a search has distances or scores
    query = np.asarray(candidates.vector, np.float64).reshape(-1)
    length = float(np.linalg.norm(query))
    if name not in (None, candidates.column) or len(query) != vectors.shape[1]:
        return 1.0 - scaled(distances, 0.0)
    return vectors @ (query / length) if length else np.zeros(len(vectors))


def _check_number(name: str, value: Any, least: float = 0, most: float = 1, expected: str = "0 to 1") -> None:
    """Check that a parameter is a finite number between two bounds."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise WrongTypeError(name, where="rerank", expected="a number", found=repr(value))
    if not math.isfinite(value) or not least <= value <= most:
        raise InvalidInputError(name, where="rerank", expected=expected, found=repr(value))
