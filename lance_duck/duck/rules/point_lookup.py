"""Finds point lookups: statements that read one table with a simple WHERE. Pure.

`table_select` explains why the result stays the same if the table contains only rows that satisfy the condition.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.order_by_distance import columns_of
from lance_duck.duck.rules.table_read import Condition, TablePlace
from lance_duck.duck.rules.table_select import TableSelect
from lance_duck.duck.statement.deterministic_sql import is_plain_condition
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(r"\bwhere\b.*(=|\bin\b|\bbetween\b|<|>)", re.IGNORECASE | re.DOTALL)
_is_known = partial(is_plain_condition, aliases=[""])


@dataclass(frozen=True)
class PlainWhere:
    """A statement that reads one table with a simple WHERE.

    Attributes:
        table: The table in the text.
        condition: Condition on its rows.
        columns: Column names that the statement reads, in lower case. None if it may read any column.
    """

    table: TablePlace
    condition: Condition
    columns: frozenset[str] | None


def find(statement: Statement) -> tuple[PlainWhere, ...]:
    """Find the table and the simple WHERE of a statement. Returns an empty tuple for other statements."""
    opening = statement.opening
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text) or opening is None:
        return ()
    if opening.first == "with" or opening.explained or opening.stores or not isinstance(statement.tree, exp.Select):
        return ()
    try:
        where = _where(statement.tree, statement)
    except (LookupError, ValueError):
        return ()
    return () if where is None else (where,)


def _where(select: exp.Select, statement: Statement) -> PlainWhere | None:
    if select.args.get("with_"):
        return None
    if all(isinstance(each.unalias(), exp.Count) and each.find(exp.Column) is None for each in select.expressions):
        return None  # an index may answer the count without reading rows
    table = TableSelect.of(select, statement)
    condition = None if table is None else Condition.of(table.conditions(table.conjuncts, _is_known))
    if table is None or condition is None:
        return None
    return PlainWhere(table.place, condition, columns_of(select, table.alias))
