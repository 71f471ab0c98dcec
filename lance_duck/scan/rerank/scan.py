"""A search whose candidates are reranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from lance_duck.embedders import TextVector
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.scan.hybrid.mix import HybridMethod
from lance_duck.scan.hybrid.options import Hybrid, at_least_one
from lance_duck.scan.nearest.options import DEFAULT_K
from lance_duck.scan.nearest.result import DISTANCE
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID, ColumnsLike
from lance_duck.scan.rerank.candidates import RELEVANCE, RerankCandidates, RerankedRows
from lance_duck.scan.rerank.rerankers import BuiltInReranker, reranker_of
from lance_duck.scan.rerank.returned import ranking_of_user
from lance_duck.scan.scored.layout import SCORE
from lance_duck.scan.table_scan import TableScan

_HYBRID_SCORE: Final = "_hybrid_score"
_SCORES: Final = (DISTANCE, SCORE, _HYBRID_SCORE)


class _CandidateSearch(Protocol):
    """The search for candidates: a `LanceScanner`."""

    @property
    def projected_schema(self) -> pa.Schema: ...

    @property
    def is_exact(self) -> bool: ...

    @property
    def is_batch(self) -> bool: ...

    def to_table(self) -> pa.Table: ...

    def explain_plan(self, verbose: bool = False) -> str: ...

    def analyze_plan(self, count_rows: bool = False) -> str: ...


class RerankedScan:
    """A search that finds several candidates per result row, and returns those that a reranker prefers.

    Args:
        table: The table.
        options: The options of the search, with `rerank`.

    Raises:
        WrongTypeError: The reranker cannot be called.
        InvalidInputError: The reranker's name is unknown, or an option does not fit.
        UnsupportedError: An option is not supported with a reranker.
    """

    def __init__(self, table: TableScan, options: ScanOptions) -> None:
        if options.nearest is None and options.full_text_query is None:
            raise InvalidInputError("rerank", where="scan", expected="nearest or full_text_query", found="neither")
        if options.nearest is not None and not isinstance(options.nearest, Mapping):
            raise WrongTypeError("nearest", where="scan", expected="a dict", found=type(options.nearest).__name__)
        if options.orderings:
            raise UnsupportedError("order_by is not supported with rerank", where="scan", remedy="sort the result")
        self._reranker = reranker_of(options.rerank)
        self._options = options
        self._table = table
        self._k = _k(options)
        self._columns = _RerankedColumns(options)
        self._inner: _CandidateSearch | None = None

    @property
    def candidate_options(self) -> ScanOptions:
        """The options of the search for candidates."""
        options = self._options
        factor = Hybrid.of(_of_candidates(options.hybrid)).oversample_factor
        rows = max(self._table.snapshot.count_rows(), 1)
        most = None if self._k is None else min(self._k * factor, rows)
        nearest: Mapping[str, Any] | None = options.nearest
        hybrid: Any = None
        if nearest is not None and options.full_text_query is not None:
            nearest, hybrid = {**nearest, "k": self._k}, Hybrid(HybridMethod(), factor, is_whole=True)
        elif nearest is not None:
            nearest = {**nearest, "k": most}
        return replace(
            options,
            columns=self._columns.inner,
            limit=most if nearest is None else None,
            offset=None,
            batch_size=None,
            nearest=nearest,
            hybrid=hybrid,
            rerank=None,
            with_row_id=not self._columns.has_row_id,
            disable_scoring_autoprojection=None,
            scan_stats_callback=None,
        )

    def begin(self, inner: _CandidateSearch) -> None:
        """Set the search for candidates, which has the options `candidate_options`.

        Raises:
            InvalidInputError: The search has several queries, or a column of the table is named like the relevance.
        """
        if inner.is_batch:
            raise InvalidInputError("query vector", where="rerank", expected="one", found="a list of vectors")
        if RELEVANCE in self._table.snapshot.schema.names:
            raise InvalidInputError(
                f"rerank cannot be used on datasets with column {RELEVANCE!r}", remedy="rename the column"
            )
        self._inner = inner

    @property
    def _search(self) -> _CandidateSearch:
        assert self._inner is not None  # set by `begin`
        return self._inner

    @property
    def schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._columns.result(_with_relevance(self._search.projected_schema.empty_table(), None)).schema

    @property
    def is_exact(self) -> bool:
        """Whether the search for candidates is exact."""
        return self._search.is_exact

    def table(self) -> pa.Table:
        """Search, rerank, and read the result."""
        rows = self._search.to_table()
        if self._columns.has_row_id and rows.schema.field(ROW_ID).type != pa.uint64():
            raise InvalidInputError("columns", where="rerank", expected="no other column as _rowid", found="_rowid")
        candidates = RerankCandidates(rows, *self._queries(), self._table)
        ranking = self._ranking(candidates) if len(candidates) else RerankedRows(np.zeros(0, np.int64), None)
        skip, most = self._options.offset or 0, self._options.limit
        best = self._columns.result(_with_relevance(rows.take(pa.array(ranking.places)), ranking.scores))
        return best.slice(skip, most)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Search, rerank, and yield the batches of the result."""
        yield from self.table().to_batches(self._options.batch_size)

    def count(self) -> int:
        """Search, rerank, and count the rows of the result."""
        return int(self.table().num_rows)

    def explain(self, verbose: bool = False) -> str:
        """Describe the planned search."""
        return self._described(self._search.explain_plan(verbose))

    def analyze(self, counting: bool = False) -> str:
        """Run the search for candidates, and describe it. The reranker is not run."""
        return self._described(self._search.analyze_plan(counting))

    def _described(self, plan: str) -> str:
        built_in = isinstance(self._reranker, BuiltInReranker)
        name = repr(self._reranker) if built_in else getattr(self._reranker, "__name__", type(self._reranker).__name__)
        lines = [f"LanceRerank: {name}, k {'all' if self._k is None else self._k}"]
        return "\n".join([*lines, *(f"  {line}" for line in plan.splitlines())]) + "\n"

    def _ranking(self, candidates: RerankCandidates) -> RerankedRows:
        if isinstance(self._reranker, BuiltInReranker):
            return self._reranker.rank(candidates, self._k)
        return ranking_of_user(self._reranker, candidates, self._k)

    def _queries(self) -> tuple[Any, Any, str | None]:
        """Return the query for the reranker, the query vector, and the vector column."""
        nearest, words = self._options.nearest, self._options.full_text_query
        vector = None if nearest is None else nearest["q"]
        if isinstance(words, Mapping) and "query" in words:
            words = words["query"]
        text = vector.text if isinstance(vector, TextVector) else vector
        return text if words is None else words, vector, None if nearest is None else nearest.get("column")


class _RerankedColumns:
    """The columns of the result, and the columns of the candidates that they are made of.

    Args:
        options: The options of the search.
    """

    def __init__(self, options: ScanOptions) -> None:
        columns = options.columns
        self._requested: list[tuple[str, str | None]] | None = None
        self.inner: ColumnsLike | None = columns
        if isinstance(columns, Mapping):
            self._requested = [(name, _score(text)) for name, text in columns.items()]
            self.inner = {name: text for name, text in columns.items() if _score(text) is None}
        elif isinstance(columns, Sequence) and not isinstance(columns, str | bytes):
            self._requested = [(name, _score(name)) for name in columns]
            self.inner = [name for name in columns if _score(name) is None]
        self.has_row_id = any(name == ROW_ID for name, _ in self._requested or ())
        self._with_scores = columns is None or not options.disable_scoring_autoprojection
        flags = ((ROW_ID, options.with_row_id), (ROW_ADDRESS, options.with_row_address))
        self._hidden = [name for name, is_shown in flags if is_shown]

    def result(self, rows: pa.Table) -> pa.Table:
        """Return the columns of the result, from rows with all scores."""
        scores = [name for name in (*_SCORES, RELEVANCE) if name in rows.schema.names]
        names = rows.schema.names
        plain = names[: min(names.index(name) for name in scores)]
        requested = self._requested
        if requested is None:
            requested = [(name, None) for name in plain]
        rest = iter(plain)
        chosen = [(name, score or next(rest)) for name, score in requested]
        if self._with_scores:
            seen = {score for _, score in chosen}
            chosen += [(name, name) for name in scores if name != _HYBRID_SCORE and name not in seen]
        chosen += [(name, name) for name in self._hidden if all(name != other for other, _ in chosen)]
        fields = [rows.schema.field(source).with_name(name) for name, source in chosen]
        return pa.table([rows.column(source) for _, source in chosen], schema=pa.schema(fields, rows.schema.metadata))


def _score(text: Any) -> str | None:
    """Return the score that a column is, or None if it is not a score."""
    return text if isinstance(text, str) and text in (*_SCORES, RELEVANCE) else None


def _with_relevance(rows: pa.Table, scores: Any) -> pa.Table:
    values = pa.nulls(len(rows), pa.float32()) if scores is None else pa.array(scores, pa.float32())
    return rows.append_column(RELEVANCE, values)


def _of_candidates(hybrid: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the hybrid options, after checking that they only choose the number of candidates."""
    for name in ("method", "alpha"):
        if isinstance(hybrid, Mapping) and hybrid.get(name) is not None:
            remedy = (
                "use a reranker with parameters, such as lance_duck.rerankers.LinearCombinationReranker(weight=0.7)"
            )
            raise InvalidInputError(f"{name} does not apply with rerank", where="search", remedy=remedy)
    return hybrid


def _k(options: ScanOptions) -> int | None:
    """Return the number of rows to return, before `offset` and `limit`. None returns all matches of a text search."""
    rows = None if options.limit is None else max(1, options.limit + (options.offset or 0))
    if options.nearest is None:
        return rows
    k = options.nearest.get("k")
    return rows or DEFAULT_K if k is None else at_least_one("k", k)
