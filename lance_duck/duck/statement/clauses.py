"""Split statements into clauses, based on DuckDB's tokens.

Only DuckDB's parser reads statements that change tables correctly. This module only finds clause boundaries: words
outside of parentheses, brackets, braces and CASE … END. DuckDB parses the text of each clause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.tokens import LONGEST, Token, tokens_of
from lance_duck.store import split_place

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
_DEEPER: Final = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_CASE: Final = {"case": 1, "end": -1}
_SEPARATORS: Final = frozenset({",", ";"})
_CACHED: Final = 256


@dataclass(frozen=True)
class Clauses:
    """A range of a statement: its tokens and their nesting depths.

    Attributes:
        sql: The whole text.
        tokens: The tokens of the range.
        depths: Number of parentheses, brackets, braces and CASE … END around each token. Opening and closing tokens
            have the depth of the text around them.
        end: End of the range in the text, in characters.
    """

    sql: str
    tokens: Sequence[Token]
    depths: Sequence[int]
    end: int

    @classmethod
    def of(cls, sql: str) -> Clauses:
        """Tokenize a text. Empty if DuckDB cannot tokenize it. Cached unless the text is long."""
        return _cut(sql) if len(sql) <= LONGEST else cls.over(sql, tokens_of(sql))

    @classmethod
    def over(cls, sql: str, tokens: Sequence[Token]) -> Clauses:
        """Return the clauses of a tokenized text."""
        return cls(sql, tokens, _depths(tokens), len(sql))

    def __len__(self) -> int:
        return len(self.tokens)

    def word(self, place: int) -> str | None:
        """Return the word of a token in lower case, or None if the token is not a word or does not exist."""
        return self.tokens[place].word if 0 <= place < len(self) else None

    def text_at(self, place: int) -> str:
        """Return the source text of a token. Empty beyond the end."""
        return self.tokens[place].text if 0 <= place < len(self) else ""

    def says(self, place: int, *words: str) -> bool:
        """Return whether the tokens from this position on are exactly these words."""
        for at, word in enumerate(words, place):  # noqa: SIM110  a generator is slower than this loop
            if self.word(at) != word:
                return False
        return True

    def find(self, *words: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first token at depth 0 that begins this sequence of words, or -1."""
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
        """Return whether a word belongs to a qualified name or to IS [NOT] DISTINCT FROM."""
        before = self.word(place - 2)
        is_distinct = self.says(place - 1, "distinct", "from") and before in ("is", "not")
        return self.text_at(place - 1) == "." or is_distinct

    def closer(self, place: int) -> int:
        """Return the closing token for an opening token, or the token count if it is missing."""
        depth = self.depths[place]
        inner = (i for i in range(place + 1, len(self)) if self.depths[i] == depth)
        return next(inner, len(self))

    def part(self, start: int, stop: int | None = None) -> Clauses:
        """Return the tokens from `start` to before `stop`."""
        stop = len(self) if stop is None else min(stop, len(self))
        start = min(start, stop)
        base = min(self.depths[start:stop], default=0)
        end = self.tokens[stop].start if stop < len(self) else self.end
        return Clauses(self.sql, self.tokens[start:stop], [depth - base for depth in self.depths[start:stop]], end)

    @property
    def start(self) -> int:
        """Start of the range in the text, in characters."""
        return self.tokens[0].start if self.tokens else self.end

    @cached_property
    def text(self) -> str:
        """The text of the range with a final newline, because it may end with a comment."""
        return self.sql[self.start : self.end].rstrip() + "\n" if self.tokens else ""

    def edited(self, edits: Iterable[Edit]) -> str:
        """Return the edited text of the range. Edit offsets refer to the whole text."""
        start = self.start
        return apply(self.text, (Edit(edit.start - start, edit.end - start, edit.text) for edit in edits))

    def split(self, separator: str = ",") -> list[Clauses]:
        """Split the range at separators at depth 0. Returns an empty list for an empty range."""
        return list(self._pieces(lambda token: token.text == separator)) if self.tokens else []

    def cut(self, *beginnings: str, start: int = 0) -> list[Clauses] | None:
        """Cut the tokens from `start` on into clauses.

        Args:
            beginnings: First words of each clause, in the order of the clauses.
            start: First token.

        Returns:
            One range per clause, empty if the clause is missing. None if the first token does not begin a clause.
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
    """Return the non-empty statements of a text."""
    return [part for part in Clauses.of(sql).split(";") if part.tokens]


@dataclass(frozen=True)
class TableName:
    """The mention of a table in a statement.

    Attributes:
        parts: Parts of its qualified name. For a path, only the table name.
        path: The path, if the statement refers to the table by path.
        first: Its first token.
        after: The token after it.
    """

    parts: tuple[str, ...]
    path: str | None
    first: int
    after: int

    @classmethod
    def at(cls, clauses: Clauses, place: int) -> TableName | None:
        """Parse the name that begins at a token. Returns None if the token is not a name."""
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
        """The name of the table without qualifiers."""
        return self.parts[-1]

    def alias(self, clauses: Clauses, *ends: str) -> tuple[str, int]:
        """Return the alias of the table, or its name, and the token after it.

        Args:
            clauses: The tokens that contain the name.
            ends: Words that may follow the name and are not an alias.
        """
        place = self.after + (clauses.word(self.after) == "as")
        name = clauses.tokens[place].name if place < len(clauses) else None
        if name is None or (place == self.after and clauses.word(place) in ends):
            return self.name, self.after
        return name, place + 1


def stem(path: str) -> str:
    """Return the name of the table at a path: the last part without its extension."""
    return split_place(path)[1].rpartition(".")[0]


def divided(tokens: Sequence[Token], separator: str) -> list[Sequence[Token]]:
    """Split tokens at each separator outside all parentheses, brackets and CASE … END."""
    parts, first = [], 0
    for at in _outside(tokens):
        if tokens[at].text == separator:
            parts.append(tokens[first:at])
            first = at + 1
    return [*parts, tokens[first:]]


def closing(tokens: Sequence[Token], opening: int) -> int | None:
    """Return the token that closes a parenthesis or bracket, or None.

    Args:
        tokens: Tokens of the statement.
        opening: The token that opens it.
    """
    depth = 0
    for at in range(opening, len(tokens)):
        depth += _DEEPER.get(tokens[at].text, 0)
        if depth == 0:
            return at
    return None


def _outside(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the positions of the tokens outside all parentheses, brackets and CASE … END."""
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
    """Return whether the word CASE begins an expression. Otherwise, it is a name."""
    after = tokens[place + 1].text if place + 1 < len(tokens) else ";"
    before = tokens[place - 1].text if place else ""
    return before != "." and after not in _SEPARATORS and after not in _CLOSE and after not in (".", "=")
