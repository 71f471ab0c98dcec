"""Finds the conditions of each table that an index may answer, although DuckDB does not pass them to a scan. Pure.

DuckDB passes comparisons of a column with constants to a scan in Python. It evaluates all other conditions itself:
LIKE, tests of list items, IS NOT DISTINCT FROM, and in DuckDB 1.x also an OR of several columns.

    FROM t JOIN u ON … WHERE list_contains(t.tags, 'x') AND u.k = 1         t: list_contains(tags, 'x'); u: k = 1
    FROM (SELECT id, tags AS words FROM t) AS q WHERE 'x' IN q.words        t: 'x' IN tags

Several conditions that DuckDB passes one by one may together leave few rows, or most rows. Tables with range conditions
are therefore found, too.

The conditions stay in the statement. A table may therefore be replaced by any of its rows that include the matching
ones. Conditions on a subquery or common table expression apply to the columns that it returns unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
from sqlglot import exp

from lance_duck.arrow.decimals import sql_decimal
from lance_duck.duck.rules.join_chain import Chain, FromItem
from lance_duck.duck.rules.json_arrows import are_arrows_plain
from lance_duck.duck.rules.table_read import Condition, without_table
from lance_duck.duck.statement.deterministic_sql import (
    JSON,
    Node,
    calls_functions,
    is_plain_condition,
    is_plain_table,
    names_a_column,
)
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

_MAYBE: Final = re.compile(
    r"\b(where|on)\b.*(like\b|~|->|\bjson_extract|\bst_\w+\s*\(|\^@|@>|<@|&&|\b(distinct|or|glob|similar)\b|\bin\s+[\w\"]"
    r"|\b(contains|prefix|suffix|lower|upper|regexp_\w+|(starts|ends)_with|(list|array)_(contains|has\w*))\s*\()",
    re.IGNORECASE | re.DOTALL,
)
_RANGE: Final = re.compile(r"\bwhere\b.*(<|>|\bbetween\b)", re.IGNORECASE | re.DOTALL)
_WHERE: Final = re.compile(r"\b(where|on)\b", re.IGNORECASE)
_ODD: Final = (exp.TableSample, exp.Pivot, exp.Collate, exp.Command)
_PASSING: Final = frozenset({"expressions", "from_", "joins", "where", "order", "with_"})
"""Clauses of a SELECT that returns a row for each row of its tables that satisfies WHERE."""
_OURS: Final = "__lance_"
_NOT_PASSING: Final = (exp.AggFunc, exp.Window, exp.Unnest, exp.Explode, exp.Anonymous)


@dataclass(frozen=True)
class IndexedCondition:
    """A table of a statement, and conditions that its rows must satisfy.

    Attributes:
        start, end: Range of its name, path or call in the text, in characters.
        alias: Alias to add to the text, or None if the text has one.
        read: The table's mention in the statement.
        qualifiers: Ranges of the qualifiers that repeat the name of the table's database, in characters.
        condition: The conditions that DuckDB does not pass to the scan and that indexes may answer, or None.
        passed: The conditions that DuckDB passes to the scan, or None.
        evaluated: Each condition that DuckDB does not pass to the scan. Only given for an EXPLAIN.
        nodes: The syntax of the known conditions, with unqualified columns.
    """

    start: int
    end: int
    alias: str | None
    read: TableRead
    qualifiers: tuple[tuple[int, int], ...]
    condition: Condition | None
    passed: Condition | None
    evaluated: tuple[Condition, ...] = ()
    nodes: tuple[Node, ...] = field(default=(), compare=False)

    @property
    def is_passed(self) -> bool:
        """Whether DuckDB passes all conditions to the scan, one by one."""
        return self.condition is None and not self.evaluated

    def passed_alone(self, types: Mapping[str, pa.DataType]) -> Condition | None:
        """Return the conditions that DuckDB 1.x passes to a scan, given the types of the columns by lower-case name.

        It does not pass conditions on decimals that it stores as integers, or comparisons of a date with a timestamp,
        such as `d < DATE '2020-01-01' + INTERVAL 1 YEAR`.
        """
        return Condition.of(node for node in self.nodes if not _is_left_to_duckdb(node) and _is_passed(node, types))

    @property
    def name(self) -> tuple[str, ...]:
        """Parts of a name that the statement resolves like the table."""
        return self.read.name or (self.read.alias,)

    def reading(self, source: str) -> Iterator[Edit]:
        """Yield the edits that replace the table with a different source under the same alias.

        Args:
            source: SQL for FROM: a name, or a query in parentheses.
        """
        yield Edit(self.start, self.end, source if self.alias is None else f"{source} AS {quoted(self.alias)}")
        yield from (Edit(start, end, "") for start, end in self.qualifiers)


def find(statement: Statement) -> tuple[IndexedCondition, ...]:
    """Find the tables of a statement with conditions that DuckDB does not pass to a scan, or passes one by one."""
    is_explained = statement.opening is not None and statement.opening.explained
    is_planned = _MAYBE.search(statement.text) or _RANGE.search(statement.text)
    if len(statement.text) > LONGEST or not (is_planned or (is_explained and _WHERE.search(statement.text))):
        return ()
    found = find_within(statement, (), is_explained=is_explained)
    return found if is_planned else tuple(each for each in found if not each.is_passed)


def find_passed(statement: Statement) -> tuple[IndexedCondition, ...]:
    """Find the tables with conditions that DuckDB 1.x passes to a scan without asking it."""
    return () if SPEAKS_SOURCE else tuple(each for each in find(statement) if each.passed is not None)


def may_find(text: str) -> bool:
    """Return whether a text may contain such conditions. Strings and comments also count."""
    return len(text) <= LONGEST and _MAYBE.search(text) is not None


def find_within(
    query: Statement, conditions: Sequence[Node], *, is_explained: bool = False
) -> tuple[IndexedCondition, ...]:
    """Find the tables of a query with conditions that DuckDB does not pass to a scan.

    Args:
        query: The query.
        conditions: Conditions on its result, in addition to the conditions in its text.
        is_explained: Whether the query is part of an EXPLAIN.
    """
    tree = query.tree
    if tree is None or tree.find(*_ODD):
        return ()
    try:
        return tuple(_ConditionFinder(tree, query, conditions, is_explained).found())
    except (RecursionError, LookupError, ValueError):
        return ()


class _ConditionFinder:
    """Finder for one statement.

    Args:
        tree: Its tree.
        statement: The statement.
        conditions: Conditions on its result.
        is_explained: Whether it is an EXPLAIN.
    """

    def __init__(self, tree: Node, statement: Statement, conditions: Sequence[Node], is_explained: bool) -> None:
        self._tree = tree
        self._conditions_on_result = conditions
        self._statement = statement
        self._is_explained = is_explained
        self._ctes = [cte for with_ in tree.find_all(exp.With) for cte in with_.expressions]
        tokens = statement.scopes.tokens
        reads = [(read, *read.place) for read in statement.scopes.tables if read.place is not None]
        self._reads = {tokens[first].start: (read, tokens[last - 1].end) for read, first, last in reads}
        self._reads_json = are_arrows_plain(statement)
        self._chains: dict[int, Chain | None] = {}

    def found(self) -> Iterator[IndexedCondition]:
        """Yield the tables."""
        for select in self._tree.find_all(exp.Select):
            chain = self._chain(select)
            if chain is None:
                continue
            for source in chain.sources:
                mention = self._mention(source.node)
                found = None if mention is None else self._table(chain, source, *mention)
                if found is not None:
                    yield found

    def _mention(self, node: Node) -> tuple[int, int, TableRead] | None:
        """Return the range and the description of a named table, a path or a call of `lance_scan`.

        Returns None for other items of FROM.
        """
        if not (is_plain_table(node, joined=True) or _is_call(node)) or names_a_column(node):
            return None
        first = node.this if _is_call(node) else node.parts[0]
        start = self._statement.for_sqlglot.origin(first.meta["start"])
        read, end = self._reads.get(start, (None, 0))
        return None if read is None or (read.name is None and read.path is None) else (start, end, read)

    def _table(self, chain: Chain, source: FromItem, start: int, end: int, read: TableRead) -> IndexedCondition | None:
        left: list[Node] = []
        passed: list[Node] = []
        evaluated: list[Node] = []
        for part in self._conditions(chain, source):
            is_known = is_plain_condition(part, [""], lists=True, functions=True)
            is_known = is_known and (self._reads_json or part.find(*JSON) is None)
            is_left = not is_known or _is_left_to_duckdb(part)
            evaluated += [part] if is_left and self._is_explained and _is_explainable(part) else []
            (left if is_left else passed).extend([part] if is_known else [])
        if not left and not evaluated and not passed:
            return None
        alias = None if read.is_called else read.alias or source.node.this.name
        qualifiers = tuple(self._qualifiers(source.node))
        conditions = Condition.of(left), Condition.of(passed), tuple(map(Condition.of_one, evaluated))
        return IndexedCondition(start, end, alias, read, qualifiers, *conditions, (*left, *passed))

    def _qualifiers(self, table: Node) -> Iterator[tuple[int, int]]:
        """Yield the ranges in column names that qualify the table with its database and schema."""
        name = [part.name.lower() for part in table.parts] if is_plain_table(table, joined=True) else []
        for column in self._tree.find_all(exp.Column) if len(name) > 1 else ():
            parts = column.parts
            if len(parts) > len(name) and [part.name.lower() for part in parts[: len(name)]] == name:
                first, last = parts[0].meta["start"], parts[len(name) - 1].meta["start"]
                yield self._statement.for_sqlglot.origin(first), self._statement.for_sqlglot.origin(last)

    def _conditions(self, chain: Chain, source: FromItem) -> Iterator[Node]:
        """Yield the conditions that apply to the rows of a source before the joins, with unqualified columns."""
        hidden = {each.alias.lower() for each in chain.select.expressions if isinstance(each, exp.Alias)}
        others = {each.alias for each in chain.sources if each is not source}
        outer = self._outer_conditions(chain) if chain.is_sure(source) else ()
        of_where = ((part, hidden) for part in chain.sure_of(source))
        of_joins = ((part, ()) for part in chain.sure_of_joins(source))
        for part, names in (*of_where, *of_joins, *((part, ()) for part in outer)):
            bare = without_table(part, self._qualifier(source), names, others)
            if bare is not None and bare.find(exp.Column) is not None:
                yield bare

    def _qualifier(self, source: FromItem) -> tuple[str, ...]:
        """Return the parts of the longest qualifier of a source's columns, in lower case."""
        if source.node.alias or not is_plain_table(source.node, joined=True):
            return (source.alias,)
        return tuple(part.name.lower() for part in source.node.parts)

    def _outer_conditions(self, chain: Chain) -> Iterator[Node]:
        """Yield the conditions that other SELECTs apply to the rows of a SELECT, in terms of its own tables."""
        if not _passes_rows(chain.select):
            return
        reader = self._reader(chain.select)
        conditions = () if reader is None else self._conditions(*reader)
        for condition in self._conditions_on_result if chain.select is self._tree else conditions:
            inner = _through(condition, chain)
            if inner is not None:
                yield inner

    def _reader(self, select: exp.Select) -> tuple[Chain, FromItem] | None:
        """Return the only source that reads the rows of a SELECT, and its FROM clause. Returns None if unknown."""
        query: Node = select.parent
        node = query
        if isinstance(query, exp.CTE):
            with_: Node = query.parent
            if query.args["alias"].args.get("columns") or with_.args.get("recursive"):
                return None
            name = query.alias.lower()
            reads = [t for t in self._tree.find_all(exp.Table) if not t.db and t.name.lower() == name]
            if len(reads) != 1 or sum(cte.alias.lower() == name for cte in self._ctes) != 1:
                return None
            node = reads[0]
            if not is_plain_table(node, joined=True):
                return None
        elif not isinstance(query, exp.Subquery) or query.alias_column_names or not query.alias:
            return None
        outer = node.find_ancestor(exp.Select)
        chain = None if outer is None else self._chain(outer)
        source = None if chain is None else next((each for each in chain.sources if each.node is node), None)
        return None if chain is None or source is None else (chain, source)

    def _chain(self, select: exp.Select) -> Chain | None:
        if id(select) not in self._chains:
            self._chains[id(select)] = Chain.of(select)
        return self._chains[id(select)]


def _is_call(node: Node) -> bool:
    """Return whether an item of FROM is a call with at most an alias."""
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Anonymous) or node.alias_column_names:
        return False
    return {name for name, value in node.args.items() if value} <= {"this", "alias", "joins"}


def _is_left_to_duckdb(condition: Node) -> bool:
    """Return whether DuckDB does not pass a condition to a scan in Python."""
    if calls_functions(condition):
        return True
    columns = {column.name.lower() for column in condition.find_all(exp.Column)}
    return not SPEAKS_SOURCE and len(columns) > 1 and condition.find(exp.Or) is not None


def _is_passed(condition: Node, types: Mapping[str, pa.DataType]) -> bool:
    """Return whether the types of its columns let DuckDB 1.x pass a condition to a scan: see `passed_alone`."""
    found = [types.get(folded(column.name)) for column in condition.find_all(exp.Column)]
    known = [type_ for type_ in found if type_ is not None]
    if any(pa.types.is_date(type_) for type_ in known) and condition.find(exp.Interval) is not None:
        return False
    return not any(pa.types.is_decimal(t) and not pa.types.is_decimal128(sql_decimal(t)) for t in known)


def _is_explainable(condition: Node) -> bool:
    """Return whether no other rule explains a condition: it does not contain a query or a full-text search."""
    calls = condition.find_all(exp.Anonymous)
    return condition.find(exp.Query) is None and not any(str(call.this).lower().startswith(_OURS) for call in calls)


def _passes_rows(select: exp.Select) -> bool:
    """Return whether a SELECT returns a row for each row of its tables that satisfies WHERE."""
    shape = {name for name, value in select.args.items() if value}
    return shape <= _PASSING and not any(each.find(*_NOT_PASSING) for each in select.expressions)


def _through(condition: Node, chain: Chain) -> Node | None:
    """Return a condition on the columns of a SELECT as a condition on its tables. Returns None if it is uncertain."""
    inner = condition.copy()
    for column in list(inner.find_all(exp.Column)):
        origin = _origin(column.name.lower(), chain)
        if origin is None:
            return None
        if column is inner:
            inner = origin
        else:
            column.replace(origin)
    return inner


def _origin(name: str, chain: Chain) -> Node | None:
    """Return the column that a SELECT returns unchanged under a name, or None."""
    items = chain.select.expressions
    named = [each for each in items if each.alias_or_name.lower() == name and not each.is_star]
    if not any(each.is_star for each in items):
        item = named[0].unalias() if len(named) == 1 else None
        return item.copy() if isinstance(item, exp.Column) else None
    is_plain_star = all(not each.is_star or _is_plain_star(each, chain) for each in items)
    return exp.column(name, quoted=True) if is_plain_star and not named and len(chain.sources) == 1 else None


def _is_plain_star(item: Node, chain: Chain) -> bool:
    """Return whether a star returns columns of the only table unchanged, under their own names."""
    star = item.this if isinstance(item, exp.Column) else item
    if not isinstance(star, exp.Star) or star.args.get("replace") or star.args.get("rename"):
        return False
    return star is item or item.table.lower() == chain.sources[0].alias
