"""Numbering of `?` placeholders."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from lance_duck.duck.statement.tokens import tokens_of


@dataclass(frozen=True)
class Numbered:
    """A text whose `?` have numbers: $1, $2, …; and where its characters were before.

    Attributes:
        sql: The text as it was.
        text: From one of its characters on, with numbers.
        places: Where the numbers end.
        first: That character.
    """

    sql: str
    text: str
    places: tuple[int, ...]
    first: int

    @classmethod
    def of(cls, sql: str, first: int) -> Numbered:
        """Return number the marks of a statement, from one of its characters on."""
        marks = [token.start for token in tokens_of(sql) if token.text == "?"] if "?" in sql else []
        if not marks:
            return cls(sql, sql[first:], (), first)
        pieces, places, at, size = [], [], first, 0
        for number, mark in enumerate(marks, 1):
            pieces += [sql[at:mark], f"${number}"]
            size += mark - at + 1 + len(str(number))
            places.append(size)
            at = mark + 1
        # After each mark the text is longer by the digits of its number.
        return cls(sql, "".join(pieces) + sql[at:], tuple(places), first)

    def before(self, place: int) -> int:
        """Return where a place of the text was."""
        passed = bisect_right(self.places, place)
        return place - sum(len(str(number)) for number in range(1, passed + 1)) + self.first
