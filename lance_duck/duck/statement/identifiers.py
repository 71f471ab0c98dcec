"""Spelling of names and texts in SQL."""

from __future__ import annotations


def folded(name: str) -> str:
    """Return the name in lower case as DuckDB folds it: ASCII letters only."""
    return name.encode().lower().decode()


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"
