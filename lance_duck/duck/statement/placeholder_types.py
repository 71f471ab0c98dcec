"""Types of placeholders, where a statement leaves no doubt. DuckDB takes them from the values only.

LIMIT ?, OFFSET ?                      int64
INSERT INTO t (a, b) VALUES (?, ?)     the types of the columns
a = ?, a IN (?, ?), a BETWEEN ? AND ?  the type of the column, in a statement with one table and no subquery
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.text import LONGEST_TREE, Statement

_COMPARISONS: Final = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.In, exp.Between)


def placeholder_types(query: str, schema_of: Callable[[str], pa.Schema]) -> Mapping[str, pa.DataType]:
    """Return the types of placeholders by their names. Those of which nothing is known are left out.

    Args:
        query: A statement.
        schema_of: Returns the schema of a table by its quoted name.
    """
    tree = _tree(query)
    if tree is None:
        return {}
    found = {mark.name: pa.int64() for mark in tree.find_all(exp.Placeholder) if _is_count(mark)}
    tables = [*tree.find_all(exp.Table)]
    columns = [*(_inserted(tree) if isinstance(tree, exp.Insert) else _compared(tree))]
    if len(tables) != 1 or not columns or not isinstance(tables[0].this, exp.Identifier):
        return found
    schema = schema_of(".".join(quoted(part.name) for part in tables[0].parts))
    types = {folded(name): kind for name, kind in zip(schema.names, schema.types, strict=True)}
    for mark, column in columns:
        if isinstance(column, int):
            column = schema.names[column] if column < len(schema) else ""
        if folded(column) in types:
            found[mark] = types[folded(column)]
    return found


def _tree(query: str) -> Any:
    """Return the tree of one statement. None if sqlglot cannot parse it."""
    statement = Statement.of(query)
    if len(statement.parts) != 1 or len(query) > LONGEST_TREE:
        return None
    try:
        return sqlglot.parse_one(statement.for_sqlglot.text, read="duckdb")
    except (SqlglotError, RecursionError):
        return None


def _is_count(mark: exp.Expression) -> bool:
    return isinstance(mark.parent, exp.Limit | exp.Offset)


def _inserted(tree: exp.Insert) -> Iterator[tuple[str, str | int]]:
    """Yield the placeholders of VALUES with the name or the position of their column."""
    if not isinstance(tree.expression, exp.Values) or tree.args.get("by_name"):
        return
    named = [column.name for column in tree.this.expressions] if isinstance(tree.this, exp.Schema) else []
    for row in tree.expression.expressions:
        for position, value in enumerate(row.expressions):
            if isinstance(value, exp.Placeholder):
                yield value.name, named[position] if position < len(named) else position


def _compared(tree: exp.Expression) -> Iterator[tuple[str, str]]:
    """Yield the placeholders that are compared with a column of the only table, and the name of the column."""
    if len([*tree.find_all(exp.Select)]) > 1 or not isinstance(tree, exp.Select | exp.Update | exp.Delete):
        return
    table = tree.find(exp.Table)
    for each in tree.find_all(*_COMPARISONS):
        sides = [*each.iter_expressions()]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        if table is None or len(columns) != 1 or each.find_ancestor(exp.Having, exp.Qualify) is not None:
            continue
        if columns[0].table in ("", table.alias_or_name):
            yield from ((side.name, columns[0].name) for side in sides if isinstance(side, exp.Placeholder))
