"""Changes of a table that are committed together: those between BEGIN and COMMIT, and those of `executemany`.

The changes make versions in memory. Between BEGIN and COMMIT, names on the connection mean that version: by a temporary
view, which a ROLLBACK of DuckDB's takes along. DuckDB writes to one database in a transaction only; a macro in the
database of our names, which is dropped at COMMIT, makes a Lance table count as one of these.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Final

import duckdb
import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import SCHEMA, TableCatalog
from lance_duck.duck.changes.target import dataset_of
from lance_duck.duck.names import Names
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.table import DuckTable
from lance_duck.errors import CommitConflictError, InvalidInputError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.pending_changes import PendingChanges

_NUMBERS: Final = count()
_EMPTY: Final = pa.table({"nothing": pa.array([], pa.null())})
_VIEW: Final = "__lance_transaction_of_"


class PendingTable(DuckTable):
    """The version of a table in memory, whichever it is when a statement reads it."""

    @property
    def dataset(self) -> LanceDataset:
        """The version."""
        return self._resolve()


def show(native: duckdb.DuckDBPyConnection, name: str, table: DuckTable) -> None:
    """Make a name mean a table, on one connection and before all others of that name."""
    native.register(name, table)


def hide(native: duckdb.DuckDBPyConnection, name: str) -> None:
    """Take a name of `show` back. Never raises."""
    with suppress(duckdb.Error):  # a transaction that failed takes it along
        # Where a ROLLBACK took the view along, DuckDB 1.x would drop another one of the name.
        native.register(name, _EMPTY)
        native.unregister(name)


class TransactionBlock:
    """Changes of one table that are not committed yet.

    Attributes:
        handle: The table; None before the first change.
        name: Its unqualified name.
        view: The name by which its version in memory can be read on the connection; None: it cannot.
        is_shown: Whether that is its unqualified name.
    """

    def __init__(self) -> None:
        self.handle: TableHandle | None = None
        self.name = ""
        self.view: str | None = None
        self.is_shown = False
        self._pending: PendingChanges | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was changed."""
        return self._pending is None

    def begin(self, handle: TableHandle, name: str, base: Snapshot) -> PendingChanges:
        """Begin with the changes of a table."""
        self.handle, self.name, self._pending = handle, name, PendingChanges(base)
        return self._pending

    def changes_of(self, handle: TableHandle, name: str) -> PendingChanges:
        """Return the changes of a table, which begin with its newest version.

        Raises:
            UnsupportedError: Another table was changed before.
        """
        if self._pending is None:
            return self.begin(handle, name, handle.current().handle.base)
        assert self.handle is not None
        if handle.place != self.handle.place:
            raise UnsupportedError(
                "a transaction changes one Lance table",
                where=name,
                found=f"{self.name} was changed in it before",
                remedy="COMMIT first: each table has versions of its own",
            )
        return self._pending

    def commit(self) -> None:
        """Make one version of all changes.

        Raises:
            CommitConflictError: Others changed the same rows; nothing is left of the changes.
        """
        pending, handle = self._pending, self.handle
        if pending is None or handle is None:
            return
        self._pending = None
        try:
            after = pending.commit()
        except (CommitConflictError, InvalidInputError, UnsupportedError):
            pending.discard()
            raise
        if after is not pending.base:
            handle.move_to(after)

    def discard(self) -> None:
        """Give all changes up."""
        if self._pending is not None:
            self._pending.discard()
            self._pending = None

    @property
    def dataset(self) -> LanceDataset:
        """The version in memory."""
        assert self._pending is not None
        return dataset_of(self._pending.current)

    def shadows(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name is the one that means the version in memory."""
        return self.is_shown and len(parts) == 1 and folded(parts[0]) == folded(self.name)


class DuckTransaction(TransactionBlock):
    """The changes between BEGIN and COMMIT of a connection.

    Args:
        native: DuckDB's connection, in a transaction.
        catalog: The Lance tables that it knows.
        names: What names mean on it.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, names: Names) -> None:
        super().__init__()
        self._native = native
        self._names = names
        self._marker = f"{quoted(catalog.name)}.{SCHEMA}.__lance_transaction_{next(_NUMBERS)}"

    def begin(self, handle: TableHandle, name: str, base: Snapshot) -> PendingChanges:
        """Begin with the changes of a table; from now on its name means them.

        Raises:
            duckdb.TransactionException: A table of DuckDB's own was changed in the transaction.
        """
        self._native.sql(f"CREATE MACRO {self._marker}() AS 1")
        pending = super().begin(handle, name, base)
        self.is_shown = self._names.are_ours((name,), later=True)
        self.view = name if self.is_shown else f"{_VIEW}{name}"
        show(self._native, self.view, PendingTable(lambda: self.dataset, hidden=False))
        return pending

    def finish(self) -> None:
        """Commit ours before DuckDB does: it has only the macro and what is temporary.

        Raises:
            InvalidInputError: The transaction failed before; DuckDB itself would keep silent about that.
            CommitConflictError: See `commit`.
        """
        if self.is_empty:
            return
        try:
            self._native.execute("SELECT 1").fetchall()
        except duckdb.Error as error:
            self.discard()
            raise InvalidInputError(
                "nothing is committed, as a statement of the transaction failed",
                found=str(error).partition("\n")[0],
                remedy="run the transaction again",
            ) from error
        self._hide()
        self._native.execute(f"DROP MACRO {self._marker}")
        self.commit()

    def abandon(self) -> None:
        """Give all changes up, after DuckDB did."""
        self._hide()
        self.discard()

    def _hide(self) -> None:
        self.is_shown = False
        if self.view is not None:
            hide(self._native, self.view)
            self.view = None
