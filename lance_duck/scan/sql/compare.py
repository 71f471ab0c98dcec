"""Comparisons with constants that a column cannot hold, and patterns, as predicates that mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.predicate.tree import Compare, In, Not, Op, Path, Predicate, StartsWith, all_of, any_of
from lance_duck.scan.sql.literals import (
    MOMENTS,
    Literal,
    NotSimpleError,
    integer_range,
    is_text,
    moment_of,
    number,
    scalar_for,
)

_MOST_DIGITS: Final = 18
_MANY: Final = 64


def comparison(op: Op, path: Path, literal: Literal, type_: pa.DataType) -> Predicate:
    """Compare a column with a constant, integers with fractions and numbers beyond them, dates with timestamps.

    Raises:
        NotSimpleError: The constant is not compared exactly.
    """
    try:
        return Compare(op, path, scalar_for(literal, type_))
    except NotSimpleError:
        if pa.types.is_date32(type_) and literal.kind in MOMENTS:
            return _between(op, path, pa.scalar(moment_of(literal).date(), type_))
        value = _fraction(literal, type_)
    low, high = integer_range(type_)
    floor = int(value.to_integral_value(ROUND_FLOOR))
    least, most = pa.scalar(low, type_), pa.scalar(high, type_)
    if floor >= high:
        return Compare("<=" if op in ("<", "<=", "!=") else ">", path, most)
    if floor < low:
        return Compare(">=" if op in (">", ">=", "!=") else "<", path, least)
    return _between(op, path, pa.scalar(floor, type_))


def membership(path: Path, literals: Sequence[Literal], type_: pa.DataType) -> Predicate:
    """Build an IN; constants that the column cannot hold are left out.

    Raises:
        NotSimpleError: A constant is not compared exactly.
    """
    return In(path, pa.array(held(literals, type_), type_))


def held(literals: Iterable[Literal], type_: pa.DataType) -> list[pa.Scalar]:
    """Return constants that a column can hold, in order.

    Raises:
        NotSimpleError: A constant is not compared exactly.
    """
    values = []
    for literal in literals:
        try:
            values.append(scalar_for(literal, type_))
        except NotSimpleError:
            _fraction(literal, type_)
    return values


def either(*parts: Predicate) -> Predicate:
    """Build an OR; equalities of one column become one IN, where the first of them stands."""
    if len(parts) < _MANY:
        return any_of(*parts)
    wanted: dict[tuple[Path, pa.DataType], list[pa.Scalar]] = {}
    places: dict[Any, Predicate] = {}
    for place, part in enumerate(parts):
        if isinstance(part, Compare) and part.op == "=":
            key = (part.path, part.value.type)
            places.setdefault(key, part)
            wanted.setdefault(key, []).append(part.value)
        else:
            places[place] = part
    for key, values in wanted.items():
        if len(values) > 1:
            places[key] = In(key[0], pa.array(values, key[1]))
    return any_of(*places.values())


def like(path: Path, type_: pa.DataType, literal: Literal) -> Predicate:
    """Return LIKE with a pattern that is a prefix, or has no marks at all.

    Raises:
        NotSimpleError: It is another pattern.
    """
    pattern = scalar_for(literal, type_) if is_text(type_) else None
    if pattern is None:
        raise NotSimpleError
    if not pattern.is_valid:
        return StartsWith(path, pattern)
    text = pattern.as_py()
    prefix = fixed_prefix(text)
    if prefix == text:
        return Compare("=", path, pattern)
    if text[len(prefix) :].strip("%"):
        raise NotSimpleError
    return StartsWith(path, pa.scalar(prefix, type_))


def fixed_prefix(pattern: str) -> str:
    """Return what every text begins with that is LIKE a pattern."""
    ends = [at for at in (pattern.find("%"), pattern.find("_")) if at >= 0]
    return pattern[: min(ends)] if ends else pattern


def _between(op: Op, path: Path, below: pa.Scalar) -> Predicate:
    """Return a column against a constant between this value and the next."""
    if op in (">", ">="):
        return Compare(">", path, below)
    if op in ("<", "<="):
        return Compare("<=", path, below)
    never = all_of(Compare("<=", path, below), Compare(">", path, below))
    return never if op == "=" else Not(never)


def _fraction(literal: Literal, type_: pa.DataType) -> Decimal:
    """Return a number that a column of whole numbers cannot hold, and that DuckDB compares with it exactly."""
    if not pa.types.is_integer(type_):
        raise NotSimpleError
    value = number(literal)
    if len(value.as_tuple().digits) > _MOST_DIGITS or abs(value.adjusted()) >= _MOST_DIGITS:
        raise NotSimpleError
    low, high = integer_range(type_)
    if value == value.to_integral_value() and low <= value <= high:
        raise NotSimpleError
    return value
