"""Classify statements by their first words.

[comments, blanks, ;] [EXPLAIN [ANALYZE | (options)]] word [word …] …  →  StatementKind
[EXPLAIN …] [WITH …] verb …                                            →  StatementHead
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.scan.sql.tokens import COMMENT


class StatementKind(Enum):
    """The kind of a statement."""

    BEGIN = auto()
    COMMIT = auto()
    ROLLBACK = auto()
    PREPARED = auto()
    """Creates, runs or drops a prepared statement."""
    SETTING = auto()
    NAMING = auto()
    """Changes how names are resolved."""
    EXTENSION = auto()
    """Installs or loads a DuckDB extension."""
    FILES = auto()
    """Reads or writes files."""
    UPKEEP = auto()
    """Always concerns Lance tables, never native tables."""
    ROWS = auto()
    """Reads rows, or changes the rows of one table."""
    OTHER = auto()


KINDS: Final[Mapping[str, StatementKind]] = {
    "begin": StatementKind.BEGIN,
    "start": StatementKind.BEGIN,
    "commit": StatementKind.COMMIT,
    "end": StatementKind.COMMIT,
    "rollback": StatementKind.ROLLBACK,
    "abort": StatementKind.ROLLBACK,
    "prepare": StatementKind.PREPARED,
    "execute": StatementKind.PREPARED,
    "deallocate": StatementKind.PREPARED,
    "set": StatementKind.SETTING,
    "reset": StatementKind.SETTING,
    "pragma": StatementKind.SETTING,
    "use": StatementKind.NAMING,
    "attach": StatementKind.NAMING,
    "detach": StatementKind.NAMING,
    "alter database": StatementKind.NAMING,
    "install": StatementKind.EXTENSION,
    "load": StatementKind.EXTENSION,
    "force": StatementKind.EXTENSION,
    "copy": StatementKind.FILES,
    "export": StatementKind.FILES,
    "optimize": StatementKind.UPKEEP,
    "reindex": StatementKind.UPKEEP,
    "replace": StatementKind.UPKEEP,
    "show index": StatementKind.UPKEEP,
    "show indexes": StatementKind.UPKEEP,
    "show maintenance": StatementKind.UPKEEP,
    "select": StatementKind.ROWS,
    "from": StatementKind.ROWS,
    "insert": StatementKind.ROWS,
    "update": StatementKind.ROWS,
    "delete": StatementKind.ROWS,
    "merge": StatementKind.ROWS,
}
"""Statement kinds, keyed by the first word or the first two words."""

_SKIPPED: Final = rf"(?:\s|;|{COMMENT})*+"
"""Comments, blanks and semicolons before a statement and between its words."""
_FIRST: Final = re.compile(
    rf"{_SKIPPED}(?P<explain>explain\b{_SKIPPED}(?:\([^()]*\)(?={_SKIPPED}[\w(])|analyze\b)?{_SKIPPED}(?=[\w(]))?"
    rf"(?P<word>[^\W\d]\w*)?(?:{_SKIPPED}(?P<second>[^\W\d]\w*))?",
    re.IGNORECASE,
)
_CACHED: Final = 512


@dataclass(frozen=True)
class FirstWords:
    """The first words of the first statement in a text.

    Attributes:
        kind: Kind of the statement.
        word: First word after EXPLAIN, in lower case. Empty if no word follows.
        explain: Source text of EXPLAIN with its options. Empty for other statements.
        start: Position of the word, in characters.
    """

    kind: StatementKind
    word: str
    explain: str
    start: int

    @classmethod
    def of(cls, sql: str) -> FirstWords:
        """Read the first words of a text. Cached unless the text is long."""
        return _cached(sql) if len(sql) <= LONGEST else _read(sql)


def _read(sql: str) -> FirstWords:
    match = _FIRST.match(sql)
    assert match is not None, "every part of the pattern is optional"
    word, second = (match["word"] or "").lower(), (match["second"] or "").lower()
    kind = KINDS.get(word) or KINDS.get(f"{word} {second}", StatementKind.OTHER)
    explain = match["explain"] or ""
    start = match.start("word") if match["word"] else match.start("explain") + len(explain) if explain else match.end()
    return FirstWords(kind, word, explain, start)


@lru_cache(maxsize=_CACHED)
def _cached(sql: str) -> FirstWords:
    return _read(sql)


VERBS: Final = frozenset({"insert", "update", "delete", "merge", "truncate"})


@dataclass(frozen=True)
class StatementHead:
    """A statement in three parts.

    Attributes:
        explain: EXPLAIN with its options, or empty.
        ctes: WITH and its tables, or empty.
        body: The statement from its verb on.
    """

    explain: Clauses
    ctes: Clauses
    body: Clauses

    @property
    def verb(self) -> str | None:
        """The first word of the statement itself."""
        return self.body.word(0)

    @classmethod
    def of(cls, statement: Clauses) -> StatementHead:
        """Read the head of a statement."""
        after = _after_explain(statement)
        explain, rest = statement.part(0, after), statement.part(after)
        place = 0
        if rest.word(0) == "with":
            place = next((i for i in range(1, len(rest)) if _begins_body(rest, i)), 0)
        return cls(explain, rest.part(0, place), rest.part(place))


def _after_explain(statement: Clauses) -> int:
    if statement.word(0) != "explain":
        return 0
    if statement.text_at(1) == "(":
        return statement.closer(1) + 1
    return 2 if statement.word(1) == "analyze" else 1


def _begins_body(rest: Clauses, place: int) -> bool:
    """Return whether a token after WITH begins the statement: a verb at depth 0 after a closing parenthesis."""
    word = rest.word(place)
    return rest.depths[place] == 0 and word is not None and rest.text_at(place - 1) == ")" and word in _BODIES


_BODIES: Final = VERBS | {"select", "from", "values", "table", "pivot", "unpivot", "summarize", "describe"}
