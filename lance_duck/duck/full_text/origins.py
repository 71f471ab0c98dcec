"""Trace columns of subqueries, common table expressions and views to columns of Lance tables.

A column is traced through SELECTs that return it unchanged, perhaps under a different name: `SELECT t.body AS text FROM
t`, `SELECT * FROM t`. It is not traced through set operations, PIVOT and expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import Place
from lance_duck.duck.names import View
from lance_duck.duck.statement.identifiers import folded, shown_names
from lance_duck.duck.statement.scope import Part, Scope, Scopes, TableRead, is_colon, list_parts
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import Token

_DEEPEST: Final = 32
"""Maximum number of nested queries through which a column is traced."""
_BEGINNINGS: Final = ("select", "from", "with")
_TURNED: Final = ("pivot", "unpivot")
_STAR: Final = "*"


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A Lance table that a SELECT reads, directly or through other queries.

    Attributes:
        read: The mention of the table in the statement, or of the subquery, common table expression or view.
        name: Name of the Lance table, as an argument of `lance_scan`.
        dataset: The version that is read. The newest version if the statement gives the version as an expression.
        held: The version number if a transaction pins the version, otherwise None.
        version: The version that the statement specifies, as arguments of `lance_scan`.
    """

    read: TableRead
    name: str
    dataset: LanceDataset
    held: int | None
    version: tuple[tuple[str, Part], ...]

    def column(self, parts: Sequence[str]) -> tuple[str, ...] | None:
        """Return the path of a column or nested field in the table's case, or None if it does not exist."""
        names = self.dataset.schema.names
        known = dict(zip(map(folded, shown_names(names)), names, strict=True))
        if folded(parts[0]) not in known:
            return None
        fields, path = list(self.dataset.schema), []
        for part in (known[folded(parts[0])], *parts[1:]):
            exact = [each for each in fields if each.name == part]
            exact = exact or [each for each in fields if folded(each.name) == folded(part)]
            if len(exact) != 1:
                return None
            path.append(exact[0].name)
            type_ = exact[0].type
            fields = [type_.field(i) for i in range(type_.num_fields)] if pa.types.is_struct(type_) else []
        return tuple(path)

    def shown(self, path: Sequence[str]) -> tuple[str, ...]:
        """Return the path of a column or nested field with DuckDB's name of the column."""
        names = self.dataset.schema.names
        return shown_names(names)[names.index(path[0])], *path[1:]


@dataclass(frozen=True, eq=False)
class QueryText:
    """A text that contains queries: a statement or a view definition.

    Attributes:
        scopes: The SELECTs of the text.
        view: The view, or None for a statement.
    """

    scopes: Scopes
    view: View | None = None

    @property
    def within(self) -> Place | None:
        """The schema in which names of a view are looked up first. None for a statement."""
        return None if self.view is None else self.view.within


@dataclass(frozen=True, eq=False)
class PassingQuery:
    """A query through which a column passes.

    Attributes:
        read: The mention of the subquery, common table expression or view in a SELECT.
        around: The text that contains this SELECT.
        text: The text that contains the query.
        scope: Its SELECT.
    """

    read: TableRead
    around: QueryText
    text: QueryText
    scope: Scope


@dataclass(frozen=True, eq=False)
class Origin:
    """The origin of a column.

    Attributes:
        table: The Lance table, as mentioned in the innermost query.
        column: Path of the column in the table.
        queries: The queries through which the column passes, outermost first.
    """

    table: ReadTable
    column: tuple[str, ...]
    queries: tuple[PassingQuery, ...] = ()

    def through(self, query: PassingQuery) -> Origin:
        """Return the origin of the column in an enclosing query."""
        return replace(self, queries=(query, *self.queries))


@dataclass(frozen=True, eq=False)
class Origins:
    """Column origins in one statement.

    Attributes:
        text: The statement.
        table_of: Returns the Lance table that a SELECT of a text reads, or None for other sources.
        view_of: Returns the view with a name in a text, or None for other names.
    """

    text: QueryText
    table_of: Callable[[TableRead, QueryText], ReadTable | None]
    view_of: Callable[[tuple[str, ...], QueryText], View | None]
    _views: dict[TableRead, QueryText | None] = field(default_factory=dict)

    def of(self, table_read: TableRead, parts: Sequence[str]) -> Origin | None:
        """Return the origin of a column, or None if it is unknown.

        Args:
            table_read: A source that a SELECT of the statement reads.
            parts: Name of the column, without qualifier.
        """
        return self._of(self.text, table_read, parts, 0)

    def _of(self, text: QueryText, table_read: TableRead, parts: Sequence[str], depth: int) -> Origin | None:
        table = self.table_of(table_read, text)
        if table is not None:
            column = table.column(parts)
            is_elsewhere = text is not self.text and bool(table.version)
            return None if column is None or is_elsewhere else Origin(table, column)
        if depth > _DEEPEST:
            return None
        found = self._query_of(text, table_read)
        return None if found is None else self._in_query(text, table_read, *found, parts, depth + 1)

    def _query_of(self, text: QueryText, table_read: TableRead) -> tuple[QueryText, tuple[int, int]] | None:
        """Return the text and token range of the query that a SELECT reads, or None if the query is unknown."""
        if table_read.query is not None:
            return text, table_read.query
        view = None if table_read.name is None or table_read.version else self.view_of(table_read.name, text)
        inner = None if view is None else self._text_of(table_read, view)
        return None if inner is None else (inner, (0, len(inner.scopes.tokens)))

    def _text_of(self, table_read: TableRead, view: View) -> QueryText | None:
        """Return the query of a view that a SELECT reads, or None if the view renames columns."""
        if table_read not in self._views:
            query = query_of_view(view.sql)
            self._views[table_read] = None if query is None else QueryText(query.scopes, view)
        return self._views[table_read]

    def _in_query(
        self,
        around: QueryText,
        table_read: TableRead,
        text: QueryText,
        query: tuple[int, int],
        parts: Sequence[str],
        depth: int,
    ) -> Origin | None:
        """Return the origin of a result column of a query."""
        scopes, scope = text.scopes, _select_of(text.scopes, query)
        if scope is None:
            return None
        items = list(_items(scopes, scope))
        named = [source for name, source in items if name == folded(parts[0])]
        stars = [source for name, source in items if name == _STAR]
        seen = [each for each in scope.tables if not each.is_hidden]
        is_given = any(self._may_give(text, each, parts[0], depth) for each in seen) if named and stars else False
        if len(named) == 1 and named[0] is not None and not (stars and is_given):
            column = (*named[0], *parts[1:])
        elif named or len(stars) != 1 or stars[0] is None:
            return None
        else:
            column = (*stars[0], *parts)
        origin = self._in_scope(text, scope, column, depth)
        return None if origin is None else origin.through(PassingQuery(table_read, around, text, scope))

    def _may_give(self, text: QueryText, table_read: TableRead, name: str, depth: int) -> bool:
        """Return whether a source may have a column with this name."""
        table = self.table_of(table_read, text)
        if table is not None:
            return table.column((name,)) is not None
        found = None if depth > _DEEPEST else self._query_of(text, table_read)
        scope = None if found is None else _select_of(found[0].scopes, found[1])
        if found is None or scope is None:
            return True
        names = [each for each, _ in _items(found[0].scopes, scope)]
        below = scope.tables if _STAR in names else ()
        return folded(name) in names or any(self._may_give(found[0], each, name, depth + 1) for each in below)

    def _in_scope(self, text: QueryText, scope: Scope, parts: Sequence[str], depth: int) -> Origin | None:
        """Return the origin of a column, qualified or not, in a SELECT."""
        tables = [table_read for table_read in scope.tables if not table_read.is_hidden]
        qualified = [each for each in tables if len(parts) > 1 and folded(each.alias) == folded(parts[0])]
        if qualified:
            return self._of(text, qualified[0], parts[1:], depth)
        origins = [(each, self._of(text, each, parts, depth)) for each in tables]
        unknown = [each for each, origin in origins if origin is None and self.table_of(each, text) is None]
        if any(self._may_give(text, each, parts[0], depth) for each in unknown):
            return None  # the column may belong to an unknown table
        known = [origin for _, origin in origins if origin is not None]
        return known[0] if len(known) == 1 else None


def _select_of(scopes: Scopes, query: tuple[int, int]) -> Scope | None:
    """Return the only SELECT of a query. Returns None for set operations, PIVOT and other forms."""
    start, end = query
    while scopes.text(start) == "(" and scopes.closer(start) == end - 1:
        start, end = start + 1, end - 1
    scope = scopes.scope_of(start)
    if (scope.start, scope.end) != (start, end) or scopes.word(start) not in _BEGINNINGS or not scope.clauses:
        return None
    is_turned = any(scopes.word(at) in _TURNED and scopes.scope_of(at) is scope for at in range(start, end))
    return None if is_turned else scope


def query_of_view(sql: str) -> Statement | None:
    """Return the query of a view, or None if the view lists column names."""
    tokens = Statement.of(sql).tokens
    begin = next((at for at, token in enumerate(tokens) if token.word == "as" or token.text == "("), len(tokens))
    if begin == len(tokens) or tokens[begin].text == "(":
        return None
    end = tokens[-1].start if tokens[-1].text == ";" else len(sql)
    return Statement.of(sql[tokens[begin].end : end])


def _items(scopes: Scopes, scope: Scope) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield the name and source column of each item in a SELECT list. The source of an expression is None.

    The name of a star is `*`, and its source is the qualifier.
    """
    spans = pairwise([*scope.clauses, ("", scope.end)])
    span = next(((begin + 1, end) for (word, begin), (_, end) in spans if word == "select"), None)
    if span is None:
        yield _STAR, ()
        return
    begin, end = span
    if scopes.word(begin) == "distinct":
        begin = scopes.closer(begin + 2) + 1 if scopes.word(begin + 1) == "on" else begin + 1
    for part in list_parts(scopes.tokens, begin, end):
        if part.tokens:
            yield from _columns(part.tokens)


def _columns(tokens: Sequence[Token]) -> Iterator[tuple[str, tuple[str, ...] | None]]:
    """Yield the column names of one item of a SELECT, each with its source. See `_items`."""
    star = next(
        (at for at, token in enumerate(tokens) if token.text == "*" and (not at or tokens[at - 1].text == ".")), -1
    )
    before = _name(tokens[: max(star - 1, 0)]) if star > 0 else ()
    if star >= 0 and before is not None:
        yield _STAR, before
        for token in tokens[star + 1 :]:  # EXCLUDE, REPLACE, RENAME
            if token.name is not None:
                yield folded(token.name), None
        return
    alias: str | None = None
    core = tokens
    if is_colon(tokens, 1):
        alias, core = tokens[0].name, tokens[2:]
    elif len(tokens) > 2 and tokens[-2].word == "as":
        alias, core = tokens[-1].name, tokens[:-2]
    elif len(tokens) > 1 and tokens[-1].name is not None and tokens[-2].text != ".":
        alias, core = tokens[-1].name, tokens[:-1]
    column = _name(core)
    if alias is not None or column is not None:
        yield folded(alias if alias is not None else (column or ("",))[-1]), column


def _name(tokens: Sequence[Token]) -> tuple[str, ...] | None:
    """Return the parts of a qualified name, or None for other tokens."""
    names = tuple(token.name for token in tokens[::2])
    is_name = len(tokens) % 2 == 1 and all(token.text == "." for token in tokens[1::2]) and None not in names
    return tuple(str(name) for name in names) if is_name else None
