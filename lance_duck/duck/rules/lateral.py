"""Finds LATERAL searches for the rows of a table that are nearest to each row of another table. Pure.

    SELECT … FROM queries q, LATERAL (SELECT … FROM t ORDER BY array_distance(t.vec, q.vec) LIMIT 5) n

The rule only reads FROM. FROM must contain a table and a LATERAL subquery that `order_by_distance` recognizes. All
other clauses apply after the search.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.order_by_distance import NearestSelect, SelectReader
from lance_duck.duck.statement.deterministic_sql import is_plain_table
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(r"\blateral\b.*\border\s+by\b.*\blimit\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class LateralNearest:
    """A statement that finds the rows of a table nearest to each row of another table.

    Attributes:
        inner: The search inside LATERAL. Its vector is a column of the other table.
        start, end: Range of the other table's name in the text, in characters.
        name: Parts of that name.
        alias: Alias or name of the other table.
        has_alias: Whether the other table has an alias in the text.
    """

    inner: NearestSelect
    start: int
    end: int
    name: tuple[str, ...]
    alias: str
    has_alias: bool


def find(statement: Statement) -> tuple[LateralNearest, ...]:
    """Find the LATERAL search of a statement. Returns an empty tuple for other statements."""
    opening = statement.opening
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text) or opening is None or opening.first == "with":
        return ()
    if not isinstance(statement.tree, exp.Select):
        return ()
    try:
        lateral = _lateral(statement.tree, statement)
    except (LookupError, ValueError):
        return ()
    return () if lateral is None else (lateral,)


def _lateral(select: exp.Select, statement: Statement) -> LateralNearest | None:
    from_ = select.args.get("from_")
    if from_ is None:
        return None
    joins = [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]
    if len(joins) != 1 or any(select.args.get(name) for name in ("with_", "laterals", "sample")):
        return None
    table, join = from_.this.copy(), joins[0]
    table.set("joins", None)
    is_plain = is_plain_table(table) and not table.args.get("sample")
    kinds = join.side in ("", "LEFT") and join.kind in ("", "CROSS", "INNER", "OUTER") and not join.method
    lateral = join.this
    if not is_plain or not kinds or not isinstance(lateral, exp.Lateral) or lateral.args.get("outer"):
        return None
    query = lateral.this
    if not isinstance(query, exp.Subquery) or not isinstance(query.this, exp.Select) or query.alias:
        return None
    if any(column.args.get("db") for column in select.find_all(exp.Column)):
        return None
    alias = table.alias_or_name
    inner = SelectReader(query.this, statement, outer=alias.lower()).nearest()
    if inner is None or alias.lower() == (inner.place.alias or inner.place.name[-1]).lower():
        return None
    name = tuple(part.name for part in table.parts)
    return LateralNearest(inner, *statement.place(table), name, alias, bool(table.alias))
