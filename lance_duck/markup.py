"""HTML for notebooks: tables, plans and sizes. All names and values are escaped.

You hold: names, values, text. You get: HTML, and a string that notebooks display as HTML. Never here: Lance tables.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

_UNITS: Final = ("KiB", "MiB", "GiB", "TiB", "PiB")


def facts_html(facts: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    rows = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in facts.items())
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def rows_html(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a head."""
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    cells = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>"


class PlanText(str):
    """A plan of several lines, which notebooks display without quotes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """Return the lines as preformatted HTML."""
        return f'<pre style="overflow-x: auto">{html.escape(self.rstrip())}</pre>'


def size_text(size: int) -> str:
    """Format a size in bytes, such as "512 B" or "1.5 KiB", with one decimal digit."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, len(_UNITS))
    if round(size / (1 << 10 * power), 1) == 1024 and power < len(_UNITS):
        power += 1
    return f"{size / (1 << 10 * power):,.1f} {_UNITS[power - 1]}"
