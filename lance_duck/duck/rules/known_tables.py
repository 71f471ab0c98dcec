"""Reads conditions with the columns of known tables: the table of each column, and what an OR implies. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
from sqlglot import exp

from lance_duck.duck.rules.join_chain import and_operands
from lance_duck.duck.statement.deterministic_sql import Node, is_plain_condition, is_plain_table, sql_of


@dataclass(frozen=True)
class KnownTable:
    """A table that a statement may read.

    Attributes:
        schema: Its columns.
        magnitude: The number of bits of its row count. Changes rarely, unlike the row count.
    """

    schema: pa.Schema
    magnitude: int

    def __hash__(self) -> int:
        """Return a hash of the size alone, because pyarrow takes 75 µs to hash a schema."""
        return hash(self.magnitude)

    @cached_property
    def types(self) -> Mapping[str, pa.DataType]:
        """Types of the columns, by name in lower case."""
        return {field.name.lower(): field.type for field in self.schema}


KnownTables: TypeAlias = Mapping[tuple[str, ...], KnownTable]
"""Tables by the parts of their names, in lower case."""


def from_items(select: exp.Select) -> list[Node]:
    """Return the items of a FROM clause, in order."""
    from_ = select.args.get("from_")
    if from_ is None:
        return []
    joins = [*(from_.this.args.get("joins") or []), *(select.args.get("joins") or [])]
    return [from_.this, *(join.this for join in joins)]


def qualify(root: Node, known: KnownTables, named: set[str]) -> None:
    """Qualify columns in WHERE and ON whose table is certain. Changes the tree in place.

    Args:
        root: A statement.
        known: Tables whose columns are known.
        named: Names of its common table expressions, in lower case.
    """
    if not known:
        return
    scopes: dict[int, Mapping[str, list[str]] | None] = {}
    for column in list(root.find_all(exp.Column)):
        if column.table or not isinstance(column.this, exp.Identifier) or not _is_in_condition(column):
            continue
        name = column.name.lower()
        select: exp.Select | None = column.find_ancestor(exp.Select)
        while select is not None:
            if id(select) not in scopes:
                scopes[id(select)] = _owners(select, known, named)
            owners = scopes[id(select)]
            if owners is None or len(found := owners.get(name, [])) > 1:
                break
            if found:
                column.set("table", exp.to_identifier(found[0]))
                break
            if any(each.alias_or_name.lower() == name for each in select.expressions):
                break  # DuckDB prefers the alias to a column of the enclosing query
            select = enclosing_select(select)


def enclosing_select(select: exp.Select) -> exp.Select | None:
    """Return the SELECT whose columns a subquery sees.

    Returns None for a common table expression, and for a subquery in FROM or ON, which see other columns.
    """
    node: Node = select
    while node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Select):
            return node
        if isinstance(node, exp.CTE | exp.From | exp.Join | exp.Lateral):
            return None
    return None


def _is_in_condition(column: Node) -> bool:
    node = column
    while node.parent is not None and not isinstance(node.parent, exp.Select):
        node = node.parent
        if isinstance(node, exp.Where) or (isinstance(node.parent, exp.Join) and node.arg_key == "on"):
            return True
    return False


def _owners(select: exp.Select, known: KnownTables, named: set[str]) -> Mapping[str, list[str]] | None:
    """Return the aliases of the tables with each column, by its name in lower case.

    Returns None if the columns of an item are unknown, or if a join merges or hides columns.
    """
    from_ = select.args.get("from_")
    first = None if from_ is None else from_.this
    joins = [] if first is None else [*(first.args.get("joins") or []), *(select.args.get("joins") or [])]
    if any(join.method or join.args.get("using") or join.kind in ("SEMI", "ANTI") for join in joins):
        return None
    if select.args.get("laterals"):
        return None
    owners: dict[str, list[str]] = {}
    for item in from_items(select):
        if not is_plain_table(item, joined=True):
            return None
        name = tuple(part.name.lower() for part in item.parts)
        table = None if len(name) == 1 and name[0] in named else known.get(name)
        if table is None:
            return None
        for column in table.types:
            owners.setdefault(column, []).append(item.alias_or_name)
    return owners


def shared_by_or(condition: Node) -> Iterator[Node]:
    """Yield the conditions that each operand of an OR implies, if the condition is an OR."""
    branches = [list(and_operands(branch)) for branch in _or_operands(condition)]
    if len(branches) > 1:
        texts = [{sql_of(part) for part in branch} for branch in branches]
        yield from (part for part in branches[0] if all(sql_of(part) in others for others in texts[1:]))


def implied_by_or(condition: Node, alias: str) -> Iterator[Node]:
    """Yield a condition on one table that an OR implies, if each of its operands restricts this table."""
    branches = [list(and_operands(branch)) for branch in _or_operands(condition)]
    own = [[part for part in branch if is_plain_condition(part, [alias])] for branch in branches]
    if len(branches) > 1 and all(own) and not is_plain_condition(condition, [alias]):
        yield exp.or_(*(exp.and_(*parts) for parts in own))


def _or_operands(condition: Node) -> Iterator[Node]:
    """Yield the operands of nested ORs, in order."""
    pending = [condition]
    while pending:
        part = pending.pop()
        while isinstance(part, exp.Paren):
            part = part.this
        if isinstance(part, exp.Or):
            pending += [part.right, part.left]
        else:
            yield part
