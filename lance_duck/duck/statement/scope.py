"""Finds the SELECTs of a statement, and the tables that each one reads, in its tokens. Pure.

Only DuckDB's parser covers every statement that may contain an expression (UPDATE, MERGE, CREATE VIEW, PREPARE, …).
This module therefore resolves names from tokens, as far as possible. A source that is not clearly a plain table counts
as a table with unknown columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from lance_duck.duck.statement.clauses import divided, stem
from lance_duck.duck.statement.common_tables import QUERIES, CommonTable, begins_query, common_tables, parentheses
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.tokens import Token

_PIVOTS: Final = frozenset({"pivot", "unpivot"})
_WITHOUT_ON: Final = frozenset({"cross", "natural", "positional"})
_NAMING: Final = frozenset({"table", "describe", "desc", "summarize"})
_BEFORE_NAMING: Final = frozenset({"insert", "with", "explain", "describe", "desc", "summarize"})
"""First words of statements that accept `TABLE t` anywhere."""
_COMBINED: Final = frozenset({"union", "except", "intersect", ";"})
_AFTER_QUERY: Final = frozenset({")", "", "union", "except", "intersect", "order", "limit", "offset"})
"""Tokens that may follow a nested query in parentheses."""
_CLAUSES: Final = frozenset(
    {"select", "from", "where", "group", "having", "window", "qualify", "order", "limit", "offset", "returning", "set"}
)
_FOLLOWING: Final = (
    "fetch join inner left right full outer cross natural semi anti asof positional on using union except intersect "
    "tablesample at pivot unpivot when with values"
)
_AFTER_TABLE: Final = _CLAUSES | frozenset(_FOLLOWING.split())
"""Keywords that may follow a table, and therefore are not its alias."""
_SCAN: Final = "lance_scan"
_MATCHING: Final = "__lance_matching"
_KEYS: Final = {"version": "version", "timestamp": "asof"}
_VERSIONS: Final = ("version", "tag", "asof", "branch")


@dataclass(frozen=True)
class Part:
    """One item of a comma-separated list.

    Attributes:
        tokens: Tokens of the item.
        end: Offset of the next token, in characters. The end of a number token is not reliable.
    """

    tokens: Sequence[Token]
    end: int

    @property
    def start(self) -> int:
        """Start offset, in characters."""
        return self.tokens[0].start if self.tokens else self.end

    @property
    def text(self) -> str:
        """The source text of the item, with a trailing newline if it contains a line comment."""
        text = self.tokens[0].source[self.start : self.end].rstrip() if self.tokens else ""
        return f"{text}\n" if "--" in text else text

    @property
    def string(self) -> str | None:
        """The value of a string literal, or None for any other item."""
        text = self.tokens[0].text if len(self.tokens) == 1 else ""
        return text[1:-1].replace("''", "'") if text.startswith("'") else None

    @property
    def named(self) -> tuple[str | None, Part]:
        """The folded name of an argument (`name := value`, `name => value`), or None, and the argument's value."""
        tokens = self.tokens
        if len(tokens) > 1 and tokens[0].name is not None:
            place = tokens[1].start
            if tokens[0].source[place : place + 2] in (":=", "=>"):
                begin = 2 + (len(tokens) > 2 and tokens[2].start < place + 2)
                return folded(tokens[0].name), Part(tokens[begin:], self.end)
        return None, self


@dataclass(frozen=True, eq=False)
class TableRead:
    """A table that a SELECT reads.

    Attributes:
        alias: Qualifier of its columns, without quotes. Empty if the table cannot be qualified.
        name: Parts of the qualified name, or None for a path, subquery or function.
        path: Its path, if the statement refers to it by path or through `lance_scan`.
        version: The requested version, as arguments of `lance_scan`.
        is_hidden: Whether the SELECT cannot refer to its columns. In a SEMI or ANTI JOIN, ON can refer to columns of
            the right side.
        place: Token range of the name, path or call, `end` exclusive. None if an alias precedes or splits it, or if the
            syntax only accepts a name.
        end: The token after its alias.
        is_called: Whether the table has an alias in the text.
        query: Token range of the subquery or common table expression, `end` exclusive. None for other tables, or if the
            columns are renamed.
        columns: Serialized `AskedColumns` that extend the table, or None.
    """

    alias: str
    name: tuple[str, ...] | None = None
    path: str | None = None
    version: tuple[tuple[str, Part], ...] = ()
    is_hidden: bool = False
    place: tuple[int, int] | None = None
    end: int = -1
    is_called: bool = False
    query: tuple[int, int] | None = None
    columns: str | None = None

    @property
    def named(self) -> range:
        """Tokens of its name and its alias."""
        if self.place is not None:
            return range(self.place[0], self.end)
        return range(0) if self.query is None else range(self.query[1] + 1, self.end)


@dataclass(eq=False)
class Scope:
    """A SELECT, or a statement that changes a table.

    Attributes:
        outer: The enclosing scope, or None.
        start, end: Range of its tokens.
        tables: Tables that it reads, in order.
        clauses: The first word of each clause, and its token index.
    """

    outer: Scope | None
    start: int
    end: int
    tables: list[TableRead] = field(default_factory=list)
    clauses: list[tuple[str, int]] = field(default_factory=list)

    def clause_of(self, place: int) -> tuple[str, int, int]:
        """Return the clause that contains a token: its first word, and its token range after that word."""
        for (word, begin), (_, end) in pairwise([*self.clauses, ("", self.end)]):
            if begin < place < end:
                return word, begin + 1, end
        return "", self.start, self.end


class Scopes:
    """All SELECTs of a text.

    Args:
        tokens: Tokens of the text.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self._closers, self._openers = parentheses(tokens)
        self._of_tokens = [Scope(None, 0, len(tokens))] * len(tokens)
        self._ctes = tuple(common_tables(tokens, self._closers, self._openers))
        self._read(0, len(tokens), None)

    def scope_of(self, place: int) -> Scope:
        """Return the scope to which a token belongs."""
        return self._of_tokens[place]

    def closer(self, opener: int) -> int:
        """Return the index of the matching closing parenthesis, or the token count if it is missing."""
        return self._closers.get(opener, len(self.tokens))

    def opener_of(self, closer: int) -> int | None:
        """Return the index of the matching opening parenthesis, or None for other tokens."""
        return next((opener for opener, close in self._closers.items() if close == closer), None)

    def opener(self, place: int) -> int:
        """Return the index of the innermost parenthesis around a token, or -1."""
        return self._openers[place]

    def word(self, place: int) -> str | None:
        """Return the lower-case word of a token, or None if the token is not a word or does not exist."""
        return self.tokens[place].word if 0 <= place < len(self.tokens) else None

    def text(self, place: int) -> str:
        """Return the source text of a token. Empty beyond the end."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def name(self, place: int) -> str | None:
        """Return the identifier of a token, or None if the token is not a name or does not exist."""
        return self.tokens[place].name if 0 <= place < len(self.tokens) else None

    @property
    def tables(self) -> Iterator[TableRead]:
        """The tables of all scopes."""
        return (table for scope in dict.fromkeys(self._of_tokens) for table in scope.tables)

    def cte(self, name: str, place: int) -> CommonTable | None:
        """Return the innermost common table expression to which a name refers at a token, or None."""
        visible = [cte for cte in self._ctes if cte.name == folded(name) and cte.start <= place < cte.end]
        return max(visible, key=lambda cte: cte.start, default=None)

    def readers(self, table_read: TableRead, replaced: Collection[int] = ()) -> list[tuple[Scope, TableRead]] | None:
        """Return all references to a table's query, each with its SELECT. Returns None if there may be more.

        Args:
            table_read: The table.
            replaced: Indices of tokens that are replaced.
        """
        read = [
            (scope, each)
            for scope in dict.fromkeys(self._of_tokens)
            for each in scope.tables
            if each.query == table_read.query
        ]
        cte = next((cte for cte in self._ctes if cte.query == table_read.query), None)
        if cte is None:
            return read if len(read) == 1 else None
        places = {each.place[0] for _, each in read if each.place is not None}
        mentions = {
            at
            for at in range(cte.start, cte.end)
            if at not in replaced
            and folded(self.name(at) or "") == cte.name
            and "." not in (self.text(at - 1), self.text(at + 1))
            and self.word(at - 1) != "as"
        }
        return read if mentions == places and len(places) == len(read) else None

    def is_query(self, opener: int) -> bool:
        """Return whether these parentheses contain a query."""
        inner = opener
        while self.text(inner) == "(":
            inner += 1
        if inner == opener or self.text(inner + 1) == "." or not begins_query(self.tokens, inner):
            return False
        behind = (self.text(self.closer(at) + 1).lower() for at in range(opener + 1, inner))
        return all(text in _AFTER_QUERY for text in behind)  # otherwise, it is a join of subqueries

    def read_nested(self, opener: int, outer: Scope) -> None:
        """Read the query in parentheses."""
        self._read(opener + 1, self.closer(opener), outer)

    def _read(self, start: int, end: int, outer: Scope | None) -> None:
        """Read the SELECTs of a token range, divided by set operations."""
        end = min(end, len(self.tokens))
        begin = place = start
        while place <= end:
            if place == end or (self.text(place).lower() in _COMBINED and not self._excludes(place)):
                scope = Scope(outer, begin, place)
                self._of_tokens[begin:place] = [scope] * (place - begin)
                _ScopeReader(self, scope).read()
                begin = place + 1
            place = self.closer(place) if place < end and self.text(place) == "(" else place + 1

    def _excludes(self, place: int) -> bool:
        """Return whether an EXCEPT excludes columns: `* EXCEPT (a, b)`."""
        return self.text(place - 1) == "*" and self.text(place + 1) == "(" and not self.is_query(place + 1)


class _ScopeReader:
    """Reader of the tables and clauses of one scope.

    Args:
        scopes: All scopes of the text.
        scope: The scope to read.
    """

    def __init__(self, scopes: Scopes, scope: Scope) -> None:
        self._all = scopes
        self._scope = scope
        self._depth = 0
        self._expects = False
        """Whether the next token may begin a table."""
        self._is_hidden = False
        """Whether only ON can refer to the columns of the next table."""
        self._lists: list[int] = []
        """Depths of the enclosing table lists. A comma at one of these depths precedes a table."""
        self._item = {0: scope.start}
        """Token before the current item of FROM, by depth: FROM, a comma or a parenthesis."""
        self._awaits_using = False  # whether USING begins the tables of DELETE or MERGE
        self._pivot_ends = -1

    def read(self) -> None:
        """Read the scope and its nested SELECTs."""
        place = self._scope.start
        while place < self._scope.end:
            place = self._step(place)

    def _step(self, place: int) -> int:
        token = self._all.tokens[place]
        if token.text == "(":
            return self._open(place)
        if token.text in (")", "]", "}"):
            return self._close(place)
        if token.text in ("[", "{"):
            self._depth += 1
            self._expects = False
        elif token.text == ",":
            self._expects, self._is_hidden = self._depth in self._lists, False
            self._item[self._depth] = place
        elif self._expects and token.word in ("lateral", "only"):
            pass
        elif self._expects and (token.name is not None or token.text[:1] == "'"):
            return self._table(place)
        elif token.word is not None:
            self._word(place, token.word)
        return place + 1

    def _open(self, place: int) -> int:
        if not self._all.is_query(place):
            self._depth += 1
            self._item[self._depth] = place
            if self._expects:
                self._lists.append(self._depth)
            return place + 1
        self._all.read_nested(place, self._scope)
        after = self._all.closer(place) + 1
        if self._expects:
            self._expects = False
            alias, after = self._alias(after)
            query = None if self._all.text(after) == "(" else (place + 1, self._all.closer(place))
            self._scope.tables.append(TableRead(alias or "", is_hidden=self._is_hidden, end=after, query=query))
        return after

    def _close(self, place: int) -> int:
        """Leave parentheses. Returns the token after them, or after the alias of a PIVOT."""
        self._depth -= 1
        self._lists = [depth for depth in self._lists if depth <= self._depth]
        self._expects = False
        if place != self._pivot_ends:
            return place + 1
        alias, after = self._alias(place + 1)
        self._scope.tables.append(TableRead(alias or "", end=after, is_called=alias is not None))
        return after

    def _word(self, place: int, word: str) -> None:
        if word == "join":
            self._expects = bool(self._lists)
            self._is_hidden = self._all.word(place - 1) in ("semi", "anti")
        elif word in _PIVOTS and self._depth in self._lists:
            self._pivot(place)
        elif self._depth == 0 and not self._is_inside(place):
            if word in _CLAUSES and (word != "set" or self._lists):
                self._scope.clauses.append((word, place))
                self._lists = []
            elif word == "on" and not self._scope.clauses:  # PIVOT … ON is followed by a list of columns
                self._lists = []
            is_named = self._names_query(place, word)
            if word == "from" or is_named or self._names_target(place, word):
                self._lists, self._expects, self._is_hidden = [0], True, is_named
                self._item = {0: place}
            if word in ("from", "into", "using"):
                self._awaits_using = self._all.word(place - 1) in ("delete", "merge")

    def _pivot(self, place: int) -> None:
        """Hide the input tables of a PIVOT in FROM: one table, a join in parentheses, or all joined tables."""
        opener = next((at for at in range(place + 1, place + 4) if self._all.text(at) == "("), -1)
        tables = self._scope.tables
        begin = self._all.opener_of(place - 1)
        if begin is None and tables[-1:] and tables[-1].end == place and not self._is_crossed():
            begin = place
        turned = [each for each in tables if begin is not None and each.end >= begin]
        turned = turned or [each for each in tables if each.end > self._item[self._depth]]
        tables[len(tables) - len(turned) :] = [replace(each, is_hidden=True, place=None) for each in turned]
        self._pivot_ends = self._all.closer(opener)

    def _is_crossed(self) -> bool:
        """Return whether a join without ON precedes the last table. PIVOT then applies to the whole join."""
        *before, last = self._scope.tables
        tokens = range(before[-1].end if before else self._scope.start, last.end)
        return any(self._all.word(at) == "join" and self._all.word(at - 1) in _WITHOUT_ON for at in tokens)

    def _names_query(self, place: int, word: str) -> bool:
        """Return whether a table read without a SELECT follows: `TABLE t`, `DESCRIBE t`, `PIVOT t ON …`."""
        before, follows = self._all.word(place - 1), self._all.word(place + 1)
        if follows in _AFTER_TABLE or follows in QUERIES or follows == "as":
            return False
        is_name = self._all.name(place + 1) is not None
        if word in _PIVOTS:
            return not self._scope.clauses and (is_name or self._all.is_query(place + 1))
        begins = place == self._scope.start or before in ("as", "explain")
        if word == "table":
            begins = begins or self._all.word(self._scope.start) in _BEFORE_NAMING
        return word in _NAMING and begins and is_name

    def _names_target(self, place: int, word: str) -> bool:
        """Return whether the target or the source of a change follows."""
        before = self._all.word(place - 1)
        if word == "update":
            return before not in ("do", "then", "for")
        return (word == "using" and self._awaits_using) or (word, before) == ("into", "merge")

    def _is_inside(self, place: int) -> bool:
        """Return whether a word belongs to a qualified name or to IS [NOT] DISTINCT FROM."""
        before = self._all.word(place - 2)
        is_distinct = self._all.word(place - 1) == "distinct" and before in ("is", "not")
        return self._all.text(place - 1) == "." or is_distinct

    def _table(self, place: int) -> int:
        """Read a table and its alias. Returns the next token."""
        self._expects = False
        alias_name = None
        if is_colon(self._all.tokens, place + 1):
            alias_name, place = self._all.name(place), place + 2
        table, behind = self._source(place)
        version, after = self._at(behind)
        read = (place, after) if version or behind == after else None
        alias, after = self._alias(after)
        if not version:
            version, behind = self._at(after)
            read, after = read if behind == after else None, behind
        if alias is not None and self._all.text(after) == "(":  # column aliases
            table = TableRead(alias)
        called = alias_name or alias
        is_plain = alias_name is None and read is not None
        self._scope.tables.append(
            replace(
                table,
                alias=called or table.alias,
                version=version or table.version,
                is_hidden=self._is_hidden,
                place=read if is_plain else None,
                end=after,
                is_called=called is not None,
            )
        )
        return after

    def _source(self, place: int) -> tuple[TableRead, int]:
        """Read a qualified name, a path or a call. Returns the table and the next token."""
        path = self._all.tokens[place].path if place < len(self._all.tokens) else None
        if path is not None or self._all.text(place)[:1] == "'":
            return TableRead(stem(path or self._all.text(place)[1:-1]), None, path), place + 1
        parts, after = [self._all.name(place) or ""], place + 1
        while self._all.text(after) == "." and (part := self._all.name(after + 1)) is not None:
            parts.append(part)
            after += 2
        if self._all.text(after) != "(":
            cte = self._all.cte(parts[0], place) if len(parts) == 1 else None
            return TableRead(
                parts[-1], tuple(parts) if cte is None else None, query=None if cte is None else cte.query
            ), after
        close = self._all.closer(after)
        return _called(parts[-1], list_parts(self._all.tokens, after + 1, close)), close + 1

    def _at(self, place: int) -> tuple[tuple[tuple[str, Part], ...], int]:
        """Read `AT (VERSION => …)`. Returns the version, empty without AT, and the next token."""
        if self._all.word(place) != "at" or self._all.text(place + 1) != "(":
            return (), place
        close = self._all.closer(place + 1)
        key, arrow = _KEYS.get(self._all.word(place + 2) or ""), self._all.text(place + 3)
        if key is None or arrow != "=>" or close <= place + 4:
            return (), close + 1
        tokens = self._all.tokens
        return ((key, Part(tokens[place + 4 : close], tokens[close].start)),), close + 1

    def _alias(self, place: int) -> tuple[str | None, int]:
        """Read the alias of a table. Returns the alias, or None, and the next token."""
        if self._all.word(place) == "as":
            return self._all.name(place + 1), place + 2
        if self._all.name(place) is None or self._all.word(place) in _AFTER_TABLE:
            return None, place
        return self._all.name(place), place + 1


def _called(function: str, arguments: Sequence[Part]) -> TableRead:
    """Return the table that a function call reads."""
    unknown = TableRead("")
    strings = [argument.string for argument in arguments]
    if folded(function) == _MATCHING and len(strings) == 2 and None not in strings:
        return TableRead("", None, strings[0], columns=strings[1])
    if folded(function) != _SCAN or not arguments or len(arguments[0].tokens) != 1 or arguments[0].string is None:
        return unknown
    version = []
    for argument in arguments[1:]:
        name, value = argument.named
        if name not in _VERSIONS or not value.tokens:
            return unknown
        version.append((name, value))
    return TableRead("", None, arguments[0].string, tuple(version))


def list_parts(tokens: Sequence[Token], begin: int, end: int) -> list[Part]:
    """Return the items of a comma-separated list in a token range. Empty for an empty range."""
    parts, place = [], begin
    for part in divided(tokens[begin:end], ",") if begin < end else ():
        place += len(part)
        follows = tokens[place].start if place < len(tokens) else len(tokens[0].source)
        parts.append(Part(part, follows))
        place += 1
    return parts


def is_colon(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a token is a single colon, not part of `::` or `:=`."""
    if not 0 <= place < len(tokens) or tokens[place].text != ":":
        return False
    start, source = tokens[place].start, tokens[place].source
    return source[start + 1 : start + 2] not in (":", "=") and source[max(start - 1, 0) : start] != ":"
