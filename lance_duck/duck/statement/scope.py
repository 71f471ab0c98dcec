"""The SELECTs of a statement and the tables that each reads, from tokens alone. Pure.

No parser outside DuckDB reads all statements in which an expression may stand (UPDATE, MERGE, CREATE VIEW, PREPARE,
…), so names are resolved as far as tokens allow: anything not known to be a plain table counts as a table with unknown
columns.
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
"""First words of statements in which `TABLE t` may stand anywhere."""
_COMBINED: Final = frozenset({"union", "except", "intersect", ";"})
_AFTER_QUERY: Final = frozenset({")", "", "union", "except", "intersect", "order", "limit", "offset"})
"""What may follow a query in parentheses within others."""
_CLAUSES: Final = frozenset(
    {"select", "from", "where", "group", "having", "window", "qualify", "order", "limit", "offset", "returning", "set"}
)
_FOLLOWING: Final = (
    "fetch join inner left right full outer cross natural semi anti asof positional on using union except intersect "
    "tablesample at pivot unpivot when with values"
)
_AFTER_TABLE: Final = _CLAUSES | frozenset(_FOLLOWING.split())
"""Words that begin what follows a table, and so are not an alias of it."""
_SCAN: Final = "lance_scan"
_MATCHING: Final = "__lance_matching"
_KEYS: Final = {"version": "version", "timestamp": "asof"}
_VERSIONS: Final = ("version", "tag", "asof", "branch")


@dataclass(frozen=True)
class Part:
    """A part of a list.

    Attributes:
        tokens: Tokens of the part.
        end: Where what follows it begins in the text; a token does not know the end of a number.
    """

    tokens: Sequence[Token]
    end: int

    @property
    def start(self) -> int:
        """Where it begins in the text."""
        return self.tokens[0].start if self.tokens else self.end

    @property
    def text(self) -> str:
        """The text as it is spelled, with a line break behind a comment."""
        text = self.tokens[0].source[self.start : self.end].rstrip() if self.tokens else ""
        return f"{text}\n" if "--" in text else text

    @property
    def string(self) -> str | None:
        """The string that it is; None for anything else."""
        text = self.tokens[0].text if len(self.tokens) == 1 else ""
        return text[1:-1].replace("''", "'") if text.startswith("'") else None

    @property
    def named(self) -> tuple[str | None, Part]:
        """The name of an argument (`name := value`, `name => value`), folded, None without one, and its value."""
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
        alias: Qualifier of its columns, without quotes; empty if there is none.
        name: Parts of its name; None where it has none, or is something else: a subquery, a function.
        path: Its path, if it is named by a path or read by `lance_scan`.
        version: The chosen version, as arguments of `lance_scan`.
        is_hidden: Whether no SELECT sees its columns. ON sees those on the right of a SEMI or ANTI JOIN.
        place: Tokens that say what is read, from the first one to that behind the last. None if an alias stands among
            or before them, and if only a name may stand there.
        end: The token after its alias.
        is_called: Whether the text gives it an alias.
        query: Tokens of the subquery or common table expression that it is, from the first one to that behind the last;
            None for others, and where its columns have other names.
        columns: The text of the `AskedColumns` that it has besides its own; None where it has none.
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
    """One SELECT, or a statement that changes a table.

    Attributes:
        outer: The enclosing scope, or None.
        start, end: Range of its tokens.
        tables: Tables that it reads, in order.
        clauses: The word that begins each clause, with the place of its token.
    """

    outer: Scope | None
    start: int
    end: int
    tables: list[TableRead] = field(default_factory=list)
    clauses: list[tuple[str, int]] = field(default_factory=list)

    def clause_of(self, place: int) -> tuple[str, int, int]:
        """Return the word of the clause that a token stands in, its first token behind the word, and its end."""
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
        """Return the scope that a token belongs to."""
        return self._of_tokens[place]

    def closer(self, opener: int) -> int:
        """Return the place of the parenthesis that closes another; the end of the text where none does."""
        return self._closers.get(opener, len(self.tokens))

    def opener_of(self, closer: int) -> int | None:
        """Return the position of the parenthesis that another closes. None for other tokens."""
        return next((opener for opener, close in self._closers.items() if close == closer), None)

    def opener(self, place: int) -> int:
        """Return the place of the parenthesis that a token stands in; -1 for none."""
        return self._openers[place]

    def word(self, place: int) -> str | None:
        """Return the word at a place."""
        return self.tokens[place].word if 0 <= place < len(self.tokens) else None

    def text(self, place: int) -> str:
        """Return the token at a place as it is spelled; empty beyond the end."""
        return self.tokens[place].text if 0 <= place < len(self.tokens) else ""

    def name(self, place: int) -> str | None:
        """Return the identifier at a place."""
        return self.tokens[place].name if 0 <= place < len(self.tokens) else None

    @property
    def tables(self) -> Iterator[TableRead]:
        """The tables of all scopes."""
        return (table for scope in dict.fromkeys(self._of_tokens) for table in scope.tables)

    def cte(self, name: str, place: int) -> CommonTable | None:
        """Return the common table expression that a name means where it stands; None where it means none."""
        visible = [cte for cte in self._ctes if cte.name == folded(name) and cte.start <= place < cte.end]
        return max(visible, key=lambda cte: cte.start, default=None)

    def readers(self, table_read: TableRead, replaced: Collection[int] = ()) -> list[tuple[Scope, TableRead]] | None:
        """Return all that read the query of a table, with the SELECTs that do; None where there may be more of them.

        Args:
            table_read: The table.
            replaced: Tokens that are replaced.
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
        """Return whether a query stands in the parentheses that begin at a place."""
        inner = opener
        while self.text(inner) == "(":
            inner += 1
        if inner == opener or self.text(inner + 1) == "." or not begins_query(self.tokens, inner):
            return False
        behind = (self.text(self.closer(at) + 1).lower() for at in range(opener + 1, inner))
        return all(text in _AFTER_QUERY for text in behind)  # else it is a join of subqueries

    def read_nested(self, opener: int, outer: Scope) -> None:
        """Read the query in parentheses."""
        self._read(opener + 1, self.closer(opener), outer)

    def _read(self, start: int, end: int, outer: Scope | None) -> None:
        """Read the SELECTs between two places, which set operations divide."""
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
        """Return whether a word is that of `* EXCEPT (a, b)`."""
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
        """A table may begin here."""
        self._is_hidden = False
        """The columns of the table that comes next are seen in ON alone."""
        self._lists: list[int] = []
        """Depths of the lists of tables that a place is in: after a comma there, a table follows."""
        self._item = {0: scope.start}
        """By depth, the token at which the current item of FROM began: FROM, a comma or a parenthesis."""
        self._awaits_using = False  # whether USING begins the tables of DELETE or MERGE
        self._pivot_ends = -1

    def read(self) -> None:
        """Read the scope, and the SELECTs within."""
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
        """Leave parentheses; return the place after them, or after the alias of a PIVOT."""
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
            elif word == "on" and not self._scope.clauses:  # PIVOT … ON a list of columns
                self._lists = []
            is_named = self._names_query(place, word)
            if word == "from" or is_named or self._names_target(place, word):
                self._lists, self._expects, self._is_hidden = [0], True, is_named
                self._item = {0: place}
            if word in ("from", "into", "using"):
                self._awaits_using = self._all.word(place - 1) in ("delete", "merge")

    def _pivot(self, place: int) -> None:
        """Hide the tables that a PIVOT in FROM turns: one table, a join in parentheses, or all of a longer join."""
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
        """Return whether a join without ON leads to the last table: PIVOT then turns all of the join."""
        *before, last = self._scope.tables
        tokens = range(before[-1].end if before else self._scope.start, last.end)
        return any(self._all.word(at) == "join" and self._all.word(at - 1) in _WITHOUT_ON for at in tokens)

    def _names_query(self, place: int, word: str) -> bool:
        """Return whether a table follows that is read without a SELECT: `TABLE t`, `DESCRIBE t`, `PIVOT t ON …`."""
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
        """Return whether the table that a statement changes follows, or what it is compared with."""
        before = self._all.word(place - 1)
        if word == "update":
            return before not in ("do", "then", "for")
        return (word == "using" and self._awaits_using) or (word, before) == ("into", "merge")

    def _is_inside(self, place: int) -> bool:
        """Return whether a word is a part of a name, or of IS [NOT] DISTINCT FROM."""
        before = self._all.word(place - 2)
        is_distinct = self._all.word(place - 1) == "distinct" and before in ("is", "not")
        return self._all.text(place - 1) == "." or is_distinct

    def _table(self, place: int) -> int:
        """Read a table and its alias; return the place after it."""
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
        """Read a (qualified) name, a path or a call; return the place after it."""
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
        """Read `AT (VERSION => …)`; return the place after it."""
        if self._all.word(place) != "at" or self._all.text(place + 1) != "(":
            return (), place
        close = self._all.closer(place + 1)
        key, arrow = _KEYS.get(self._all.word(place + 2) or ""), self._all.text(place + 3)
        if key is None or arrow != "=>" or close <= place + 4:
            return (), close + 1
        tokens = self._all.tokens
        return ((key, Part(tokens[place + 4 : close], tokens[close].start)),), close + 1

    def _alias(self, place: int) -> tuple[str | None, int]:
        """Read the alias of a table, or None; return the place after it."""
        if self._all.word(place) == "as":
            return self._all.name(place + 1), place + 2
        if self._all.name(place) is None or self._all.word(place) in _AFTER_TABLE:
            return None, place
        return self._all.name(place), place + 1


def _called(function: str, arguments: Sequence[Part]) -> TableRead:
    """Return the table that a call of a function gives."""
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
    """Return the parts of a list between two places, which commas divide; none of an empty one."""
    parts, place = [], begin
    for part in divided(tokens[begin:end], ",") if begin < end else ():
        place += len(part)
        follows = tokens[place].start if place < len(tokens) else len(tokens[0].source)
        parts.append(Part(part, follows))
        place += 1
    return parts


def is_colon(tokens: Sequence[Token], place: int) -> bool:
    """Return whether a colon stands at a place that is not part of `::` or `:=`."""
    if not 0 <= place < len(tokens) or tokens[place].text != ":":
        return False
    start, source = tokens[place].start, tokens[place].source
    return source[start + 1 : start + 2] not in (":", "=") and source[max(start - 1, 0) : start] != ":"
