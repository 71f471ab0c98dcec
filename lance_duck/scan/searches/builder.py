"""Searches that are built step by step and read lazily, with LanceDB's method names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import checked_calls, missing_attribute
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError, install_extra
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.searches.request import embedded_query, is_words, read_table, search_arguments
from lance_duck.scan.sql.vet import refuse_loose_ends
from lance_duck.scan.table_scan import TableScan

if TYPE_CHECKING:
    import polars as pl

_HYBRID: Final = frozenset({"method", "alpha", "oversample_factor"})
"""Options of `rerank`."""
_RERANKED: Final = ("mrr", "mmr")
"""Names of rerankers that are not methods of a hybrid search."""


@checked_calls
class LanceQueryBuilder:
    """A search or scan of one table version. Returned by `LanceDataset.search` without `k`.

    Its methods modify the builder and return it. The rows are read once, on first use: by `to_arrow` and similar
    methods, or by any attribute or protocol of a pyarrow Table (`num_rows`, `["id"]`, `to_pylist()`, `len`, Arrow's C
    interface). The builder is not an instance of `pyarrow.Table`. If a pyarrow function requires a Table, pass
    `to_arrow()`.

    Args:
        table: The version.
        q: A vector, several vectors, or words. None starts a scan.
        column: Column to search. None uses the only searchable column.
        options: Arguments of `LanceDataset.search`.

    Raises:
        InvalidInputError: An argument does not fit this table.
    """

    def __init__(self, table: TableScan, q: Any, column: str | None, options: Mapping[str, Any]) -> None:
        self._table = table
        self._q = embedded_query(table.snapshot, q, column, options)
        self._column = column
        self._options = dict(options)
        self._result: pa.Table | None = None
        self._scanner().projected_schema  # noqa: B018  # raises errors early

    # The rows and columns of the result.

    def where(self, where: FilterLike, prefilter: bool = True) -> Self:
        """Keep rows that satisfy a condition. Several calls are joined by AND.

        Args:
            where: The condition, as an SQL string or a pyarrow expression.
            prefilter: False applies the condition after the search. The result may then have fewer than `limit` rows.
        """
        before = self._options.get("filter")
        return self._with(filter=where if before is None else _both(before, where), prefilter=prefilter)

    def select(self, columns: ColumnsLike) -> Self:
        """Select columns by name, or SQL expressions from a dict with result names as keys."""
        return self._with(columns=columns)

    def limit(self, limit: int) -> Self:
        """Limit the number of rows. The default is 10 for a search, and all rows for a scan."""
        return self._with(limit=limit)

    def offset(self, offset: int) -> Self:
        """Skip this many rows first."""
        return self._with(offset=offset)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Add column `_rowid` to the result."""
        return self._with(with_row_id=with_row_id)

    def vector(self, vector: Any, column: str | None = None) -> Self:
        """Search for a vector. With words, the search becomes a hybrid search."""
        words = self._q
        if is_words(words):
            self._options["full_text_query"] = _over(words, self._column)
        self._q, self._column = vector, column
        return self._with()

    def text(self, text: Any, column: str | None = None) -> Self:
        """Search for words. With a vector, the search becomes a hybrid search."""
        if self._q is None or is_words(self._q):
            self._q, self._column = text, column
            return self._with()
        return self._with(full_text_query=_over(text, column))

    # How the nearest vectors are found.

    def distance_type(self, distance_type: str) -> Self:
        """Set the distance metric: "l2", "cosine", "dot" or "hamming"."""
        return self._with(metric=distance_type)

    metric = distance_type

    def recall(self, recall: float) -> Self:
        """Find at least this share of the true neighbours. `nprobes`, `ef` and `refine_factor` override it."""
        return self._with(recall=recall)

    def nprobes(self, nprobes: int) -> Self:
        """Search this many partitions of an index first."""
        return self._with(nprobes=nprobes)

    def minimum_nprobes(self, minimum_nprobes: int) -> Self:
        """Search at least this many partitions of an index."""
        return self._with(minimum_nprobes=minimum_nprobes)

    def maximum_nprobes(self, maximum_nprobes: int) -> Self:
        """Search at most this many partitions of an index."""
        return self._with(maximum_nprobes=maximum_nprobes)

    def ef(self, ef: int) -> Self:
        """Keep this many candidates in a graph walk."""
        return self._with(ef=ef)

    def refine_factor(self, refine_factor: int) -> Self:
        """Rerank candidates with the original vectors. Their number is this multiple of the limit."""
        return self._with(refine_factor=refine_factor)

    def distance_range(self, lower_bound: float | None = None, upper_bound: float | None = None) -> Self:
        """Keep rows whose distance is at least the lower bound, and less than the upper bound."""
        return self._with(distance_range=(lower_bound, upper_bound))

    def bypass_vector_index(self) -> Self:
        """Compare all vectors, without an index."""
        return self._with(use_index=False)

    def fast_search(self) -> Self:
        """Skip rows that no index covers."""
        return self._with(fast_search=True)

    def rerank(self, method: Any = "rrf", *, alpha: float | None = None, oversample_factor: int | None = None) -> Self:
        """Choose how the results of the vector search and the full-text search are combined, or rerank one search.

        Args:
            method: "rrf", the sum of inverse ranks, or "linear", the weighted sum of the distance and the score, each
                scaled to 0 … 1. Both give a `_hybrid_score`. "mrr", "mmr", a reranker of `lance_duck.rerankers`, or a
                function of the candidates and the query gives a `_relevance_score`: see `LanceDataset.search`.
            alpha: Weight of the vector in "linear", 0 to 1. None means 0.5.
            oversample_factor: Number of candidates per search, as a multiple of the limit. None means 4.
        """
        name = "method" if isinstance(method, str) and method not in _RERANKED else "rerank"
        self._options = {each: value for each, value in self._options.items() if each not in ("method", "rerank")}
        arguments = {name: method, "alpha": alpha, "oversample_factor": oversample_factor}
        return self._with(**{name: value for name, value in arguments.items() if value is not None})

    # The result.

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        if self._result is None:
            self._result = read_table(self._table, self._arguments())
        return self._result

    def to_pandas(self, **options: Any) -> Any:
        """Return the rows as a pandas DataFrame. Options are passed to `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars DataFrame.

        Raises:
            UnsupportedError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            remedy = f"pip install polars, or {install_extra('polars')}"
            raise UnsupportedError("polars is not installed", where="to_polars", remedy=remedy) from error
        return polars.DataFrame(self.to_arrow())

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the planned search: see `LanceScanner.explain_plan`."""
        return self._scanner().explain_plan(verbose)

    def analyze_plan(self) -> str:
        """Run the search, and describe it: see `LanceScanner.analyze_plan`."""
        return self._scanner().analyze_plan()

    def equals(self, other: Any, check_metadata: bool = False) -> bool:
        """Return whether the rows equal the rows of a table or search result."""
        other = other.to_arrow() if isinstance(other, LanceQueryBuilder) else other
        return bool(self.to_arrow().equals(other, check_metadata=check_metadata))

    def __getattr__(self, name: str) -> Any:
        is_private = name.startswith("_") and name != "__dataframe__"
        if is_private or not hasattr(pa.Table, name):  # a misspelled name does not start the search
            raise missing_attribute(self, name, dir(self))
        return getattr(self.to_arrow(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.to_arrow()[key]

    def __len__(self) -> int:
        return len(self.to_arrow())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LanceQueryBuilder | pa.Table):
            return NotImplemented
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # like tables

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return self.to_arrow().__array__(*arguments, **options)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(pa.Table)})

    def __repr__(self) -> str:
        return repr(self.to_arrow())

    def _with(self, **changes: Any) -> Self:
        self._options |= changes
        self._result = None
        return self

    def _check_hybrid(self) -> None:
        """Check that both searches exist if `rerank` combines them. Raises InvalidInputError."""
        has_words = is_words(self._q) or "full_text_query" in self._options
        has_vector = (self._q is not None and not is_words(self._q)) or "nearest" in self._options
        if _HYBRID.isdisjoint(self._options) or "rerank" in self._options or (has_words and has_vector):
            return
        raise InvalidInputError(
            "rerank combines a vector search and a text search (both nearest and full_text_query)",
            where="search",
            found="only a vector search" if has_vector else "only a text search" if has_words else "no search",
            remedy='add the other one: search(vector).text("…").rerank(); the rows of one search are already in order',
        )

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the scan."""
        self._check_hybrid()
        if self._q is not None:
            return search_arguments(self._table.snapshot, self._q, None, self._column, self._options)
        if self._column is not None:
            raise InvalidInputError("column needs a query", where="search", found=self._column)
        ScanOptions.of(self._options)
        return self._options

    def _scanner(self) -> LanceScanner:
        return LanceScanner(self._table, ScanOptions.of(self._arguments()))


def _both(first: FilterLike, second: FilterLike) -> FilterLike:
    """Return the conjunction of two conditions."""
    if isinstance(first, str) and isinstance(second, str):
        for text in (first, second):  # an unbalanced parenthesis in one condition would change the other one
            refuse_loose_ends(text, "filter")
        return f"({first}\n) AND ({second}\n)"
    if isinstance(first, pc.Expression) and isinstance(second, pc.Expression):
        return first & second
    raise InvalidInputError(
        "where() cannot combine SQL strings and expressions", where="where", remedy="combine the conditions into one"
    )


def _over(words: Any, column: str | None) -> Any:
    """Return a full-text query on one column, or `words` if `column` is None."""
    if column is None:
        return words
    if not isinstance(words, str):
        raise WrongTypeError(
            "column", where="search", expected="None, because the query names its columns", found=column
        )
    return {"query": words, "columns": [column]}
