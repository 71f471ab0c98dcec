"""Texts of statements that are for DuckDB alone."""

from __future__ import annotations

import re
from typing import Final

from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.registry import WORDS
from lance_duck.duck.run.search_settings import PREFIX
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.text import LONGEST

_KEPT: Final = 256
_DECIDING: Final = frozenset({*WORDS, "explain", "prepare", "execute", "deallocate", "use"})
"""Words with which a statement may be about something of ours although it does not name that."""
_NAMELESS: Final = re.compile(
    r"\s*select\s(?:[\d\s+*/%(),.<>=-]|\b(?:null|true|false|and|or|not|is)\b)+", re.IGNORECASE
)


class ForeignTexts:
    """Single statements that have no word by which they could be about anything of ours, whatever was run before them.

    They neither begin nor end transactions, and are remembered until tables come or go: one that repeats is a look-up
    away from DuckDB.

    Args:
        catalog: The Lance tables of a connection.
    """

    def __init__(self, catalog: TableCatalog) -> None:
        self._catalog = catalog
        self._vocabulary = catalog.vocabulary
        self._known: dict[str, bool] = {}
        self._deciding = self._words()

    def __contains__(self, sql: str) -> bool:
        vocabulary = self._catalog.vocabulary
        if vocabulary is not self._vocabulary or len(self._known) > _KEPT:
            self._known, self._vocabulary, self._deciding = {}, vocabulary, self._words()
        is_foreign = self._known.get(sql)
        if is_foreign is None:
            is_foreign = not vocabulary.may_be_in(sql, self._deciding) and PREFIX not in sql.lower()
            if len(sql) <= LONGEST:
                self._known[sql] = is_foreign
        return is_foreign

    def _words(self) -> frozenset[str]:
        """Return the words that decide, names of databases among them, whose functions need name no table."""
        return _DECIDING | {folded(database.name) for database in self._catalog.databases}


def is_nameless(sql: str) -> bool:
    """Return whether a statement is a SELECT of constants: nothing that it says could be the name of a table."""
    return len(sql) < 80 and _NAMELESS.fullmatch(sql) is not None
