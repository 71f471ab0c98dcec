"""Whole numbers at the end of a SELECT, lifted out of its text: lookups that differ in their keys alone are one text.

SELECT … WHERE [t.]x = 5 [AND …] [;]
SELECT … WHERE [t.]x IN (5, 7) [AND …] [;]
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LONGEST: Final = 2_000
_NUMBER: Final = r"\d{1,18}"
_CONDITION: Final = rf"(?:[a-z_]\w*\.)?[a-z_]\w*\s*(?:=\s*{_NUMBER}|\bin\s*\(\s*{_NUMBER}(?:\s*,\s*{_NUMBER})*\s*\))"
_TAIL: Final = re.compile(rf"\bwhere\s+{_CONDITION}(?:\s+and\s+{_CONDITION})*\s*;?\s*\Z", re.IGNORECASE | re.ASCII)
_NUMBERS: Final = re.compile(rf"\b{_NUMBER}\b", re.ASCII)
_SELECTS: Final = re.compile(r"\s*select\b", re.IGNORECASE)
_UNSURE: Final = re.compile(r"""['"?$]|--|/\*""")
"""What a text may have parameters in, or words that are none."""


@dataclass(frozen=True)
class LiftedNumbers:
    """A text whose last numbers stand beside it.

    Attributes:
        text: The text with `?` in their places.
        numbers: The numbers that stood there.
    """

    text: str
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, sql: str) -> LiftedNumbers | None:
        """Return a SELECT without the numbers that its WHERE compares columns with; None for all other statements."""
        if len(sql) > _LONGEST or _SELECTS.match(sql) is None or _UNSURE.search(sql):
            return None
        tail = _TAIL.search(sql)
        if tail is None:
            return None
        end = tail[0]
        return cls(sql[: tail.start()] + _NUMBERS.sub("?", end), tuple(map(int, _NUMBERS.findall(end))))
