"""The options of a scan, and the conversion of options to a plan."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import refuse_unknown, suggest_names, unknown_value
from lance_duck.cache import LruCache
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.scan.costs import LONG_TEXT
from lance_duck.scan.evaluator.types import Parameters, parameters_key
from lance_duck.scan.filters import Filter, FilterLike, all_filters, make_filter
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID, ColumnsLike, Projection, project, readable_schema
from lance_duck.scan.statistics import StatisticsCallback
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema import Schema

if TYPE_CHECKING:
    from lance_duck.scan.sql import constants
else:
    constants = lazy.modules(globals(), "lance_duck.scan.sql", "constants")

_T = TypeVar("_T")
_CACHED: Final = 256
"""Maximum number of filters cached per version. The same limit applies to projections and to layouts."""

_BLOBS: Final = ("all_binary", "blobs_descriptions", "all_descriptions")


@suggest_names
@dataclass(frozen=True)
class ColumnOrdering:
    """One column to sort by. NaN is greater than every number."""

    column_name: str
    ascending: bool = True
    nulls_first: bool = False


@runtime_checkable
class HasFragment(Protocol):
    """A handle to a fragment."""

    @property
    def fragment_id(self) -> int:
        """Id of the fragment."""


OrderBy: TypeAlias = Sequence[ColumnOrdering | str]


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """Arguments of `LanceDataset.scanner`, with the same names as in pylance and pyarrow.

    Attributes:
        columns: Column names in order, or a mapping of result names to SQL expressions. None selects all columns.
        filter: SQL text, (SQL text, parameters), a pyarrow expression, or a query of `lance_duck.query`.
        parameters: Values bound to `?`, `$1` or `$name` of the filter.
        limit: Maximum number of rows.
        offset: Number of rows to skip first.
        batch_size: Maximum number of rows per batch. None uses the environment variable LANCE_DEFAULT_BATCH_SIZE, if
            set.
        batch_size_bytes: Approximate batch size, in bytes.
        strict_batch_size: All batches but the last have exactly `batch_size` rows. They may cross fragments, which
            small batches of a filtered scan always do.
        fragments: Fragments to scan, or their ids, in order. None scans all.
        with_row_id: Add `_rowid` at the end.
        with_row_address: Add `_rowaddr` at the end.
        include_deleted_rows: Also return deleted rows, with null as `_rowid`; requires `with_row_id`.
        order_by: Columns to sort the result by.
        blob_handling: "all_binary" reads blobs as bytes, also in filters and expressions; "blobs_descriptions",
            "all_descriptions" and None read blob descriptions (position and size).
        use_threads: False reads only in the calling thread.
        use_scalar_index: False scans without indexes.
        nearest: Return the rows nearest to a query: see `scan.nearest.options.Nearest`.
        full_text_query: Return the rows that match words, best first: see `scan.text.request`. Together with `nearest`,
            return rows found by either search, with `_distance`, `_score` and `_hybrid_score`.
        hybrid: How the results of `nearest` and `full_text_query` are combined: see `scan.hybrid.options.Hybrid`.
        rerank: How the candidates of a search are ranked: "rrf", "linear", "mrr", "mmr", a reranker of
            `lance_duck.rerankers`, or a function of the candidates and the query. See `LanceDataset.search`.
        prefilter: False applies the filter to the rows that a search finds. Otherwise, the search finds only rows that
            pass it.
        fast_search: Search only rows that an index covers.
        row_addr_allowlist: Rows to scan or search: row ids, or a row address map that pylance serialized.
        row_addr_blocklist: Rows to exclude, in the same form.
        scan_stats_callback: Called with `ScanStatistics` after the last row is read.
        disable_scoring_autoprojection: Add `_distance` or `_score` to the result of a search only if `columns` names
            it.

        batch_readahead: Without effect: the read-ahead is derived from the sizes of columns and batches.
        fragment_readahead: Without effect: see `batch_readahead`.
        io_buffer_size: Without effect: see `batch_readahead`.
        scan_in_order: Without effect: rows are always returned in order.
        use_stats: Without effect: statistics are used whenever they cannot change the result.
        late_materialization: Without effect: the columns to read before a filter are chosen by size.
        cache_metadata: Without effect: metadata of open files is always kept.
        index_segments: Not supported. A value raises UnsupportedError.
        memory_pool: Not supported. A value raises UnsupportedError.
        fragment_scan_options: Not supported. A value raises UnsupportedError.
    """

    columns: ColumnsLike | None = None
    filter: FilterLike | None = None
    parameters: Parameters = None
    limit: int | None = None
    offset: int | None = None
    batch_size: int | None = None
    batch_size_bytes: int | None = None
    strict_batch_size: bool | None = None
    fragments: Iterable[HasFragment | int] | None = None
    with_row_id: bool | None = None
    with_row_address: bool | None = None
    include_deleted_rows: bool | None = None
    order_by: OrderBy | None = None
    blob_handling: str | None = None
    use_threads: bool = True
    batch_readahead: int | None = None
    fragment_readahead: int | None = None
    io_buffer_size: int | None = None
    scan_in_order: bool | None = None
    use_stats: bool | None = None
    use_scalar_index: bool | None = None
    prefilter: bool | None = None
    late_materialization: bool | list[str] | None = None
    disable_scoring_autoprojection: bool | None = None
    cache_metadata: bool | None = None
    nearest: Mapping[str, Any] | None = None
    full_text_query: Any = None
    hybrid: Mapping[str, Any] | None = None
    rerank: Any = None
    index_segments: Any = None
    fast_search: bool | None = None
    row_addr_allowlist: bytes | Iterable[int] | None = None
    row_addr_blocklist: bytes | Iterable[int] | None = None
    scan_stats_callback: StatisticsCallback | None = None
    memory_pool: Any = None
    fragment_scan_options: Any = None

    def __post_init__(self) -> None:
        for name in _REFUSED:
            if getattr(self, name) is not None:
                raise UnsupportedError(f"{name} is not supported", where="scan")
        if self.fast_search and self.nearest is None and self.full_text_query is None:
            raise UnsupportedError("fast_search is not supported without nearest or full_text_query", where="scan")
        is_single = self.nearest is None or self.full_text_query is None
        if is_single and self.rerank is None and isinstance(self.hybrid, Mapping):
            expected = "both nearest and full_text_query"
            raise InvalidInputError(f"hybrid ({', '.join(self.hybrid)})", where="scan", expected=expected)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None:
                _check_number(name, value, least)
        for name in ("fragments", "order_by"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, str | bytes) or not isinstance(value, Iterable)):
                raise WrongTypeError(name, where="scan", expected="a list", found=repr(value))
        if self.blob_handling not in (None, *_BLOBS):
            raise unknown_value("blob_handling", self.blob_handling, _BLOBS)
        if self.scan_stats_callback is not None and not callable(self.scan_stats_callback):
            found = type(self.scan_stats_callback).__name__
            raise WrongTypeError("scan_stats_callback", where="scan", expected="a function", found=found)
        if self.include_deleted_rows and not self.with_row_id:
            raise InvalidInputError(
                "include_deleted_rows needs with_row_id",
                remedy="pass with_row_id=True: deleted rows have a null _rowid",
            )

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Create options from arguments by name, and validate them.

        Raises:
            WrongTypeError: An option is unknown, or a value has the wrong type.
        """
        if not arguments.keys() <= cls.__dataclass_fields__.keys():
            refuse_unknown(arguments, cls.__dataclass_fields__, "scan", "option")
        return cls(**arguments)

    @property
    def orderings(self) -> tuple[ColumnOrdering, ...]:
        """Columns to sort by, with their directions."""
        return tuple(_ordering(entry) for entry in self.order_by or ())


_LEAST: Final = {"limit": 0, "offset": 0, "batch_size": 1, "batch_size_bytes": 1}
"""Integer options, with their minimum values."""

_OF_ROWS: Final = (
    *("columns", "filter", "parameters", "limit", "offset", "fragments", "include_deleted_rows", "order_by"),
    *("nearest", "full_text_query", "hybrid", "rerank", "row_addr_allowlist", "row_addr_blocklist"),
)
ROW_NAMES: Final = MappingProxyType({"with_row_id": ROW_ID, "with_row_address": ROW_ADDRESS})


def checked_defaults(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Validate the default options of a dataset's scans. They must not change rows or columns, which SQL also reads.

    Raises:
        WrongTypeError: An option is unknown.
        UnsupportedError: An option selects rows or columns, or sorts rows.
    """
    ScanOptions.of(options)
    for name in _OF_ROWS:
        if options.get(name) is not None:
            remedy = (
                "dataset.filter(…) keeps rows" if name == "filter" else "pass it to scanner, to_table or to_batches"
            )
            raise UnsupportedError(f"{name} is not supported", where="default_scan_options", remedy=remedy)
    return {name: value for name, value in options.items() if value is not None}


_REFUSED: Final = ("index_segments", "memory_pool", "fragment_scan_options")


def plan_scan(
    snapshot: Snapshot,
    options: ScanOptions,
    *,
    restriction: Filter | None = None,
    arrow_types: Mapping[str, pa.DataType] | None = None,
    option_cache: OptionCache | None = None,
) -> ScanPlan:
    """Plan a scan without reading data.

    Args:
        snapshot: The version of the table.
        options: The options of the scan.
        restriction: A filter in addition to the filter in the options.
        arrow_types: Arrow types for top-level columns, by name. They override the table's types.
        option_cache: Filters and projections of earlier scans of this version, or None.

    Raises:
        InvalidInputError: Unknown columns or fragments, or a bad filter.
    """
    for name in ("nearest", "full_text_query", "row_addr_allowlist", "row_addr_blocklist"):
        if getattr(options, name) is not None:
            raise UnsupportedError(f"{name} is not supported here", where="scan", remedy="use dataset.scanner(…)")
    schema = snapshot.schema.with_blob_bytes() if options.blob_handling == "all_binary" else snapshot.schema
    forms = dict(arrow_types or {})
    option_cache = option_cache or OptionCache()
    projection = option_cache.projection(schema, options, forms)
    condition = option_cache.filter(schema, options)
    return ScanPlan(
        schema,
        _fragments(snapshot, options.fragments),
        projection,
        all_filters(restriction, condition),
        options.offset or 0,
        options.limit,
        options.batch_size,
        options.batch_size_bytes,
        bool(options.strict_batch_size),
        include_deleted=bool(options.include_deleted_rows),
        arrow_types=tuple(forms.items()),
        use_index=options.use_scalar_index is not False,
    )


class OptionCache:
    """Cache of parsed filters, projections and layouts, for scans of one version."""

    def __init__(self) -> None:
        self._projections: LruCache[Projection] = LruCache(_CACHED)
        self._filters: LruCache[Filter | None] = LruCache(_CACHED)
        self._last_filter: tuple[Filter | None, Hashable] = None, None
        self._schemas: dict[bool, pa.Schema] = {}
        self._layouts: LruCache[Any] = LruCache(_CACHED)

    def readable(self, schema: Schema, blob_bytes: bool = False) -> pa.Schema:
        """Return the columns that filters may name."""
        if blob_bytes not in self._schemas:
            self._schemas[blob_bytes] = readable_schema(schema)
        return self._schemas[blob_bytes]

    def projection(self, schema: Schema, options: ScanOptions, forms: Mapping[str, pa.DataType]) -> Projection:
        """Return the columns of a scan."""
        with_row_id, with_row_address = bool(options.with_row_id), bool(options.with_row_address)

        def make() -> Projection:
            return project(
                schema,
                options.columns,
                with_row_id=with_row_id,
                with_row_address=with_row_address,
                arrow_types=forms,
            )

        if not (options.columns is None or isinstance(options.columns, list | tuple)):
            return make()
        names = options.columns if options.columns is None else tuple(options.columns)
        key = (names, with_row_id, with_row_address, options.blob_handling == "all_binary", tuple(forms.items()))
        return self._projections.get(key, make) if _is_hashable(key) else make()

    def layout(self, key: object, make: Callable[[], _T]) -> _T:
        """Return a cached object, such as the layout of a search's result. It is computed on first use."""
        result: _T = self._layouts.get(key, make)
        return result

    def filter(self, schema: Schema, options: ScanOptions) -> Filter | None:
        """Return the filter of a scan."""
        blob_bytes = options.blob_handling == "all_binary"
        readable = self.readable(schema, blob_bytes)
        text = options.filter
        is_plain = isinstance(text, str) and options.parameters is None and len(text) <= LONG_TEXT
        if not is_plain or constants.asks_for_the_time(str(text)):
            return make_filter(text, readable, options.parameters)
        key = text, blob_bytes
        condition = self._filters.get(key, lambda: make_filter(text, readable))
        self._last_filter = condition, key
        return condition

    def statement_filter(
        self, text: str, parameters: Sequence[Any], make: Callable[[], Filter | None]
    ) -> Filter | None:
        """Return the filter for a condition in a SQL statement, or None if `make` returns None.

        The filter is cached by its text and the values and types of its parameters, which must be hashable.

        Args:
            text: The condition, with `?` for its parameters.
            parameters: Values bound to the condition.
            make: Builds the filter, using only the text and the parameters.
        """
        bound = parameters_key(list(parameters))
        if bound is None or len(text) > LONG_TEXT or constants.asks_for_the_time(text):
            return make()
        key = text, bound, "statement"
        condition = self._filters.get(key, make)
        self._last_filter = condition, key
        return condition

    def key_of(self, filter_: Filter) -> Hashable | None:
        """Return the cache key of a filter, or None if the filter is not from this cache."""
        last, key = self._last_filter
        return key if last is filter_ else self._filters.key_of(filter_)


def _is_hashable(key: object) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _check_number(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInputError(name, expected="a whole number", found=repr(value))
    if value.__index__() < least:
        message = f"{name} must be positive" if least else f"{name.capitalize()} must be non-negative"  # pylance's
        raise InvalidInputError(message, where="scan", found=value)


def _ordering(entry: Any) -> ColumnOrdering:
    if isinstance(entry, str):
        return ColumnOrdering(entry)
    try:
        return ColumnOrdering(entry.column_name, bool(entry.ascending), bool(entry.nulls_first))
    except AttributeError:
        raise InvalidInputError("order_by", expected="names or ColumnOrdering", found=repr(entry)) from None


def _fragments(snapshot: Snapshot, selection: Iterable[HasFragment | int] | None) -> Sequence[Fragment]:
    if selection is None:
        return snapshot.fragments
    by_id = {fragment.id: fragment for fragment in snapshot.fragments}
    fragments = []
    for entry in selection:
        number = entry if isinstance(entry, int) else getattr(entry, "fragment_id", getattr(entry, "id", None))
        if number not in by_id:
            raise InvalidInputError("no such fragment", found=entry)
        fragments.append(by_id[number])
    return tuple(fragments)
