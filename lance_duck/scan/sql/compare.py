"""Comparisons of columns with SQL constants, as predicate leaves with DuckDB semantics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import is_list, is_text
from lance_duck.scan.costs import GATHERED_OPERANDS
from lance_duck.scan.predicate import leaves
from lance_duck.scan.predicate.lists import item_type
from lance_duck.scan.predicate.tree import Compare, HasAll, HasAny, In, Op, Path, Predicate, StartsWith, any_of
from lance_duck.scan.sql.literals import (
    MOMENTS,
    Literal,
    NotSimpleError,
    exact_number,
    integer_range,
    moment_of,
    scalar_for,
)

_MOST_DIGITS: Final = 18
"""Maximum digit count for which DuckDB compares a number with an integer column exactly. A DECIMAL can then hold the
number and the values of the column."""


Argument = Literal | Sequence[Literal]
"""The second argument of a function: a constant, or a list of constants."""


def literal_comparison(op: Op, path: Path, literal: Literal, type_: pa.DataType) -> Predicate:
    """Compare a column with a constant.

    An integer column may be compared with a fraction or a number out of its range, and a date column with a timestamp.

    Raises:
        NotSimpleError: The constant cannot be compared exactly.
    """
    try:
        return Compare(op, path, scalar_for(literal, type_))
    except NotSimpleError:
        if pa.types.is_date32(type_) and literal.kind in MOMENTS:
            return leaves.comparison_between(op, path, pa.scalar(moment_of(literal).date(), type_))
        value = _unheld_number(literal, type_)
    low, high = integer_range(type_)
    floor = int(value.to_integral_value(ROUND_FLOOR))
    if floor >= high:
        return leaves.comparison_beyond(op, path, pa.scalar(high, type_), above=True)
    if floor < low:
        return leaves.comparison_beyond(op, path, pa.scalar(low, type_), above=False)
    return leaves.comparison_between(op, path, pa.scalar(floor, type_))


def membership(path: Path, literals: Sequence[Literal], type_: pa.DataType) -> Predicate:
    """Build an IN. Constants that the column's type cannot represent are dropped.

    Raises:
        NotSimpleError: A constant cannot be compared exactly.
    """
    return In(path, pa.array(scalars_for(literals, type_), type_))


def scalars_for(literals: Iterable[Literal], type_: pa.DataType) -> list[pa.Scalar]:
    """Return the constants that the column's type can represent, in order.

    Raises:
        NotSimpleError: A constant cannot be compared exactly.
    """
    scalars = []
    for literal in literals:
        try:
            scalars.append(scalar_for(literal, type_))
        except NotSimpleError:
            _unheld_number(literal, type_)
    return scalars


def either(*operands: Predicate) -> Predicate:
    """Build an OR. Equalities on one column become one IN, at the position of the first equality."""
    if len(operands) < GATHERED_OPERANDS:
        return any_of(*operands)
    constants: dict[tuple[Path, pa.DataType], list[pa.Scalar]] = {}
    joined: dict[Any, Predicate] = {}
    for place, operand in enumerate(operands):
        if isinstance(operand, Compare) and operand.op == "=":
            key = (operand.path, operand.value.type)
            joined.setdefault(key, operand)
            constants.setdefault(key, []).append(operand.value)
        else:
            joined[place] = operand
    for key, scalars in constants.items():
        if len(scalars) > 1:
            joined[key] = In(key[0], pa.array(scalars, key[1]))
    return any_of(*joined.values())


def like(path: Path, type_: pa.DataType, literal: Literal) -> Predicate:
    """Translate LIKE with a prefix pattern, or a pattern without wildcards.

    Raises:
        NotSimpleError: The pattern is not supported.
    """
    result = leaves.like(path, scalar_for(literal, type_)) if is_text(type_) else None
    if result is None:
        raise NotSimpleError
    return result


def starts_with(path: Path, type_: pa.DataType, prefix: Argument) -> Predicate:
    """Build starts_with. Raises NotSimpleError if the column does not contain strings."""
    if not isinstance(prefix, Literal) or not is_text(type_):
        raise NotSimpleError
    return StartsWith(path, scalar_for(prefix, type_))


def has_item(path: Path, type_: pa.DataType, item: Argument) -> Predicate:
    """Build list_contains. Raises NotSimpleError if the column does not contain lists.

    DuckDB evaluates the condition for a NULL item, because its result for an empty list depends on the version: false
    since DuckDB 2.0.1, and NULL before.
    """
    if not isinstance(item, Literal) or item.value is None:
        raise NotSimpleError
    return leaves.has_item(path, _items([item], type_)[0])


def contains_item(path: Path, type_: pa.DataType, item: Argument) -> Predicate:
    """Build contains, or IN with a list column. Raises NotSimpleError if the column does not contain lists.

    DuckDB evaluates the condition for an empty string, because its result depends on the version: DuckDB 1.5 returns
    true for every list.
    """
    if not isinstance(item, Literal) or item.value == "":
        raise NotSimpleError
    return has_item(path, type_, item)


def list_has_any(path: Path, type_: pa.DataType, items: Argument) -> Predicate:
    """Build list_has_any. Raises NotSimpleError if the column does not contain lists."""
    if isinstance(items, Literal):
        raise NotSimpleError
    return HasAny(path, _items(items, type_))


def list_has_all(path: Path, type_: pa.DataType, items: Argument) -> Predicate:
    """Build list_has_all. Raises NotSimpleError if the column does not contain lists."""
    if isinstance(items, Literal):
        raise NotSimpleError
    return HasAll(path, _items(items, type_))


def _items(literals: Sequence[Literal], type_: pa.DataType) -> pa.Array:
    if not is_list(type_):
        raise NotSimpleError
    item = item_type(type_)
    return pa.array([scalar_for(literal, item) for literal in literals], item)


def _unheld_number(literal: Literal, type_: pa.DataType) -> Decimal:
    """Return a number that an integer column cannot contain, but that DuckDB compares with the column exactly.

    Raises:
        NotSimpleError: DuckDB does not compare the constant exactly, or the column does not contain integers.
    """
    if not pa.types.is_integer(type_):
        raise NotSimpleError
    value = exact_number(literal)
    if len(value.as_tuple().digits) > _MOST_DIGITS or abs(value.adjusted()) >= _MOST_DIGITS:
        raise NotSimpleError
    low, high = integer_range(type_)
    if value == value.to_integral_value() and low <= value <= high:
        raise NotSimpleError
    return value
