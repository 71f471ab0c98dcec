"""Quote SQL names (see `lance_duck.scan.identifiers`) and parse them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Final

from lance_duck.scan.identifiers import are_distinct, escaped, folded, literal, quoted

__all__ = [
    "ambiguous_columns",
    "are_distinct",
    "escaped",
    "folded",
    "literal",
    "may_be_name",
    "parts_of_name",
    "qualified_names",
    "quoted",
    "shown_names",
    "stored_name",
]

_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^".,]+)')
_TABLE: Final = re.compile(r"[\w$ -]+")


def shown_names(names: Iterable[str]) -> list[str]:
    """Return DuckDB's names of columns. It adds a number to a name that repeats another without regard to case."""
    shown: dict[str, str] = {}
    for name in names:
        given = name
        for number in count(1):
            if folded(given) not in shown:
                break
            given = f"{name}_{number}"
        shown[folded(given)] = given
    return list(shown.values())


def ambiguous_columns(names: Iterable[str]) -> dict[str, list[str]]:
    """Map each folded name that may mean several columns to the stored names of these columns.

    A name may mean the columns with this stored name, and the column to which DuckDB gives this name.
    """
    names = list(names)
    if are_distinct(names):
        return {}
    groups: dict[str, list[str]] = {}
    for stored, shown in zip(names, shown_names(names), strict=True):
        group = groups.setdefault(folded(stored), [])
        groups[folded(shown)] = group
        group.append(stored)
    return {name: group for name, group in groups.items() if len(group) > 1}


def stored_name(name: str, names: Sequence[str]) -> str:
    """Return the stored name of a column to which DuckDB gave a new name. Other names are returned unchanged."""
    if name in names or are_distinct(names):
        return name
    return dict(zip(map(folded, shown_names(names)), names, strict=True)).get(folded(name), name)


def parts_of_name(text: str) -> tuple[str, ...]:
    """Return the parts of a qualified name in SQL syntax. Empty for other text."""
    names = qualified_names(text)
    return names[0] if len(names) == 1 else ()


def qualified_names(text: str) -> list[tuple[str, ...]]:
    """Return the qualified names in a comma-separated list."""
    names: list[list[str]] = [[]]
    at = 0
    while (part := _PART.match(text, at)) is not None:
        names[-1].append(part[2] if part[1] is None else part[1].replace('""', '"'))
        at = part.end() + 1
        if text[part.end() : at] == ",":
            names.append([])
    return [tuple(parts) for parts in names]


def may_be_name(text: str, tables: Iterable[str]) -> bool:
    """Return whether a string looks like a table name, although it could be a path.

    Args:
        text: The string. With a dot, its first part must be a database that has tables.
        tables: Table names, qualified or not.
    """
    *database, name = text.split(".", 1)
    starts = tuple(f"{folded(each)}." for each in database)
    return _TABLE.fullmatch(name) is not None and (
        not starts or any(folded(each).startswith(starts) for each in tables)
    )
