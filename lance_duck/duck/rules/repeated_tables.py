"""Finds tables that a statement may mention more than once. Pure.

SELECT … FROM t AS a JOIN lance.t AS b USING (k) WHERE a.x > (SELECT avg(x) FROM t)
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.table_read import TablePlace
from lance_duck.duck.statement.deterministic_sql import is_plain_table, names_a_column
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(r"\bfrom\b.*(\bfrom\b|\bjoin\b|,)", re.IGNORECASE | re.DOTALL)
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Command)


@dataclass(frozen=True)
class RepeatedTables:
    """Mentions of tables whose unqualified names occur more than once.

    Attributes:
        places: The mentions in the text.
    """

    places: tuple[TablePlace, ...]


def find(statement: Statement) -> tuple[RepeatedTables, ...]:
    """Find the tables that a statement mentions more than once."""
    if len(statement.text) > LONGEST or statement.nearest or not _MAYBE.search(statement.text):
        return ()
    named = Counter(folded(table.name[-1]) for table in statement.scopes.tables if table.name is not None)
    if max(named.values(), default=0) < 2:
        return ()
    tree = statement.tree
    if tree is None or tree.find(*_ODD) or any(column.args.get("db") for column in tree.find_all(exp.Column)):
        return ()
    try:
        places = _places(tree, statement)
    except (RecursionError, LookupError):
        return ()
    names = [place.name[-1].lower() for place in places]
    repeated = tuple(place for place in places if names.count(place.name[-1].lower()) > 1)
    return (RepeatedTables(repeated),) if repeated else ()


def _places(tree: exp.Expression, statement: Statement) -> list[TablePlace]:
    named = {cte.alias.lower() for with_ in tree.find_all(exp.With) for cte in with_.expressions}
    return [
        TablePlace.of(table, statement)
        for table in tree.find_all(exp.Table)
        if is_plain_table(table) and table.name.lower() not in named and not names_a_column(table)
    ]
