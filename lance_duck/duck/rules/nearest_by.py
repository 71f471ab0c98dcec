"""Finds joins with nearest rows: `JOIN t NEAREST k BY DISTANCE expression`. Pure.

    SELECT … FROM queries q JOIN t NEAREST 5 BY DISTANCE array_distance(q.vec, t.vec) WHERE …

The join returns the same result if the table contains only the nearest rows for each vector of the other table. The
joined item must be a table or a plain query of one table. The expression must measure the distance between a column of
this item and a column of a table on the left. WHERE applies after the join. Conditions that only read the table on the
left restrict the vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import Chain, FromItem
from lance_duck.duck.rules.lateral import LateralNearest
from lance_duck.duck.rules.measures import Measure, measure_of
from lance_duck.duck.rules.order_by_distance import NearestSelect
from lance_duck.duck.rules.table_read import Condition, Key, TablePlace, as_key
from lance_duck.duck.statement.deterministic_sql import (
    Node,
    is_plain_condition,
    is_plain_table,
    names_a_column,
    sql_of,
)
from lance_duck.duck.statement.nearest_clause import MARK, NearestClause
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_QUERY: Final = frozenset({"expressions", "from_", "where"})
_IMPLICIT: Final = (exp.Pivot, exp.Columns)


@dataclass(frozen=True)
class NearestBy:
    """A join with the nearest rows of a table.

    Attributes:
        clause: The NEAREST BY clause.
        search: The search. Its column and vector are column names.
        is_guess: Whether the vector's column is unqualified. The proposal is then valid only if no other table has a
            column with that name.
        where: Condition on the other table, with `$name` parameters. None for all rows.
        where_keys: Parameters of `where`, by name.
    """

    clause: NearestClause
    search: LateralNearest
    is_guess: bool
    where: str | None
    where_keys: tuple[tuple[str, Key], ...]


@dataclass(frozen=True)
class NearestJoins:
    """The NEAREST joins of a statement.

    Attributes:
        joins: Proposals. A clause may have two interpretations.
    """

    joins: tuple[NearestBy, ...]


def find(statement: Statement) -> tuple[NearestJoins, ...]:
    """Find the NEAREST joins of a statement that a search can answer. Empty for other statements."""
    if len(statement.text) > LONGEST or not statement.nearest or statement.tree is None:
        return ()
    calls = [call for call in statement.tree.find_all(exp.Anonymous) if str(call.this).startswith(MARK)]
    joins = [join for call in calls for join in _joins(call, statement)]
    return (NearestJoins(tuple(joins)),) if joins else ()


def _joins(call: exp.Anonymous, statement: Statement) -> Iterator[NearestBy]:
    join, clause = call.parent, statement.nearest[int(str(call.this).removeprefix(MARK))]
    if not isinstance(join, exp.Join) or join.args.get("on") is not call or len(call.expressions) != 1:
        return
    if names_a_column(join):
        return
    select = join.find_ancestor(exp.Select)
    chain = None if select is None else Chain.of(select)
    place = None if chain is None else next((i for i, item in enumerate(chain.sources) if item.join is join), None)
    if chain is None or place is None:
        return
    reader = _JoinReader(statement, clause, chain, place)
    for measure, other, is_guess in reader.measures(call.expressions[0]):
        try:
            found = reader.read(measure, other, is_guess=is_guess)
        except (LookupError, ValueError):
            continue
        if found is not None:
            yield found


@dataclass(frozen=True)
class _JoinReader:
    """Reader of one join."""

    statement: Statement
    clause: NearestClause
    chain: Chain
    place: int

    def measures(self, node: Node) -> Iterator[tuple[Measure, FromItem, bool]]:
        """Yield the interpretations of an expression: the measure, the vector's table, and whether it is a guess."""
        own, before = self.chain.sources[self.place].alias, self.chain.sources[: self.place]
        columns = list(node.find_all(exp.Column))
        if len(columns) != 2 or any(column.args.get("db") for column in columns):
            return
        for vector in columns:
            (column,) = (each for each in columns if each is not vector)
            others = [item for item in before if vector.table.lower() in (item.alias, "")]
            if column.table.lower() not in (own, "") or len(others) != 1 or not (vector.table or len(before) == 1):
                continue
            copy = node.copy()
            at = columns.index(vector)
            list(copy.find_all(exp.Column))[at].set("table", exp.to_identifier(others[0].alias))
            measure = measure_of(copy, others[0].alias)
            if measure is not None and measure.vector.name == vector.name:
                yield measure, others[0], not vector.table

    def read(self, measure: Measure, other: FromItem, *, is_guess: bool) -> NearestBy | None:
        """Return the join, or None if a search may change its result."""
        clause, node = self.clause, other.node.copy()
        searched = self._table(measure)
        if searched is None:
            return None
        table, condition = searched
        node.set("joins", None)  # sqlglot may attach the joins to the first item of FROM
        named = {cte.alias.lower() for cte in self.chain.select.root().find_all(exp.CTE)}
        is_known = (
            measure.similarity == clause.largest_first
            and isinstance(measure.vector, exp.Column)
            and is_plain_table(node)
            and not any(part.args.get(name) for part in (table, node) for name in ("sample", "pivots"))
            and not any(not part.db and part.name.lower() in named for part in (table, node))
        )
        if not is_known:
            return None
        inner = NearestSelect(
            place=TablePlace.of(table, self.statement),
            metric=measure.metric,
            largest_first=clause.largest_first,
            column=measure.column.name,
            vector=measure.vector.name,
            query_place=None,
            vector_keys=(),
            length=None,
            bare=None,
            condition=condition,
            limit=clause.k,
            offset=0,
            columns=self._columns(),
            explained=self.statement.opening is not None and self.statement.opening.explained,
        )
        name = tuple(part.name for part in node.parts)
        search = LateralNearest(inner, *self.statement.place(node), name, node.alias_or_name, bool(node.alias))
        return NearestBy(clause, search, is_guess, *self._where(other))

    def _table(self, measure: Measure) -> tuple[exp.Table, Condition | None] | None:
        """Return the searched table and its condition, or None for unsupported queries.

        Raises:
            ValueError: The condition cannot be applied before the search.
        """
        node = self.chain.sources[self.place].node
        if is_plain_table(node):
            return node, None
        select = node.this if isinstance(node, exp.Subquery) else None
        if not isinstance(select, exp.Select) or node.args.get("joins") or node.args["alias"] is None:
            return None
        if node.alias_column_names or any(value and name not in _QUERY for name, value in select.args.items()):
            return None
        from_, where = select.args.get("from_"), select.args.get("where")
        table: Node = None if from_ is None else from_.this
        names = [each.name.lower() for each in select.expressions if isinstance(each, exp.Column)]
        stars = [each for each in select.expressions if isinstance(each, exp.Star) and not any(each.args.values())]
        if not is_plain_table(table) or table.args.get("joins") or len(names) + len(stars) != len(select.expressions):
            return None
        if not stars and names.count(measure.column.name.lower()) != 1:
            return None
        return table, None if where is None else Condition.of_where(where, table.alias_or_name.lower())

    def _columns(self) -> frozenset[str] | None:
        """Return the column names that the statement may use, in lower case. Returns None if it may read any column."""
        root, aliases = self.chain.select.root(), {item.alias for item in self.chain.sources}
        if root.find(*_IMPLICIT) is not None or any(
            join.args.get("using") or join.method for join in root.find_all(exp.Join)
        ):
            return None
        if any(not isinstance(star.parent, exp.Count) for star in root.find_all(exp.Star)):
            return None
        names = {part.name.lower() for column in root.find_all(exp.Column) for part in column.parts}
        bare = {column.name.lower() for column in root.find_all(exp.Column) if not column.table}
        return None if bare & aliases else frozenset(names)

    def _where(self, other: FromItem) -> tuple[str | None, tuple[tuple[str, Key], ...]]:
        """Return the condition that all joined rows of the other table satisfy, and its parameters."""
        plain = [part for part in self.chain.sure_of(other) if is_plain_condition(part, [other.alias])]
        if not plain:
            return None, ()
        text = " AND ".join(f"({sql_of(part)})" for part in plain)
        keys = re.findall(r"\$(\w+)", text)
        if len(keys) != sum(1 for part in plain for _ in part.find_all(exp.Placeholder)):
            return None, ()
        return text, tuple((name, as_key(name)) for name in dict.fromkeys(keys))
