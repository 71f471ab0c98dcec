"""Finds SELECTs from one table with string conditions in WHERE, such as contains or LIKE '%part%'. Pure.

DuckDB does not pass these conditions to a scan in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.table_read import Condition, TablePlace
from lance_duck.duck.rules.table_select import table_selects
from lance_duck.duck.statement.deterministic_sql import calls_text_functions, is_plain_condition
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(
    r"\bwhere\b.*(like\b|~|\^@|\b(contains|glob|similar|\w+_with|prefix|suffix|regexp_\w+|lower|upper)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Collate, exp.Command)
_is_known = partial(is_plain_condition, aliases=[""], texts=True)


@dataclass(frozen=True)
class TextSelect:
    """A table that a SELECT reads, with conditions on strings.

    Attributes:
        table: The table in the text.
        condition: Condition on its rows.
    """

    table: TablePlace
    condition: Condition


def find(statement: Statement) -> tuple[TextSelect, ...]:
    """Find the tables of a statement that have string conditions."""
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text):
        return ()
    try:
        return tuple(_filters(statement))
    except (RecursionError, LookupError, ValueError):
        return ()


def _filters(statement: Statement) -> Iterator[TextSelect]:
    for table in table_selects(statement, *_ODD):
        parts = table.conditions(table.conjuncts, _is_known)
        condition = Condition.of(parts)
        if condition is not None and any(map(calls_text_functions, parts)):
            yield TextSelect(table.place, condition)
