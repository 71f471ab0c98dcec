"""Find the parts of a statement that would expose columns added to a table. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.scope import Scope, Scopes, TableRead
from lance_duck.duck.statement.tokens import Token

_ODD: Final = frozenset({"pivot", "unpivot", "tablesample", "columns", "describe", "summarize", "nearest"})
_OF_QUERIES: Final = frozenset({"describe", "summarize"})
"""Words in `_ODD` that are harmless before a SELECT."""
_STAR_AFTER: Final = frozenset({"select", "distinct", "all", ","})
_FOLLOW: Final = (
    ", ) ; from where group having window qualify order limit offset using union except intersect replace rename"
)
_STAR_BEFORE: Final = frozenset(_FOLLOW.split())
_LEFT_OUT: Final = ("exclude", "except")


@dataclass(frozen=True)
class Star:
    """A `*` that includes columns of the table, and the text that excludes added columns from it.

    Attributes:
        place: Insertion offset, in characters.
        text: The text to insert. `{}` stands for the column names.
        is_of_all: Whether it includes the columns of all tables in its SELECT.
    """

    place: int
    text: str
    is_of_all: bool


class UnseenColumns:
    """Finds the parts of a statement that would expose added columns.

    Args:
        tokens: Tokens of the statement.
        scopes: Its SELECTs.
    """

    def __init__(self, tokens: Sequence[Token], scopes: Scopes) -> None:
        self._tokens = tokens
        self._scopes = scopes

    def stars(self, table_read: TableRead, scope: Scope) -> list[Star] | None:
        """Return the stars that include columns of a table. Returns None if the SELECT exposes them in other ways."""
        if self._is_odd(table_read, scope):
            return None
        if all(word != "select" for word, _ in scope.clauses):
            return self._first_from(scope)
        stars: list[Star] = []
        for at in range(scope.start, scope.end):
            if self._tokens[at].text != "*":
                continue
            if self._scopes.text(at - 1) == ".":
                name = folded(self._scopes.name(at - 2) or "")
                if name != folded(table_read.alias) or self._is_of_another(name, at, scope):
                    continue
            elif self._scopes.scope_of(at) is not scope or not self._may_be_star(at):
                continue
            star = self._star(at, scope)
            if star is None:
                return None
            stars.append(star)
        return stars

    def _is_of_another(self, name: str, at: int, scope: Scope) -> bool:
        """Return whether a name refers to a table of a nested SELECT."""
        inner: Scope | None = self._scopes.scope_of(at)
        while inner is not None and inner is not scope:
            if any(folded(table_read.alias) == name for table_read in inner.tables):
                return True
            inner = inner.outer
        return False

    def may_be_value(self, table_read: TableRead, scope: Scope, replaced: Collection[int] = ()) -> bool:
        """Return whether the name of a table may be used as a row value.

        Args:
            table_read: The table.
            scope: The SELECT that reads it.
            replaced: Indices of tokens that are replaced.
        """
        named = {at for each in self._scopes.tables for at in each.named}
        return any(
            self._scopes.name(at) is not None
            and folded(self._scopes.name(at) or "") == folded(table_read.alias)
            and at not in named
            and at not in replaced
            and not self._is_of_another(folded(table_read.alias), at, scope)
            and not self._is_definition(at)
            and self._scopes.text(at + 1) != "."
            and self._scopes.text(at - 1).lower() not in (".", "as")
            for at in range(scope.start, scope.end)
        )

    def _is_definition(self, at: int) -> bool:
        """Return whether a name defines a common table expression."""
        return self._scopes.word(at + 1) == "as" and (
            self._scopes.text(at + 2) == "(" or self._scopes.word(at + 2) in ("materialized", "not")
        )

    def _is_odd(self, table_read: TableRead, scope: Scope) -> bool:
        """Return whether a SELECT has an unsupported form, or qualifies columns with a database or schema."""
        for at in range(scope.start, scope.end):
            word = self._scopes.word(at)
            if word in _ODD and not (word in _OF_QUERIES and self._scopes.word(at + 1) == "select"):
                return True
            is_within = self._scopes.text(at - 1) == self._scopes.text(at + 1) == "."
            if is_within and folded(self._scopes.name(at) or "") == folded(table_read.alias):
                return True
        return False

    def _may_be_star(self, at: int) -> bool:
        """Return whether a `*` may be a star, not a multiplication or `count(*)`."""
        before, after = self._scopes.text(at - 1).lower(), self._scopes.text(at + 1).lower()
        if before == "(" and after == ")":
            return self._scopes.word(at - 2) != "count"
        return before in _STAR_AFTER or before == "(" or after in _STAR_BEFORE or after in _LEFT_OUT or after == ""

    def _star(self, at: int, scope: Scope) -> Star | None:
        first = at - 2 if self._scopes.text(at - 1) == "." else at
        before, after = self._scopes.text(first - 1).lower(), self._scopes.text(at + 1).lower()
        select = next(place for word, place in scope.clauses if word == "select")
        is_item = before in _STAR_AFTER or (before == ")" and self._ends_distinct_on(first - 1))
        if not is_item or self._scopes.opener(first) != self._scopes.opener(select):
            return None
        if after in _LEFT_OUT and self._scopes.text(at + 2) == "(" and not self._scopes.is_query(at + 2):
            return Star(self._tokens[at + 2].end, "{}, ", first == at)
        if after and after not in _STAR_BEFORE:
            return None
        return Star(self._tokens[at].end, " EXCLUDE ({}) ", first == at)

    def _ends_distinct_on(self, place: int) -> bool:
        opener = next((at for at in range(place) if self._scopes.closer(at) == place), -1)
        return self._scopes.word(opener - 1) == "on" and self._scopes.word(opener - 2) == "distinct"

    def _first_from(self, scope: Scope) -> list[Star] | None:
        """Return the SELECT list to add to a statement that starts with FROM and does not have one."""
        place = next((place for word, place in scope.clauses if word == "from"), -1)
        before = self._scopes.text(place - 1).lower()
        if place < 0 or before in ("delete", "update"):
            return []
        is_first = before in ("", "(", ")", ";", "all", "union", "except", "intersect", "explain", "analyze", "as")
        return [Star(self._tokens[place].start, "SELECT * EXCLUDE ({}) ", True)] if is_first else None
