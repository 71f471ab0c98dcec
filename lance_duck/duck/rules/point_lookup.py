"""Point lookups: statements that read one table with a simple WHERE. Pure.

Such a statement gives the same when the table holds only rows that fulfil those conditions: whatever else it does
comes after WHERE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_duck.duck.rules.join_chain import conjuncts
from lance_duck.duck.rules.order_by_distance import Key, columns_of, without_table
from lance_duck.duck.statement.deterministic_sql import is_plain_condition, is_plain_table, sql_of
from lance_duck.duck.statement.placeholders import Numbered

_MAYBE: Final = re.compile(r"\s*(select|from)\b[^;]*\bwhere\b[^;]*(=|\bin\b|\bbetween\b|<|>)[^;]*;?\s*", re.I)
_LONGEST: Final = 20_000


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
        marks: How many `?` stand before the name; None: it has no such parameters.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    where: str
    where_keys: tuple[Key, ...]
    where_columns: frozenset[str]
    columns: frozenset[str] | None
    marks: int | None


def plain_where(sql: str) -> PlainWhere | None:
    """Return what a statement reads; None where it is no such statement; pure."""
    return _known(sql) if len(sql) <= _LONGEST and _MAYBE.fullmatch(sql) else None


@lru_cache(maxsize=512)
def _known(sql: str) -> PlainWhere | None:
    text = Numbered.of(sql, 0)
    try:
        trees = [tree for tree in sqlglot.parse(text.text, read="duckdb") if tree is not None]
        return _found(trees[0], text) if len(trees) == 1 and isinstance(trees[0], exp.Select) else None
    except (SqlglotError, RecursionError, LookupError, ValueError):
        return None


def _found(select: exp.Select, text: Numbered) -> PlainWhere | None:
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
    known = [part for part in parts if part is not None and is_plain_condition(part, [""])]
    condition = " AND ".join(f"({sql_of(part)})" for part in known)
    if not condition:
        return None
    start, end = table.parts[0].meta["start"], table.parts[-1].meta["end"] + 1
    place = text.before(start)
    return PlainWhere(
        place,
        text.before(end - 1) + 1,
        None if table.alias else table.name,
        tuple(part.name for part in table.parts),
        re.sub(r"\$\w+", "?", condition),
        tuple(int(name) if name.isdigit() else name for name in re.findall(r"\$(\w+)", condition)),
        frozenset(column.name for part in known for column in part.find_all(exp.Column)),
        columns_of(select, alias),
        sum(text.before(end - 1) < place for end in text.places) if text.places else None,
    )
