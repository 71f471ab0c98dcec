"""Tables of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence


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
