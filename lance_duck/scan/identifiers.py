"""Quoting of SQL identifiers and string literals."""

from __future__ import annotations

from collections.abc import Sequence


def folded(name: str) -> str:
    """Convert a name to lower case like DuckDB, which changes only ASCII letters."""
    if name.isascii():
        return name.lower()
    return name.encode(errors="surrogatepass").lower().decode(errors="surrogatepass")


def are_distinct(names: Sequence[str]) -> bool:
    """Return whether names also differ without regard to case. DuckDB otherwise gives columns new names."""
    return len(set(map(folded, names))) == len(names)


def escaped(name: str) -> str:
    """Escape a name for use between the quotes of an SQL identifier."""
    return name.replace('"', '""')


def quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return f'"{escaped(name)}"'


def literal(text: str) -> str:
    """Return an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
