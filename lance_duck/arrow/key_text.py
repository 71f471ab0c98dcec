"""Texts of primary keys, as DuckDB prints them: `id: 1, day: 2030-01-31`. For errors and for validation."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa


def key_text(rows: pa.Table, row: int) -> str:
    """Return the key in a row of a table of keys."""
    return ", ".join(f"{name}: {_text(rows.column(name)[row].as_py())}" for name in rows.column_names)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, bytes):
        return repr(value)[2:-1]
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
