"""Places in a text, drawn as DuckDB draws that of an error."""

from __future__ import annotations

from typing import Final

_SHOWN: Final = 60
"""Characters of a line that are drawn before and after the place."""


def drawn(sql: str, place: int, size: int) -> str:
    """Return the line of a place, below two line breaks, with marks below so many characters of it."""
    before, start = sql[:place].count("\n"), sql.rfind("\n", 0, place) + 1
    end = sql.find("\n", place)
    line = sql[start : end if end >= 0 else len(sql)]
    place -= start
    first, last = max(place - _SHOWN, 0), place + size + _SHOWN
    shown = f"LINE {before + 1}: {'...' if first else ''}"
    blanks = " " * (len(shown) + place - first)
    marks = "^" * min(size, len(line) - place)
    return f"\n\n{shown}{line[first:last]}{'...' if last < len(line) else ''}\n{blanks}{marks}"
