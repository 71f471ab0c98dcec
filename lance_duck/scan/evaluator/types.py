"""Types of the inputs of SQL expressions: columns and parameters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, TypeAlias

import pyarrow as pa

Columns = Mapping[str, pa.Array]
Parameters = Sequence[Any] | Mapping[str, Any] | None

ParametersKey: TypeAlias = tuple[bool, tuple[tuple[str, type, str, Any], ...]]
_SCALARS: Final = frozenset({bool, int, float, str, bytes, Decimal, dt.date, dt.datetime, dt.time, type(None)})


def parameters_key(parameters: Parameters) -> ParametersKey | None:
    """Return a cache key from parameter names and values, or None if a parameter is mutable.

    Equal values may still differ, such as 0.0 and -0.0, or one instant in two time zones. The key therefore includes
    the repr of each value.
    """
    is_named = isinstance(parameters, Mapping)
    pairs = parameters.items() if isinstance(parameters, Mapping) else (("", value) for value in parameters or ())
    key = tuple((name, type(value), repr(value), value) for name, value in pairs)
    return (is_named, key) if all(type_ in _SCALARS for _, type_, _, _ in key) else None
