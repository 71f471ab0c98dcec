"""Prepared searches: all but the query vectors is decided once for a version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.nearest.queries import query_vectors
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.sql.constants import asks_for_the_time
from lance_duck.scan.table_scan import TableScan

_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_TEXT: Final = frozenset({str})


def search_table(table: TableScan, given: Mapping[str, Any]) -> pa.Table:
    """Search, and read the result.

    Args:
        table: Where.
        given: Arguments of `ScanOptions`, `nearest` among them.

    Raises:
        InvalidInputError: What was asked makes no sense for this table.
        UnsupportedError: It is known, and not supported with a search.
    """
    key = _key(given)
    if key is None:
        return NearestScan(table, ScanOptions.of(given)).table()
    kept: dict[bool, NearestScan] = table.known.layout(key, dict)
    any_ = kept.get(False) or kept.get(True)
    if any_ is not None:  # each of them knows what queries have to be
        queries, is_batch = query_vectors(given["nearest"]["q"], *any_.query_form)
        if is_batch in kept:
            return kept[is_batch].asking(queries).table()
    scan = NearestScan(table, ScanOptions.of(given))
    found = scan.table()
    kept[scan.is_batch] = scan.asking(scan.queries[:1])
    return found


def _key(given: Mapping[str, Any]) -> object | None:
    """Return all that was asked but the queries; None where it is not known to mean the same again."""
    nearest, columns, filter_ = given["nearest"], given["columns"], given["filter"]
    if type(nearest) is not dict or "q" not in nearest or not (columns is None or type(columns) is list):
        return None
    if filter_ is not None and (type(filter_) is not str or asks_for_the_time(filter_)):
        return None
    if columns is not None and not _TEXT.issuperset(map(type, columns)):
        return None
    options = {**given, **nearest, "nearest": None, "columns": None, "q": None}
    types = tuple(map(type, options.values()))
    if not _PLAIN.issuperset(types) or len(options) != len(given) + len(nearest):
        return None
    return "searches", None if columns is None else tuple(columns), tuple(options.items()), types
