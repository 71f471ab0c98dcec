"""Point lookups: statements that read one table with a simple WHERE. Pure.

Such a statement gives the same when the table holds only rows that fulfil those conditions: whatever else it does
comes after WHERE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import conjuncts
from lance_duck.duck.rules.order_by_distance import Key, columns_of, without_table
from lance_duck.duck.statement.deterministic_sql import is_plain_condition, is_plain_table, sql_of
from lance_duck.duck.statement.text import LONGEST, Statement

_MAYBE: Final = re.compile(r"\bwhere\b.*(=|\bin\b|\bbetween\b|<|>)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class PlainWhere:
    """A statement that reads one table.

    Attributes:
        start, end: Place of its name in the text.
        alias: By what the statement calls it, to be added where the text does not say so; None where it does.
        name: Parts of its name.
        where: Conditions that its rows must fulfil, with `?` for their parameters.
        where_keys: Those parameters.
        where_columns: Names of the columns in those conditions.
        columns: Names that the statement reads, in lower case; None: perhaps all.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    where: str
    where_keys: tuple[Key, ...]
    where_columns: frozenset[str]
    columns: frozenset[str] | None


def find(statement: Statement) -> tuple[PlainWhere, ...]:
    """Find the table and the simple WHERE of a statement; nothing where it has none."""
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
    from_, where = select.args.get("from_"), select.args.get("where")
    if (
        from_ is None
        or where is None
        or any(select.args.get(name) for name in ("with_", "joins", "laterals", "sample"))
    ):
        return None
    if all(isinstance(each.unalias(), exp.Count) and each.find(exp.Column) is None for each in select.expressions):
        return None  # which an index may answer alone
    table = from_.this
    if not is_plain_table(table) or table.args.get("joins") or table.args.get("sample"):
        return None
    alias = table.alias_or_name.lower()
    shown = {each.alias.lower() for each in select.expressions if isinstance(each, exp.Alias)}
    parts = [without_table(part, alias, shown) for part in conjuncts(where.this)]
    conditions = [part for part in parts if part is not None and is_plain_condition(part, [""])]
    condition = " AND ".join(f"({sql_of(part)})" for part in conditions)
    if not condition:
        return None
    start, end = statement.place(table)
    return PlainWhere(
        start=start,
        end=end,
        alias=None if table.alias else table.name,
        name=tuple(part.name for part in table.parts),
        where=re.sub(r"\$\w+", "?", condition),
        where_keys=tuple(int(name) if name.isdigit() else name for name in re.findall(r"\$(\w+)", condition)),
        where_columns=frozenset(column.name for part in conditions for column in part.find_all(exp.Column)),
        columns=columns_of(select, alias),
    )
