"""Calls rerankers of users, and checks what they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arguments import known_names
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.hybrid.mix import scaled
from lance_duck.scan.nearest.result import DISTANCE
from lance_duck.scan.rerank.candidates import RELEVANCE, RerankCandidates, RerankedRows
from lance_duck.scan.scored.layout import SCORE

_ROW_ID = "_rowid"
_WHERE = "result of rerank"


def ranking_of_user(reranker: Any, candidates: RerankCandidates, most: int | None) -> RerankedRows:
    """Rank candidates by a function, or by an object with the methods of LanceDB's rerankers.

    Args:
        reranker: The function or object. A function gets the candidates as a table, and the query. It returns one
            number per candidate, or a table of some of the candidates, in their new order.
        candidates: The candidates.
        most: Number of rows to return. None returns all.

    Raises:
        InvalidInputError: The result does not fit the candidates.
        WrongTypeError: The result is neither a table nor numbers.
    """
    if hasattr(reranker, "rerank_hybrid"):
        result = _by_methods(reranker, candidates)
    else:
        result = reranker(candidates.rows, candidates.query)
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if isinstance(result, pa.Table):
        ranking = _ranking_of_table(result, candidates)
    else:
        ranking = _ranking_of_numbers(result, candidates)
    return RerankedRows(ranking.places[:most], None if ranking.scores is None else ranking.scores[:most])


def _by_methods(reranker: Any, candidates: RerankCandidates) -> Any:
    """Call the method of a LanceDB reranker that fits the search. Distances and scores are scaled, as in LanceDB."""
    rows, query = candidates.rows, candidates.query
    has_vector, has_words = (name in rows.schema.names for name in (DISTANCE, SCORE))
    method = "rerank_vector" if not has_words else "rerank_fts" if not has_vector else "rerank_hybrid"
    if not hasattr(reranker, method):
        raise WrongTypeError(
            "rerank", where="search", expected=f"an object with the method {method}", found=type(reranker).__name__
        )
    if method != "rerank_hybrid":
        return getattr(reranker, method)(query, rows)
    near = _scaled_rows(rows.filter(pc.is_valid(rows.column(DISTANCE))).drop_columns([SCORE]), DISTANCE, "ascending")
    match = _scaled_rows(rows.filter(pc.is_valid(rows.column(SCORE))).drop_columns([DISTANCE]), SCORE, "descending")
    return reranker.rerank_hybrid(query, near, match)


def _scaled_rows(rows: pa.Table, name: str, order: str) -> pa.Table:
    """Return rows in the order of a score, which is scaled to 0 … 1."""
    rows = rows.sort_by([(name, order), (_ROW_ID, "ascending")])
    values = pa.array(scaled(rows.column(name).to_numpy(), 0.0), pa.float32())
    return rows.set_column(rows.schema.get_field_index(name), name, values)


def _ranking_of_table(result: pa.Table, candidates: RerankCandidates) -> RerankedRows:
    """Return the ranking in a table, whose rows are best first."""
    for name in (_ROW_ID, RELEVANCE):
        if result.schema.names.count(name) > 1:
            raise InvalidInputError("the table", where=_WHERE, expected=f"one column {name}", found="several")
    if _ROW_ID not in result.schema.names:
        raise InvalidInputError(
            "the table has no `_rowid`, which tells its rows apart",
            where=_WHERE,
            found=known_names(result.schema.names),
            remedy="keep the column `_rowid` of the candidates, or return one number per candidate",
        )
    ids = result.column(_ROW_ID)
    places = pc.index_in(ids, pa.array(candidates.row_ids)) if ids.type == pa.uint64() else None
    if places is None or places.null_count:
        unknown = ids if places is None else ids.filter(pc.is_null(places))
        found = f"type {ids.type}" if places is None else f"_rowid {unknown[0].as_py()}"
        raise InvalidInputError("the table", where=_WHERE, expected="rows of the candidates", found=found)
    numbers: NDArray[np.int64] = places.to_numpy().astype(np.int64)
    if len(np.unique(numbers)) < len(numbers):
        raise InvalidInputError("the table", where=_WHERE, expected="each row once", found="a row twice")
    if RELEVANCE not in result.schema.names:
        return RerankedRows(numbers, None)
    return RerankedRows(numbers, _numbers(result.column(RELEVANCE), len(result), f"column {RELEVANCE}"))


def _ranking_of_numbers(result: Any, candidates: RerankCandidates) -> RerankedRows:
    scores = _numbers(result, len(candidates), "relevance scores")
    places = np.argsort(-scores, kind="stable")  # candidates are best first, which decides ties
    return RerankedRows(places, scores[places])


def _numbers(values: Any, count: int, what: str) -> NDArray[np.float32]:
    """Return values as float32 after checking their number, and that all are finite."""
    if values is None or isinstance(values, str | bytes | dict):
        found = type(values).__name__
        raise WrongTypeError(what, where=_WHERE, expected="numbers, one per candidate, or a table", found=found)
    try:
        scores = np.asarray(values.to_numpy(zero_copy_only=False) if isinstance(values, pa.Array) else values)
        if scores.dtype.kind not in "biufO":
            raise TypeError(f"type {scores.dtype}")
        with np.errstate(over="ignore"):
            numbers: NDArray[np.float32] = scores.astype(np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        expected = "numbers, one per candidate, or a table"
        raise WrongTypeError(what, where=_WHERE, expected=expected, found=str(error)) from error
    if numbers.shape != (count,):
        found = f"{len(numbers)}" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
        raise InvalidInputError(what, where=_WHERE, expected=f"{count}, one per candidate", found=found)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        raise InvalidInputError(what, where=_WHERE, expected="finite numbers", found=f"{scores[place]} at {place}")
    return numbers
