"""Texts of statements that are for DuckDB alone."""

from __future__ import annotations

import re
from typing import Final

from lance_duck.duck.catalog import WORD, TableCatalog
from lance_duck.duck.changes.registry import WORDS
from lance_duck.duck.run.search_settings import PREFIX
from lance_duck.duck.statement.head import FirstWords, StatementKind
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.tokens import LONGEST

_KEPT: Final = 256
_DECIDING: Final = frozenset({*WORDS, "explain", "prepare", "execute", "deallocate", "use", "lance"})
"""Words with which a statement may be about something of ours although it does not name that."""
_SELECTS: Final = frozenset({"select", "from", "with"})
_WORDS_ALONE: Final = bytes(
    ord(character) if WORD.match(character) else ord(" ") for character in map(chr, range(128))
).ljust(256)
"""ASCII characters, and blanks for those that are of no `WORD`: a search takes thrice as long."""
_LISTS_TABLES: Final = frozenset({"show", "describe", "summarize", "information_schema"})
_PREFIXES: Final = (PREFIX, "duckdb_", "pragma_", "sqlite_", "pg_")
"""Beginnings of names of our functions and settings, and of what lists tables."""
_SEARCHES: Final = re.compile(r"\b(?:search_path|schema|python_\w+)\b", re.IGNORECASE)
"""Settings that change where DuckDB looks for names, or in which order."""


class ForeignTexts:
    """Single statements that have no word by which they could be about anything of ours, whatever was run before them.

    They neither begin nor end transactions, and are remembered until tables come or go: one that repeats is a look-up
    away from DuckDB.

    Args:
        catalog: The Lance tables of a connection.
    """

    def __init__(self, catalog: TableCatalog) -> None:
        self._catalog = catalog
        self._forget()

    def _forget(self) -> None:
        self._version = self._catalog.version
        self._vocabulary = self._catalog.vocabulary
        self._deciding = self._words()
        self._words_of_ours = self._deciding | _LISTS_TABLES | self._vocabulary.names
        self._parts_of_ours = (*_PREFIXES, *self._vocabulary.parts)
        self._known: dict[str, bool] = {}
        self._selects: dict[str, bool] = {}

    def __contains__(self, sql: str) -> bool:
        if self._version != self._catalog.version:
            self._forget()
        is_foreign = self._known.get(sql)
        if is_foreign is None:
            is_foreign = not self._vocabulary.may_be_in(sql, self._deciding, parts=(PREFIX,))
            _keep(self._known, sql, is_foreign)
        return is_foreign

    def is_select(self, sql: str) -> bool:
        """Return whether a text is one SELECT, and does not ask which tables there are.

        Where DuckDB finds all its names among its own tables, it means the same whatever tables of ours have come or
        gone since they were looked for.
        """
        if self._version != self._catalog.version:
            self._forget()
        is_select = self._selects.get(sql)
        if is_select is None:
            is_select = self._asks_nothing_of_ours(sql)
            _keep(self._selects, sql, is_select)
        return is_select

    def forget(self, sql: str) -> None:
        """Note that a text is not a SELECT for DuckDB alone after all: it names what DuckDB itself does not find."""
        self._selects[sql] = False

    def _asks_nothing_of_ours(self, sql: str) -> bool:
        if ";" in sql and ";" in sql.rstrip("; \n"):
            return False
        is_ascii = sql.isascii()
        text = sql.lower() if is_ascii else folded(sql)
        words = text.encode().translate(_WORDS_ALONE).decode().split() if is_ascii else WORD.findall(text)
        if not words or words[0] not in _SELECTS or not text.lstrip().startswith(words[0]):
            return False
        for part in self._parts_of_ours:
            if part in text:
                return False
        return self._words_of_ours.isdisjoint(words)

    def _words(self) -> frozenset[str]:
        """Return the words that decide, names of databases among them, whose functions need name no table."""
        return _DECIDING | {folded(database.name) for database in self._catalog.databases}


def changes_search(sql: str) -> bool:
    """Return whether a statement may change where DuckDB looks for names, or in which order."""
    first = FirstWords.of(sql)
    if first.kind is StatementKind.SETTING:
        return _SEARCHES.search(sql, first.start) is not None
    return first.kind is StatementKind.NAMING and first.word == "use"


def _keep(answers: dict[str, bool], sql: str, answer: bool) -> None:
    """Remember what is true of a text, unless it is long; all texts are forgotten when they are many."""
    if len(sql) <= LONGEST:
        if len(answers) >= _KEPT:
            answers.clear()
        answers[sql] = answer
