"""Finds statements that group one table by several columns. Pure.

SELECT a, b [AS name], sum(x), … FROM t [WHERE …] GROUP BY a, b [HAVING …] [ORDER BY a, …] [LIMIT …]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.table_read import TablePlace
from lance_duck.duck.statement.deterministic_sql import is_plain_table
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(r"\bgroup\s+by\b[^,]*,", re.IGNORECASE)
_CLAUSES: Final = frozenset({"expressions", "from_", "where", "group", "having", "order", "limit", "offset"})
_ODD: Final = (exp.Query, exp.Window, exp.Star, exp.Columns)
"""Syntax outside of WHERE that may read the group columns in other ways."""


@dataclass(frozen=True)
class ColumnPlace:
    """A column in the text.

    Attributes:
        start, end: Range of its name, with its qualifier, in characters.
        name: The name without the qualifier.
        is_titled: Whether the result column has an alias, or does not need one.
    """

    start: int
    end: int
    name: str
    is_titled: bool = True


@dataclass(frozen=True)
class GroupKeys:
    """A statement that groups the rows of one table by several columns.

    Attributes:
        table: The table.
        qualifier: SQL that qualifies the columns of the table.
        keys: The columns of GROUP BY, in order.
        results: The same columns among the result columns. They are not part of longer expressions.
    """

    table: TablePlace
    qualifier: str
    keys: tuple[ColumnPlace, ...]
    results: tuple[ColumnPlace, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Distinct names of the columns, in lower case."""
        return tuple(dict.fromkeys(folded(key.name) for key in self.keys))


def find(statement: Statement) -> tuple[GroupKeys, ...]:
    """Find the group columns of a statement that is one SELECT from one table.

    DuckDB still checks the rewritten statement: it rejects a use of a group column that this function overlooks.
    """
    if len(statement.text) > LONGEST or not _MAYBE.search(statement.text):
        return ()
    opening, select = statement.opening, statement.tree
    if opening is None or opening.stores or not isinstance(select, exp.Select):
        return ()
    try:
        found = _keys(select, statement)
    except (RecursionError, LookupError):
        return ()
    return () if found is None else (found,)


def _keys(select: exp.Select, statement: Statement) -> GroupKeys | None:
    if any(value for name, value in select.args.items() if name not in _CLAUSES):
        return None
    from_, group = select.args.get("from_"), select.args.get("group")
    table = None if from_ is None else from_.this
    if group is None or table is None or not is_plain_table(table):
        return None
    if any(value for name, value in group.args.items() if name != "expressions"):
        return None
    alias = folded(table.alias_or_name)
    keys = group.expressions
    if len(keys) < 2 or not all(_is_of(key, alias) for key in keys):
        return None
    names = {folded(key.name) for key in keys}
    results = [item.this if isinstance(item, exp.Alias) else item for item in select.expressions]
    is_key = [_is_of(result, alias) and folded(result.name) in names for result in results]
    if not _are_known(select, names, [each for each, found in zip(results, is_key, strict=True) if found]):
        return None
    items = [
        _place(result, statement, is_titled=item is not result)
        for item, result, found in zip(select.expressions, results, is_key, strict=True)
        if found
    ]
    placed = tuple(_place(key, statement) for key in keys)
    return GroupKeys(TablePlace.of(table, statement), quoted(table.alias_or_name), placed, tuple(items))


def _are_known(select: exp.Select, names: set[str], results: Sequence[exp.Column]) -> bool:
    """Return whether group columns outside of WHERE are result columns, arguments of aggregates, or ordered by.

    ORDER BY means a result column if one has this name, and only one.
    """
    titles = Counter(folded(item.alias_or_name) for item in select.expressions)
    shown = {
        folded(each.name)
        for each in results
        if not isinstance(each.parent, exp.Alias) or folded(each.parent.alias) == folded(each.name)
    }
    for name in ("expressions", "having", "order", "limit", "offset"):
        for part in _parts(select.args.get(name)):
            for node in part.walk():
                if isinstance(node, _ODD) and not isinstance(node.parent, exp.Count):
                    return False
                if not isinstance(node, exp.Column) or folded(node.name) not in names:
                    continue
                if any(node is result for result in results) or node.find_ancestor(exp.AggFunc) is not None:
                    continue
                is_title = name == "order" and isinstance(node.parent, exp.Ordered) and not node.table
                if not (is_title and folded(node.name) in shown and titles[folded(node.name)] == 1):
                    return False
    return all(titles[name] <= (name in shown) for name in names)


def _parts(value: object) -> Iterable[exp.Expression]:
    return value if isinstance(value, list) else [value] if isinstance(value, exp.Expression) else []


def _is_of(node: object, alias: str) -> bool:
    """Return whether a node is a column, without a qualifier or with the alias of the table."""
    return (
        isinstance(node, exp.Column)
        and isinstance(node.this, exp.Identifier)
        and len(node.parts) <= 2
        and folded(node.table or alias) == alias
    )


def _place(column: exp.Column, statement: Statement, *, is_titled: bool = True) -> ColumnPlace:
    first, last = column.parts[0].meta["start"], column.parts[-1].meta["end"]
    place = statement.for_sqlglot.origin(first), statement.for_sqlglot.origin(last) + 1
    return ColumnPlace(*place, column.name, is_titled)
