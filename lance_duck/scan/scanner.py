"""Scanners: planned scans that have not started, with the interface of pyarrow Scanners."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.markup import PlanText
from lance_duck.redact import shown
from lance_duck.scan.nearest.queries import Queries
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.tree import In, Not, Predicate
from lance_duck.scan.statistics import count_reads
from lance_duck.scan.table_scan import TableScan
from lance_duck.telemetry.metrics import ROWS_RETURNED
from lance_duck.telemetry.observing import observed
from lance_duck.wire.fragment import Fragment

if TYPE_CHECKING:
    from lance_duck.encoding.arrow import gather
    from lance_duck.rows import row_set_bytes
    from lance_duck.scan import explain
    from lance_duck.scan.hybrid import scan as hybrid
    from lance_duck.scan.nearest import extremes
    from lance_duck.scan.nearest import scan as nearest
    from lance_duck.scan.read import take
    from lance_duck.scan.rerank import scan as rerank
    from lance_duck.scan.text import filter as text_filter
    from lance_duck.scan.text import scan as texts
    from lance_duck.scan.text.query import tree as query_tree
else:
    gather = lazy.modules(globals(), "lance_duck.encoding.arrow", "gather")
    explain = lazy.modules(globals(), "lance_duck.scan", "explain")
    hybrid = lazy.modules(globals(), "lance_duck.scan.hybrid", "scan")
    extremes, nearest = lazy.modules(globals(), "lance_duck.scan.nearest", "extremes", "scan")
    row_set_bytes = lazy.modules(globals(), "lance_duck.rows", "row_set_bytes")
    take = lazy.modules(globals(), "lance_duck.scan.read", "take")
    rerank = lazy.modules(globals(), "lance_duck.scan.rerank", "scan")
    text_filter, texts = lazy.modules(globals(), "lance_duck.scan.text", "filter", "scan")
    query_tree = lazy.modules(globals(), "lance_duck.scan.text.query", "tree")


BATCH_SIZE: Final = "LANCE_DEFAULT_BATCH_SIZE"
"""Environment variable with the maximum number of rows per batch, for scans without the option `batch_size`."""
_NO_QUERIES: Final = (str, tuple, pads.Expression, type(None))
"""Common types of filters. Values of these types are never full-text queries."""
_MOST_DIGITS: Final = 18  # digits of a 64-bit number


class _SearchScan(Protocol):
    """A search: `NearestScan` with its queries, `TextScan`, `HybridScan` or `RerankedScan`."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def is_exact(self) -> bool: ...

    def table(self) -> pa.Table: ...

    def batches(self) -> Iterator[pa.RecordBatch]: ...

    def count(self) -> int: ...

    def explain(self, verbose: bool = False) -> str: ...

    def analyze(self, counting: bool = False) -> str: ...


@dataclass(frozen=True, eq=False)
class _NearestSearch:
    """A search for the rows nearest to queries."""

    scan: nearest.NearestScan
    queries: Queries

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema(is_batch=self.queries.is_batch)

    @property
    def is_exact(self) -> bool:
        return self.scan.is_exact

    def table(self) -> pa.Table:
        return self.scan.table(self.queries)

    def batches(self) -> Iterator[pa.RecordBatch]:
        return self.scan.batches(self.queries)

    def count(self) -> int:
        return self.scan.count(self.queries)

    def explain(self, verbose: bool = False) -> str:
        return self.scan.explain(self.queries, verbose)

    def analyze(self, counting: bool = False) -> str:
        return self.scan.analyze(self.queries, counting)


@checked_calls
class LanceScanner(pads.Scanner):  # type: ignore[misc]
    """A scan or search of a table, which runs each time its result is read.

    Args:
        table: The table.
        options: The options of the scan.
        fragment: The only fragment to read. None reads the fragments in the options.
        handle: Creates, from a fragment's metadata, the fragment handle that `scan_batches` yields with each batch.
    """

    def __init__(
        self,
        table: TableScan,
        options: ScanOptions,
        fragment: Fragment | None = None,
        handle: Callable[[Fragment], pads.Fragment | None] = lambda _: None,
    ) -> None:
        if not isinstance(options.filter, _NO_QUERIES) and isinstance(options.filter, query_tree.FullTextQuery):
            options = text_filter.with_text_filter(table, options)
        if options.row_addr_allowlist is not None or options.row_addr_blocklist is not None:
            table, options = _with_row_lists(table, options)
        if options.batch_size is None and (text := os.environ.get(BATCH_SIZE)):
            options = replace(options, batch_size=_rows_of(text))
        self._table = table
        self._options = options
        self._handle = handle
        self._search: _SearchScan | None = None
        self._nearest: _NearestSearch | None = None
        self._words: texts.TextScan | None = None
        self._scan: ScanPlan | None = None
        if options.rerank is not None:
            self._rerank(rerank.RerankedScan(table, options), fragment)
        elif options.full_text_query is not None and options.nearest is not None:
            both = hybrid.HybridScan(table, options, fragment)
            self._search, self._words = both, both.words
        elif options.full_text_query is not None:
            self._search = self._words = texts.TextScan(table, options, fragment)
        elif options.nearest is not None:
            scan = nearest.NearestScan(table, options, fragment)
            self._search = self._nearest = _NearestSearch(scan, scan.queries(options.nearest))
        else:
            self._scan = table.plan(options, fragment)

    def _rerank(self, search: rerank.RerankedScan, fragment: Fragment | None) -> None:
        """Plan a search whose candidates another scanner finds."""
        candidates = LanceScanner(self._table, search.candidate_options, fragment)
        search.begin(candidates)
        self._search, self._nearest, self._words = search, candidates._nearest, candidates._words

    @property
    def _plan(self) -> ScanPlan:
        assert self._scan is not None  # searches do not have a plan
        return self._scan

    @property
    def is_exact(self) -> bool:
        """Whether the result is exact, not approximate."""
        return self._search is None or self._search.is_exact

    @property
    def num_queries(self) -> int:
        """Number of queries of a nearest-neighbour search, or 0 for other searches and scans."""
        return 0 if self._nearest is None else len(self._nearest.queries)

    @property
    def is_batch(self) -> bool:
        """Whether a search has a batch of queries, even if it contains only one."""
        return self._nearest is not None and self._nearest.queries.is_batch

    def extremes(self) -> extremes.Extremes:
        """Return the extremes of the vectors in the searched column."""
        assert self._nearest is not None  # only vector searches have a vector column
        return self._nearest.scan.extremes()

    @property
    def searched_texts(self) -> tuple[str, ...]:
        """Columns that the full-text query searches, or () without a query."""
        return () if self._words is None else self._words.columns

    def highlight(
        self,
        texts: pa.Array | pa.ChunkedArray,
        column: str,
        pre: str = "<b>",
        post: str = "</b>",
        *,
        words: int | None = None,
    ) -> pa.LargeStringArray:
        """Return texts with marks around words that match the scanner's full-text query.

        Texts are not escaped: to show them as HTML, escape them first, or mark words with characters that you replace
        later.

        Args:
            texts: string, large_string or string_view, for example a column of the result. Nulls stay null.
            column: One of `searched_texts`, whose analyser defines the words.
            pre: Mark before a word.
            post: Mark after a word.
            words: Return an excerpt of at most this many words, with as many matches as possible. None returns whole
                texts.

        Raises:
            InvalidInputError: The scanner does not have a full-text query, or its query does not search this column.
            WrongTypeError: `texts` is not an array of strings.
        """
        if self._words is None:
            raise InvalidInputError(
                "the scanner does not have a full-text query",
                where="highlight",
                remedy="pass full_text_query to the scanner",
            )
        return self._words.highlight(texts, column, pre, post, words)

    @property
    def projected_schema(self) -> pa.Schema:
        """Schema of the result."""
        return self._plan.projection.schema if self._search is None else self._search.schema

    @property
    def dataset_schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._table.snapshot.schema.scan_arrow

    def to_reader(self) -> pa.RecordBatchReader:
        """Stream the result."""
        if self._options.scan_stats_callback is not None:
            return pa.RecordBatchReader.from_batches(self.projected_schema, self._told())
        return self._reader()

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the result."""
        yield from self.to_reader()

    def to_table(self) -> pa.Table:
        """Read the result into memory."""
        if self._options.scan_stats_callback is not None:
            rows = self.to_reader().read_all()
        elif self._search is None:
            rows = self._table.table(self._plan, self._options)
        else:
            with observed("SEARCH", self._table.snapshot.uri):
                rows = self._search.table()
        ROWS_RETURNED.add(by=rows.num_rows)
        return rows

    def to_pandas(self, **kwargs: Any) -> Any:
        """Read the result into a pandas DataFrame. Arguments are passed to `pyarrow.Table.to_pandas`."""
        return self.to_table().to_pandas(**kwargs)

    def scan_batches(self) -> Iterator[Any]:
        """Yield the batches of the result, each with its fragment: (record_batch, fragment)."""
        if self._search is not None or self._is_mixed:
            for batch in self.to_reader():
                yield pads.TaggedRecordBatch(batch, None)
            return
        plan = self._table.routed(self._plan)
        for fragment in plan.fragments:
            for batch in self._table.reader(replace(plan, fragments=(fragment,)), self._options):
                yield pads.TaggedRecordBatch(batch, self._handle(fragment))

    def count_rows(self) -> int:
        """Return the number of rows of the result. Without a filter, only metadata is read."""
        with count_reads(self._options.scan_stats_callback) as statistics:
            statistics.rows = self._table.count(self._plan) if self._search is None else self._search.count()
        return statistics.rows

    def head(self, num_rows: int) -> pa.Table:
        """Return the first rows of the result."""
        batches, rest = [], num_rows
        reader = self.to_reader()
        for batch in reader if num_rows > 0 else ():
            batches.append(batch.slice(0, rest))
            rest -= batches[-1].num_rows
            if rest <= 0:
                break
        reader.close()
        return pa.Table.from_batches(batches, self.projected_schema)

    def take(self, indices: Any) -> pa.Table:
        """Return rows of the result by position, in the order of `indices`.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        table = self.to_table()
        return gather.take_rows(table, take.row_positions(indices, table.num_rows))

    def explain_plan(self, verbose: bool = False) -> str:
        """Describe the scan in a few lines: the indexes it will use, and why it ignores others.

        Args:
            verbose: Also name the fields that are read, with their ids.
        """
        if self._search is not None:
            return PlanText(self._search.explain(verbose))
        return PlanText(explain.explain(self._table, self._plan, self._options, verbose=verbose))

    def analyze_plan(self, count_rows: bool = False) -> str:
        """Run the scan, and describe it: rows returned by each index, bytes read, and rows that passed the filter.

        Reads by other scans that run at the same time are included.

        Args:
            count_rows: Count the rows instead of reading them.
        """
        if self._search is not None:
            return PlanText(self._search.analyze(count_rows))
        return PlanText(explain.analyze(self._table, self._plan, self._options, counting=count_rows))

    def _reader(self) -> pa.RecordBatchReader:
        if self._search is not None:
            return pa.RecordBatchReader.from_batches(self._search.schema, self._search.batches())
        return self._table.reader(self._plan, self._options)

    def _told(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches, then call the callback with the statistics."""
        with count_reads(self._options.scan_stats_callback) as statistics:
            for batch in self._reader():
                statistics.rows += batch.num_rows
                statistics.batches += 1
                yield batch

    @property
    def _is_mixed(self) -> bool:
        """Whether batches may hold rows of several fragments."""
        plan = self._plan
        return bool(self._options.orderings or plan.limit is not None or plan.offset or plan.strict_batches)

    @staticmethod
    def from_dataset(*_: Any, **__: Any) -> LanceScanner:
        """Not supported. Use `LanceDataset.scanner`."""
        raise UnsupportedError("a scanner is not made this way", remedy="use dataset.scanner(…)")

    @staticmethod
    def from_fragment(*_: Any, **__: Any) -> LanceScanner:
        """Not supported. Use `LanceFragment.scanner`."""
        raise UnsupportedError("a scanner is not made this way", remedy="use fragment.scanner(…)")

    @staticmethod
    def from_batches(*_: Any, **__: Any) -> LanceScanner:
        """Not supported. pyarrow provides scanners of batches."""
        raise UnsupportedError("a scanner is not made this way", remedy="use pyarrow.dataset.Scanner.from_batches")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<LanceScanner of {shown(self._table.snapshot.uri)}: {', '.join(self.projected_schema.names)}>"


def _rows_of(text: str) -> int:
    """Parse the batch size from the environment variable's value."""
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not int(text):
        shown = repr(text[:_MOST_DIGITS])
        raise InvalidInputError("invalid batch size", where=BATCH_SIZE, expected="a number from 1 on", found=shown)
    return int(text)


_ROW_LISTS: Final = ("row_addr_allowlist", "row_addr_blocklist")


def _with_row_lists(table: TableScan, options: ScanOptions) -> tuple[TableScan, ScanOptions]:
    """Return a table restricted to the rows listed in the options, and the options without these lists."""
    snapshot = table.snapshot
    present = snapshot.fragments.id_set

    def rows_of(fragment_id: int) -> int | None:
        return snapshot.physical_rows(snapshot.fragment(fragment_id)) if fragment_id in present else None

    for name in _ROW_LISTS:
        condition = _listed_rows(getattr(options, name), name, rows_of, excluded=name == _ROW_LISTS[1])
        table = table if condition is None else table.restricted(condition)
    return table, replace(options, row_addr_allowlist=None, row_addr_blocklist=None)


def _listed_rows(
    rows: bytes | Iterable[int] | None, name: str, rows_of: Callable[[int], int | None], *, excluded: bool = False
) -> Predicate | None:
    """Return the condition that a row is in a list.

    Args:
        rows: Row ids, or a row address map (`rows.row_set_bytes`). None means no condition.
        name: Name of the argument, for messages.
        rows_of: Returns the physical row count of a fragment, for maps that contain whole fragments.
        excluded: Whether to return the condition that a row is not in the list.

    Raises:
        InvalidInputError: The bytes are not a row address map, or an item is not a row id.
    """
    if rows is None:
        return None
    try:
        if isinstance(rows, bytes):
            values = pa.array(row_set_bytes.read_row_address_map(rows, name, rows_of).rows(), pa.uint64())
        else:
            values = pa.array(list(map(operator.index, rows)), pa.uint64())
    except CorruptError as error:
        raise InvalidInputError(name, expected="a row address map, or row ids", found=error.what) from error
    except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
        raise InvalidInputError(name, expected="row ids, or a row address map", found=str(error)) from error
    condition = In(("_rowid",), values)
    return Not(condition) if excluded else condition
