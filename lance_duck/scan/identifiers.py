"""Quoting of SQL identifiers and string literals."""

from __future__ import annotations


def folded(name: str) -> str:
    """Convert a name to lower case like DuckDB, which changes only ASCII letters."""
    if name.isascii():
        return name.lower()
    return name.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def escaped(name: str) -> str:
    """Escape a name for use between the quotes of an SQL identifier."""
    return name.replace('"', '""')


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return f'"{escaped(name)}"'


def literal(text: str) -> str:
    """Return an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
