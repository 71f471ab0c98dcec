"""Cached analysis of the text of one or more statements."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import SqlglotError

from lance_duck.duck.statement.deterministic_sql import Node
from lance_duck.duck.statement.edits import Edit, EditedText
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.nearest_clause import KNOWS_NEAREST, NearestClause, nearest_clauses
from lance_duck.duck.statement.placeholders import placeholders_in
from lance_duck.duck.statement.scope import Scopes
from lance_duck.duck.statement.tokens import LONGEST, Token, edited, tokens_of

LONGEST_TREE: Final = 100_000
"""Maximum length of a parsed statement, in characters."""
_CACHED: Final = 512
_DOLLAR_FOLLOWS: Final = re.compile(r"[^\s$?]*[$?]")
"""Matches characters directly before `$`, or before a `?` that becomes `$`."""
_SELECTS: Final = ("select", "from", "with")


class _AsWritten(DuckDB):
    """DuckDB's dialect, with JSON paths as they are written. sqlglot reads the key 'a.b' as the path '$.a.b'."""

    def to_json_path(self, path: Any) -> Any:
        """Return the path unchanged."""
        return path


class Statement:
    """A statement with its tokens, placeholders and tree. Each attribute is computed once, on first use.

    Args:
        text: The statement, without long number lists. See `LiftedText`.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._results: dict[Any, Any] = {}

    @classmethod
    def of(cls, text: str) -> Statement:
        """Return the statement for a text. Recent statements are cached, unless they are long."""
        return _statement(text) if len(text) <= LONGEST else cls(text)

    def result(self, key: Any, read: Callable[[Statement], Any]) -> Any:
        """Return the result of a function on the statement. The result is cached, and computing it drops `tree`."""
        if key not in self._results:
            self._results[key] = read(self)
            self.__dict__.pop("tree", None)
        return self._results[key]

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """Tokens without comments. Empty if DuckDB cannot tokenize the text."""
        return tokens_of(self.text)

    @cached_property
    def names(self) -> frozenset[str]:
        """All words and quoted names, folded as DuckDB folds identifiers."""
        return frozenset(folded(token.name) for token in self.tokens if token.name is not None)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """String constants that end in `.lance`."""
        return tuple(token.path for token in self.tokens if token.path is not None)

    @cached_property
    def marks(self) -> tuple[int, ...]:
        """Positions of the `?` placeholders, in characters."""
        return tuple(token.start for token in self.tokens if token.text == "?")

    @cached_property
    def nearest(self) -> tuple[NearestClause, ...]:
        """NEAREST clauses of joins."""
        return nearest_clauses(self.text, self.tokens)

    @cached_property
    def parts(self) -> tuple[tuple[Token, ...], ...]:
        """Tokens of each statement in the text, with its final `;`."""
        parts: list[tuple[Token, ...]] = []
        first = 0
        for at, token in enumerate(self.tokens, 1):
            if token.text == ";" or at == len(self.tokens):
                if self.tokens[first].text != ";":
                    parts.append(self.tokens[first:at])
                first = at
        return tuple(parts)

    @cached_property
    def scopes(self) -> Scopes:
        """The SELECTs of the text and the tables that each reads."""
        return Scopes(self.tokens)

    @cached_property
    def opening(self) -> Opening | None:
        """Words before the SELECT, or None if the text is not a single statement with a SELECT."""
        return Opening.of(self.parts[0]) if len(self.parts) == 1 else None

    @cached_property
    def for_sqlglot(self) -> EditedText:
        """The text for sqlglot, with `$1`, `$2`, … instead of `?` and calls instead of NEAREST clauses.

        A space follows each placeholder, because sqlglot reads `$1,$` as the start of a string.
        """
        nearest = (edit for number, clause in enumerate(self.nearest) for edit in clause.reading(number))
        return EditedText.of(self.text, (*nearest, *self._numbers(), *self._blanks()))

    @cached_property
    def numbered(self) -> str:
        """The text with `$1`, `$2`, … instead of `?`."""
        return edited(self.text, self._numbers())

    @cached_property
    def readable(self) -> str:
        """The numbered text in the syntax of this DuckDB version."""
        nearest = () if KNOWS_NEAREST else (edit for clause in self.nearest for edit in clause.as_lateral())
        return edited(self.text, (*nearest, *self._numbers()))

    def _numbers(self) -> list[Edit]:
        return [Edit(mark, mark + 1, f"${number}") for number, mark in enumerate(self.marks, 1)]

    def _blanks(self) -> list[Edit]:
        """Return edits that insert a space after each placeholder directly followed by `$`."""
        places = [(mark, mark + 1) for mark in self.marks]
        if "$" in self.text:
            places += [span for _, span in placeholders_in(self.tokens)]
        return [Edit(end, end, " ") for _, end in places if _DOLLAR_FOLLOWS.match(self.text, end) is not None]

    @cached_property
    def tree(self) -> Node | None:
        """The sqlglot tree of the SELECT. None without a SELECT, for a long text, or if sqlglot cannot parse it."""
        if self.opening is None or len(self.text) > LONGEST_TREE:
            return None
        try:
            trees = [tree for tree in sqlglot.parse(self._blanked, read=_AsWritten) if tree is not None]
        except (SqlglotError, RecursionError):
            return None
        return trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Query) else None

    def place(self, table: exp.Table) -> tuple[int, int]:
        """Return the start and end of a qualified table name in the text, in characters.

        Raises:
            LookupError: Sqlglot does not report the position of the name.
        """
        first, last = table.parts[0].meta["start"], table.parts[-1].meta["end"]
        return self.for_sqlglot.origin(first), self.for_sqlglot.origin(last) + 1

    @property
    def _blanked(self) -> str:
        """The text for sqlglot, with everything before the SELECT replaced by spaces."""
        start = self.opening.end if self.opening is not None else 0
        return " " * start + self.for_sqlglot.text[start:]


@dataclass(frozen=True)
class Opening:
    """Words before a SELECT: `EXPLAIN [ANALYZE]`, `CREATE TABLE … AS`, `INSERT INTO …`, or nothing.

    Attributes:
        end: Start of the SELECT, in characters.
        first: First word of the SELECT.
        explained: Whether the statement begins with EXPLAIN.
        stores: Whether the rows are written to a table.
    """

    end: int
    first: str
    explained: bool
    stores: bool

    @classmethod
    def of(cls, tokens: tuple[Token, ...]) -> Opening | None:
        """Read the opening of one statement. Returns None if no SELECT follows."""
        words = [token.word for token in tokens[:16]]
        at = 0
        explained = words[:1] == ["explain"]
        if explained:
            at = 2 if words[1:2] == ["analyze"] else 1
        begin = at
        if words[at : at + 1] == ["create"]:
            at += 3 if words[at + 1 : at + 3] == ["or", "replace"] else 1
            at += words[at : at + 1] in (["temp"], ["temporary"])
            at = _after_name(tokens, at + 1, "as") if words[at : at + 1] == ["table"] else len(tokens)
        elif words[at : at + 2] == ["insert", "into"]:
            at = _after_name(tokens, at + 2, None)
        if at >= len(tokens) or tokens[at].word not in _SELECTS:
            return None
        return cls(tokens[at].start, str(tokens[at].word), explained, at > begin)


def _after_name(tokens: tuple[Token, ...], at: int, word: str | None) -> int:
    """Return the token after an unquoted qualified name and a word, or the end if they do not follow."""
    while at < len(tokens) and tokens[at].word is not None:
        at += 1
        if at >= len(tokens) or tokens[at].text != ".":
            break
        at += 1
    else:
        return len(tokens)
    if word is None:
        return at
    return at + 1 if at < len(tokens) and tokens[at].word == word else len(tokens)


@lru_cache(maxsize=_CACHED)
def _statement(text: str) -> Statement:
    return Statement(text)
