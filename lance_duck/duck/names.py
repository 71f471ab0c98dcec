"""What names mean and how SQL is read on a connection: asked of DuckDB, and remembered until that may have changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

import duckdb

from lance_duck.duck.catalog import SCHEMA, TableCatalog
from lance_duck.duck.settings import SETTINGS, About, Dialect
from lance_duck.duck.statement.identifiers import folded, literal

_KEPT: Final = 256
_READS: Final = re.compile(r"\s*(select|from)\b[^;]*;?\s*", re.IGNORECASE)
_PART: Final = re.compile(r'"((?:[^"]|"")*)"|([^".,]+)')
_SETTINGS: Final = ", ".join(map(literal, SETTINGS))

_DUCKDB_COUNTS: Final = hasattr(duckdb.DuckDBPyConnection, "_catalog_version")
_NOT_COUNTED: Final = nullcontext()

Place = tuple[str, str]
"""A database and a schema, in lower case."""


@dataclass(frozen=True)
class _Meaning:
    """What a connection makes of a name.

    Attributes:
        is_ours: It is that of a Lance table.
        dialect: How SQL is read.
    """

    is_ours: bool
    dialect: Dialect


_NOTHING: Final = _Meaning(False, Dialect(~About(0)))


class Names:
    """What names mean on one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        changes: What is counted of all connections to its database.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, changes: Changes) -> None:
        self._native = native
        self._catalog = catalog
        self._counted = changes
        self._changes: object = None
        self._known: dict[tuple[str, ...], _Meaning] = {}

    def are_ours(self, name: tuple[str, ...], *, later: bool) -> bool:
        """Whether a (qualified) name is that of a Lance table: DuckDB finds no other first, and has it in its path.

        Args:
            name: Its parts.
            later: A result that was not fetched yet has to stay.
        """
        return self._catalog.is_table(name) and self._meaning(name, later).is_ours

    def dialect(self, name: tuple[str, ...], *, later: bool) -> Dialect:
        """Return the dialect that statements on this table are read in; the arguments are those of `are_ours`."""
        return self._meaning(name, later).dialect

    def constancy(self) -> Callable[[], bool]:
        """Give a function that tells whether names and settings certainly still are what they are now."""
        native, counted = self._native, self._counted
        before = _changes(native, counted, names=False)
        return lambda: before is not None and before == _changes(native, counted, names=False)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep what is known of names over one statement that DuckDB counts, and that changes none."""
        before = _changes(self._native, self._counted)
        is_known = before is not None and before == self._changes
        yield
        after = _changes(self._native, self._counted)
        if is_known and isinstance(before, int) and after == before + 1:
            self._changes = after

    def _meaning(self, name: tuple[str, ...], later: bool) -> _Meaning:
        key = tuple(map(folded, name))
        changes = _changes(self._native, self._counted)
        if changes is None or changes != self._changes or len(self._known) > _KEPT:
            self._known.clear()
            self._changes = changes
        if key not in self._known:
            self._known[key] = self._ask(key, later)
        return self._known[key]

    def _ask(self, name: tuple[str, ...], later: bool) -> _Meaning:
        named, ours = f"lower({literal(name[-1])})", f"lower({literal(self._catalog.name)})"
        # Names of schemas are looked for, too: `lance.t` is ambiguous where there is a schema of that name.
        text = f"""
            SELECT current_setting('search_path'), current_database(), current_schema(),
                (SELECT list([name, value]) FROM duckdb_settings() WHERE name IN ({_SETTINGS})),
                (SELECT list([database_name, schema_name]) FROM (
                    SELECT database_name, schema_name FROM duckdb_tables() WHERE lower(table_name) = {named}
                    UNION ALL
                    SELECT database_name, schema_name FROM duckdb_views() WHERE lower(view_name) = {named})),
                EXISTS (FROM duckdb_schemas() WHERE lower(schema_name) = {ours})"""  # noqa: S608
        method: Any = self._native.sql if later else self._native.execute
        try:
            found = method(text).fetchall()[0]
        except duckdb.InterruptException:
            raise
        except duckdb.Error:
            return _NOTHING
        path, database, schema, settings, places, is_ambiguous = found
        search = _search_path(path) or [(folded(database), folded(schema))]
        objects = {(folded(db), folded(within)) for db, within in places or ()}
        return _Meaning(self._is_ours(name, search, objects, is_ambiguous), Dialect.of(settings or ()))

    def _is_ours(self, name: tuple[str, ...], search: list[Place], objects: set[Place], is_ambiguous: bool) -> bool:
        """Return whether DuckDB finds the table of ours first.

        Args:
            name: Parts of the name.
            search: Where DuckDB looks for names that say no place, in order.
            objects: Where it has a table or view of the name.
            is_ambiguous: A schema is called as our database.
        """
        ours: Place = (folded(self._catalog.name), SCHEMA)
        if ours not in objects:
            return False
        match name[:-1]:
            case ():
                return next(place for place in [("temp", SCHEMA), *search, ours] if place in objects) == ours in search
            case (schema,) if schema == SCHEMA and schema != ours[0]:
                return ours in search and objects == {ours}
            case (database,):
                within = next((place for place in search if place[0] == ours[0]), ours)
                return database == ours[0] and not is_ambiguous and within == ours
        return name[:-1] == ours


@dataclass
class Changes:
    """Counts what may change the meaning of names, where DuckDB itself does not: before 2.0.

    Attributes:
        count: Statements and calls that may have.
        is_sure: No other way leads to the database.
        is_private: Nobody has DuckDB's own connection, which may change its settings.
    """

    count: int = 0
    is_sure: bool = False
    is_private: bool = False

    def during(self, statement: object) -> AbstractContextManager[None]:
        """Return a context that counts a statement, when it begins and when it ends, unless it only reads."""
        return _NOT_COUNTED if _DUCKDB_COUNTS else self._counted(statement)

    @contextmanager
    def _counted(self, statement: object) -> Iterator[None]:
        reads = isinstance(statement, str) and _READS.fullmatch(statement) is not None
        self.count += not reads
        try:
            yield
        finally:
            self.count += not reads


def _changes(native: Any, ours: Changes, *, names: bool = True) -> object:
    """Return what is another thing after each statement that may change what SQL means; None where nobody tells.

    Args:
        native: DuckDB's connection.
        ours: What we count.
        names: Meanings of names are of interest, and not settings alone.
    """
    count = getattr(native, "_catalog_version", None)
    if count is not None:
        return count()
    return ours.count if (ours.is_sure if names else ours.is_private) else None


def parts_of_name(text: str) -> tuple[str, ...]:
    """Return the parts of a (qualified) name as SQL spells it; empty for other text."""
    names = _names_in(text)
    return names[0] if len(names) == 1 else ()


def _search_path(text: str) -> list[Place]:
    """Return the entries of the setting `search_path`, each of which names a database and a schema."""
    folded_names = (tuple(map(folded, entry)) for entry in _names_in(text))
    return [(entry[0], entry[1]) for entry in folded_names if len(entry) == 2]


def _names_in(text: str) -> list[tuple[str, ...]]:
    """Return the qualified names in a comma-separated list."""
    names: list[list[str]] = [[]]
    at = 0
    while (part := _PART.match(text, at)) is not None:
        names[-1].append(part[2] if part[1] is None else part[1].replace('""', '"'))
        at = part.end() + 1
        if text[part.end() : at] == ",":
            names.append([])
    return [tuple(parts) for parts in names]
