"""Parameter types of the functions that the macros call, as DuckDB's Python API expects them."""

from __future__ import annotations

from typing import Any, Final

SEARCH_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "BIGINT", "BIGINT"),
    *("VARCHAR", "BOOLEAN", "VARCHAR", "BOOLEAN", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "DOUBLE", "VARCHAR"),
]
TEXT_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BOOLEAN", "VARCHAR"),
    *("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR"),
]
HYBRID_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "DOUBLE", "BIGINT", "VARCHAR"),
    *("BIGINT", "BIGINT", "BIGINT", "VARCHAR", "BOOLEAN", "BOOLEAN", "VARCHAR", "VARCHAR[]", "DOUBLE", "VARCHAR"),
]
HISTORY_TYPES: Final[list[Any]] = ["VARCHAR", "VARCHAR", "VARCHAR", "VARCHAR[]", "VARCHAR[]", "VARCHAR"]
