"""Clauses of a statement, cut at its tokens.

A clause begins with one of some heads (`VALUES`, `ON CONFLICT`, …) outside of all parentheses, brackets and
CASE … END, and reaches up to the next one. What stands inside is left as it is: DuckDB reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.tokens import Token

Head = tuple[str, ...]
"""Words that a clause begins with, in lower case."""

_DEEPER: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CASE: Final = {"case": 1, "end": -1}


@dataclass(frozen=True)
class Clause:
    """A part of a statement.

    Attributes:
        head: The words that it begins with; empty for what comes before the first head.
        tokens: What follows them.
        start, end: Place of the part in the text, with its head.
    """

    head: Head
    tokens: tuple[Token, ...]
    start: int
    end: int

    @property
    def text(self) -> str:
        """What follows the head, as it is spelled, up to the next clause: spaces and comments are part of it."""
        return self.tokens[0].source[self.tokens[0].start : self.end] if self.tokens else ""


def clauses(tokens: Sequence[Token], heads: Collection[Head]) -> tuple[Clause, ...]:
    """Cut one statement into its clauses.

    Args:
        tokens: Of the statement, with the `;` that ends it where there is one: see `Statement.parts`.
        heads: Words that begin a clause; of two that fit, the longer one does.
    """
    if not tokens:
        return ()
    last = len(tokens[-1].source)
    if tokens[-1].text == ";":
        last, tokens = tokens[-1].start, tokens[:-1]
    by_length = sorted(heads, key=len, reverse=True)
    begins: list[tuple[int, Head]] = [(0, ())]
    for at in _outside(tokens):
        if at < begins[-1][0] + len(begins[-1][1]) or (at and tokens[at - 1].text == "."):
            continue
        head = next((head for head in by_length if _stands(tokens, at, head)), None)
        if head is not None:
            begins.append((at, head))
    if len(begins) > 1 and begins[1][0] == 0:
        del begins[0]
    ends = [at for at, _ in begins[1:]] + [len(tokens)]
    return tuple(
        Clause(head, tuple(tokens[at + len(head) : end]), tokens[at].start, _start(tokens, end, last))
        for (at, head), end in zip(begins, ends, strict=True)
    )


def divided(tokens: Sequence[Token], separator: str) -> list[Sequence[Token]]:
    """Divide tokens at each separator that stands outside of all parentheses, brackets and CASE … END."""
    parts, first = [], 0
    for at in _outside(tokens):
        if tokens[at].text == separator:
            parts.append(tokens[first:at])
            first = at + 1
    return [*parts, tokens[first:]]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the place of the token that closes a parenthesis or bracket; None where none does.

    Args:
        tokens: Of the statement.
        opening: Place of the token that opens it.
    """
    depth = 0
    for at in range(opening, len(tokens)):
        depth += _DEEPER.get(tokens[at].text, 0)
        if depth == 0:
            return at
    return None


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places of tokens outside of all parentheses, brackets and CASE … END."""
    depth = cases = 0
    for at, token in enumerate(tokens):
        depth += _DEEPER.get(token.text, 0)
        if token.word in _CASE and not (at and tokens[at - 1].text == "."):
            cases = max(0, cases + _CASE[token.word]) if token.word == "end" else cases + 1
        if depth == 0 and cases == 0:
            yield at


def _stands(tokens: Sequence[Token], at: int, head: Head) -> bool:
    return tuple(token.word for token in tokens[at : at + len(head)]) == head


def _start(tokens: Sequence[Token], at: int, last: int) -> int:
    return tokens[at].start if at < len(tokens) else last
