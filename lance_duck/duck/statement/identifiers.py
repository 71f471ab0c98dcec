"""Quote SQL names (see `lance_duck.scan.identifiers`) and parse them."""

from __future__ import annotations

import re
from typing import Final

from lance_duck.scan.identifiers import are_distinct, escaped, folded, literal, quoted

__all__ = ["are_distinct", "escaped", "folded", "literal", "parts_of_name", "qualified_names", "quoted"]

_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^".,]+)')


def parts_of_name(text: str) -> tuple[str, ...]:
    """Return the parts of a qualified name in SQL syntax. Empty for other text."""
    names = qualified_names(text)
    return names[0] if len(names) == 1 else ()


def qualified_names(text: str) -> list[tuple[str, ...]]:
    """Return the qualified names in a comma-separated list."""
    names: list[list[str]] = [[]]
    at = 0
    while (part := _PART.match(text, at)) is not None:
        names[-1].append(part[2] if part[1] is None else part[1].replace('""', '"'))
        at = part.end() + 1
        if text[part.end() : at] == ",":
            names.append([])
    return [tuple(parts) for parts in names]
