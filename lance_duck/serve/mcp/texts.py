"""Cuts values to a size that fits a model.

| value | becomes |
|---|---|
| more than 8 numbers | the first 8 numbers, and the count of the others |
| binary | its length |
| more than 2,000 characters | the first 2,000, and the count of the others |
| an integer that JavaScript cannot hold, a decimal, a time | a string |

Shortened numbers have six digits. All other numbers are exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from lance_duck.serve.mcp.answers import CutCounts

MOST_NUMBERS: Final = 8
LONGEST_CELL: Final = 2000
LONGEST_ANSWER: Final = 50_000
"""Length of an answer, in characters."""
_EXACT: Final = 1 << 53
"""First integer that is not exact in JavaScript."""

_SAID: Final = (
    (
        'name one: search(…, column="…"), or create an index: create_scalar_index("…", "INVERTED")',
        "name one with text_column",
    ),
    ("name it: column=", "name it with vector_column"),
    ("versions() lists", "the tool versions lists"),
    ("lance_versions lists", "the tool versions lists"),
    (" or dataset(uri, version=n)", ""),
)
"""Remedies in Python or in SQL that changes tables, each with the words of a tool."""

_T = TypeVar("_T")


def shown_cell(cell: pa.Scalar, cuts: CutCounts, limit: int = LONGEST_CELL) -> Any:
    """Return a cell as a JSON value.

    Args:
        cell: The cell.
        cuts: Counts omitted values.
        limit: Maximum number of characters.
    """
    if not cell.is_valid:
        return None
    if isinstance(cell, pa.ListScalar) and not isinstance(cell, pa.MapScalar):
        if _is_number(cell.type.value_type) and len(cell.values) > MOST_NUMBERS:
            return _first_numbers(cell.values[:MOST_NUMBERS].to_pylist(), len(cell.values), cuts)
    elif isinstance(cell, pa.BinaryScalar) and not isinstance(cell, pa.StringScalar):
        return _shown_bytes(len(cell.as_buffer()), cuts)
    elif isinstance(cell, (pa.FloatScalar, pa.HalfFloatScalar)):
        return _plain(float(str(np.float32(cell.as_py()))), cuts)
    return _cut(_plain(_value(cell), cuts), cuts, limit)


def cut_text(text: str, limit: int = LONGEST_CELL) -> str:
    """Return a text, or its beginning with the count of the other characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def said_for_tools(text: str) -> str:
    """Return an error in terms of the tools."""
    for said, meant in _SAID:
        text = text.replace(said, meant)
    return text


def first_fitting(items: Iterable[_T], limit: int, size: Callable[[_T], int]) -> tuple[list[_T], int]:
    """Return the first items whose sizes add up to at most `limit`, and the number of the others."""
    kept: list[_T] = []
    left_out = used = 0
    for item in items:
        used += 0 if left_out else size(item)
        if used > limit:
            left_out += 1
        else:
            kept.append(item)
    return kept, left_out


def json_size(value: Any) -> int:
    """Return the length of a JSON value, in characters."""
    return len(json.dumps(value, ensure_ascii=False))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _value(cell: pa.Scalar) -> Any:
    """Return a cell as a Python value, or as a string if Python has no such value: the year 10,000, for example."""
    try:
        return cell.as_py()
    except (ValueError, OverflowError):
        return cell.cast(pa.string()).as_py()


def _plain(value: Any, cuts: CutCounts) -> Any:
    """Convert a value to JSON types."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if -_EXACT < value < _EXACT else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return _shown_bytes(len(value), cuts)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, cuts) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, tuple) for item in value):
            return _plain(dict(value), cuts)  # only maps have tuples
        if len(value) > MOST_NUMBERS and all(type(item) in (int, float) for item in value):
            return _first_numbers(value[:MOST_NUMBERS], len(value), cuts)
        return [_plain(item, cuts) for item in value]
    return str(value)


def _first_numbers(numbers: Iterable[float | None], count: int, cuts: CutCounts) -> list[Any]:
    cuts.vectors += 1
    short = [float(f"{number:.6g}") if isinstance(number, float) else number for number in numbers]
    return [*(_plain(number, cuts) for number in short), f"… ({count - MOST_NUMBERS:,} more numbers)"]


def _shown_bytes(count: int, cuts: CutCounts) -> str:
    cuts.binary += 1
    return f"<{count:,} bytes>"


def _cut(value: Any, cuts: CutCounts, limit: int) -> Any:
    """Return a JSON value, or the beginning of its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= limit:
        return value
    cuts.texts += 1
    return cut_text(text, limit)
