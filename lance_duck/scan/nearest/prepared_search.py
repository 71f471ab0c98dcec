"""Searches that are repeated with other queries: everything but the queries is decided once for a version.

See `benchmarks/caches.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.sql.constants import asks_for_the_time
from lance_duck.scan.table_scan import TableScan

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_TEXT: Final = frozenset({str})


def search_table(table: TableScan, arguments: Mapping[str, Any]) -> pa.Table:
    """Search, and read the result.

    Args:
        table: The table.
        arguments: Arguments of `ScanOptions`, `nearest` among them.

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
    """Return all arguments but the queries as a key; None if equal keys might not mean the same search."""
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
