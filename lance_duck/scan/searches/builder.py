"""A search that is built step by step and read once it is asked for, by the names of LanceDB."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import checked_calls, did_you_mean
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.searches.request import is_words, read_table, search_arguments
from lance_duck.scan.sql.vet import refuse_loose_ends
from lance_duck.scan.table_scan import TableScan

if TYPE_CHECKING:
    import polars as pl


@checked_calls
class LanceQueryBuilder:
    """A search, or a scan, of the version that a dataset was on; returned by `LanceDataset.search` without `k`.

    Its methods change it and return it. Rows are read once, when they are first asked for: by `to_arrow` and the like,
    or by whatever else a pyarrow Table has or is taken for (`num_rows`, `["id"]`, `to_pylist()`, `len`, Arrow's
    protocol). It is not an instance of `pyarrow.Table`: functions of pyarrow that insist on one take `to_arrow()`.

    Args:
        table: The version.
        q: A vector, several, or words; None: neither.
        column: What is searched; None: the only column that can be.
        options: Arguments of `LanceDataset.search`.

    Raises:
        InvalidInputError: What was asked makes no sense for this table.
    """

    def __init__(self, table: TableScan, q: Any, column: str | None, options: Mapping[str, Any]) -> None:
        self._table = table
        self._q = q
        self._column = column
        self._options = dict(options)
        self._result: pa.Table | None = None
        self._scanner().projected_schema  # noqa: B018  # what is wrong is said now

    # What is asked for.

    def where(self, where: FilterLike, prefilter: bool = True) -> Self:
        """Choose rows by a condition: SQL text, or a pyarrow expression; of several calls, all conditions must hold.

        Args:
            where: The condition.
            prefilter: False: it is applied to what the search has found; then fewer rows than asked for may be left.
        """
        before = self._options.get("filter")
        return self._with(filter=where if before is None else _both(before, where), prefilter=prefilter)

    def select(self, columns: ColumnsLike) -> Self:
        """Name the columns wanted, or give SQL expressions by the name of their result."""
        return self._with(columns=columns)

    def limit(self, limit: int) -> Self:
        """Give so many rows at most; without it a search finds 10, and a scan all."""
        return self._with(limit=limit)

    def offset(self, offset: int) -> Self:
        """Leave out so many rows first."""
        return self._with(offset=offset)

    def with_row_id(self, with_row_id: bool = True) -> Self:
        """Have `_rowid` as a column."""
        return self._with(with_row_id=with_row_id)

    def vector(self, vector: Any, column: str | None = None) -> Self:
        """Search for a vector, besides words where these are given."""
        words = self._q
        if is_words(words):
            self._options["full_text_query"] = _over(words, self._column)
        self._q, self._column = vector, column
        return self._with()

    def text(self, text: Any, column: str | None = None) -> Self:
        """Search for words, besides a vector where that is given."""
        if self._q is None or is_words(self._q):
            self._q, self._column = text, column
            return self._with()
        return self._with(full_text_query=_over(text, column))

    # How the nearest vectors are found.

    def distance_type(self, distance_type: str) -> Self:
        """Measure distances by "l2", "cosine", "dot" or "hamming"."""
        return self._with(metric=distance_type)

    metric = distance_type

    def recall(self, recall: float) -> Self:
        """Find this share of the true neighbours: what is chosen unless `nprobes`, `ef` or `refine_factor` is said."""
        return self._with(recall=recall)

    def nprobes(self, nprobes: int) -> Self:
        """Look into so many partitions of an index first."""
        return self._with(nprobes=nprobes)

    def minimum_nprobes(self, minimum_nprobes: int) -> Self:
        """Look into so many partitions of an index at least."""
        return self._with(minimum_nprobes=minimum_nprobes)

    def maximum_nprobes(self, maximum_nprobes: int) -> Self:
        """Look into so many partitions of an index at most."""
        return self._with(maximum_nprobes=maximum_nprobes)

    def ef(self, ef: int) -> Self:
        """Keep so many candidates on a walk over a graph."""
        return self._with(ef=ef)

    def refine_factor(self, refine_factor: int) -> Self:
        """Rank so many times the rows wanted by their own vectors."""
        return self._with(refine_factor=refine_factor)

    def distance_range(self, lower_bound: float | None = None, upper_bound: float | None = None) -> Self:
        """Leave out rows nearer than the lower bound, and those at the upper bound or beyond."""
        return self._with(distance_range=(lower_bound, upper_bound))

    def bypass_vector_index(self) -> Self:
        """Compare all vectors."""
        return self._with(use_index=False)

    def fast_search(self) -> Self:
        """Leave out rows that no index covers."""
        return self._with(fast_search=True)

    def rerank(self, method: str = "rrf", *, alpha: float | None = None, oversample_factor: int | None = None) -> Self:
        """Say how the ranks of a vector and of words become one.

        Args:
            method: "rrf", inverse ranks added up, or "linear", both measures scaled to 0 … 1 and weighed.
            alpha: Share of the vector in "linear"; None: 0.5.
            oversample_factor: Each search finds so many times the rows wanted; None: 4.
        """
        arguments = {"method": method, "alpha": alpha, "oversample_factor": oversample_factor}
        return self._with(**{name: value for name, value in arguments.items() if value is not None})

    # What comes out.

    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow Table."""
        if self._result is None:
            self._result = read_table(self._table, self._arguments())
        return self._result

    def to_pandas(self, **options: Any) -> Any:
        """Return the rows as a pandas DataFrame; the options are those of `pyarrow.Table.to_pandas`."""
        return self.to_arrow().to_pandas(**options)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars DataFrame.

        Raises:
            UnsupportedError: polars is not installed.
        """
        try:
            import polars
        except ImportError as error:
            remedy = 'pip install polars, or "lance-duck[polars]"'
            raise UnsupportedError("polars is not installed", where="to_polars", remedy=remedy) from error
        return polars.DataFrame(self.to_arrow())

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rows as dicts."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def explain_plan(self, verbose: bool = False) -> str:
        """Say how rows will be found: see `LanceScanner.explain_plan`."""
        return self._scanner().explain_plan(verbose)

    def analyze_plan(self) -> str:
        """Find the rows, and say how: see `LanceScanner.analyze_plan`."""
        return self._scanner().analyze_plan()

    def equals(self, other: Any, check_metadata: bool = False) -> bool:
        """Return whether the rows are those of a table, or of another search."""
        other = other.to_arrow() if isinstance(other, LanceQueryBuilder) else other
        return bool(self.to_arrow().equals(other, check_metadata=check_metadata))

    def __getattr__(self, name: str) -> Any:
        is_private = name.startswith("_") and name != "__dataframe__"
        if is_private or not hasattr(pa.Table, name):  # nothing is read for a name that is misspelled
            nearest = None if is_private else did_you_mean(name, dir(self))
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(text if nearest is None else f"{text}; {nearest}", name=name, obj=self)
        return getattr(self.to_arrow(), name)

    def __getitem__(self, key: Any) -> Any:
        return self.to_arrow()[key]

    def __len__(self) -> int:
        return len(self.to_arrow())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LanceQueryBuilder | pa.Table):
            return NotImplemented
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]  # as tables have none

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

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the scan that it is."""
        if self._q is not None:
            return search_arguments(self._table.snapshot, self._q, None, self._column, self._options)
        if self._column is not None:
            raise InvalidInputError("column without a query", where="search", found=self._column)
        ScanOptions.of(self._options)
        return self._options

    def _scanner(self) -> LanceScanner:
        return LanceScanner(self._table, ScanOptions.of(self._arguments()))


def _both(first: FilterLike, second: FilterLike) -> FilterLike:
    """Return the condition that two conditions are together."""
    if isinstance(first, str) and isinstance(second, str):
        for text in (first, second):  # one that closes the parenthesis around it would loosen the other
            refuse_loose_ends(text, "filter")
        return f"({first}\n) AND ({second}\n)"
    if isinstance(first, pc.Expression) and isinstance(second, pc.Expression):
        return first & second
    raise InvalidInputError("conditions of several kinds", where="where", remedy="combine them into one")


def _over(words: Any, column: str | None) -> Any:
    """Return a full-text query of one column."""
    if column is None:
        return words
    if not isinstance(words, str):
        raise WrongTypeError("column", where="search", expected="None, for the query names its columns", found=column)
    return {"query": words, "columns": [column]}
