"""Lists of numbers, lifted out of a text: statements that differ in a vector alone are one text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

LISTED: Final = "__lance_v"
"""How the names of the parameters begin that stand for lists."""
_LIST: Final = re.compile(r"\[\s*[-+]?[\d.][-+\d.eE]*\s*(?:,\s*[-+]?[\d.][-+\d.eE]*\s*)+\]")
_QUOTES: Final = ("'", '"')
_UNSURE: Final = re.compile(r"--|/\*|\$\$|\barray\s*\[", re.IGNORECASE)


@dataclass(frozen=True)
class LiftedText:
    """A text whose lists of numbers stand beside it.

    Attributes:
        text: The text with `$__lance_v0` and so on in their places.
        lists: The lists that stood there.
    """

    text: str
    lists: tuple[str, ...] = ()

    @classmethod
    def of(cls, sql: str) -> LiftedText:
        """Return a text without its lists."""
        if "[" not in sql or LISTED in sql or _UNSURE.search(sql):
            return cls(sql)
        lists: list[str] = []
        seen, quotes = 0, Counter[str]()

        def name(match: re.Match[str]) -> str:
            nonlocal seen
            between, seen = sql[seen : match.start()], match.start()
            quotes.update({mark: between.count(mark) for mark in _QUOTES})
            if any(count % 2 for count in quotes.values()):
                return match[0]  # within a string or a name
            lists.append(match[0])
            return f"${LISTED}{len(lists) - 1}"

        return cls(_LIST.sub(name, sql), tuple(lists))

    def restored(self, text: str) -> str:
        """Return a text with the lists in the places of their parameters."""
        if not self.lists:
            return text
        return re.sub(rf"\${LISTED}(\d+)", lambda match: self.lists[int(match[1])], text)
