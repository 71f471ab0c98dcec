"""Tables by name: views in a database `lance` that lives in memory beside the user's own."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

from lance_duck.arguments import is_unicode
from lance_duck.duck.binder import FUNCTION, Binder
from lance_duck.duck.failures import own_error
from lance_duck.duck.macros import load_macros
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.duck.tables.table import DuckTable, select_all
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.forks import RLock
from lance_duck.redact import shown
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.wire.paths import TABLE_SUFFIX

SCHEMA: Final = "main"
FUNCTIONS: Final = frozenset({"lance_scan", "lance_vector_search"})
_WORD: Final = re.compile(r"[\w$]+")
_MISSING: Final = re.compile(r"Table with name (.+?) does not exist!")


@dataclass
class TableCatalog:
    """Names of tables in one database instance, shared by all of its cursors.

    Attributes:
        given: Tables that the caller named.
        folder: Where to look for more, or None.
    """

    given: dict[str, TableHandle]
    folder: Folder | None = None
    name: str = "lance"
    binder: Binder = field(init=False)
    _views: dict[str, tuple[TableHandle, Any]] = field(default_factory=dict)
    _broken: dict[str, LanceDuckError] = field(default_factory=dict)
    _stamp: object = None
    _vocabulary: Vocabulary | None = None
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self.binder = Binder(self.find)

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Set up the database `lance` on a new instance, and a view for each table."""
        taken = {row[0] for row in connection.execute("SELECT database_name FROM duckdb_databases()").fetchall()}
        if self.name in taken:
            self.name = next(name for i in range(len(taken) + 1) if (name := f"lance_{i}") not in taken)
        connection.execute(f"ATTACH ':memory:' AS {quoted(self.name)} (READ_WRITE)")
        self.binder.install(connection)
        self._introduce(connection)
        self.refresh()

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make macros and names known to a cursor."""
        self.binder.add(connection)
        self._introduce(connection)

    def _introduce(self, connection: duckdb.DuckDBPyConnection) -> None:
        load_macros(connection)
        current, *rest = connection.execute("SELECT current_database(), current_schema()").fetchall()[0]
        path = f"{quoted(current)}.{quoted(rest[0])},{quoted(self.name)}.{SCHEMA}"
        connection.execute(f"SET search_path = {literal(path)}")

    def find(self, name: str) -> TableHandle | None:
        """Return the table of this name; names are matched as DuckDB does, without case."""
        return next((view[0] for known, view in list(self._views.items()) if folded(known) == folded(name)), None)

    def is_table(self, parts: tuple[str, ...]) -> bool:
        """Return whether a (qualified) name is that of a table here."""
        places = ((), (self.name,), (SCHEMA,), (self.name, SCHEMA))
        return tuple(map(folded, parts[:-1])) in places and self.find(parts[-1]) is not None

    @property
    def vocabulary(self) -> Vocabulary:
        """Words by which a statement names something here: another object after tables came or went."""
        vocabulary = self._vocabulary
        if vocabulary is None:
            vocabulary = self._vocabulary = Vocabulary.of(list(self._views))
        return vocabulary

    def explain(self, message: str) -> LanceDuckError | None:
        """Our own reason why DuckDB does not find a table: it is there, and cannot be opened; None for other tables."""
        missing = _MISSING.search(message)
        if missing is None:
            return None
        return self._broken.get(missing[1])

    def describe(self) -> str:
        """Return where the tables come from and how many they are, in a few words."""
        where = f" of {shown(self.folder.uri)}" if self.folder else ""
        return f"{len(self._views)} tables{where}"

    def add(self, name: str, handle: TableHandle) -> None:
        """Give a table a name, in place of another that has it.

        Raises:
            LanceDuckError: The table cannot be opened.
        """
        with self._lock:
            self._create_view(name, handle)
            self.given[name] = handle

    def remove(self, name: str) -> bool:
        """Take the name of a table back that `add` or the caller gave it; False when there is none."""
        with self._lock:
            if name not in self.given:
                return False
            del self.given[name]
            self._drop_view(name)
            return True

    def refresh(self, *, force: bool = False) -> bool:
        """Look again which tables there are; True when some came or went.

        Args:
            force: Look even where nothing seems to have changed, and try again to open what could not be opened.
        """
        if self._stamp is not None and not force and (self.folder is None or self.folder.stamp() == self._stamp):
            return False
        with self._lock:
            self._stamp = (self.folder.stamp() if self.folder else None) or "listed once"
            wanted = self._wanted()
            gone = [name for name, (handle, _) in self._views.items() if wanted.get(name) != handle.uri]
            for name in gone:
                self._drop_view(name)
            self._broken.clear()
            fresh = [name for name in wanted if name not in self._views]
            for name in fresh:
                self._open(name, wanted[name])
            return bool(gone) or len(fresh) > len(self._broken)

    def path_handle(self, path: str) -> TableHandle:
        """Return the table at a path, at its newest version."""
        return self.binder.handle(path, VersionChoice())

    def _open(self, name: str, uri: str) -> None:
        options = self.folder.storage_options if self.folder else None
        try:
            self._create_view(name, self.given.get(name) or TableHandle(uri, storage_options=options))
        except LanceDuckError as error:
            if name in self.given:
                raise
            self._broken[name] = error
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:  # one table that DuckDB does not take is no reason to miss the others
            if name in self.given:
                raise
            self._broken[name] = own_error(error) or UnsupportedError(
                "DuckDB does not take it as a table", where=name, found=str(error).strip()
            )

    def _wanted(self) -> dict[str, str]:
        found = self.folder.tables() if self.folder else {}
        return found | {name: handle.uri for name, handle in self.given.items()}

    def _create_view(self, name: str, handle: TableHandle) -> None:
        if not is_unicode(name):
            raise InvalidInputError(
                f"name {name!a} of a table, which SQL cannot spell", remedy='give {"name": path} with another name'
            )
        if not handle.current().schema.names:
            raise UnsupportedError(
                "a table without columns is none in SQL", where=handle.uri, remedy="LanceDataset.add_columns adds some"
            )
        before = self._views.get(name)
        source = self.binder.register(DuckTable(handle.current)) if SPEAKS_SOURCE else None
        body = select_all(source.name) if source else f"FROM query({FUNCTION}({literal(name)}, NULL, NULL, NULL))"
        self._views[name] = (handle, source)
        self._vocabulary = None
        try:
            with self.binder.spare_cursor() as cursor:
                cursor.execute(f"CREATE OR REPLACE VIEW {quoted(self.name)}.{SCHEMA}.{quoted(name)} AS {body}")
        except duckdb.Error:
            self._views.pop(name)
            if before is not None:
                self._views[name] = before
            self._vocabulary = None
            raise

    def _drop_view(self, name: str) -> None:
        with self.binder.spare_cursor() as cursor:
            cursor.execute(f"DROP VIEW IF EXISTS {quoted(self.name)}.{SCHEMA}.{quoted(name)}")
        self._views.pop(name)
        self._vocabulary = None


@dataclass(frozen=True)
class Vocabulary:
    """Words by which a statement names something of ours.

    Attributes:
        names: Of tables and functions, folded as DuckDB folds them.
        parts: Texts one of which stands wherever a name stands that is no plain word, and wherever a path does.
    """

    names: frozenset[str]
    parts: tuple[str, ...]

    @classmethod
    def of(cls, tables: Iterable[str]) -> Vocabulary:
        """Return the words for tables of these names."""
        names = frozenset(map(folded, tables)) | FUNCTIONS
        odd = sorted(name.replace('"', '""') for name in names if _WORD.fullmatch(name) is None)
        return cls(names, (TABLE_SUFFIX, *odd))

    def may_be_in(self, sql: str) -> bool:
        """Return whether one of the words stands in a text, wherever that is."""
        text = folded(sql)
        return not self.names.isdisjoint(_WORD.findall(text)) or any(part in text for part in self.parts)
