"""Conditions on parts of texts: SELECTs of one table whose WHERE has contains, LIKE '%part%' and the like. Pure.

DuckDB hands none of them to a scan in Python. Such a SELECT gives the same where the table holds only rows that may
fulfil them, also where it is a subquery, a common table expression or a part of a UNION: WHERE comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import conjuncts
from lance_duck.duck.rules.order_by_distance import Key, as_key, without_table
from lance_duck.duck.statement.deterministic_sql import (
    Node,
    calls_text_functions,
    is_plain_condition,
    is_plain_table,
    names_a_column,
    sql_of,
)
from lance_duck.duck.statement.text import LONGEST, Statement

_MAYBE: Final = re.compile(
    r"\bwhere\b.*(like\b|~|\^@|\b(contains|glob|similar|\w+_with|prefix|suffix|regexp_\w+|lower|upper)\b)",
    re.IGNORECASE | re.DOTALL,
)
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Collate, exp.Command)
_BESIDE: Final = ("joins", "laterals", "sample")


@dataclass(frozen=True)
class TextFilter:
    """A table of which a SELECT wants rows whose texts fulfil conditions.

    Attributes:
        start, end: Place of its name in the text.
        alias: By what the statement calls it, to be added where the text does not say so; None where it does.
        name: Parts of its name.
        where: Conditions that its rows must fulfil, with `?` for their parameters.
        where_keys: Those parameters.
        where_columns: Names of the columns in those conditions.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    where: str
    where_keys: tuple[Key, ...]
    where_columns: frozenset[str]


def find(statement: Statement) -> tuple[TextFilter, ...]:
    """Find the tables of a statement that a condition on parts of texts is asked of."""
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text) or statement.opening is None:
        return ()
    tree = None if statement.opening.stores else statement.tree
    if tree is None or tree.find(*_ODD):
        return ()
    try:
        return tuple(_filters(tree, statement))
    except (RecursionError, LookupError, ValueError):
        return ()


def _filters(tree: Node, statement: Statement) -> Iterator[TextFilter]:
    named = {cte.alias.lower() for with_ in tree.find_all(exp.With) for cte in with_.expressions}
    for select in tree.find_all(exp.Select):
        from_, where = select.args.get("from_"), select.args.get("where")
        if from_ is None or where is None or any(select.args.get(name) for name in _BESIDE) or names_a_column(select):
            continue
        table = from_.this
        if not is_plain_table(table) or table.args.get("joins") or table.name.lower() in named:
            continue
        alias = table.alias_or_name.lower()
        shown = {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias)}
        bare = [without_table(part, alias, shown) for part in conjuncts(where.this)]
        parts = [part for part in bare if part is not None and is_plain_condition(part, [""], texts=True)]
        if not any(map(calls_text_functions, parts)):
            continue
        condition = " AND ".join(f"({sql_of(part)})" for part in parts)
        start, end = statement.place(table)
        yield TextFilter(
            start=start,
            end=end,
            alias=None if table.alias else table.name,
            name=tuple(part.name for part in table.parts),
            where=re.sub(r"\$\w+", "?", condition),
            where_keys=tuple(map(as_key, re.findall(r"\$(\w+)", condition))),
            where_columns=frozenset(column.name for part in parts for column in part.find_all(exp.Column)),
        )
