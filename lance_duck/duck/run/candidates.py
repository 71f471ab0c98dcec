"""Finds rows of a table that may be among the nearest according to DuckDB's arithmetic.

DuckDB computes distances of float32 vectors in float32, and adds the terms in a different order. A search computes each
distance in float64. The candidates therefore include every row up to the last requested distance plus the maximum
rounding error. Ties, and near-ties that are ties in DuckDB, are then among the candidates. A search does not return
vectors that are NULL or contain NaN or infinite numbers. With the cosine metric, it does not return zero vectors
either. These rows sort last in ascending order. Dot products with infinite numbers are an exception, and may sort
first. If such rows may sort first, DuckDB reads the whole table, even if the column has an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.table_read import Condition
from lance_duck.duck.run.costs import MORE, MOST_NEAREST, MOST_OF_ALL
from lance_duck.duck.run.search_settings import SearchSettings
from lance_duck.duck.tables.nearest import DISTANCE, QUERY, found_rows
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.nearest.extremes import Extremes
from lance_duck.scan.scanner import LanceScanner

_UNIT: Final = 2.0**-24
_SHORT, _LONG = 1e-15, 1e15
_FULL: Final = 1e37


@dataclass(frozen=True, eq=False)
class Ask:
    """A statement's request for nearest rows.

    Attributes:
        metric: "l2", "cosine" or "dot".
        largest_first: Whether the rows are ordered by a similarity, with the largest first.
        column: Name of the vector column.
        vector: The query vector, or a matrix with one query vector per row.
        rough: Maximum rounding difference between each value and DuckDB's value.
        limit: Number of rows for each vector.
        condition: Condition on the rows, or None.
        parameters: Values of the parameters of the condition.
        columns: Names of the columns to return, in lower case. None for all columns.
        settings: Settings of the connection.
    """

    metric: str
    largest_first: bool
    column: str
    vector: NDArray[np.float32]
    rough: NDArray[np.float64]
    limit: int
    condition: Condition | None
    parameters: tuple[Any, ...]
    columns: frozenset[str] | None
    settings: SearchSettings

    def scanner(self, dataset: LanceDataset, k: int) -> LanceScanner:
        """Return a search for k rows per vector."""
        return dataset.scan(columns=[DISTANCE], **self.arguments(k))

    def arguments(self, k: int) -> dict[str, Any]:
        """Return the arguments of a search for k rows per vector."""
        settings = self.settings
        nearest = {"column": self.column, "q": self.vector, "k": k, "metric": self.metric}
        nearest |= {"nprobes": settings.nprobes, "ef": settings.ef, "use_index": settings.nearest == "auto"}
        # `k` already includes the additional rows to re-rank.
        nearest |= {"recall": settings.recall, "refine_factor": None if settings.refine_factor is None else 1}
        where = None if self.condition is None else self.condition.where
        filter_ = (where, list(self.parameters)) if self.parameters else where
        return {"nearest": nearest, "filter": filter_}

    def schema(self, dataset: LanceDataset) -> pa.Schema:
        """Return the schema of the columns that the statement reads, with the types that DuckDB receives."""
        whole = duckdb_arrow_schema(dataset.schema)
        if self.columns is None:
            return whole
        return pa.schema([field for field in whole if field.name.lower() in self.columns])

    @property
    def is_batch(self) -> bool:
        """Whether there may be several vectors."""
        return self.vector.ndim == 2

    @property
    def lengths(self) -> NDArray[np.float64]:
        """The length of each vector."""
        norms: NDArray[np.float64] = np.linalg.norm(np.atleast_2d(self.vector).astype(np.float64), axis=1)
        return norms

    @property
    def first(self) -> int:
        """Row count of the first search."""
        return self.limit * (self.settings.refine_factor or 1) + max(MORE, self.limit // 4)


class NotFoundHere(Exception):  # noqa: N818  # control flow between functions
    """Raised if DuckDB must run the statement without a search. The message is the reason."""


def candidates(dataset: LanceDataset, ask: Ask) -> pa.Table:
    """Return candidate rows for the statement, with a `query_index` if there are several vectors.

    Raises:
        NotFoundHere: DuckDB must read all rows.
    """
    try:
        return _candidates(dataset, ask)
    except LanceDuckError as error:
        raise NotFoundHere(str(error)) from error


def _candidates(dataset: LanceDataset, ask: Ask) -> pa.Table:
    k = ask.first
    scanner = ask.scanner(dataset, k)
    exact = scanner.is_exact
    longest = _longest(scanner, ask, exact=exact)
    made = [pa.field(QUERY, pa.int32())] if ask.is_batch else []
    schema = pa.schema([*ask.schema(dataset), *made, pa.field(DISTANCE, pa.float32())])
    most = MOST_NEAREST if not ask.is_batch else max(ask.first, MOST_OF_ALL // len(ask.vector))
    while True:
        rows = found_rows(dataset, schema, ask.arguments(k))
        distances = rows.column(DISTANCE).to_numpy()
        counts = (
            np.bincount(rows.column(QUERY).to_numpy(), minlength=len(ask.vector))
            if made
            else np.array([len(distances)])
        )
        if counts.min() < ask.limit:
            raise NotFoundHere(f"only {counts.min()} rows have a distance")
        ends = np.cumsum(counts)
        bound = _bound(ask, distances[ends - counts + ask.limit - 1].astype(np.float64), longest)
        if exact and not (bound < (_FULL if ask.metric != "cosine" else 1.999)).all():
            raise NotFoundHere("distances are at the end of what float32 holds")
        if not np.isfinite(bound).all():
            raise NotFoundHere("distances exceed float32")
        if not exact or ((counts < k) | (distances[ends - 1] > bound)).all():
            return rows.drop_columns([DISTANCE])
        k *= 4
        if k > most:
            raise NotFoundHere(f"more than {k // 4} rows lie as near as the last one")


def _longest(scanner: LanceScanner, ask: Ask, *, exact: bool) -> float:
    """Return an upper bound of the vector lengths. Returns 0 if the metric does not need a bound.

    Raises:
        NotFoundHere: The column has vectors that may sort first but that a search does not return.
    """
    metric, largest_first = ask.metric, ask.largest_first
    if not largest_first and (metric == "l2" or (metric == "cosine" and not exact)):
        return 0.0
    seen: Extremes = scanner.extremes()
    lengths = ask.lengths
    # The product with an infinite number may be the largest. NaN sorts last in ascending order.
    odd = seen.infinite if metric == "dot" and not largest_first else seen.odd
    if odd or (seen.zero and metric == "cosine" and largest_first):
        raise NotFoundHere("there are vectors with NaN or infinite numbers, or zero ones")
    if metric == "dot" and seen.greatest * lengths.max() > _FULL:
        raise NotFoundHere("there are vectors whose product float32 does not hold")
    short = min(seen.least, lengths.min()) < _SHORT or max(seen.greatest, lengths.max()) > _LONG
    if exact and (short if metric == "cosine" else seen.greatest * lengths.max() > _FULL):
        raise NotFoundHere("there are vectors whose squared length float32 does not hold")
    return seen.greatest


def _bound(ask: Ask, last: NDArray[np.float64], longest: float) -> NDArray[np.float64]:
    """Return the largest exact distances for which DuckDB may compute a distance of at most `last`."""
    lengths, rough, dim = ask.lengths, ask.rough, ask.vector.shape[-1]
    error = 4 * (dim + 8) * _UNIT
    bound: NDArray[np.float64]
    if ask.metric == "l2":
        bound = (np.sqrt(last * (1 + error) + dim * 1e-37) + 2 * rough) ** 2
    elif ask.metric == "cosine":
        bound = last + 2 * error + 4 * rough / lengths
    else:
        bound = last + error * lengths * longest + 2 * rough * longest + 8 * _UNIT * (1 + lengths * longest)
    return bound
