"""Changes that are committed together, between BEGIN and COMMIT or in `executemany`.

The changes create versions in memory. Between BEGIN and COMMIT, a changed table's name refers to the version in memory.
Other tables are read at the version that was newest when the transaction first mentioned them. If other connections
already read a different version, a temporary view with the table's name is created. DuckDB's ROLLBACK removes the view.

A DuckDB transaction can only write to one database. A change of a Lance table creates a macro in the table's database,
or in `lance` for a table by path. COMMIT drops it. DuckDB then treats the change as a write to that database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final, NoReturn

import duckdb
import pyarrow as pa

from lance_duck.commit import REFUSALS
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.changes.changed_tables import ChangedTable, TransactionBlock
from lance_duck.duck.changes.result import returned
from lance_duck.duck.databases.database_schema import DatabaseSchema, show_comments
from lance_duck.duck.databases.drafts import DraftNames
from lance_duck.duck.databases.group_names import NamesOfGroup
from lance_duck.duck.names import Names
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.handle import PinnedVersions, TableHandle, VersionChoice, unpinned
from lance_duck.duck.tables.table import DuckTable
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.groups.log import CommitLog
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PendingChanges
from lance_duck.verbs.versions.rename import check_renamable

_NUMBERS: Final = count()
_EMPTY: Final = pa.table({"nothing": pa.array([], pa.null())})
_VIEW: Final = "__lance_transaction_of_"


class VersionOfTransaction(DuckTable):
    """A table at the version that a transaction reads, looked up at each statement."""

    @property
    def dataset(self) -> LanceDataset:
        """The table at the version that the transaction reads."""
        return self._resolve()


def bind_name(native: duckdb.DuckDBPyConnection, name: str, table: DuckTable) -> None:
    """Bind a name to a table on one connection. It takes precedence over other objects with that name."""
    native.register(name, table)


def unbind_name(native: duckdb.DuckDBPyConnection, name: str) -> None:
    """Undo `bind_name`. Never raises."""
    with suppress(duckdb.Error):  # a failed transaction has removed it already
        # If a ROLLBACK has removed the view, DuckDB 1.x would drop a different view with the same name.
        native.register(name, _EMPTY)
        native.unregister(name)


@dataclass(frozen=True)
class ShownTable:
    """A table that statements read through a temporary view, at one version.

    Attributes:
        identity: Its location, and the version that other connections read.
        name: Its unqualified name.
        view: The name of the view. It is the name of the table unless that name may refer to other tables.
        source: The version that the view reads.
    """

    identity: tuple[str, VersionChoice]
    name: str
    view: str
    source: DuckTable

    @property
    def is_hidden(self) -> bool:
        """Whether the view has another name than the table."""
        return self.view != self.name


class DuckTransaction(TransactionBlock):
    """The reads and changes of a connection between BEGIN and COMMIT.

    Args:
        native: DuckDB's connection, in a transaction.
        catalog: The Lance tables of the connection.
        names: Resolves names on the connection.

    Attributes:
        versions: The version of each table that the transaction reads.
        shown: Tables that the connection reads through views, by identity.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, names: Names) -> None:
        super().__init__(catalog)
        self.versions = PinnedVersions()
        self.drafts = DraftNames()
        self._native = native
        self.shown: dict[tuple[str, VersionChoice], ShownTable] = {}
        self._names = names
        self._altered: list[TableHandle] = []
        self._marker: str | None = None

    def begin(self, handle: TableHandle, name: str, base: Snapshot) -> PendingChanges:
        """Start collecting changes of a table. Its name refers to the changed version from then on.

        Raises:
            duckdb.TransactionException: A native table was changed in the transaction.
        """
        if self._marker is None:
            home = self._catalog.home(handle)
            database = self._catalog.default if home is None else self._catalog.database(home.database)
            assert database is not None
            marker = f"{database.sql}.__lance_transaction_{next(_NUMBERS)}"
            self._native.sql(f"CREATE MACRO {marker}() AS 1")
            self._marker = marker
        pending = super().begin(handle, name, base)
        self._show_changes(self._changed[handle.place])
        return pending

    def _show_changes(self, changed: ChangedTable) -> None:
        """Show the changed version of a table under its name."""
        for each in (changed.handle, changed.handle.at(VersionChoice())):
            self.versions.pin(each, lambda: changed.dataset)
            self._show(each, changed.name)

    def pin(self, names: Collection[str], *, later: bool) -> None:
        """Pin tables with these names to the version that the transaction reads.

        Args:
            names: Words of a statement, not necessarily table names.
            later: Whether rows are read after this call returns. Views must then already exist.
        """
        self.versions.checked.clear()
        for table in [*self.shown.values()]:
            if folded(table.name) in names and table.is_hidden == self._is_bindable(table.identity, table.name):
                self._names.hide(table.view)
                unbind_name(self._native, table.view)  # USE has changed what the name refers to
                self._bind(table.identity, table.name, table.source)
        for name in names:
            for schema in self._catalog.schemas:
                handle = schema.find(name)
                if (
                    handle is None
                    or self.drafts.is_new(handle)
                    or handle.identity in self.shown
                    or handle.choice.is_number
                ):
                    continue
                if later or not self.versions.is_newest(handle, handle.newest()):
                    self._show(handle, name)
                else:
                    self.versions.checked.add(handle.identity)

    def _show(self, handle: TableHandle, name: str) -> None:
        if handle.identity not in self.shown:
            with self.versions.reading():
                source = VersionOfTransaction(handle.reader(), hidden=False)
            self._bind(handle.identity, name, source)

    def _bind(self, identity: tuple[str, VersionChoice], name: str, source: DuckTable) -> None:
        view = name if self._is_bindable(identity, name) else f"{_VIEW}{next(_NUMBERS)}_of_{name}"
        with self.versions.reading():
            bind_name(self._native, view, source)
        self.shown[identity] = ShownTable(identity, name, view, source)
        self._names.show(view)

    def _is_bindable(self, identity: tuple[str, VersionChoice], name: str) -> bool:
        """Return whether an unqualified name refers to a table, and to no other in another schema."""
        with self.versions.reading():
            found = self._names.table((name,), later=True)
            return found is not None and found.identity == identity and self._names.is_unique(name)

    def is_shown(self, name: str) -> bool:
        """Return whether an unqualified name refers to a table that the transaction reads through a view."""
        return any(folded(table.view) == folded(name) for table in self.shown.values())

    def show_columns(self, handle: TableHandle) -> None:
        """See `TransactionBlock.show_columns`. Other connections see the columns after COMMIT."""
        changed = self._changed[handle.place]
        self._altered.append(changed.handle)
        for handle in (changed.handle, changed.handle.at(VersionChoice())):
            table = self.shown.get(handle.identity)
            if table is None:
                continue
            with self.versions.reading():
                source = VersionOfTransaction(handle.reader(), hidden=False)
                bind_name(self._native, table.view, source)
            self.shown[handle.identity] = replace(table, source=source)
            show_comments(self._native, f"temp.main.{quoted(table.view)}", changed.dataset)

    def _show_to_all(self) -> None:
        """Show the columns and comments of committed tables on all connections."""
        altered = {handle.place for handle in self._altered}
        for schema in self._catalog.schemas:
            for name in schema.tables:
                handle = schema.find(name)
                if handle is not None and handle.place in altered:
                    with suppress(
                        duckdb.Error, LanceDuckError
                    ):  # the next statement that needs the columns looks again
                        schema.show_columns(name)

    def settled(self, answer: Any) -> Any:
        """Return a relation that reads the transaction's versions, even if its rows are read later.

        A relation that reads tables through a function or a user's view is read immediately.
        """
        if not self.versions.take_bound() or not isinstance(answer, duckdb.DuckDBPyRelation):
            return answer
        rows = returned(answer.to_arrow_table(), [str(type_) for type_ in answer.types], -1)
        return call_as_user(partial(self._native.sql, rows.sql), rows.tables)

    def commit_with(self, native: Callable[[], Any]) -> Any:
        """Commit the Lance changes, then run DuckDB's COMMIT. Returns its result.

        Raises:
            LanceDuckError: See `_finish`.
        """
        try:
            self._finish()
        except BaseException as error:
            self._fail(error)
        if not self.drafts.changes:
            return native()
        try:
            answer = native()
        except BaseException as error:
            self.drafts.reopen()
            self._fail(error)
        self.drafts.settle()
        self._catalog.refresh(force=True)
        return answer

    def _fail(self, error: BaseException) -> NoReturn:
        """End the transaction after a failed COMMIT, and raise the error."""
        if isinstance(error, REFUSALS):
            self.drafts.keeps_files = False
        self.abandon()
        with suppress(duckdb.Error):
            self._native.execute("ROLLBACK")
        raise error

    def _finish(self) -> None:
        """Commit the Lance changes before DuckDB commits. DuckDB then commits only the macro and temporary objects.

        Raises:
            InvalidInputError: The transaction failed earlier, in a way that DuckDB does not report.
            CommitConflictError: See `commit`.
        """
        if self.is_empty and not self.drafts.changes:
            self._end()
            return
        try:
            self._native.execute("SELECT 1").fetchall()
        except duckdb.Error as error:
            self.discard()
            raise InvalidInputError(
                "nothing was committed, because an earlier statement of the transaction failed",
                remedy="the transaction has ended: BEGIN a new one, and run all its statements again",
            ) from error
        self._end()
        if self._marker is not None:
            self._native.execute(f"DROP MACRO {self._marker}")
        if self.drafts.has_many_steps or (self.drafts.changes and not self.is_empty):
            names = NamesOfGroup.of(self.drafts)
            self.commit_with_names(names, names.namespace.log)
            names.remove_dropped()
        else:
            self.drafts.check()
            self.commit()
            self.drafts.publish()
        if self._altered:
            self._show_to_all()

    def abandon(self) -> None:
        """Discard all changes, after DuckDB has discarded its changes."""
        self._end()
        self.discard()
        self.drafts.discard()

    def _end(self) -> None:
        self.versions.is_over = True
        for table in self.shown.values():
            self._names.hide(table.view)
            unbind_name(self._native, table.view)
        self.shown.clear()

    def log(self) -> CommitLog | None:
        """See `TransactionBlock.log`."""
        return NamesOfGroup.of(self.drafts).namespace.log if self.drafts.changes else super().log()

    def is_new(self, handle: TableHandle) -> bool:
        """See `TransactionBlock.is_new`."""
        return self.drafts.is_new(handle)

    def create_table(self, schema: DatabaseSchema, name: str, handle: TableHandle) -> None:
        """Add a new table, which is written already, under its name."""
        with self.drafts.undone_after_error():
            self.drafts.create(schema, name, handle)
            self._create_view(schema, name, handle)

    def rename_table(self, schema: DatabaseSchema, name: str, new_name: str) -> None:
        """Rename a table. Raises UnsupportedError if its folder cannot be renamed."""
        handle = schema.find(name)
        assert handle is not None
        if schema.folder is not None and not schema.folder.parts:
            check_renamable(handle.uri, handle.storage_options)
        self.drafts.see(schema, name, is_dropped=False)
        self._hide(handle)
        with self.drafts.undone_after_error():
            self._native.sql(f"DROP VIEW {schema.sql}.{quoted(name)}")
            self.drafts.rename(schema, name, new_name)
            self._create_view(schema, new_name, handle)
        changed = self.changed(handle)
        if changed is not None:
            self._changed[handle.place] = replace(changed, name=new_name)
            self._show_changes(self._changed[handle.place])

    def drop_table(self, schema: DatabaseSchema, name: str) -> None:
        """Drop a table. Changes of its rows are discarded."""
        handle = schema.find(name)
        assert handle is not None
        self.drafts.see(schema, name, is_dropped=True)
        changed = self._changed.pop(handle.place, None)
        if changed is not None:
            changed.pending.discard()
        self._hide(handle)
        with self.drafts.undone_after_error():
            self._native.sql(f"DROP VIEW {schema.sql}.{quoted(name)}")
            self.drafts.drop(schema, name)

    def _create_view(self, schema: DatabaseSchema, name: str, handle: TableHandle) -> None:
        with unpinned():
            source, body = schema.view_body(name, handle)
            self.drafts.keep(source)
            self._native.sql(f"CREATE VIEW {schema.sql}.{quoted(name)} AS {body}")

    def show_again(self, schema: DatabaseSchema, name: str) -> None:
        """Show the changed columns of a new table."""
        handle = schema.find(name)
        assert handle is not None
        self._native.sql(f"DROP VIEW {schema.sql}.{quoted(name)}")
        self._create_view(schema, name, handle)

    def _hide(self, handle: TableHandle) -> None:
        """Drop the views through which the connection reads a table at the version of the transaction."""
        for identity in [identity for identity in self.shown if identity[0] == handle.place]:
            table = self.shown.pop(identity)
            self._names.hide(table.view)
            unbind_name(self._native, table.view)
