"""Finds searches in the form `ORDER BY distance LIMIT k`. Pure.

    SELECT … FROM t WHERE … ORDER BY array_distance(vec, [1, 2]::FLOAT[2]) LIMIT 5

The SELECT returns the same result if t contains only its nearest rows, also as a subquery or a common table expression.
Three conditions apply. The SELECT reads one table, and its first sort key is a measure of one column. It does not
combine rows before sorting (windows, groups, DISTINCT, unnest). Its WHERE is simple enough to apply in the search. LEFT
JOINs may follow the table. They return each of its rows at least once, so the first result rows still come from the
nearest rows. All other statements are left unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.measures import Measure, cast_length, measure_of
from lance_duck.duck.rules.table_read import Condition, Key, TablePlace, as_key
from lance_duck.duck.statement.deterministic_sql import (
    Node,
    is_plain_query,
    is_plain_table,
    names_a_column,
    sql_of,
)
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST

_MAYBE: Final = re.compile(r"\border\s+by\b.*\blimit\b", re.IGNORECASE | re.DOTALL)
_HINT: Final = re.compile(r"(array|list)_\w*(distance|similarity|product)|<->|<=>", re.IGNORECASE)
PARTS: Final = frozenset({"kind", "expressions", "from_", "joins", "where", "order", "limit", "offset", "with_"})
REFUSED: Final = (exp.Window, exp.AggFunc, exp.UDTF, exp.Explode, exp.Query, exp.Anonymous, exp.Lateral, exp.Columns)


@dataclass(frozen=True)
class NearestSelect:
    """A SELECT of the nearest rows of a table.

    Attributes:
        place: The table in the text.
        metric: "l2", "cosine" or "dot".
        largest_first: Whether the rows are ordered by a similarity, with the largest first.
        column: Vector column.
        vector: The query vector: a parameter (`__lance_v…` for a list in the text), a query that returns it, or the
            name of a column of the outer table.
        length: Array length in the vector's cast, or None if it is not cast to a fixed-size array.
        bare: Range of a vector that needs a cast to an array, in characters. None if it does not need a cast.
        query_place: Range of the query without its parentheses, in characters. None if the vector is not a query.
        vector_keys: Parameters of the query, in text order: the name in the query, the parameter, and its source text.
        condition: Condition on the rows, or None for all rows.
        limit, offset: A number or parameter each.
        columns: Column names that the statement reads, in lower case. None if it may read any column.
        explained: Whether the statement is an EXPLAIN.
    """

    place: TablePlace
    metric: str
    largest_first: bool
    column: str
    vector: Key
    query_place: tuple[int, int] | None
    vector_keys: tuple[tuple[str, Key, str], ...]
    length: int | None
    bare: tuple[int, int] | None
    condition: Condition | None
    limit: int | DistanceParameter
    offset: int | DistanceParameter
    columns: frozenset[str] | None
    explained: bool


@dataclass(frozen=True)
class DistanceParameter:
    """A number passed when the statement is run."""

    key: Key


def find(statement: Statement) -> tuple[NearestSelect, ...]:
    """Find the searches of a statement, its subqueries and its common table expressions.

    Skips queries whose ORDER BY uses an alias, and operands of set operations, because their ORDER BY sorts the whole
    result.
    """
    text = statement.text
    if len(text) > LONGEST or not _HINT.search(text) or not _MAYBE.search(text) or statement.tree is None:
        return ()
    selects = statement.tree.find_all(exp.Select)
    searches = (
        SelectReader(select, statement, outer="").nearest()
        for select in selects
        if not isinstance(select.parent, exp.SetOperation) and not names_a_column(select)
    )
    return tuple(search for search in searches if search is not None)


class SelectReader:
    """Reader of one SELECT.

    Args:
        select: Tree of the SELECT.
        statement: The statement that contains it.
        outer: Alias of an outer table whose column may be the vector, in lower case. Empty without one.
    """

    def __init__(self, select: exp.Select, statement: Statement, *, outer: str) -> None:
        self._select = select
        self._statement = statement
        self._outer = outer
        self._named = {cte.alias.lower() for cte in select.root().find_all(exp.CTE)}

    def nearest(self) -> NearestSelect | None:
        """Return the search of the SELECT, or None if it is not a search."""
        try:
            return self._nearest()
        except (LookupError, ValueError, StopIteration):
            return None

    def _nearest(self) -> NearestSelect | None:
        select = self._select
        from_, order = select.args.get("from_"), select.args.get("order")
        if from_ is None or order is None or any(value and name not in PARTS for name, value in select.args.items()):
            return None
        table, joins = from_.this.copy(), joins_of(select)
        table.set("joins", None)
        if select.args.get("kind") or not is_plain_table(table) or table.args.get("sample"):
            return None
        if joins and (self._outer or not all(map(_keeps_rows, joins))):
            return None
        if self._reads_named(table):
            return None
        limit = row_count(select.args.get("limit"))
        offset = row_count(select.args.get("offset"))
        key = self._key(order)
        if limit is None or offset is None or key is None or not self._is_plain():
            return None
        measure, largest_first = key
        alias = table.alias_or_name.lower()
        if measure.column.table.lower() not in (("", alias) if not joins else (alias,)):
            return None
        if self._is_hidden(measure.column.name):
            return None
        return self._made(table, alias, measure, largest_first, limit, offset)

    def _made(
        self,
        table: exp.Table,
        alias: str,
        measure: Measure,
        largest_first: bool,
        limit: int | DistanceParameter,
        offset: int | DistanceParameter,
    ) -> NearestSelect | None:
        vector = self._vector(measure)
        if vector is None:
            return None
        inner, length, bare = vector
        query_place = self._place(inner) if isinstance(inner, exp.Subquery) else None
        text = sql_of(inner.this) if query_place else ""
        parameters = re.findall(r"\$(\w+)", text)
        return NearestSelect(
            place=TablePlace.of(table, self._statement),
            metric=measure.metric,
            largest_first=largest_first,
            column=measure.column.name,
            vector=text if query_place else _key(inner),
            query_place=query_place,
            vector_keys=tuple(
                (name, as_key(name), "?" if self._statement.marks else f"${name}") for name in parameters
            ),
            length=length,
            bare=bare,
            condition=self._condition(alias),
            limit=limit,
            offset=offset,
            columns=columns_of(self._select, alias),
            explained=self._statement.opening is not None and self._statement.opening.explained,
        )

    def _key(self, order: exp.Order) -> tuple[Measure, bool] | None:
        """Return the measure of the first sort key, and whether the order is descending."""
        first = order.expressions[0]
        if not isinstance(first, exp.Ordered) or first.args.get("nulls_first") or first.args.get("with_fill"):
            return None
        node, descending = first.this, bool(first.args.get("desc"))
        if isinstance(node, exp.Column) and not node.table:
            named = [each for each in self._select.expressions if each.alias.lower() == node.name.lower()]
            node = named[0].this if len(named) == 1 and isinstance(named[0], exp.Alias) else node
        measure = measure_of(node, self._outer)
        if measure is None or measure.similarity != descending:
            return None
        return measure, descending

    def _is_plain(self) -> bool:
        """Return whether each result row comes from one table row, and all sort keys are deterministic."""
        order = self._select.args["order"].expressions
        for part in [*self._select.expressions, *(each.this for each in order)]:
            for node in part.walk(prune=self._is_measured):
                if not self._is_measured(node) and isinstance(node, REFUSED):
                    return False
        return all(each.args.get("with_fill") is None for each in order)

    def _reads_named(self, node: Node) -> bool:
        """Return whether a node reads a common table expression, which cannot be read separately."""
        return any(not table.db and table.name.lower() in self._named for table in node.find_all(exp.Table))

    def _is_measured(self, node: Node) -> bool:
        return measure_of(node, self._outer) is not None

    def _is_hidden(self, name: str) -> bool:
        """Return whether the alias of a different expression hides a column name."""
        return any(
            each.alias.lower() == name.lower() and not (isinstance(each.this, exp.Column) and each.this.name == name)
            for each in self._select.expressions
            if isinstance(each, exp.Alias)
        )

    def _condition(self, alias: str) -> Condition | None:
        """Return WHERE as a condition on the table, or None without WHERE.

        Raises:
            ValueError: The condition cannot be applied before the search.
        """
        where = self._select.args.get("where")
        if where is None:
            return None
        if joins_of(self._select) and any(c.table.lower() != alias for c in where.find_all(exp.Column)):
            raise ValueError("the column may belong to another table")
        hidden = [each.alias.lower() for each in self._select.expressions if self._is_hidden(each.alias)]
        return Condition.of_where(where, alias, hidden)

    def _vector(self, measure: Measure) -> tuple[Node, int | None, tuple[int, int] | None] | None:
        """Return the vector, the array length of its cast, and the range that still needs a cast."""
        inner, length = cast_length(measure.vector)
        if isinstance(inner, exp.Subquery):
            is_plain = is_plain_query(inner.this) and not inner.alias and not self._reads_named(inner)
            return (inner, length, None) if is_plain else None
        if isinstance(inner, exp.Column) and self._outer and inner is measure.vector:
            return inner, length, None
        if self._outer or not isinstance(inner, exp.Placeholder) or not inner.this:
            return None
        if not measure.takes_arrays or inner is not measure.vector:
            return inner, length, None
        edited = self._statement.for_sqlglot
        places = [match.span() for match in re.finditer(rf"\${inner.this}\b", edited.text)]
        if len(places) != 1:
            return None
        is_mark = bool(self._statement.marks) and str(inner.this).isdigit()
        if is_mark:
            start = self._statement.marks[int(inner.this) - 1]
            return inner, length, (start, start + 1)
        return inner, length, (edited.origin(places[0][0]), edited.origin(places[0][1] - 1) + 1)

    def _place(self, query: exp.Subquery) -> tuple[int, int]:
        """Return the range between the parentheses of a subquery, in characters."""
        within = query.this.find(exp.Column, exp.Table)
        first = self._statement.for_sqlglot.origin(next(p.meta["start"] for p in within.walk() if "start" in p.meta))
        tokens = self._statement.tokens
        at = next(i for i, token in enumerate(tokens) if token.start == first)
        start = end = at
        depth = 1
        while depth:
            start -= 1
            depth += {")": 1, "(": -1}.get(tokens[start].text, 0)
        depth = 1
        while depth:
            end += 1
            depth += {"(": 1, ")": -1}.get(tokens[end].text, 0)
        return tokens[start].end, tokens[end].start


def joins_of(select: exp.Select) -> list[exp.Join]:
    """Return the joins of the FROM of a SELECT."""
    first = select.args["from_"].this
    return [*(first.args.get("joins") or []), *(select.args.get("joins") or [])]


def _keeps_rows(join: exp.Join) -> bool:
    """Return whether a join keeps all rows on its left: a LEFT JOIN with a table and an ON condition."""
    table, on = join.this, join.args.get("on")
    if join.side != "LEFT" or join.kind not in ("", "OUTER") or join.method or on is None or not is_plain_table(table):
        return False
    return not any(isinstance(node, REFUSED) for node in on.walk())


def columns_of(select: exp.Select, alias: str) -> frozenset[str] | None:
    """Return the possible names of a table's columns in a SELECT, in lower case. None if it may read any column.

    Args:
        select: A SELECT that reads the table.
        alias: Alias or name of the table, in lower case.
    """
    stars = (node for each in select.expressions for node in each.find_all(exp.Star, exp.Columns))
    if any(not isinstance(node.parent, exp.Count) for node in stars):
        return None
    names: set[str] = set()
    for column in select.find_all(exp.Column):
        parts = [part.name.lower() for part in column.parts]
        if parts == [alias]:
            return None  # the name refers to whole rows
        names.update(parts[1:] if len(parts) == 2 and parts[0] == alias else parts)
    return frozenset(names)


def row_count(clause: Node) -> int | DistanceParameter | None:
    """Return the value of LIMIT or OFFSET, or 0 without the clause. Returns None for other expressions."""
    if clause is None:
        return 0
    node = clause.expression
    if any(value for name, value in clause.args.items() if name not in ("expression", "this")):
        return None
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdecimal():
        return int(node.this)
    return DistanceParameter(_key(node)) if isinstance(node, exp.Placeholder) and node.this else None


def _key(node: exp.Placeholder | exp.Column) -> Key:
    return node.name if isinstance(node, exp.Column) else as_key(str(node.this))
