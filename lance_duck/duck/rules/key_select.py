"""Finds statements that only select columns of one table by a key. Pure.

    SELECT name [, …] | * FROM t WHERE id = ?
    SELECT name [, …] FROM t WHERE id IN (?, 7, …)

A match is only a guess: names may have other meanings in DuckDB, which then returns other columns. Texts with comments,
or with characters outside ASCII, are not matched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from lance_duck.duck.statement.identifiers import folded, qualified_names

_LONGEST: Final = 2_000
_NAME: Final = r'(?:[a-z_]\w*+|"(?:[^"]|"")++")'
_PATH: Final = rf"{_NAME}(?:\.{_NAME})*+"
_ITEM: Final = rf"({_PATH})(?:\s++as\s++({_NAME}))?+"
_VALUE: Final = r"-?\d{1,18}|'(?:[^']|'')*+'|\?|\$\d{1,4}|\$[a-z_]\w*+"
_VALUES: Final = rf"(?:{_VALUE})(?:\s*+,\s*+(?:{_VALUE}))*+"
_SELECT: Final = re.compile(
    rf"\s*+select\s++(?P<items>\*|{_PATH}(?:\s++as\s++{_NAME})?+(?:\s*+,\s*+{_PATH}(?:\s++as\s++{_NAME})?+)*+)"
    rf"\s++from\s++(?P<table>{_PATH})(?:\s++as\s++(?P<alias>{_NAME}))?+\s++where\s++(?P<key>{_PATH})"
    rf"\s*+(?:=\s*+(?P<one>{_VALUE}|\((?:{_VALUE})\))|\bin\s*+\(\s*+(?P<several>{_VALUES})\s*+\))\s*+;?\s*+",
    re.IGNORECASE | re.ASCII,
)
_ITEMS: Final = re.compile(_ITEM, re.IGNORECASE | re.ASCII)
_STRINGS: Final = re.compile(r"'(?:[^']|'')*+'")
_EACH: Final = re.compile(_VALUE, re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class KeyParameter:
    """A parameter.

    Attributes:
        key: Its number, from 1, or its name.
    """

    key: int | str


@dataclass(frozen=True)
class KeySelect:
    """A statement that selects columns of one table by a key.

    Attributes:
        table: Parts of the name of the table.
        qualifier: The only possible qualifier of columns.
        columns: The selected columns, each with its title, which is None without an alias. None for all columns.
        key: The column of the condition.
        is_qualified: Whether a column has the qualifier.
        values: Constants and parameters, with one of which the column is compared.
    """

    table: tuple[str, ...]
    qualifier: str
    columns: tuple[tuple[str, str | None], ...] | None
    key: str
    is_qualified: bool
    values: tuple[int | str | KeyParameter, ...]

    @classmethod
    def of(cls, text: str) -> KeySelect | None:
        """Read a statement. Returns None for other statements."""
        match = _SELECT.fullmatch(text) if len(text) <= _LONGEST and text.isascii() else None
        if match is None:
            return None
        table = _parts(match["table"])
        qualifier = table[-1] if match["alias"] is None else _parts(match["alias"])[0]
        items = [(_parts(each[1]), each[2]) for each in _ITEMS.finditer(match["items"])]
        key = _parts(match["key"])
        paths = [*(path for path, _ in items), key]
        if any(len(path) > 1 and (len(path) > 2 or folded(path[0]) != folded(qualifier)) for path in paths):
            return None
        columns = tuple((path[-1], None if alias is None else _parts(alias)[0]) for path, alias in items) or None
        values = tuple(_values(match["one"] or match["several"]))
        bound = [each.key for each in values if isinstance(each, KeyParameter)]
        if not _are_alike(bound, match["one"] or match["several"]):
            return None
        if any(title is not None and folded(title) == folded(key[-1]) for _, title in columns or ()):
            return None
        return cls(table, qualifier, columns, key[-1], any(len(path) > 1 for path in paths), values)

    def keys(self, parameters: Any) -> list[Any] | None:
        """Return the values to compare with, or None if the parameters do not have the expected form.

        Args:
            parameters: The parameters of the statement: a list, tuple or dictionary, or None.
        """
        bound: Mapping[Any, Any]
        if parameters is None:
            bound = {}
        elif type(parameters) is dict and all(type(name) is str for name in parameters):
            bound = parameters
        elif type(parameters) is list or type(parameters) is tuple:
            bound = dict(enumerate(parameters, 1))
        else:
            return None
        if self.bound != bound.keys():
            return None
        return [bound[each.key] if isinstance(each, KeyParameter) else each for each in self.values]

    @cached_property
    def bound(self) -> frozenset[int | str]:
        """The numbers or names of the parameters."""
        return frozenset(each.key for each in self.values if isinstance(each, KeyParameter))


def _parts(text: str) -> tuple[str, ...]:
    (parts,) = qualified_names(text)
    return parts


def _values(text: str) -> Iterator[int | str | KeyParameter]:
    number = 0
    for match in _EACH.finditer(text):
        value = match[0]
        if value == "?":
            number += 1
            yield KeyParameter(number)
        elif value.startswith("$"):
            yield KeyParameter(int(value[1:]) if value[1:].isdecimal() else value[1:])
        else:
            yield value[1:-1].replace("''", "'") if value.startswith("'") else int(value)


def _are_alike(keys: list[int | str], text: str) -> bool:
    """Return whether parameters are all written as `?`, or all numbered without gaps, or all named."""
    if any(isinstance(key, str) for key in keys):
        return all(isinstance(key, str) for key in keys) and "?" not in _STRINGS.sub("", text)
    if "?" in _STRINGS.sub("", text):
        return "$" not in _STRINGS.sub("", text)
    return set(keys) == set(range(1, len(set(keys)) + 1))
