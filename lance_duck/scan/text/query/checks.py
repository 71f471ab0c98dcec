"""Validates the arguments of queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, TypeVar

from lance_duck.arguments import is_unicode, unknown_value
from lance_duck.errors import InvalidInputError, WrongTypeError

_E = TypeVar("_E", bound=Enum)

_U32: Final = (1 << 32) - 1
_LARGEST: Final = 3.4028234663852886e38  # maximum float32, the type of scores


def check_text(name: str, value: object, where: str) -> None:
    """Reject a value that is not a string.

    Raises:
        WrongTypeError: The value is not a string.
        InvalidInputError: The string contains a lone surrogate.
    """
    if not isinstance(value, str):
        raise WrongTypeError(name, where=where, expected="a string", found=type(value).__name__)
    if not is_unicode(value):
        raise InvalidInputError(name, where=where, expected="valid Unicode", found="a lone surrogate")


def check_analyzer(analyzer: object, where: str) -> None:
    """Reject a value that cannot be analyser parameters.

    Raises:
        WrongTypeError: The value is neither None nor a dict.
    """
    if analyzer is not None and not isinstance(analyzer, Mapping):
        raise WrongTypeError("analyzer", where=where, expected="a dict of parameters", found=type(analyzer).__name__)


def column_names(columns: object, where: str) -> tuple[str, ...]:
    """Return the columns of a multi-column query. There is at least one.

    Raises:
        InvalidInputError, WrongTypeError: The value is not a list of names, or is empty.
    """
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise WrongTypeError("columns", where=where, expected="a list of names", found=repr(columns))
    names = tuple(columns)
    for name in names:
        check_text("columns", name, where)
    if not names:
        raise InvalidInputError(f"Cannot create {where} with no columns")
    return names


def weights(boosts: object, columns: Sequence[str], where: str) -> tuple[float, ...]:
    """Return the boosts of columns, one for each, finite and 0 or more.

    Raises:
        InvalidInputError, WrongTypeError: The value is not a list of these numbers, or its length differs from the
        column count.
    """
    if isinstance(boosts, str | bytes) or not isinstance(boosts, Iterable):
        raise WrongTypeError("boosts", where=where, expected="a list of numbers", found=repr(boosts))
    numbers = tuple(checked_number("boosts", boost) for boost in boosts)
    if len(numbers) != len(columns):
        text = "The number of boosts must match the number of columns"
        raise InvalidInputError(text, where=where, expected=len(columns), found=len(numbers))
    return numbers


def checked_number(name: str, value: Any, least: float = 0.0) -> float:
    """Return a value after checking that it is a number within float32 and at least `least`.

    Raises:
        InvalidInputError, WrongTypeError: The value is not a number in this range.
    """
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise WrongTypeError(name, expected="a number", found=repr(value))
    number = float(value)
    if not math.isfinite(number) or number < least or abs(number) > _LARGEST:
        expected = "a finite number" if least < 0 else "a finite number, 0 or more"
        raise InvalidInputError(name, expected=expected, found=value)
    return number


def checked_whole(name: str, value: Any) -> int:
    """Return a value after checking that it is an integer from 0 to 2^32 - 1.

    Raises:
        InvalidInputError, WrongTypeError: The value is not a number in this range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise WrongTypeError(name, expected="a whole number", found=repr(value))
    if not 0 <= value.__index__() <= _U32:
        raise InvalidInputError(name, expected=f"a whole number from 0 to {_U32}", found=value)
    return int(value.__index__())


def member(kind: type[_E], name: str, value: object) -> _E:
    """Return a member of an enumeration, given the member or its value. Case is ignored.

    Raises:
        InvalidInputError, WrongTypeError: The value is not a member.
    """
    if isinstance(value, kind):
        return value
    if isinstance(value, str):
        named = next((each for each in kind if each.value.lower() == value.lower()), None)
        if named is not None:
            return named
        raise unknown_value(name, value, [each.value for each in kind])
    value = getattr(value, "value", value)
    if isinstance(value, str):
        return member(kind, name, value)
    raise WrongTypeError(name, expected=kind.__name__, found=repr(value))
