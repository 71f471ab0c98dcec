"""Converts the arguments of a search to scan arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import refuse_unknown
from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import compared
from lance_duck.scan.hybrid.options import ARGUMENTS as HYBRID_ARGUMENTS
from lance_duck.scan.nearest.options import ARGUMENTS as NEAREST_ARGUMENTS
from lance_duck.scan.nearest.options import only_vector_column
from lance_duck.scan.nearest.passing_rows import was_asked
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.searches.key_lookup import KeyLookup, key_lookup
from lance_duck.scan.sql.constants import asks_for_the_time
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.snapshot import Snapshot
from lance_duck.telemetry.metrics import ROWS_RETURNED
from lance_duck.telemetry.observing import observed
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.schema import EMBEDDING_FUNCTIONS

if TYPE_CHECKING:
    from lance_duck import embedders
    from lance_duck.scan.text import prepared as text_prepared
    from lance_duck.scan.text import request as text_request
    from lance_duck.scan.text import route as text_route
else:
    embedders = lazy.modules(globals(), "lance_duck", "embedders")
    text_prepared, text_request, text_route = lazy.modules(
        globals(), "lance_duck.scan.text", "prepared", "request", "route"
    )


_NAMES: Final = frozenset((*NEAREST_ARGUMENTS, *HYBRID_ARGUMENTS, *ScanOptions.__dataclass_fields__))


def is_words(q: Any) -> bool:
    """Return whether a query contains words, not vectors."""
    return isinstance(q, str | Mapping | FullTextQuery)


def embedded_query(snapshot: Snapshot, q: Any, column: str | None, options: Mapping[str, Any]) -> Any:
    """Return the vector of a text if the table's metadata names an embedder for the searched column, otherwise `q`.

    Without a column, a text is embedded if the search also has `full_text_query`, or if a function is registered, or if
    no full-text index could answer instead.

    Args:
        snapshot: The version of the table.
        q: The query.
        column: Name of the vector or text column, or None.
        options: Arguments of a scan.

    Raises:
        InvalidInputError: The function is not registered, or its result does not fit the column.
        CorruptError: The metadata is damaged.
    """
    if not isinstance(q, str) or EMBEDDING_FUNCTIONS not in snapshot.schema.metadata:
        return q
    found = [
        each
        for each in embedders.embedding_functions(snapshot.schema.metadata)
        if each.vector_column in snapshot.schema.names and column in (None, each.vector_column)
    ]
    if not found:
        return q
    is_open = column is None and options.get("full_text_query") is None
    if is_open and not any(each.is_registered for each in found) and text_route.indexed_text_columns(snapshot):
        return q
    if len(found) > 1:
        names = ", ".join(each.vector_column for each in found)
        raise InvalidInputError("column", where="search", expected="one of the vector columns", found=names)
    type_ = snapshot.schema.by_path(quoted_name(found[0].vector_column)).arrow_type
    return found[0].query_vector(q, type_)


def search_arguments(
    snapshot: Snapshot, q: Any, k: int | None, column: str | None, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the scan arguments for a search.

    Args:
        snapshot: The version of the table.
        q: A vector, several vectors, or words.
        k: Number of rows per query. None derives it from the options.
        column: Name of the vector or text column. None uses the only suitable column.
        options: Arguments of a scan, of `nearest` and of `hybrid`.

    Raises:
        WrongTypeError: An option is unknown.
        InvalidInputError: An argument does not fit this table.
    """
    if not options.keys() <= _NAMES:
        refuse_unknown(options, [*NEAREST_ARGUMENTS, *HYBRID_ARGUMENTS, *ScanOptions.__dataclass_fields__], "search")
    arguments = {**options}
    hybrid = {name: arguments.pop(name) for name in HYBRID_ARGUMENTS if name in arguments}
    if hybrid:
        arguments["hybrid"] = {**(arguments.get("hybrid") or {}), **hybrid}
    q = embedded_query(snapshot, q, column, arguments)
    if is_words(q):
        return text_request.text_search_arguments(q, k, column, arguments)
    if column is None and EMBEDDING_FUNCTIONS in snapshot.schema.metadata and isinstance(q, embedders.TextVector):
        column = quoted_name(q.column)
    elif column is None:
        column = snapshot.derived("only vector column", lambda: only_vector_column(TableScan(snapshot)))
    nearest = {"column": column, "q": q, "k": k}
    nearest |= {name: arguments.pop(name) for name in NEAREST_ARGUMENTS & arguments.keys()}
    return {**arguments, "nearest": nearest}


def read_table(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table:
    """Read a scan, or a search, into memory.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`.
    """
    if is_plain_search(arguments):
        with observed("SEARCH", table.snapshot.uri):
            rows = _search_table(table, arguments)
    else:
        found = _found_at_once(table, arguments)
        if found is None:
            return scanned(table, arguments)
        rows = found
    ROWS_RETURNED.add(by=rows.num_rows)
    return rows


def _found_at_once(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table | None:
    """Return the result of a search for words, or of a lookup by a key, by its fast way. None if there is none."""
    words = cached_words(table, arguments)
    if words is not None:
        with observed("SEARCH", table.snapshot.uri):
            return words.table(arguments["full_text_query"])
    pair = compared(arguments.get("filter"))
    lookup = None if pair is None else cached_lookup(table, pair[0], arguments)
    return None if lookup is None or pair is None else lookup.rows([pair[1]])


def scanned(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table:
    """Read a scan, or a search, into memory by a `LanceScanner`. See `read_table`."""
    return LanceScanner(table, ScanOptions.of(arguments)).to_table()


_SEEN_TO_BY_SCANNER: Final = frozenset(
    ("full_text_query", "rerank", "row_addr_allowlist", "row_addr_blocklist", "scan_stats_callback")
)


def is_plain_search(arguments: Mapping[str, Any]) -> bool:
    """Return whether the arguments describe a vector search that does not need a `LanceScanner`."""
    if arguments.get("nearest") is None or isinstance(arguments.get("filter"), FullTextQuery):
        return False
    return _SEEN_TO_BY_SCANNER.isdisjoint(arguments) or all(arguments.get(name) is None for name in _SEEN_TO_BY_SCANNER)


_OF_LOOKUPS: Final = frozenset(("columns", "filter", "with_row_id", "with_row_address", "use_threads"))
_PLAIN: Final = frozenset({str, int, float, bool})
_OPTIONS: Final = frozenset(ScanOptions.__dataclass_fields__) - {"use_threads"}
"""Options for which None means the default."""


def _search_table(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table:
    """Search for vectors, and read the result.

    If a search is repeated with different queries, it is planned only once per version: see `benchmarks/caches.py`.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`, including `nearest`.

    Raises:
        InvalidInputError: An argument does not fit this table.
        UnsupportedError: An argument is not supported with a search.
    """
    scan = cached_scan(table, arguments)
    return (NearestScan(table, ScanOptions.of(arguments)) if scan is None else scan).search(arguments["nearest"])


def cached_scan(table: TableScan, arguments: Mapping[str, Any]) -> NearestScan | None:
    """Return the search with these arguments that the table caches, or None if the search cannot be cached.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`, including `nearest`. The queries are ignored.

    Raises:
        InvalidInputError, UnsupportedError: See `NearestScan`.
    """
    key = _key(arguments)
    if key is None:
        return None

    def make() -> NearestScan:
        nearest = {name: each for name, each in arguments["nearest"].items() if name != "q"}
        return NearestScan(table, ScanOptions.of({**arguments, "nearest": nearest}))

    return table.option_cache.layout(key, make)


def cached_words(
    table: TableScan, arguments: Mapping[str, Any], *, is_repeated: bool = False
) -> text_prepared.WordSearch | None:
    """Return the search for words with these arguments that the table caches.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`. The query is ignored if the search is cached.
        is_repeated: Whether the search will be repeated. Otherwise, a search with a filter is cached when it is
            repeated: finding all rows that pass pays only then.

    Returns:
        The search, or None if these arguments do not describe one that can be cached.

    Raises:
        InvalidInputError, UnsupportedError: See `TextScan`.
    """
    is_other = any(arguments.get(name) is not None for name in ("nearest", "rerank"))
    if is_other or arguments.get("full_text_query") is None or not arguments.get("limit"):
        return None
    key = _key_of_columns("words", arguments, ("full_text_query",)) if _has_plain_filter(arguments) else None
    if key is None:
        return None
    if arguments.get("filter") is not None and not is_repeated and not was_asked(table, tuple(key)):
        return None
    make = lambda: text_prepared.WordSearch(table, ScanOptions.of(arguments))  # noqa: E731
    return table.option_cache.layout(tuple(key), make)


def cached_lookup(table: TableScan, column: str, arguments: Mapping[str, Any]) -> KeyLookup | None:
    """Return the lookup of rows by a column that the table caches, or None if the arguments need a scan.

    Args:
        table: The table.
        column: Name of the column.
        arguments: Arguments of `ScanOptions`. The filter is ignored.
    """
    if any(value is not None and name not in _OF_LOOKUPS for name, value in arguments.items()):
        return None
    key = _key_of_columns("lookup", arguments, ("filter",))
    if key is None:
        return None

    def make() -> KeyLookup | None:
        options = ScanOptions.of({**arguments, "filter": None})
        return key_lookup(table, column, table.plan(options).projection)

    return table.option_cache.layout((column, *key), make)


def _key(arguments: Mapping[str, Any]) -> object | None:
    """Return a cache key from all arguments except the queries, or None if the key would not be unique."""
    nearest = arguments["nearest"]
    if type(nearest) is not dict or not _has_plain_filter(arguments):
        return None
    key = _key_of_columns("searches", arguments, ("nearest",))
    rest = _key_of(nearest, NEAREST_ARGUMENTS, ("q",))
    return None if key is None or rest is None else (*key, *rest)


def _has_plain_filter(arguments: Mapping[str, Any]) -> bool:
    """Return whether there is no filter, or its text always means the same."""
    condition = arguments.get("filter")
    return condition is None or (type(condition) is str and not asks_for_the_time(condition))


def _key_of_columns(kind: str, arguments: Mapping[str, Any], others: Sequence[str]) -> list[object] | None:
    """Return a cache key from all arguments of `ScanOptions` except `others`, or None if it would not be unique."""
    columns = arguments.get("columns")
    if not (columns is None or (type(columns) is list and all(type(name) is str for name in columns))):
        return None
    rest = _key_of(arguments, _OPTIONS, (*others, "columns"))
    return None if rest is None else [kind, *(columns or ()), columns is None, *rest]


def _key_of(given: Mapping[str, Any], known: Set[str], others: Sequence[str]) -> list[object] | None:
    """Return a cache key from arguments, or None if one is neither plain nor None, which means the default."""
    key: list[object] = []
    for name, value in given.items():
        if name in others:
            continue
        if type(value) in _PLAIN:
            key += (name, value, type(value))
        elif value is not None or name not in known:
            return None
    return [*key, None]
