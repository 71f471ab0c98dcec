"""Describes tables that a statement reads, and conditions on their rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sqlglot import exp

from lance_duck.duck.statement.deterministic_sql import Node, is_plain_condition, sql_of
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.statement.text import Statement

Key = int | str
"""A parameter: its position, counted from 1, or its name."""


@dataclass(frozen=True)
class TablePlace:
    """A table name in a statement.

    Attributes:
        start, end: Range of the name in the text, in characters.
        alias: Alias to add to the text, or None if the text has one.
        name: Parts of its name.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]

    @classmethod
    def of(cls, table: exp.Table, statement: Statement) -> TablePlace:
        """Locate a table of the syntax tree in the text.

        Raises:
            LookupError: Sqlglot does not report the position of the name.
        """
        added = None if table.alias else table.name
        return cls(*statement.place(table), added, tuple(part.name for part in table.parts))

    def reading(self, source: str) -> Edit:
        """Return the edit that replaces the table with a different source under the same alias.

        Args:
            source: SQL for FROM, in parentheses.
        """
        return Edit(self.start, self.end, source if self.alias is None else f"{source} AS {quoted(self.alias)}")


@dataclass(frozen=True)
class Condition:
    """Conditions on one table, all of which its rows must satisfy.

    Attributes:
        where: SQL with quoted identifiers and `?` parameters.
        keys: Keys of these parameters, in order.
        columns: Names of the columns that it reads.
    """

    where: str
    keys: tuple[Key, ...]
    columns: frozenset[str]

    @classmethod
    def of(cls, parts: Iterable[Node]) -> Condition | None:
        """Combine conditions with AND. Returns None for an empty iterable."""
        nodes = list(parts)
        return cls._read(" AND ".join(f"({sql_of(node)})" for node in nodes), nodes) if nodes else None

    @classmethod
    def of_where(cls, where: exp.Where, alias: str, hidden: Collection[str] = ()) -> Condition:
        """Return the whole WHERE as a condition.

        Args:
            where: WHERE of a SELECT from one table.
            alias: Alias or name of the table, in lower case.
            hidden: Names that do not refer to columns of the table, in lower case.

        Raises:
            ValueError: The condition may have a different meaning outside the statement.
        """
        bare = without_table(where.this, alias, hidden)
        if bare is None or not is_plain_condition(bare, [""], lists=True):
            raise ValueError("WHERE is not one of the columns of the table alone")
        condition = cls._read(sql_of(bare), [bare])
        if len(condition.keys) != sum(1 for _ in bare.find_all(exp.Placeholder)):
            raise ValueError("WHERE has parameters without names")
        return condition

    @classmethod
    def _read(cls, text: str, nodes: Iterable[Node]) -> Condition:
        names = frozenset(column.name for node in nodes for column in node.find_all(exp.Column))
        keys = tuple(map(as_key, re.findall(r"\$(\w+)", text)))
        return cls(re.sub(r"\$\w+", "?", text), keys, names)


def without_table(condition: Node, alias: str, hidden: Collection[str]) -> Node | None:
    """Return a condition with unqualified columns, or None if a column may belong to a different table.

    Args:
        condition: Condition of a statement that reads one table.
        alias: Alias or name of the table, in lower case.
        hidden: Names that do not refer to columns of the table, in lower case.
    """
    bare = condition.copy()
    for column in list(bare.find_all(exp.Column)):
        if column.args.get("db") or column.table.lower() not in ("", alias) or column.name.lower() in hidden:
            return None
        column.set("table", None)
    return bare


def as_key(name: str) -> Key:
    """Return the key of the parameter `$name`."""
    return int(name) if name.isdigit() else name
