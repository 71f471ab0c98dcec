"""Clauses of a statement, cut by DuckDB's own tokens.

No parser outside DuckDB reads statements that change tables correctly. The content of a clause stays text, which
DuckDB reads; only the limits of clauses are decided here: by words outside parentheses, brackets, braces
and CASE … END.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from lance_duck.duck.statement.tokens import LONGEST, Token, tokens_of
from lance_duck.store import split_place

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_DEEPER: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CASE: Final = {"case": 1, "end": -1}
_SEPARATORS: Final = frozenset({",", ";"})
_CACHED: Final = 256


@dataclass(frozen=True)
class Clauses:
    """A part of a statement as tokens, each with the depth that it stands at.

    Attributes:
        sql: The whole text.
        tokens: The tokens of the part.
        depths: Parentheses, brackets, braces and CASE … END around each token; an opening token stands outside of
            what it opens, and so does the one that closes it.
        end: End of the part in the text.
    """

    sql: str
    tokens: Sequence[Token]
    depths: Sequence[int]
    end: int

    @classmethod
    def of(cls, sql: str) -> Clauses:
        """Cut a text; one that DuckDB cannot cut has no tokens. Short ones are remembered."""
        return _cut(sql) if len(sql) <= LONGEST else cls.over(sql, tokens_of(sql))

    @classmethod
    def over(cls, sql: str, tokens: Sequence[Token]) -> Clauses:
        """Return the clauses of a text whose tokens are known."""
        return cls(sql, tokens, _depths(tokens), len(sql))

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, place: int) -> str | None:
        """Return the word at a place, in lower case; None for a token of another kind, and beyond the end."""
        return self.tokens[place].word if 0 <= place < len(self) else None

    def text_at(self, place: int) -> str:
        """Return the first characters of the token at a place as they are spelled; empty beyond the end."""
        return self.tokens[place].text if 0 <= place < len(self) else ""

    def says(self, place: int, *words: str) -> bool:
        """Return whether these words stand at a place, one after the other."""
        for at, word in enumerate(words, place):  # noqa: SIM110  a generator takes longer than the rest
            if self.word(at) != word:
                return False
        return True

    def find(self, *words: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first place at depth 0 where these words stand one after the other; -1 if there is none."""
        first, tokens, depths = words[0], self.tokens, self.depths
        for place in range(start, len(self) if stop is None else stop):
            if (
                depths[place] == 0
                and tokens[place].word == first
                and self.says(place, *words)
                and not self._is_inside(place)
            ):
                return place
        return -1

    def _is_inside(self, place: int) -> bool:
        """Return whether the word at a place is a part of a name or of IS [NOT] DISTINCT FROM."""
        before = self.word(place - 2)
        is_distinct = self.says(place - 1, "distinct", "from") and before in ("is", "not")
        return self.text_at(place - 1) == "." or is_distinct

    def closer(self, place: int) -> int:
        """Return the place of the token that closes what the token at a place opens; the end if none does."""
        depth = self.depths[place]
        inner = (i for i in range(place + 1, len(self)) if self.depths[i] == depth)
        return next(inner, len(self))

    def part(self, start: int, stop: int | None = None) -> Clauses:
        """Return the tokens from one place to before another as a part of its own."""
        stop = len(self) if stop is None else min(stop, len(self))
        start = min(start, stop)
        base = min(self.depths[start:stop], default=0)
        end = self.tokens[stop].start if stop < len(self) else self.end
        return Clauses(self.sql, self.tokens[start:stop], [depth - base for depth in self.depths[start:stop]], end)

    @property
    def start(self) -> int:
        """Where the part begins in the text."""
        return self.tokens[0].start if self.tokens else self.end

    @cached_property
    def text(self) -> str:
        """The text from the first token to the end of the part, with a newline: a comment may stand at its end."""
        return self.sql[self.start : self.end].rstrip() + "\n" if self.tokens else ""

    def split(self, separator: str = ",") -> list[Clauses]:
        """Return the parts between separators at depth 0; none for a part without tokens."""
        return list(self._pieces(lambda token: token.text == separator)) if self.tokens else []

    def cut(self, *beginnings: str, start: int = 0) -> list[Clauses] | None:
        """Cut what follows a place into clauses.

        Args:
            beginnings: The words that clauses begin with, in the order of the clauses.
            start: The place.

        Returns:
            A part for each beginning, which is empty for a clause that is not there; None if what follows the place
            does not begin with one of them.
        """
        places, at = [], start
        for words in beginnings:
            place = self.find(*words.split(), start=at)
            places.append(place)
            at = max(at, place + 1)
        present = [place for place in places if place >= 0]
        if present[:1] != [start] and start < len(self):
            return None
        after = dict(zip(present, [*present[1:], len(self)], strict=False))
        return [self.part(place, after[place]) if place >= 0 else self.part(len(self)) for place in places]

    def _pieces(self, divides: Callable[[Token], bool]) -> Iterator[Clauses]:
        start = 0
        for place, token in enumerate(self.tokens):
            if self.depths[place] == 0 and divides(token):
                yield self.part(start, place)
                start = place + 1
        yield self.part(start)


@lru_cache(maxsize=_CACHED)
def _cut(sql: str) -> Clauses:
    return Clauses.over(sql, tokens_of(sql))


def statements_of(sql: str) -> list[Clauses]:
    """Return the statements of a text, without those that hold no token."""
    return [part for part in Clauses.of(sql).split(";") if part.tokens]


@dataclass(frozen=True)
class TableName:
    """A table as a statement names it.

    Attributes:
        parts: The parts of its (qualified) name; for a path the name of the table in it alone.
        path: Its path, if it is named by that.
        first: Place of the first token.
        after: Place of the token after it.
    """

    parts: tuple[str, ...]
    path: str | None
    first: int
    after: int

    @classmethod
    def at(cls, clauses: Clauses, place: int) -> TableName | None:
        """Read the name that begins at a place; None if there is none."""
        tokens = clauses.tokens
        if place >= len(tokens):
            return None
        path = tokens[place].path
        if path is not None:
            return cls((stem(path),), path, place, place + 1)
        parts, at = [], place
        while at < len(tokens) and (name := tokens[at].name) is not None:
            parts.append(name)
            if clauses.text_at(at + 1) != ".":
                return cls(tuple(parts), None, place, at + 1)
            at += 2
        return None

    @property
    def name(self) -> str:
        """The name of the table without what qualifies it."""
        return self.parts[-1]

    def alias(self, clauses: Clauses, *ends: str) -> tuple[str, int]:
        """Return what the statement calls the table, and the place after that.

        Args:
            clauses: Where the name stands.
            ends: Words that begin what may follow, and so are not an alias.
        """
        place = self.after + (clauses.word(self.after) == "as")
        name = clauses.tokens[place].name if place < len(clauses) else None
        if name is None or (place == self.after and clauses.word(place) in ends):
            return self.name, self.after
        return name, place + 1


def stem(path: str) -> str:
    """Return the name of the table at a path: its last part without the ending."""
    return split_place(path)[1].rpartition(".")[0]


def divided(tokens: Sequence[Token], separator: str) -> list[Sequence[Token]]:
    """Divide tokens at each separator that stands outside all parentheses, brackets and CASE … END."""
    parts, first = [], 0
    for at in _outside(tokens):
        if tokens[at].text == separator:
            parts.append(tokens[first:at])
            first = at + 1
    return [*parts, tokens[first:]]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the place of the token that closes a parenthesis or bracket; None where none does.

    Args:
        tokens: Tokens of the statement.
        opening: Place of the token that opens it.
    """
    depth = 0
    for at in range(opening, len(tokens)):
        depth += _DEEPER.get(tokens[at].text, 0)
        if depth == 0:
            return at
    return None


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places of tokens outside all parentheses, brackets and CASE … END."""
    depth = cases = 0
    for at, token in enumerate(tokens):
        depth += _DEEPER.get(token.text, 0)
        if token.word in _CASE and not (at and tokens[at - 1].text == "."):
            cases = max(0, cases + _CASE[token.word]) if token.word == "end" else cases + 1
        if depth == 0 and cases == 0:
            yield at


def _depths(tokens: Sequence[Token]) -> list[int]:
    depths: list[int] = []
    cases: list[int] = []
    depth = 0
    for place, token in enumerate(tokens):
        text = token.text
        is_end = token.word == "end" and cases[-1:] == [depth] and tokens[place - 1].text != "."
        if text in _CLOSE or is_end:
            depth = max(0, depth - 1)
            if is_end:
                cases.pop()
        depths.append(depth)
        if text in _OPEN:
            depth += 1
        elif token.word == "case" and _begins_case(tokens, place):
            depth += 1
            cases.append(depth)
    return depths


def _begins_case(tokens: Sequence[Token], place: int) -> bool:
    """Return whether the word CASE begins an expression, and is not a name."""
    after = tokens[place + 1].text if place + 1 < len(tokens) else ";"
    before = tokens[place - 1].text if place else ""
    return before != "." and after not in _SEPARATORS and after not in _CLOSE and after not in (".", "=")
