"""Support the named arguments of DuckDB's `lance` extension: `name = value`, which DuckDB parses as a comparison.

FROM lance_scan('x.lance', version = 3)  →  FROM lance_scan('x.lance', version := 3)
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.lifted import LiftedText

_CALL: Final = re.compile(r"\blance_\w+[\s\"]*\(", re.IGNORECASE)
_NAMED: Final = re.compile(r"[,(]\s*\"?\w+\"?\s*=(?![=>])")
_TABLE_FOLLOWS: Final = frozenset({"from", "join", ",", "(", "lateral"})


def named_arguments(lifted: LiftedText, functions: Collection[str]) -> list[Edit]:
    """Return edits that convert the named arguments of table functions to DuckDB's syntax.

    Args:
        lifted: One or more statements.
        functions: Names of the functions, in lower case.
    """
    sql = lifted.text
    if "=" not in sql or _CALL.search(sql) is None or _NAMED.search(sql) is None:
        return []
    clauses = Clauses.of(sql)
    return [
        Edit(place, place + 1, ":=")
        for at, token in enumerate(clauses.tokens)
        if token.name is not None and folded(token.name) in functions and _is_table(clauses, at)
        for argument in clauses.part(at + 2, clauses.closer(at + 1)).split()
        if (place := _equals_sign(argument)) is not None
    ]


def _is_table(clauses: Clauses, at: int) -> bool:
    """Return whether a name is called as a table function."""
    return clauses.text_at(at + 1) == "(" and clauses.text_at(at - 1).lower() in _TABLE_FOLLOWS


def _equals_sign(argument: Clauses) -> int | None:
    """Return the offset of the `=` in a named argument, in characters, or None for positional arguments."""
    if len(argument) < 3 or argument.tokens[0].name is None or argument.text_at(1) != "=":
        return None
    place = argument.tokens[1].start
    return None if argument.sql[place : place + 2] in ("==", "=>") else place
