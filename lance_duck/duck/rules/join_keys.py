"""Find tables that a join or IN restricts to the keys of a smaller relation. Pure.

DuckDB does not pass join keys to a scan in Python. Therefore a separate query first reads the keys. The table is then
read with only the rows that have one of these keys:

    FROM big b JOIN small s ON b.k = s.x WHERE s.y = 3        keys: SELECT s.x FROM small s WHERE s.y = 3
    FROM big WHERE k IN (SELECT x FROM small)                 keys: SELECT x FROM small

The condition itself stays in the statement. The keys are not inserted into the text as literals, for three reasons.
NULL and NaN do not need literals, the number of keys can be large, and DuckDB plans with the remaining row count.
(DuckDB would have to parse and bind an inserted condition again, and pushes only some forms down to a scan. A join
through a table function would have to pass all columns through a list of structs.)

A row can be skipped if its key does not satisfy a condition that also rejects NULL. The condition must be in WHERE or
in the ON of a join. In an outer join, only rows of the side that is filled with NULL can be skipped. In an anti join,
only rows of the right side can be skipped. All other tables are left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import Chain, FromItem, and_operands
from lance_duck.duck.statement.deterministic_sql import (
    Node,
    is_plain_condition,
    is_plain_query,
    is_plain_table,
    is_plain_values,
    names_a_column,
    sql_of,
)
from lance_duck.duck.statement.text import Statement

_MAYBE: Final = re.compile(
    r"\bjoin\b|\(\s*(select|from|with)\b|\bexists\b|\bfrom\s(?:(?!\b(?:where|group|order|limit)\b)[^(),])*,",
    re.IGNORECASE,
)
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Collate, exp.Command)


@dataclass(frozen=True)
class KeyJoin:
    """A table from which a statement only needs the rows with certain keys.

    Attributes:
        start, end: Range of its name in the text, in characters.
        alias: Alias to add to the text, or None if the text has one.
        name: Parts of its name.
        column: Key column of the table, as written in the statement.
        keys: Query that returns the keys in one column.
        parameters: Parameters of `keys`, as pairs. The first item is the name in `keys`. The second item is the name of
            the statement's parameter, or its position, counted from 1.
        reads: Names of the tables that `keys` reads, in lower case.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    column: str
    keys: str
    parameters: tuple[tuple[str, int | str], ...]
    reads: frozenset[str]


@dataclass(frozen=True)
class KeyJoins:
    """Tables of a statement that are restricted by keys.

    Attributes:
        joins: Proposals. If a table has several proposals, only one of them is needed.
    """

    joins: tuple[KeyJoin, ...]


def find(statement: Statement) -> tuple[KeyJoins, ...]:
    """Find tables that a join or IN restricts to the keys of a smaller relation."""
    if not _MAYBE.search(statement.text) or statement.tree is None or statement.tree.find(*_ODD):
        return ()
    try:
        joins = tuple(_Finder(statement.tree, statement).found())
    except (RecursionError, LookupError):
        return ()
    return (KeyJoins(joins),) if joins else ()


class _Finder:
    def __init__(self, root: Node, statement: Statement) -> None:
        self._root = root
        self._statement = statement
        named = [cte for with_ in root.find_all(exp.With) for cte in with_.expressions]
        self._named = {cte.alias.lower() for cte in named}
        with_ = root.args.get("with_")
        top = with_.expressions if with_ is not None and not with_.args.get("recursive") else []
        whole = len(self._named) == len(named)
        self._queries = {cte.alias.lower(): cte for cte in top if whole and not cte.args["alias"].args.get("columns")}
        self._chains: dict[int, Chain | None] = {}

    def found(self) -> Iterator[KeyJoin]:
        for select in self._root.find_all(exp.Select):
            chain = self._chain(select)
            if chain is not None:
                where = select.args.get("where")
                for part in and_operands(where.this if where is not None else None):
                    yield from self._in_where(part, chain)
                for i, source in enumerate(chain.sources):
                    yield from self._in_join(i, source, chain)

    def _chain(self, select: exp.Select) -> Chain | None:
        if id(select) not in self._chains:
            self._chains[id(select)] = Chain.of(select)
        return self._chains[id(select)]

    def _in_where(self, part: Node, chain: Chain) -> Iterator[KeyJoin]:
        for column, other in _equal_pairs(part):
            for big in chain.sources_of(column):
                if isinstance(other, exp.Column):
                    yield from self._equal(big, column, other, chain)
                else:
                    yield from self._among(big, column, other)
        if isinstance(part, exp.Exists) and isinstance(part.this, exp.Select):
            yield from self._exists(part.this, chain)

    def _equal(self, big: FromItem, column: Node, other: Node, chain: Chain) -> Iterator[KeyJoin]:
        """Yield the proposals of `big.k = small.x`. `small` is in the same FROM or in the enclosing one."""
        small = _other_of(big, chain.sources_of(other))
        if small is None and other.table and not chain.knows(other.table):
            around = chain.select.find_ancestor(exp.Select)
            outer = self._chain(around) if around is not None else None
            small = outer.source_of(other) if outer is not None else None
            chain = outer or chain
        if small is not None and small is not big:
            yield from self._narrowed(big, column.name, self._keys_of(small, other.name, chain.sure_of(small)))

    def _among(self, big: FromItem, column: Node, query: Node) -> Iterator[KeyJoin]:
        """Yield the proposals of `big.k IN (SELECT …)` and `big.k = (SELECT …)`."""
        if is_plain_query(query):
            yield from self._narrowed(big, column.name, (query, f"SELECT key FROM ({sql_of(query)}) AS keys(key)"))  # noqa: S608

    def _exists(self, inner: exp.Select, chain: Chain) -> Iterator[KeyJoin]:
        """Yield the proposals of `EXISTS (SELECT … FROM small WHERE small.x = big.k)`."""
        within = self._chain(inner)
        shape = {name for name, value in inner.args.items() if value}
        if within is None or len(within.sources) != 1 or not shape <= {"expressions", "from_", "where"}:
            return
        if any(e.find(exp.AggFunc, exp.Anonymous, exp.Window) for e in inner.expressions):
            return
        small = within.sources[0]
        for part in and_operands(inner.args["where"].this if "where" in shape else None):
            for column, other in _equal_pairs(part):
                if not isinstance(other, exp.Column) or within.source_of(other) is not small:
                    continue
                big = chain.source_of(column) if column.table and not within.knows(column.table) else None
                if big is not None:
                    yield from self._narrowed(big, column.name, self._keys_of(small, other.name, within.sure_of(small)))

    def _in_join(self, i: int, source: FromItem, chain: Chain) -> Iterator[KeyJoin]:
        join = source.join
        if join is None:
            return
        for name in join.args.get("using") or [] if i == 1 else []:
            yield from self._using(name.name, i, chain.sources[0], source, chain)
            yield from self._using(name.name, i, source, chain.sources[0], chain)
        parts = tuple(and_operands(join.args.get("on")))
        for part in parts:
            for column, other in _equal_pairs(part):
                for big in chain.sources_of(column, i):
                    if not chain.may_narrow(big, i):
                        continue
                    if not isinstance(other, exp.Column):
                        yield from self._among(big, column, other)
                    elif (small := _other_of(big, chain.sources_of(other, i))) is not None:
                        conditions = [*parts, *chain.sure_of(small)]
                        yield from self._narrowed(big, column.name, self._keys_of(small, other.name, conditions))

    def _using(self, name: str, i: int, big: FromItem, small: FromItem, chain: Chain) -> Iterator[KeyJoin]:
        if chain.may_narrow(big, i):
            yield from self._narrowed(big, name, self._keys_of(small, name, chain.sure_of(small)))

    def _keys_of(self, small: FromItem, column: str, conditions: list[Node]) -> tuple[Node, str] | None:
        """Return the relation read for the keys, and the key query with the conditions that read only `small`.

        Returns None if the relation is not deterministic.
        """
        node = small.node
        name = sql_of(exp.to_identifier(small.alias))
        if isinstance(node, exp.Subquery) and is_plain_query(node.this) and not node.alias_column_names:
            text, reads = f"({sql_of(node.this)}) AS {name}", node.this
        elif is_plain_values(node):
            text, reads = sql_of(node), node
        elif not is_plain_table(node) or node.db:
            return None
        elif node.name.lower() in self._named:
            query = self._queries.get(node.name.lower())
            if query is None or not is_plain_query(query.this):
                return None
            text, reads = f"({sql_of(query.this)}) AS {name}", query.this
        else:
            text, reads = sql_of(node), node
        filters = [sql_of(part) for part in conditions if is_plain_condition(part, [small.alias])]
        where = " WHERE " + " AND ".join(f"({part})" for part in dict.fromkeys(filters)) if filters else ""
        query_text = f"SELECT {name}.{sql_of(exp.to_identifier(column, quoted=True))} AS key FROM {text}{where}"  # noqa: S608
        return reads, query_text

    def _narrowed(self, big: FromItem, column: str, keys: tuple[Node, str] | None) -> Iterator[KeyJoin]:
        if keys is None or big.is_nearest or not is_plain_table(big.node) or names_a_column(big.node):
            return
        node, (reads, query) = big.node, keys
        names = {table.name.lower() for table in reads.find_all(exp.Table)}
        parts = tuple(part.name for part in node.parts)
        if len(parts) == 1 and parts[0].lower() in self._named:
            return
        if len(parts) > 1 and self._has_long_names():
            return
        if names & self._named:
            return
        parameters = tuple(dict.fromkeys(re.findall(r"\$(\w+)", query)))
        yield KeyJoin(
            *self._statement.place(node),
            None if node.alias else node.name,
            parts,
            column,
            query,
            tuple((name, int(name) if name.isdigit() else name) for name in parameters),
            frozenset(names),
        )

    def _has_long_names(self) -> bool:
        return any(column.args.get("db") for column in self._root.find_all(exp.Column))


def _other_of(big: FromItem, sources: list[FromItem]) -> FromItem | None:
    """Return the only source other than `big`, or None."""
    others = [source for source in sources if source is not big]
    return others[0] if len(others) == 1 else None


def _equal_pairs(part: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the operands of an equality or IN as (column, column or query), in both orders."""
    if (
        isinstance(part, exp.In)
        and isinstance(part.this, exp.Column)
        and isinstance(part.args.get("query"), exp.Subquery)
    ):
        yield part.this, part.args["query"].this
    if not isinstance(part, exp.EQ):
        return
    for one, other in ((part.left, part.right), (part.right, part.left)):
        query = other.this if isinstance(other, exp.Any) else other
        if _is_column(one) and _is_column(other):
            yield one, other
        elif _is_column(one) and isinstance(query, exp.Subquery):
            yield one, query.this


def _is_column(node: Node) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and not node.args.get("db")
