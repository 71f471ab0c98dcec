"""Substrings of every text that matches a LIKE pattern, a GLOB pattern or a regular expression.

Texts that do not match may also contain these substrings. Regular expressions are parsed with a small subset of RE2's
grammar. Expressions outside this subset yield an empty result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.text.needles import certain_words


@dataclass(frozen=True)
class Parts:
    """The substrings (parts) that matching texts contain.

    Attributes:
        alternatives: Alternatives of several parts each. A matching text contains all parts of at least one of them.
        any_case: Whether upper and lower case count as equal.
    """

    alternatives: tuple[tuple[str, ...], ...]
    any_case: bool = False

    def words(self) -> list[tuple[str, ...]] | None:
        """Return the `certain_words` of each alternative. Returns None if an alternative has no certain words."""
        each = [
            tuple(dict.fromkeys(word for part in parts for word in certain_words(part, any_case=self.any_case)))
            for parts in self.alternatives
        ]
        return each if each and all(each) else None


def like_parts(pattern: str, escape: str = "") -> tuple[str, ...]:
    """Return substrings that every text that matches a LIKE pattern contains.

    Args:
        pattern: The pattern.
        escape: The character that makes the next one literal, or "".
    """
    return tuple(re.split(f"[%_{re.escape(escape)}]", pattern))


def glob_parts(pattern: str) -> tuple[str, ...]:
    """Return substrings of every text that matches a GLOB pattern. Empty if the pattern has sets or escapes."""
    return () if set(pattern) & set("[]\\") else tuple(re.split("[*?]", pattern))


def regex_parts(pattern: str, *, any_case: bool = False) -> Parts:
    """Return substrings that every text that matches a regular expression contains. The syntax is RE2's."""
    reader = _RegexReader(pattern)
    try:
        alternatives = reader.whole()
        pc.match_substring_regex(_ANY_TEXT, pattern)  # raises if RE2 rejects an expression that the reader accepts
    except (_UnknownError, RecursionError, UnicodeError, pa.ArrowInvalid):
        return Parts(_NOTHING)
    return Parts(alternatives, any_case or reader.any_case)


class _UnknownError(Exception):
    """The expression contains an unsupported construct."""


_Alternatives = tuple[tuple[str, ...], ...]

_NOTHING: Final[_Alternatives] = ((),)
_ANY_TEXT: Final = pa.array([""])
_MOST: Final = 16
"""Maximum number of alternatives in an expression. With more, parts are not extracted."""

_DEEPEST: Final = 50
"""Maximum depth of groups in an expression. With more, parts are not extracted."""

_REPEATED: Final = re.compile(r"(?:[*+?]|\{([0-9]+)(?:,[0-9]*)?\})\??")
_FLAG: Final = re.compile(r"\(\?(?P<on>[imsU]*)(?:-[imsU]+)?\)")
_GROUP: Final = re.compile(r"\((?:\?(?:P<\w+>|(?P<on>[imsU]*)(?:-[imsU]+)?:))?(?!\?)")
_SET: Final = re.compile(r"\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]", re.DOTALL)
_CLASS: Final = re.compile(r"\\(?:[dDwWsSbBAzCafnrtv]|[pP](?:\{\^?\w+\}|[A-Z])|x(?:\{[0-9a-fA-F]+\}|[0-9a-fA-F]{2}))")
_PUNCTUATION: Final = re.compile(r"\\([^\w\s])", re.ASCII)


class _RegexReader:
    """A reader of one regular expression.

    Attributes:
        any_case: Whether a flag anywhere in the expression ignores case.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self.any_case = False

    def whole(self) -> _Alternatives:
        """Return the alternatives of the whole expression."""
        result = self._alternation(0)
        if self._at < len(self._pattern):
            raise _UnknownError
        return result

    def _alternation(self, depth: int) -> _Alternatives:
        if depth > _DEEPEST:
            raise _UnknownError
        result = self._sequence(depth)
        while self._takes("|"):
            result = (*result, *self._sequence(depth))
        return result if len(result) <= _MOST else _NOTHING

    def _sequence(self, depth: int) -> _Alternatives:
        """Return the alternatives of the sequence that ends at the next `|` or `)`, or at the end of the pattern."""
        result: _Alternatives = _NOTHING
        run = ""
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            if self._takes_flag():
                continue
            atom, is_literal = self._atom(depth)
            least = self._least()
            if is_literal and least == 1:
                run += atom[0][0]
                continue
            literal = run + atom[0][0] if is_literal and least else run
            result = _both(result, ((literal,),))
            run = ""
            if least and not is_literal:
                result = _both(result, atom)
        return _both(result, ((run,),))

    def _atom(self, depth: int) -> tuple[_Alternatives, bool]:
        """Return the alternatives of the next atom, and whether it is one literal character."""
        text, at = self._pattern, self._at
        if text[at] == "(":
            return self._group(depth), False
        match = _SET.match(text, at) or _CLASS.match(text, at)
        if match is not None:
            self._at = match.end()
            return _NOTHING, False
        match = _PUNCTUATION.match(text, at)
        if match is not None:
            self._at = match.end()
            return ((match[1],),), True
        if text[at] in "\\[*+?":
            raise _UnknownError
        self._at += 1
        return (_NOTHING, False) if text[at] in ".^$" else (((text[at],),), True)

    def _takes_flag(self) -> bool:
        """Skip flags such as `(?i)`. Returns False if the expression does not continue with flags.

        If a quantifier follows flags, RE2 repeats the atom before the flags. These expressions are not supported.
        """
        match = _FLAG.match(self._pattern, self._at)
        if match is None:
            return False
        self._at = match.end()
        self.any_case |= "i" in match["on"]
        if _REPEATED.match(self._pattern, self._at):
            raise _UnknownError
        return True

    def _group(self, depth: int) -> _Alternatives:
        match = _GROUP.match(self._pattern, self._at)
        if match is None:
            raise _UnknownError
        self._at = match.end()
        self.any_case |= "i" in (match["on"] or "")
        inside = self._alternation(depth + 1)
        if not self._takes(")"):
            raise _UnknownError
        return inside

    def _least(self) -> int:
        """Read the quantifier of the last atom, if any.

        Returns 0 if the atom is optional, 1 without a quantifier, and 2 if the atom occurs at least once.
        """
        match = _REPEATED.match(self._pattern, self._at)
        if match is None:
            return 1
        self._at = match.end()
        if _REPEATED.match(self._pattern, self._at):
            raise _UnknownError
        return 2 if match[0][0] == "+" or (match[1] is not None and int(match[1])) else 0

    def _takes(self, character: str) -> bool:
        if self._pattern.startswith(character, self._at):
            self._at += 1
            return True
        return False


def _both(first: _Alternatives, second: _Alternatives) -> _Alternatives:
    """Combine the alternatives of two consecutive parts. Returns `first` if there are too many combinations."""
    if len(first) * len(second) > _MOST:
        return first
    return tuple((*one, *other) for one, other in product(first, second))
