"""Push calls down to the SELECTs that read their tables. An index can then compute the calls. Pure.

    SELECT * FROM (SELECT id, body AS words FROM t) s WHERE __lance_match(["s"."words"], …)
    → SELECT * EXCLUDE ("c") FROM (SELECT id, body AS words, __lance_match(["t"."body"], …) AS "c" FROM t) s
      WHERE "s"."c"

The value of a call depends only on the text in its row. Each query between the table and the call can therefore return
the value as an additional column, unless that changes the query's rows. DISTINCT, GROUP BY, and uses of all columns at
once prevent the pushdown. Filters, joins, windows and limits do not. A view is replaced with its text, in which all
names are fully qualified.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from lance_duck.duck.full_text.call_places import CONDITION
from lance_duck.duck.full_text.origins import Origin, PassingQuery, QueryText
from lance_duck.duck.full_text.unseen_columns import UnseenColumns
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.statement.scope import Scope, Scopes, TableRead

_VALUE: Final = "__lance_value_"


@dataclass(eq=False)
class _WidenedSelect:
    """A SELECT that gets additional columns, or reads tables with additional columns.

    Attributes:
        added: SQL of the new columns, by name.
        hidden: Names of the columns to exclude, keyed by the offset of a star and its exclusion template.
    """

    added: dict[str, str] = field(default_factory=dict)
    hidden: dict[tuple[int, str], list[str]] = field(default_factory=dict)


class CallCarrier:
    """Pushes down the calls of one statement.

    Args:
        text: The statement.
        replaced: Tokens of the calls and their columns.
        inlined: Returns the edits that let a view's text run inside the statement, or None if that is not possible.
    """

    def __init__(
        self, text: QueryText, replaced: Collection[int], inlined: Callable[[QueryText], list[Edit] | None]
    ) -> None:
        self._text = text
        self._replaced = replaced
        self._inlined = inlined
        self._unseen: dict[QueryText, UnseenColumns] = {}
        self._selects: dict[QueryText, dict[Scope, _WidenedSelect]] = {}
        self._views: dict[QueryText, PassingQuery] = {}
        self._names: dict[tuple[object, ...], str] = {}
        self._numbers: set[int] = set()

    def carried(self, origin: Origin, scope: Scope, call: str, *, is_condition: bool) -> str | None:
        """Push a call down. Returns SQL of the column that replaces it, or None if that is not possible.

        Args:
            origin: Origin of the call's column.
            scope: The SELECT that reads the outermost query of the origin.
            call: SQL of the call on the table's column.
            is_condition: Whether the call's context treats NULL like false.
        """
        key = (*((query.read, query.scope) for query in origin.queries), call, is_condition)
        name = self._names.get(key)
        if name is None:
            if not self._may_carry(origin, scope):
                return None
            name = self._names[key] = self._new_name(origin, CONDITION if is_condition else _VALUE)
            self._carry(origin, scope, call, name)
        return _column(origin.queries[0].read, name)

    def edits(self) -> list[Edit]:
        """Return the edits that add columns to queries and inline views, without those that replace the calls."""
        return self._edits_of(self._text)

    # Checks.

    def _may_carry(self, origin: Origin, scope: Scope) -> bool:
        table_read, innermost = origin.table.read, origin.queries[-1]
        if not table_read.alias or table_read.place is None:
            return False
        if self._stars(innermost.text, table_read, innermost.scope) is None:
            return False
        return all(self._may_read(query, reader) for query, reader in _readings(origin, scope))

    def _may_read(self, query: PassingQuery, scope: Scope) -> bool:
        """Return whether a query can return an additional column to all SELECTs that read it."""
        readers = self._readers(query, scope)
        if readers is None or not _keeps_rows(query.text.scopes, query.scope):
            return False
        if any(self._stars(query.around, table_read, reader) is None for reader, table_read in readers):
            return False
        is_view = query.text is not query.around
        return not is_view or (query.read.place is not None and self._inlined(query.text) is not None)

    def _stars(self, text: QueryText, table_read: TableRead, scope: Scope) -> list[tuple[int, str]] | None:
        """Return the stars that include the columns of a table.

        Returns None if the SELECT returns the columns in other ways, or if the statement changes a table.
        """
        scopes = text.scopes
        unseen = self._unseen.setdefault(text, UnseenColumns(scopes.tokens, scopes))
        is_natural = any(scopes.word(at) == "natural" for at in range(scope.start, scope.end))
        returns = any(word == "returning" for word, _ in scope.clauses)
        if is_natural or returns or unseen.may_be_value(table_read, scope, self._replaced_in(text)):
            return None
        stars = unseen.stars(table_read, scope)
        return None if stars is None or not (stars or _has_list(scope)) else [(star.place, star.text) for star in stars]

    def _readers(self, query: PassingQuery, scope: Scope) -> Sequence[tuple[Scope, TableRead]] | None:
        """Return all references to a query, each with its SELECT. Returns None if there may be more."""
        if query.text is not query.around:
            return [(scope, query.read)]
        return query.around.scopes.readers(query.read, self._replaced_in(query.around))

    def _replaced_in(self, text: QueryText) -> Collection[int]:
        return self._replaced if text is self._text else ()

    # Pushing down.

    def _new_name(self, origin: Origin, beginning: str) -> str:
        """Return a column name that does not occur in any of the affected texts."""
        sources = {text.scopes.tokens[0].source for query in origin.queries for text in (query.around, query.text)}
        number = len(self._names)
        while any(f"{beginning}{number}" in source for source in sources) or number in self._numbers:
            number += 1
        self._numbers.add(number)
        return f"{beginning}{number}"

    def _carry(self, origin: Origin, scope: Scope, call: str, name: str) -> None:
        innermost = origin.queries[-1]
        self._select(innermost.text, innermost.scope).added[name] = call
        for query, around in _readings(origin, scope):
            if query.text is not query.around:
                self._views[query.text] = query
            for reader, table_read in self._readers(query, around) or ():
                select = self._select(query.around, reader)
                for star in self._stars(query.around, table_read, reader) or ():
                    names = select.hidden.setdefault(star, [])
                    names += [] if name in names else [name]
                if table_read is query.read and reader is not scope:
                    select.added[name] = _column(table_read, name)

    def _select(self, text: QueryText, scope: Scope) -> _WidenedSelect:
        return self._selects.setdefault(text, {}).setdefault(scope, _WidenedSelect())

    # Edits.

    def _edits_of(self, text: QueryText) -> list[Edit]:
        selects = self._selects.get(text, {})
        edits = [edit for scope, select in selects.items() for edit in _widening(text.scopes, scope, select)]
        return edits + [self._reading(view, query) for view, query in self._views.items() if query.around is text]

    def _reading(self, view: QueryText, query: PassingQuery) -> Edit:
        """Return the edit that replaces a view with its text."""
        tokens, place = query.around.scopes.tokens, query.read.place
        assert place is not None
        edits = self._edits_of(view)
        names = [edit for edit in self._inlined(view) or () if not any(e.overlaps(edit.start, edit.end) for e in edits)]
        text = apply(view.scopes.tokens[0].source, [*edits, *names])
        alias = "" if query.read.is_called else f" AS {quoted(query.read.alias)}"
        return Edit(tokens[place[0]].start, tokens[place[1] - 1].end, f"({text}){alias}")


def _readings(origin: Origin, scope: Scope) -> Iterator[tuple[PassingQuery, Scope]]:
    """Yield each query through which a column passes, with the SELECT that reads the query."""
    return zip(origin.queries, (scope, *(query.scope for query in origin.queries)), strict=False)


def _column(table_read: TableRead, name: str) -> str:
    return f"{quoted(table_read.alias)}.{quoted(name)}" if table_read.alias else quoted(name)


def _has_list(scope: Scope) -> bool:
    return any(word == "select" for word, _ in scope.clauses)


def _keeps_rows(scopes: Scopes, scope: Scope) -> bool:
    """Return whether a SELECT returns the same rows with an additional column."""
    is_merged = any(
        word in ("group", "having")
        or (word == "select" and scopes.word(at + 1) == "distinct")
        or (word == "order" and scopes.word(at + 2) == "all")
        for word, at in scope.clauses
    )
    return not is_merged and (not _has_list(scope) or scopes.text(_list_end(scope) - 1) != ",")


def _list_end(scope: Scope) -> int:
    """Return the token after the SELECT list."""
    select = next(at for word, at in scope.clauses if word == "select")
    return min((at for _, at in scope.clauses if at > select), default=scope.end)


def _widening(scopes: Scopes, scope: Scope, select: _WidenedSelect) -> Iterator[Edit]:
    """Yield the edits that add columns to a SELECT and exclude added columns from its stars."""
    tokens = scopes.tokens
    added = "".join(f", {sql} AS {quoted(name)}" for name, sql in select.added.items())
    if _has_list(scope):
        for (place, star), names in select.hidden.items():
            yield Edit(place, place, star.format(", ".join(map(quoted, names))))
        end = _list_end(scope)
        place = tokens[end].start if end < len(tokens) else len(tokens[0].source)
        yield Edit(place, place, f"{added} ")
        return
    names = [name for names in select.hidden.values() for name in names]
    left_out = f" EXCLUDE ({', '.join(map(quoted, names))})" if names else ""
    place = tokens[next(at for word, at in scope.clauses if word == "from")].start
    yield Edit(place, place, f"SELECT *{left_out}{added} ")
