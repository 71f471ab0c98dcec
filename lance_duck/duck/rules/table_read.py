"""Describes tables that a statement reads, and conditions on their rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.statement.deterministic_sql import Node, is_plain_condition, sql_of
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.statement.placeholders import LISTED
from lance_duck.duck.statement.text import Statement

_MARK: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\?|\$(\w+)""")
"""Matches a string, a quoted name or a parameter."""
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
    def of_one(cls, node: Node) -> Condition:
        """Return a condition without parentheses."""
        return cls._read(sql_of(node), [node])

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

    def with_lists(self, lists: Sequence[str]) -> Condition:
        """Return the condition with the original number lists in place of their parameters. See `LiftedText`."""
        if not any(str(key).startswith(LISTED) for key in self.keys):
            return self
        keys = iter(self.keys)

        def text(match: re.Match[str]) -> str:
            key = str(next(keys)) if match[0] == "?" else ""
            return lists[int(key.removeprefix(LISTED))] if key.startswith(LISTED) else match[0]

        rest = tuple(key for key in self.keys if not str(key).startswith(LISTED))
        return Condition(_MARK.sub(text, self.where), rest, self.columns)

    @classmethod
    def _read(cls, text: str, nodes: Iterable[Node]) -> Condition:
        names = frozenset(column.name for node in nodes for column in node.find_all(exp.Column))
        keys: list[Key] = []

        def mark(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0]
            keys.append(as_key(match[1]))
            return "?"

        where = _MARK.sub(mark, text)
        return cls(where, tuple(keys), names)


def without_table(
    condition: Node, alias: str | tuple[str, ...], hidden: Collection[str], others: Collection[str] = ()
) -> Node | None:
    """Return a condition with unqualified columns, or None if a column may belong to a different table.

    The fields of a struct become operands of dots: `a.st.x` and `struct_extract(a.st, 'x')` become `st.x`.

    Args:
        condition: Condition of a statement that reads one table, or joins tables.
        alias: Alias or name of the table, in lower case. A qualified name is a tuple of its parts.
        hidden: Names that do not refer to columns of the table, in lower case.
        others: Aliases of the joined tables, in lower case.
    """
    bare = condition.copy()
    qualifier = (alias,) if isinstance(alias, str) else alias
    for extract in list(bare.find_all(exp.StructExtract)):
        if extract.expression.is_string:
            name = exp.to_identifier(extract.expression.name, quoted=True)
            extract.replace(exp.Dot(this=extract.this, expression=name))
    for column in list(bare.find_all(exp.Column)):
        names = column.parts
        lowered = tuple(name.name.lower() for name in names)
        if len(names) > len(qualifier) and lowered[: len(qualifier)] == qualifier:
            names = names[len(qualifier) :]
        elif len(names) > 1 and lowered[0] == qualifier[-1]:
            names = names[1:]
        elif len(names) > 1 and names[0].name.lower() in others:
            return None
        if names[0].name.lower() in hidden:
            return None
        path: Node = exp.Column(this=names[0].copy())
        for name in names[1:]:
            path = exp.Dot(this=path, expression=name.copy())
        if column is bare:
            bare = path
        else:
            column.replace(path)
    return bare


def as_key(name: str) -> Key:
    """Return the key of the parameter `$name`."""
    return int(name) if name.isdigit() else name
