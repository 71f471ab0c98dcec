"""Converts the arguments of a search to scan arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import refuse_unknown
from lance_duck.scan.hybrid.options import ARGUMENTS as HYBRID_ARGUMENTS
from lance_duck.scan.nearest.options import ARGUMENTS as NEAREST_ARGUMENTS
from lance_duck.scan.nearest.options import only_vector_column
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.sql.constants import asks_for_the_time
from lance_duck.scan.table_scan import TableScan
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.snapshot import Snapshot
from lance_duck.telemetry.metrics import ROWS_RETURNED
from lance_duck.telemetry.observing import observed

if TYPE_CHECKING:
    from lance_duck.scan.text import request as text_request
else:
    text_request = lazy.modules(globals(), "lance_duck.scan.text", "request")


def is_words(q: Any) -> bool:
    """Return whether a query contains words, not vectors."""
    return isinstance(q, str | Mapping | FullTextQuery)


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
    names = [*NEAREST_ARGUMENTS, *HYBRID_ARGUMENTS, *ScanOptions.__dataclass_fields__]
    refuse_unknown(options, names, "search")
    arguments = {**options}
    hybrid = {name: arguments.pop(name) for name in HYBRID_ARGUMENTS if name in arguments}
    if hybrid:
        arguments["hybrid"] = {**(arguments.get("hybrid") or {}), **hybrid}
    if is_words(q):
        return text_request.text_search_arguments(q, k, column, arguments)
    vector_column = only_vector_column(TableScan(snapshot)) if column is None else column
    nearest = {"column": vector_column, "q": q, "k": k}
    nearest |= {name: arguments.pop(name) for name in NEAREST_ARGUMENTS & arguments.keys()}
    return {**arguments, "nearest": nearest}


def read_table(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table:
    """Read a scan, or a search, into memory.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`.
    """
    if _is_plain_search(arguments):
        with observed("SEARCH", table.snapshot.uri):
            rows = _search_table(table, {"columns": None, "filter": None, **arguments})
        ROWS_RETURNED.add(by=rows.num_rows)
        return rows
    return LanceScanner(table, ScanOptions.of(arguments)).to_table()


_SEEN_TO_BY_SCANNER: Final = ("full_text_query", "row_addr_allowlist", "row_addr_blocklist", "scan_stats_callback")


def _is_plain_search(arguments: Mapping[str, Any]) -> bool:
    """Return whether the arguments describe a vector search that does not need a `LanceScanner`."""
    if arguments.get("nearest") is None or isinstance(arguments.get("filter"), FullTextQuery):
        return False
    return all(arguments.get(name) is None for name in _SEEN_TO_BY_SCANNER)


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_TEXT: Final = frozenset({str})


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
    key = _key(arguments)
    if key is None:
        scan = NearestScan(table, ScanOptions.of(arguments))
    else:
        without = {**arguments, "nearest": {name: each for name, each in arguments["nearest"].items() if name != "q"}}
        scan = table.option_cache.layout(key, lambda: NearestScan(table, ScanOptions.of(without)))
    return scan.table(scan.queries(arguments["nearest"]))


def _key(arguments: Mapping[str, Any]) -> object | None:
    """Return a cache key from all arguments except the queries, or None if the key would not be unique."""
    nearest, columns, filter_ = arguments["nearest"], arguments["columns"], arguments["filter"]
    if type(nearest) is not dict or "q" not in nearest or not (columns is None or type(columns) is list):
        return None
    if filter_ is not None and (type(filter_) is not str or asks_for_the_time(filter_)):
        return None
    if columns is not None and not _TEXT.issuperset(map(type, columns)):
        return None
    options = {**arguments, **nearest, "nearest": None, "columns": None, "q": None}
    types = tuple(map(type, options.values()))
    if not _PLAIN.issuperset(types) or len(options) != len(arguments) + len(nearest):
        return None
    return "searches", None if columns is None else tuple(columns), tuple(options.items()), types
