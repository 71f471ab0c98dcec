"""Builds the leaves of predicates. All filter languages share these functions.

Constants are converted to the type of the column. If the type cannot represent a constant, the adjacent values of the
type are used instead. If a comparison cannot be exact, the caller lets DuckDB evaluate it.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lance_duck.arrow.types import is_text
from lance_duck.scan.predicate.tree import (
    Compare,
    ConstantCondition,
    HasAny,
    IsNull,
    Not,
    Op,
    Path,
    Predicate,
    StartsWith,
    all_of,
)
from lance_duck.scan.predicate.types import InexactError, exact

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def comparison(op: Op, path: Path, constant: pa.Scalar, type_: pa.DataType) -> Predicate:
    """Return the comparison of a column with a constant of the same kind.

    A time may be between two ticks of the column's unit.

    Args:
        op: The comparison.
        path: The column.
        constant: A constant whose type is of the same kind as the column's.
        type_: The type in which the values of the column are compared.

    Raises:
        InexactError: The type cannot represent the constant, and the constant is not a time.
    """
    try:
        return Compare(op, path, exact(constant, type_))
    except InexactError:
        if not (pa.types.is_temporal(type_) and hasattr(constant.type, "unit") and hasattr(type_, "unit")):
            raise
    per_tick, rest = divmod(_PER_SECOND[constant.type.unit], _PER_SECOND[type_.unit])
    if rest:
        raise InexactError(f"a tick of {type_} is shorter than one of {constant.type}")
    ticks = pa.int32() if pa.types.is_time32(type_) else pa.int64()
    return comparison_between(op, path, pa.scalar(constant.cast(pa.int64()).as_py() // per_tick, ticks).cast(type_))


def comparison_between(op: Op, path: Path, below: pa.Scalar) -> Predicate:
    """Return the comparison of a column with a constant between `below` and the next value of the column's type."""
    if op in (">", ">="):
        return Compare(">", path, below)
    if op in ("<", "<="):
        return Compare("<=", path, below)
    never = all_of(Compare("<=", path, below), Compare(">", path, below))
    return never if op == "=" else Not(never)


def comparison_beyond(op: Op, path: Path, bound: pa.Scalar, *, above: bool) -> Predicate:
    """Return the comparison of a column with a constant outside the range of its type, given the exceeded bound."""
    if above:
        return Compare("<=" if op in ("<", "<=", "!=") else ">", path, bound)
    return Compare(">=" if op in (">", ">=", "!=") else "<", path, bound)


def not_distinct(path: Path, equal: Predicate) -> Predicate:
    """Return the predicate for `path IS NOT DISTINCT FROM constant`, which is never null.

    Args:
        path: Path of the column.
        equal: The predicate for `path = constant`.
    """
    unknown = isinstance(equal, Compare) and not equal.value.is_valid
    return IsNull(path) if unknown else all_of(Not(IsNull(path)), equal)


def truth(path: Path, value: bool) -> Predicate:
    """Return IS TRUE or IS FALSE for a boolean column. The result is never null."""
    return all_of(Not(IsNull(path)), Compare("=", path, pa.scalar(value)))


def like(path: Path, pattern: pa.Scalar) -> Predicate | None:
    """Translate LIKE with a prefix pattern, or a pattern without wildcards. Returns None for other patterns."""
    if not pattern.is_valid:
        return StartsWith(path, pattern)
    text = pattern.as_py()
    prefix = fixed_prefix(text)
    if prefix == text:
        return Compare("=", path, pattern)
    return None if text[len(prefix) :].strip("%") else StartsWith(path, pa.scalar(prefix, pattern.type))


def implied_by_like(path: Path, pattern: str, type_: pa.DataType) -> Predicate | None:
    """Return the prefix predicate implied by LIKE, or None."""
    prefix = fixed_prefix(pattern)
    return StartsWith(path, pa.scalar(prefix, type_)) if prefix and is_text(type_) else None


def fixed_prefix(pattern: str) -> str:
    """Return the common prefix of all strings that match a LIKE pattern."""
    marks = [place for place in (pattern.find("%"), pattern.find("_")) if place >= 0]
    return pattern[: min(marks)] if marks else pattern


def has_item(path: Path, item: pa.Scalar) -> Predicate:
    """Return the condition that a list contains an item. It is null for a null item, because null never matches."""
    return HasAny(path, pa.repeat(item, 1)) if item.is_valid else ConstantCondition(None)
