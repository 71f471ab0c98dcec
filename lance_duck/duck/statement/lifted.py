"""Replaces numbers with parameters. Statements that only differ in vectors or keys then share one text.

[1, 2.5, …]                              →  $__lance_v0
SELECT … WHERE [t.]x = 5 [AND …] [;]     →  SELECT … WHERE x = ?
SELECT … WHERE [t.]x IN (5, 7) [AND …]   →  SELECT … WHERE x IN (?, ?)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.placeholders import LISTED
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.tokens import edited

_LIST: Final = re.compile(r"\[\s*[-+]?[\d.][-+\d.eE]*\s*(?:,\s*[-+]?[\d.][-+\d.eE]*\s*)+\]")
_QUOTES: Final = ("'", '"')
_UNSURE: Final = re.compile(r"--|/\*|\$\$|\barray\s*\[", re.IGNORECASE)
_LONGEST: Final = 2_000
_NUMBER: Final = r"\d{1,18}"
_CONDITION: Final = rf"(?:[a-z_]\w*\.)?[a-z_]\w*\s*(?:=\s*{_NUMBER}|\bin\s*\(\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*\))"
_TAIL: Final = re.compile(rf"\bwhere\s+{_CONDITION}(?:\s+and\s+{_CONDITION})*\s*;?\s*\Z", re.IGNORECASE | re.ASCII)
_NUMBERS: Final = re.compile(rf"\b{_NUMBER}\b", re.ASCII)
_SELECTS: Final = re.compile(r"\s*select\b", re.IGNORECASE)
_MAY_HAVE_PARAMETERS: Final = re.compile(r"""['"?$]|--|/\*""")
"""Matches the start of a parameter, or of a token that may contain similar characters."""


@dataclass(frozen=True)
class LiftedText:
    """A text with parameters instead of number lists.

    Attributes:
        text: The text, with `$__lance_v0`, `$__lance_v1`, … instead of the lists.
        lists: Source text of the lists.
    """

    text: str
    lists: tuple[str, ...] = ()

    @classmethod
    def of(cls, sql: str) -> LiftedText:
        """Replace the lists of a text. The text stays unchanged if it contains a comment, `$$` or `ARRAY[`."""
        if "[" not in sql or LISTED in sql or _UNSURE.search(sql):
            return cls(sql)
        lists: list[str] = []
        seen, quotes = 0, Counter[str]()

        def name(match: re.Match[str]) -> str:
            nonlocal seen
            between, seen = sql[seen : match.start()], match.start()
            quotes.update({mark: between.count(mark) for mark in _QUOTES})
            if any(count % 2 for count in quotes.values()):
                return match[0]  # inside a string or a quoted name
            lists.append(match[0])
            return f"${LISTED}{len(lists) - 1}"

        return cls(_LIST.sub(name, sql), tuple(lists))

    @cached_property
    def sql(self) -> str:
        """The text with the original lists."""
        return self.restored(self.text)

    @cached_property
    def statement(self) -> Statement:
        """The cached analysis of the text."""
        return Statement.of(self.text)

    def edited(self, edits: Iterable[Edit]) -> LiftedText:
        """Apply edits of `statement`. Returns `self` if nothing changes."""
        text = edited(self.text, edits)
        return self if text is self.text else LiftedText(text, self.lists)

    def restored(self, text: str) -> str:
        """Replace the parameters in a text with the original lists."""
        if not self.lists:
            return text
        return re.sub(rf"\${LISTED}(\d+)", lambda match: self.lists[int(match[1])], text)


def lifted_numbers(sql: str) -> tuple[LiftedText, tuple[int, ...]] | None:
    """Replace each number in the WHERE clause of a SELECT with `?`.

    Returns:
        The new text and the numbers in order, or None for other statements.
    """
    tail = _condition_of(sql)
    if tail is None:
        return None
    numbers = list(_NUMBERS.finditer(sql, tail.start()))
    text = edited(sql, [Edit(*each.span(), "?") for each in numbers])
    return LiftedText(text), tuple(int(each[0]) for each in numbers)


def without_numbers(sql: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the same as `lifted_numbers`, with a text that is compared but not analysed."""
    tail = _condition_of(sql)
    if tail is None:
        return None
    condition = tail[0]
    return sql[: tail.start()] + _NUMBERS.sub("?", condition), tuple(map(int, _NUMBERS.findall(condition)))


def _condition_of(sql: str) -> re.Match[str] | None:
    """Return the WHERE clause of a SELECT that compares columns with numbers alone, or None."""
    if len(sql) > _LONGEST or _SELECTS.match(sql) is None or _MAY_HAVE_PARAMETERS.search(sql):
        return None
    return _TAIL.search(sql)
