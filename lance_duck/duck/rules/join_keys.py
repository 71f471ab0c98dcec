"""Find tables that a join or IN restricts to the keys of a smaller relation. Pure.

DuckDB does not pass join keys to a scan in Python. Therefore a separate query first reads the keys. The table is then
read with only the rows that have one of these keys:

    FROM big b JOIN small s ON b.k = s.x WHERE s.y = 3        keys: SELECT s.x FROM small s WHERE s.y = 3
    FROM big WHERE k IN (SELECT x FROM small)                 keys: SELECT x FROM small

The condition itself stays in the statement. The keys are not inserted into the text as literals, for three reasons.
NULL and NaN do not need literals, the number of keys can be large, and DuckDB plans with the remaining row count.
(DuckDB would have to parse and bind an inserted condition again, and pushes only some forms down to a scan. A join
through a table function would have to pass all columns through a list of structs.)

The key query also applies the conditions of further tables that join with the smaller relation, if they are no larger:

    FROM big, small s, tiny t WHERE big.k = s.x AND s.y = t.z AND t.v = 3
    keys: SELECT s.x FROM small s WHERE s.y IN (SELECT t.z FROM tiny t WHERE t.v = 3)

A row can be skipped if its key does not satisfy a condition that also rejects NULL. The condition must be in WHERE or
in the ON of a join. In an outer join, only rows of the side that is filled with NULL can be skipped. In an anti join,
only rows of the right side can be skipped. All other tables are left unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from sqlglot import exp

from lance_duck.duck.rules.join_chain import Chain, FromItem, and_operands
from lance_duck.duck.rules.known_tables import (
    KnownTables,
    enclosing_select,
    from_items,
    implied_by_or,
    qualify,
    shared_by_or,
)
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
_MOST_NESTED: Final = 3
_MOST_QUERIES: Final = 256
"""Maximum number of relations in a key query that read each other, and of nested queries per statement."""
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
        is_filtered: Whether a condition restricts the keys that DuckDB does not also apply to the large table. DuckDB
            copies conditions on the key itself.
        sample: Name of the table that `keys` reads for the keys, and the conditions on its own columns, as SQL without
            qualified names. None if there are no conditions, or if the relation is not a table.
        takes_all: Whether the statement may read all columns of the table.
    """

    start: int
    end: int
    alias: str | None
    name: tuple[str, ...]
    column: str
    keys: str
    parameters: tuple[tuple[str, int | str], ...]
    reads: frozenset[str]
    is_filtered: bool = False
    sample: tuple[str, str] | None = None
    takes_all: bool = False


@dataclass(frozen=True)
class KeyJoins:
    """Tables of a statement that are restricted by keys.

    Attributes:
        joins: Proposals. If a table has several proposals, only one of them is needed.
        tables: Names of the tables in all FROM clauses. Their columns and sizes may add proposals: see `joins_of`.
        trees: The tree of the statement, until the first run takes it. Trees are large, and not needed again unless
            the tables change.
    """

    joins: tuple[KeyJoin, ...]
    tables: tuple[tuple[str, ...], ...]
    trees: list[Node] = field(default_factory=list, compare=False)


def find(statement: Statement) -> tuple[KeyJoins, ...]:
    """Find tables that a join or IN restricts to the keys of a smaller relation."""
    if not _MAYBE.search(statement.text) or statement.tree is None or statement.tree.find(*_ODD):
        return ()
    try:
        finder = _Finder(statement.tree, statement, {})
        joins = tuple(finder.found())
    except (RecursionError, LookupError):
        return ()
    tables = tuple(finder.tables()) if finder.may_gain() else ()
    return (KeyJoins(joins, tables, [statement.tree.copy()] if tables else []),) if joins or tables else ()


def joins_of(statement: Statement, known: KnownTables, tree: Node | None) -> tuple[KeyJoin, ...]:
    """Return the proposals for a statement, with the columns and sizes of its tables.

    Args:
        statement: A statement for which `find` returns a proposal.
        known: The Lance tables that it reads.
        tree: Its tree, which is changed. None parses the statement again.
    """
    tree = tree or statement.tree
    if tree is None:
        return ()
    try:
        return tuple(dict.fromkeys(_Finder(tree, statement, known).found()))
    except (RecursionError, LookupError):
        return ()


@dataclass(frozen=True)
class _KeySql:
    """A query that returns keys in one column.

    Attributes:
        sql: Its text.
        reads: The syntax of the relations that it reads.
        is_filtered: Whether a condition restricts the keys.
        on_keys: Whether all these conditions only read the key column.
        sample: See `KeyJoin`.
    """

    sql: str
    reads: tuple[Node, ...]
    is_filtered: bool
    on_keys: bool
    sample: tuple[str, str] | None = None


class _Finder:
    def __init__(self, root: Node, statement: Statement, known: KnownTables) -> None:
        self._root = root
        self._statement = statement
        self._known = known
        self._nested = 0
        named = [cte for with_ in root.find_all(exp.With) for cte in with_.expressions]
        self._named = {cte.alias.lower() for cte in named}
        with_ = root.args.get("with_")
        top = with_.expressions if with_ is not None and not with_.args.get("recursive") else []
        whole = len(self._named) == len(named)
        self._queries = {cte.alias.lower(): cte for cte in top if whole and not cte.args["alias"].args.get("columns")}
        self._chains: dict[int, Chain | None] = {}
        qualify(root, known, self._named)

    def tables(self) -> Iterator[tuple[str, ...]]:
        """Yield the names of the plain tables in all FROM clauses, in lower case, once each."""
        seen = set()
        for select in self._root.find_all(exp.Select):
            for item in from_items(select):
                name = tuple(part.name.lower() for part in item.parts) if is_plain_table(item, joined=True) else ()
                if name and name not in seen and not (len(name) == 1 and name[0] in self._named):
                    seen.add(name)
                    yield name

    def may_gain(self) -> bool:
        """Return whether columns are compared with each other, among other conditions, so that tables may add joins."""
        pairs = any(_is_column(part.left) and _is_column(part.right) for part in self._root.find_all(exp.EQ))
        return pairs and self._root.find(exp.Where, exp.And) is not None

    def found(self) -> Iterator[KeyJoin]:
        for select in self._root.find_all(exp.Select):
            chain = self._chain(select)
            if chain is not None:
                where = select.args.get("where")
                for part in and_operands(where.this if where is not None else None):
                    for shared in (part, *shared_by_or(part)):
                        yield from self._in_where(shared, chain)
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
            around = enclosing_select(chain.select)
            outer = self._chain(around) if around is not None else None
            small = outer.source_of(other) if outer is not None else None
            chain = outer or chain
        if small is None or small is big:
            return
        yield from self._narrowed(big, column.name, self._keys_of(small, other.name, chain, (), (big,)))
        type_ = self._type(small, other.name)
        if not self._has_type(big, column.name, type_):
            return
        for part in (*chain.sure_of(small), *chain.sure_of_joins(small)):
            for same, third in _equal_pairs(part):
                if not same.table or same.name.lower() != other.name.lower() or chain.source_of(same) is not small:
                    continue
                if not isinstance(third, exp.Column):
                    yield from self._among(big, column, third)
                    continue
                item = chain.source_of(third) if third.table else None
                if item is not None and item not in (big, small) and self._has_type(item, third.name, type_):
                    yield from self._narrowed(big, column.name, self._keys_of(item, third.name, chain, (), (big,)))

    def _among(self, big: FromItem, column: Node, query: Node) -> Iterator[KeyJoin]:
        """Yield the proposals of `big.k IN (SELECT …)` and `big.k = (SELECT …)`."""
        if is_plain_query(query) and not _is_correlated(query):
            sql = f"SELECT key FROM ({sql_of(query)}) AS keys(key)"  # noqa: S608
            is_filtered = query.find(exp.Where, exp.Having, exp.Limit) is not None
            on_keys = _reads_only_its_result(query)
            yield from self._narrowed(big, column.name, _KeySql(sql, (query,), is_filtered, on_keys, _sample_of(query)))

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
                    yield from self._narrowed(big, column.name, self._keys_of(small, other.name, within, (), (big,)))

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
                        keys = self._keys_of(small, other.name, chain, parts, (big,))
                        yield from self._narrowed(big, column.name, keys)

    def _using(self, name: str, i: int, big: FromItem, small: FromItem, chain: Chain) -> Iterator[KeyJoin]:
        if chain.may_narrow(big, i):
            yield from self._narrowed(big, name, self._keys_of(small, name, chain, (), (big,)))

    def _keys_of(
        self, small: FromItem, column: str, chain: Chain, conditions: tuple[Node, ...], seen: tuple[FromItem, ...]
    ) -> _KeySql | None:
        """Return the query for a relation's keys, with the conditions that apply to its rows.

        Args:
            small: The relation.
            column: Its key column.
            chain: The FROM clause that contains it.
            conditions: Further conditions, of the ON clause with the keys.
            seen: Items that the conditions must not read.

        Returns: The query, or None if the relation is not deterministic.
        """
        source = self._source(small)
        if source is None:
            return None
        text, reads = source
        name = sql_of(exp.to_identifier(small.alias))
        parts = (*conditions, *chain.sure_of(small), *chain.sure_of_joins(small))
        own = [part for part in parts if is_plain_condition(part, [small.alias])]
        own += [part for each in parts for part in implied_by_or(each, small.alias)]
        nested = list(self._nested_of(small, chain, parts, (*seen, small)))
        filters = dict.fromkeys([*map(sql_of, own), *(test for test, _ in nested)])
        where = " WHERE " + " AND ".join(f"({part})" for part in filters) if filters else ""
        sql = f"SELECT {name}.{sql_of(exp.to_identifier(column, quoted=True))} AS key FROM {text}{where}"  # noqa: S608
        reads = (reads, *(node for _, keys in nested for node in keys.reads))
        is_filtered = bool(filters) or not isinstance(small.node, exp.Table)
        on_keys = bool(filters) and not nested and _reads_only(own, column)
        return _KeySql(sql, reads, is_filtered, on_keys, _own_filter(small, own))

    def _source(self, small: FromItem) -> tuple[str, Node] | None:
        """Return the SQL of a deterministic relation in FROM, and the syntax of what it reads, or None for others."""
        node = small.node
        name = sql_of(exp.to_identifier(small.alias))
        if isinstance(node, exp.Subquery) and is_plain_query(node.this) and not node.alias_column_names:
            return f"({sql_of(node.this)}) AS {name}", node.this
        if is_plain_values(node):
            return sql_of(node), node
        if not is_plain_table(node) or node.db:
            return None
        if node.name.lower() not in self._named:
            return sql_of(node), node
        query = self._queries.get(node.name.lower())
        if query is None or not is_plain_query(query.this):
            return None
        return f"({sql_of(query.this)}) AS {name}", query.this

    def _nested_of(
        self, small: FromItem, chain: Chain, parts: tuple[Node, ...], seen: tuple[FromItem, ...]
    ) -> Iterator[tuple[str, _KeySql]]:
        """Yield conditions that further tables, no larger than `small`, put on its rows, and their queries."""
        size = self._magnitude(small)
        if size is None or len(seen) > _MOST_NESTED:
            return
        for part in parts:
            for column, other in _equal_pairs(part):
                if not isinstance(other, exp.Column) or not column.table or chain.source_of(column) is not small:
                    continue
                item = chain.source_of(other) if other.table else None
                if item is None or item in seen or not chain.is_sure(item) or self._nested >= _MOST_QUERIES:
                    continue
                other_size, type_ = self._magnitude(item), self._type(small, column.name)
                if other_size is None or other_size > size or not self._has_type(item, other.name, type_):
                    continue
                self._nested += 1
                keys = self._keys_of(item, other.name, chain, (), seen)
                if keys is not None and keys.is_filtered:
                    yield f"{sql_of(column)} IN ({keys.sql})", keys

    def _type(self, item: FromItem, column: str) -> pa.DataType | None:
        table = self._known.get(self._name(item))
        return None if table is None else table.types.get(column.lower())

    def _has_type(self, item: FromItem, column: str, type_: pa.DataType | None) -> bool:
        """Return whether a column has a type. Only equal types make equality transitive."""
        return type_ is not None and self._type(item, column) == type_

    def _magnitude(self, item: FromItem) -> int | None:
        table = self._known.get(self._name(item))
        return None if table is None else table.magnitude

    def _name(self, item: FromItem) -> tuple[str, ...]:
        if not is_plain_table(item.node, joined=True):
            return ()
        name = tuple(part.name.lower() for part in item.node.parts)
        return () if len(name) == 1 and name[0] in self._named else name

    def _narrowed(self, big: FromItem, column: str, keys: _KeySql | None) -> Iterator[KeyJoin]:
        if keys is None or big.is_nearest or not is_plain_table(big.node) or names_a_column(big.node):
            return
        node, query = big.node, keys.sql
        names = {table.name.lower() for part in keys.reads for table in part.find_all(exp.Table)}
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
            keys.is_filtered and not keys.on_keys,
            keys.sample,
            _has_star(node.find_ancestor(exp.Select)),
        )

    def _has_long_names(self) -> bool:
        return any(column.args.get("db") for column in self._root.find_all(exp.Column))


def _other_of(big: FromItem, sources: list[FromItem]) -> FromItem | None:
    """Return the only source other than `big`, or None."""
    others = [source for source in sources if source is not big]
    return others[0] if len(others) == 1 else None


def _equal_pairs(part: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the operands of an equality or IN as (column, column or query), in both orders."""
    if isinstance(part, exp.In) and _is_column(part.this) and isinstance(part.args.get("query"), exp.Subquery):
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


def _is_correlated(query: Node) -> bool:
    """Return whether a query certainly reads a column of an enclosing query."""
    own = {item.alias_or_name.lower() for item in query.find_all(exp.Table, exp.Subquery, exp.Values)}
    return any(column.table and column.table.lower() not in own for column in query.find_all(exp.Column))


def _reads_only(conditions: list[Node], column: str) -> bool:
    """Return whether conditions read only one column."""
    names = {part.name.lower() for condition in conditions for part in condition.find_all(exp.Column)}
    return names <= {column.lower()}


def _reads_only_its_result(query: Node) -> bool:
    """Return whether a SELECT of one column has a WHERE that reads only this column."""
    where = query.args.get("where") if isinstance(query, exp.Select) else None
    shown = query.expressions if where is not None else []
    return len(shown) == 1 and isinstance(shown[0], exp.Column) and _reads_only([where], shown[0].name)


def _sample_of(query: Node) -> tuple[str, str] | None:
    """Return the table of `SELECT … FROM table WHERE …`, and its condition. See `KeyJoin.sample`."""
    chain = Chain.of(query) if isinstance(query, exp.Select) else None
    where = None if chain is None or query.args.get("group") else query.args.get("where")
    if chain is None or where is None or len(chain.sources) != 1:
        return None
    return _own_filter(chain.sources[0], list(and_operands(where.this)))


def _own_filter(item: FromItem, conditions: list[Node]) -> tuple[str, str] | None:
    """Return a table and conditions on its columns. See `KeyJoin.sample`."""
    if not conditions or not is_plain_table(item.node) or item.node.db:
        return None
    parts = []
    for condition in conditions:
        if condition.find(exp.Subquery, exp.Select, exp.Placeholder):
            return None
        bare = condition.copy()
        for column in bare.find_all(exp.Column):
            column.set("table", None)
        parts.append(f"({sql_of(bare)})")
    return item.node.name.lower(), " AND ".join(dict.fromkeys(parts))


def _has_star(select: exp.Select) -> bool:
    """Return whether the columns of a SELECT include `*`. EXISTS does not read them."""
    stars = (each.is_star and not isinstance(each, exp.Count) for each in select.expressions)
    return any(stars) and not isinstance(select.parent, exp.Exists)
