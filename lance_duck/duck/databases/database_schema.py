"""One schema of a database of Lance tables: a schema of an in-memory DuckDB database, with a view for each table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arguments import is_unicode
from lance_duck.dataset import LanceDataset
from lance_duck.duck.binder import FUNCTION, Binder, without_opening
from lance_duck.duck.databases.changed_names import changed_names
from lance_duck.duck.databases.listing_macros import listing_macros
from lance_duck.duck.failures import own_error
from lance_duck.duck.places import without_folder
from lance_duck.duck.statement.identifiers import folded, literal, quoted, shown_names
from lance_duck.duck.tables.folder import Folder
from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.duck.tables.statement_versions import note_listed
from lance_duck.duck.tables.table import DuckTable, check_has_columns, select_all
from lance_duck.errors import FormatError, InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.forks import RLock
from lance_duck.groups.log import CommitLog
from lance_duck.groups.reading import listed_once, settled_state
from lance_duck.namespaces import DirectoryNamespace
from lance_duck.redact import shown
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.store import local_path

SCHEMA: Final = "main"
"""The schema of the tables directly in the folder. The other schemas are namespaces of the folder."""
_ONCE: Final = "listed once"
COMMENT: Final = "comment"
"""Metadata key for comments on tables and fields."""
_NOT_IN_NAMES: Final = frozenset("/\\\0")


def check_table_name(name: str) -> None:
    """Check that a name is a valid folder name. Raises InvalidInputError."""
    if name in ("", ".", "..") or not _NOT_IN_NAMES.isdisjoint(name):
        raise InvalidInputError(
            "invalid table name", where=repr(name), expected="no slash, backslash or zero byte", found=name
        )


@dataclass
class DatabaseSchema:
    """The tables of one schema, shared by all cursors of the DuckDB instance.

    Attributes:
        database: Name of the database.
        binder: Binder of its instance.
        changed: Called after tables were added or removed.
        name: Name of the schema.
        given: Tables named by the caller.
        folder: Folder with additional tables, or None.
        choice: The version to read of each table.
        read_only: Reason why its tables cannot be changed, if any.
    """

    database: str
    binder: Binder
    changed: Callable[[], None]
    name: str = SCHEMA
    given: dict[str, TableHandle] = field(default_factory=dict)
    folder: Folder | None = None
    choice: VersionChoice = field(default_factory=VersionChoice)
    read_only: str | None = None
    _views: dict[str, tuple[TableHandle, Any]] = field(default_factory=dict, init=False)
    _listed: dict[str, tuple[pa.Schema, str | None]] = field(default_factory=dict, init=False)
    _broken: dict[str, LanceDuckError] = field(default_factory=dict, init=False)
    _stamp: object = field(default=None, init=False)
    _lock: RLock = field(default_factory=RLock, init=False)

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the schema, and a view for each table. The schema `main` creates the database."""
        if self.name == SCHEMA:
            connection.execute(f"ATTACH ':memory:' AS {quoted(self.database)} (READ_WRITE)")
        else:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.sql}")
        connection.execute(listing_macros(self.sql))
        self.refresh()

    @property
    def sql(self) -> str:
        """Its qualified name in SQL."""
        return f"{quoted(self.database)}.{quoted(self.name)}"

    def table_sql(self, name: str) -> str:
        """Return the shortest qualified name of a table in SQL."""
        return f"{quoted(self.database) if self.name == SCHEMA else self.sql}.{quoted(name)}"

    @property
    def place(self) -> tuple[str, str]:
        """The names of the database and the schema, in lower case."""
        return folded(self.database), folded(self.name)

    @property
    def tables(self) -> list[str]:
        """The names of its tables."""
        return list(self._views)

    @property
    def broken_tables(self) -> dict[str, LanceDuckError]:
        """The reasons why listed tables cannot be opened, by table name."""
        return dict(self._broken)

    @property
    def log(self) -> CommitLog | None:
        """The commit log of the folder. None for tables of the caller and of REST services."""
        namespace = None if self.folder is None else self.folder.namespace
        return namespace.log if isinstance(namespace, DirectoryNamespace) else None

    @property
    def roots(self) -> list[str]:
        """The location of the folder, and of each table that the caller named."""
        folder = [] if self.folder is None else [self.folder.uri]
        return [*folder, *(handle.uri for handle in list(self.given.values()))]

    def find(self, name: str) -> TableHandle | None:
        """Return the table with this name. Names are case-insensitive, as in DuckDB.

        A name that the current transaction has changed refers to its table.
        """
        drafts = changed_names()
        changed = None if drafts is None else drafts.find(self.place, name)
        if changed is not None:
            return changed[0]
        return next(
            (view[0] for table_name, view in list(self._views.items()) if folded(table_name) == folded(name)), None
        )

    def stored_name(self, name: str) -> str:
        """Return the stored spelling of the name of a listed table."""
        return next(table_name for table_name in list(self._views) if folded(table_name) == folded(name))

    def is_given(self, name: str) -> bool:
        """Return whether the caller passed a table with this name."""
        return folded(name) in map(folded, self.given)

    def has(self, handle: TableHandle) -> bool:
        """Return whether a table belongs to this schema."""
        return any(view[0] is handle for view in list(self._views.values()))

    def check_writable(self, where: str) -> None:
        """Check that the tables may be changed. Raises UnsupportedError."""
        if self.read_only is not None:
            raise UnsupportedError(
                f"database {self.database} is {self.read_only}",
                where=where,
                remedy="ATTACH the folder without this option to change its tables",
            )

    def broken(self, name: str) -> LanceDuckError | None:
        """Return the reason why a listed table cannot be opened. Returns None for other tables."""
        reason = next(
            (reason for table_name, reason in self._broken.items() if folded(table_name) == folded(name)), None
        )
        return self.folder.explain(name) if reason is None and self.folder is not None else reason

    def missing(self) -> LanceDuckError | None:
        """Return an error if the folder does not exist, or else None."""
        return None if self.folder is None else self.folder.missing()

    def show_columns(self, name: str) -> None:
        """Update the columns and comments that DuckDB shows for a table."""
        with self._lock:
            view = next((table_name for table_name in self._views if folded(table_name) == folded(name)), None)
            if view is not None:
                self._create_view(view, self._views[view][0])

    def show_changed_columns(self) -> None:
        """Update the columns and comments that DuckDB lists for tables that were changed by any writer.

        For tables that cannot be read, the listed columns do not change. Statements that read them raise the errors.
        """
        with self._lock:
            for name, (handle, _) in list(self._views.items()):
                try:
                    if not _is_listed(handle.current(), self._listed.get(name)):
                        self._create_view(name, handle)
                except duckdb.InterruptException:
                    raise
                except (LanceDuckError, duckdb.Error):
                    continue

    def let_go(self) -> None:
        """Close all tables. They are reopened when they are read again."""
        for handle, _ in list(self._views.values()):
            handle.let_go()

    def describe(self) -> str:
        """Describe the origin and number of the tables."""
        where = f" of {shown(self.folder.uri)}" if self.folder else ""
        return f"{len(self._views)} tables{where}"

    def add(self, name: str, handle: TableHandle) -> None:
        """Add a table. Replaces an existing table with the same name.

        Raises:
            LanceDuckError: The table cannot be opened.
        """
        with self._lock:
            self._create_view(name, handle)
            self.given[name] = handle

    def remove(self, name: str) -> bool:
        """Remove a table that was added by `add` or named by the caller. Returns False if it does not exist."""
        with self._lock:
            if name not in self.given:
                return False
            del self.given[name]
            self._drop_view(name)
            return True

    def refresh(self, *, force: bool = False) -> bool:
        """List the tables again. Returns whether tables were added or removed.

        Args:
            force: List even if nothing seems to have changed, and retry tables that could not be opened.
        """
        if not force and self._is_current():
            return False
        with self._lock:
            self._stamp = (self.folder.stamp() if self.folder else None) or _ONCE
            listing = partial(self._wanted, force=force)
            log = self._names_log
            if log is None:
                handles, missing = listing()
            else:
                (handles, missing), number = listed_once(log, listing)
                note_listed(log, number)
            gone = [name for name, (handle, _) in self._views.items() if handles.get(name) != handle.uri]
            for name in gone:
                try:
                    self._drop_view(name)
                except duckdb.TransactionException:  # an open transaction uses the name
                    self._stamp = None
            unread = [name for name in self._broken if name in self._views]
            self._broken = {} if missing is None else dict.fromkeys([*gone, *self._broken], missing)
            fresh = [name for name in handles if name not in self._views or name in unread]
            for name in fresh:
                self._open(name, handles[name])
            return bool(gone) or any(name in self._views and name not in self._broken for name in fresh)

    @property
    def _names_log(self) -> CommitLog | None:
        """The commit log of the names. They are listed for all schemas of a database together, by `main`."""
        return self.log if self.name == SCHEMA else None

    def _is_current(self) -> bool:
        """Return whether the tables are listed and their names have not changed since."""
        if self._stamp is None or self.folder is None or self._stamp == _ONCE:
            return self._stamp is not None and self.folder is None
        log = self._names_log
        number = settled_state(log) if log is not None and log.may_exist else 0
        if self.folder.stamp() != self._stamp:
            return False
        if log is not None:
            note_listed(log, number)
        return True

    def retry(self, statement: str) -> None:
        """Open listed tables again that could not be read, if a statement mentions them."""
        if self._broken:
            text = folded(statement)
            if any(folded(name) in text for name in self._broken):
                self.refresh(force=True)

    def _open(self, name: str, uri: str) -> None:
        options = self.folder.options_of(name) if self.folder else None
        access = self.binder.access
        is_checked = access.is_confined or os.path.islink(local_path(uri) or "")
        check = partial(access.check, uri) if is_checked else None
        handle = self.given.get(name) or TableHandle(uri, self.choice, options, check=check, log=self.log)
        handle.log_rows = access.log_rows
        try:
            self._create_view(name, handle)
        except LanceDuckError as error:
            if name in self.given:
                raise
            self._broken[name] = error
            if isinstance(error, FormatError) and is_unicode(name):
                try:
                    self._create_unreadable_view(name, handle, error)
                except duckdb.TransactionException:  # an open transaction uses the name
                    self._views.pop(name)
                    self._stamp = None
        except duckdb.InterruptException:
            raise
        except duckdb.TransactionException:
            self._stamp = None
            self._broken[name] = UnsupportedError(
                "an open transaction of this process uses the name of the table",
                where=name,
                remedy="read it after this transaction, or in another process",
            )
        except duckdb.Error as error:  # a table that DuckDB rejects must not hide the others
            if name in self.given:
                raise
            self._broken[name] = own_error(error) or UnsupportedError(
                "DuckDB cannot read the table", where=name, found=str(error).strip()
            )

    def _wanted(self, *, force: bool) -> tuple[dict[str, str], LanceDuckError | None]:
        """Return the current URI of each table, and the error if the folder no longer exists."""
        found: dict[str, str] = {}
        missing = None
        try:
            found = self.folder.tables(force=force) if self.folder else {}
        except NotFoundError as error:
            missing = error
        return found | {name: handle.uri for name, handle in self.given.items()}, missing

    def reopen(self, names: Iterable[str]) -> None:
        """Open tables again whose names a transaction has changed."""
        with self._lock:
            wanted = {folded(name) for name in names}
            for name in [name for name in self._views if folded(name) in wanted]:
                with suppress(duckdb.TransactionException):  # another transaction uses the name
                    self._drop_view(name)
            self._stamp = None

    def view_body(self, name: str, handle: TableHandle) -> tuple[Any, str]:
        """Return the query of a table's view, and the source that must live as long as the view."""
        source = self.binder.register(DuckTable(handle.shared)) if SPEAKS_SOURCE else None
        return source, select_all(quoted(source.name)) if source else self._bound(name)

    def _create_view(self, name: str, handle: TableHandle) -> None:
        if not is_unicode(name):
            raise InvalidInputError(
                f"table name {name!a} is not valid Unicode, and SQL cannot refer to it",
                remedy='pass the table to connect() under another name: {"name": path}',
            )
        table = handle.current()
        check_has_columns(table)
        before = self._views.get(name)
        source, body = self.view_body(name, handle)
        self._views[name] = (handle, source)
        self.changed()
        try:
            with self.binder.spare_cursor() as cursor:
                cursor.execute(f"CREATE OR REPLACE VIEW {self._qualified(name)} AS {body}")
                show_comments(cursor, self._qualified(name), table)
        except duckdb.Error:
            self._views.pop(name)
            if before is not None:
                self._views[name] = before
            self.changed()
            raise
        self._listed[name] = (table.schema, table.metadata.get(COMMENT))

    def _create_unreadable_view(self, name: str, handle: TableHandle, error: LanceDuckError) -> None:
        """List a table that cannot be read, so that it can be dropped. Each statement with the view opens the table.

        The error is the comment of the view. All statements see it, so its locations begin below a confined folder.
        """
        view, text = self._qualified(name), f"{type(error).__name__}: {error}"
        if self.folder is not None and self.binder.access.is_confined:
            text = without_folder(text, self.folder.uri)
        self._views[name] = (handle, None)
        self.changed()
        with self.binder.spare_cursor() as cursor, without_opening():
            cursor.execute(f"CREATE OR REPLACE VIEW {view} AS {self._bound(name)}")
            cursor.execute(f"COMMENT ON VIEW {view} IS {literal(text)}")

    def _drop_view(self, name: str) -> None:
        with self.binder.spare_cursor() as cursor:
            cursor.execute(f"DROP VIEW IF EXISTS {self._qualified(name)}")
        self._views.pop(name)
        self._listed.pop(name, None)
        self.changed()

    def _bound(self, name: str) -> str:
        """Return SQL that opens a table whenever it is bound."""
        return f"FROM query({FUNCTION}({literal(self._qualified(name))}, NULL, NULL, NULL, NULL, NULL, NULL))"

    def _qualified(self, name: str) -> str:
        return f"{self.sql}.{quoted(name)}"


def _is_listed(table: LanceDataset, listed: tuple[pa.Schema, str | None] | None) -> bool:
    """Return whether the schema, metadata and comment that DuckDB lists are current."""
    if listed is None:
        return False
    schema, comment = listed
    return table.schema.equals(schema, check_metadata=True) and table.metadata.get(COMMENT) == comment


def show_comments(cursor: duckdb.DuckDBPyConnection, view: str, table: LanceDataset) -> None:
    """Copy the comments of a table and its columns to a new view.

    Args:
        cursor: A cursor of the instance.
        view: Its qualified name.
        table: The table.
    """
    comments = {f"VIEW {view}": table.metadata.get(COMMENT)}
    for name, column in zip(shown_names(table.schema.names), table.schema, strict=True):
        comment = (column.metadata or {}).get(COMMENT.encode())
        comments[f"COLUMN {view}.{quoted(name)}"] = None if comment is None else comment.decode()
    for subject, text in comments.items():
        if text is not None:
            cursor.execute(f"COMMENT ON {subject} IS {literal(text)}")
