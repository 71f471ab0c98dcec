"""The head of a statement that changes a table.

[EXPLAIN [ANALYZE | (options)]] [WITH [RECURSIVE] name AS (…), …] verb …
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.clauses import Clauses

VERBS: Final = frozenset({"insert", "update", "delete", "merge", "truncate"})


@dataclass(frozen=True)
class StatementHead:
    """A statement, and what stands before its verb.

    Attributes:
        explain: The words of an EXPLAIN, or nothing.
        ctes: WITH and its tables, or nothing.
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
    """Return whether a statement begins at a place after WITH: a verb at depth 0 after the closing parenthesis."""
    word = rest.word(place)
    return rest.depths[place] == 0 and word is not None and rest.text_at(place - 1) == ")" and word in _BODIES


_BODIES: Final = VERBS | {"select", "from", "values", "table", "pivot", "unpivot", "summarize", "describe"}
