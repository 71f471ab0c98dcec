"""A table that a statement reads: where its name stands, and a condition of its rows. Pure."""

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
"""A parameter: its position from 1, or its name."""


@dataclass(frozen=True)
class TablePlace:
    """Where a statement reads a table.

    Attributes:
        start, end: Place of its name in the text.
        alias: Alias to add to the text; None if the text has one.
        name: Parts of its name.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]

    @classmethod
    def of(cls, table: exp.Table, statement: Statement) -> TablePlace:
        """Return where a statement reads a table.

        Raises:
            LookupError: The parser gives no place for the name.
        """
        added = None if table.alias else table.name
        return cls(*statement.place(table), added, tuple(part.name for part in table.parts))

    def reading(self, source: str) -> Edit:
        """Return the edit that makes the statement read something else under the same name.

        Args:
            source: SQL for FROM, in parentheses.
        """
        return Edit(self.start, self.end, source if self.alias is None else f"{source} AS {quoted(self.alias)}")


@dataclass(frozen=True)
class Condition:
    """Conditions on one table, all of which its rows must satisfy.

    Attributes:
        where: SQL with every name in quotes, and `?` for its parameters.
        keys: Keys of these parameters.
        columns: Names of the columns that it reads.
    """

    where: str
    keys: tuple[Key, ...]
    columns: frozenset[str]

    @classmethod
    def of(cls, parts: Iterable[Node]) -> Condition | None:
        """Return conditions as one, None where there are none."""
        nodes = list(parts)
        return cls._read(" AND ".join(f"({sql_of(node)})" for node in nodes), nodes) if nodes else None

    @classmethod
    def of_where(cls, where: exp.Where, alias: str, hidden: Collection[str] = ()) -> Condition:
        """Return a whole WHERE.

        Args:
            where: WHERE of a SELECT from one table.
            alias: By what it calls the table, in lower case.
            hidden: Names that mean something else there, in lower case.

        Raises:
            ValueError: The condition may mean something else on its own.
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
    """Return a condition with the bare names of its columns; None where one may be of something else.

    Args:
        condition: Condition of a statement that reads one table.
        alias: By what it calls the table.
        hidden: Names that mean something else there, in lower case.
    """
    bare = condition.copy()
    for column in list(bare.find_all(exp.Column)):
        if column.args.get("db") or column.table.lower() not in ("", alias) or column.name.lower() in hidden:
            return None
        column.set("table", None)
    return bare


def as_key(name: str) -> Key:
    """Return the parameter that `$name` means."""
    return int(name) if name.isdigit() else name
