"""The functions behind `lance_scan` and `lance_vector_search`, which DuckDB calls when it binds a statement.

`query(__lance_bind(…))` in a macro binds the SQL that the function returns, and so becomes a table function whose
columns depend on its arguments. The SQL names a source: on DuckDB 2.0 one that is registered under a name of DuckDB's
own, on 1.x a Python variable, which DuckDB looks up among the names of the frame that runs the statement.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import FrameType
from typing import Any, Final

import duckdb

from lance_duck.duck.tables.handle import TableHandle, VersionChoice
from lance_duck.duck.tables.nearest import NearestRows, listed_numbers, select_nearest
from lance_duck.duck.tables.table import DuckTable, select_all
from lance_duck.duck.user_scope import add_variable
from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.forks import RLock
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

FUNCTION: Final = "__lance_bind"
_NEAREST: Final = "__lance_nearest"
_WHICH: Final = "__lance_binder"
_SPECIAL: Any = "special"
_KEPT: Final = 1024
_NAMES: Final = 256
_SEARCH_TYPES: Final[list[Any]] = [
    *("VARCHAR", "VARCHAR", "VARCHAR", "BIGINT", "BIGINT", "BIGINT", "BIGINT"),
    *("VARCHAR", "BOOLEAN", "VARCHAR", "BOOLEAN", "VARCHAR", "VARCHAR", "VARCHAR"),
]


def binder_of(connection: duckdb.DuckDBPyConnection) -> Binder:
    """Return the binder of the connection's database instance, a new one when there is none."""
    known = connection.execute("SELECT 1 FROM duckdb_functions() WHERE function_name = ?", [_WHICH]).fetchall()
    if not known:
        binder = Binder()
        binder.install(connection)
        return binder
    binder = _BINDERS[connection.execute(f"SELECT {_WHICH}()").fetchall()[0][0]]
    binder.add(connection)
    return binder


class Binder:
    """Tables of one database instance by what statements call them; safe for many threads.

    At most 1024 (table, version) pairs are kept open; the one that was not used for longest goes first.

    Args:
        find: Returns the handle of a name that stands for a table, or None for a path.
    """

    def __init__(self, find: Callable[[str], TableHandle | None] = lambda _: None) -> None:
        self._find = find
        self._lock = RLock()
        self._handles: OrderedDict[tuple[str, VersionChoice], TableHandle] = OrderedDict()
        self._sources: dict[tuple[str, VersionChoice], Any] = {}
        self._connections: list[weakref.ref[duckdb.DuckDBPyConnection]] = []
        self._searches: deque[Any] = deque(maxlen=_NAMES)
        self._numbers = count()

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Make the functions known to the connection's database instance, which must not know them."""
        text: Any = "VARCHAR"
        key = str(id(self))
        _BINDERS[key] = self
        connection.create_function(FUNCTION, self.bind, [text] * 4, text, null_handling=_SPECIAL)
        connection.create_function(_NEAREST, self.bind_nearest, _SEARCH_TYPES, text, null_handling=_SPECIAL)
        connection.create_function(_WHICH, lambda: key, [], text)
        self.add(connection)

    def add(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Use cursors of this connection, too, for as long as it is open."""
        with self._lock:
            self._connections = [ref for ref in self._connections if ref() is not None]
            self._connections.append(weakref.ref(connection))

    def bind(self, path: str | None, version: str | None, tag: str | None, asof: str | None) -> str:
        """Return SQL that reads a table: the body of `lance_scan`.

        Raises:
            LanceDuckError: The table or version is not there, or cannot be read.
        """
        if path is None:
            raise InvalidInputError("lance_scan without a path", expected="the path of a table")
        key = (path, VersionChoice(version, tag, asof))
        handle = self.handle(*key)
        return select_all(
            self._source(key, handle) if SPEAKS_SOURCE else self._variable(DuckTable(handle.current, pinned=True))
        )

    def bind_nearest(
        self,
        path: str | None,
        column: str | None,
        q: str | None,
        k: int | None,
        nprobes: int | None,
        refine_factor: int | None,
        ef: int | None,
        metric: str | None,
        prefilter: bool | None,
        condition: str | None,
        use_index: bool | None,
        version: str | None = None,
        tag: str | None = None,
        asof: str | None = None,
    ) -> str:
        """Return SQL that reads the rows nearest to a vector, or to each of several: the body of `lance_vector_search`.

        Raises:
            LanceDuckError: The table is not there or cannot be read, or an argument makes no sense.
        """
        for name, given in (("table", path), ("column", column), ("query vector", q), ("k", k)):
            if given is None:
                raise InvalidInputError(f"lance_vector_search without a {name}", found="NULL")
        nearest = {"column": column, "q": listed_numbers(str(q)), "k": k, "nprobes": nprobes, "ef": ef}
        nearest |= {"metric": metric, "use_index": use_index is not False, "refine_factor": refine_factor}
        options = {"filter": condition, "prefilter": prefilter is not False}
        dataset = self.handle(str(path), VersionChoice(version, tag, asof)).current()
        rows = NearestRows(dataset, nearest, options)
        return select_nearest(self._held(rows) if SPEAKS_SOURCE else self._variable(rows), rows.count_rows())

    def handle(self, path: str, choice: VersionChoice) -> TableHandle:
        """Return the handle of a table, the same for the same arguments."""
        named = self._find(path)
        if named is not None and choice == VersionChoice():
            return named
        key = (path, choice)
        with self._lock:
            if key not in self._handles:
                self._handles[key] = named.at(choice) if named is not None else TableHandle(path, choice)
            self._handles.move_to_end(key)
            while len(self._handles) > _KEPT:
                self._sources.pop(self._handles.popitem(last=False)[0], None)
            return self._handles[key]

    def spare_cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a new cursor on the instance, for use while the connections are busy."""
        with self._lock:
            connections = [connection for ref in self._connections if (connection := ref()) is not None]
        for connection in connections:
            with suppress(duckdb.Error):
                return connection.cursor()
        raise InternalError("no open connection to the database", remedy="call lance_duck.register again")

    def uninstall(self) -> None:
        """Take the functions away, so that the database holds nothing of Python any more."""
        for ref in self._connections:
            connection = ref()
            if connection is not None:
                with suppress(duckdb.Error):
                    connection.remove_function(FUNCTION)
                    connection.remove_function(_NEAREST)
                    connection.remove_function(_WHICH)
        self._sources.clear()
        self._searches.clear()

    def _source(self, key: tuple[str, VersionChoice], handle: TableHandle) -> str:
        with self._lock:
            if key not in self._sources:
                handle.current()
                self._sources[key] = self.register(DuckTable(handle.current))
            return str(self._sources[key].name)

    def _held(self, rows: NearestRows) -> str:
        """Return the name of a source that is held until many later ones are."""
        source = self.register(rows)
        with self._lock:
            self._searches.append(source)
        return str(source.name)

    def register(self, table: DuckTable | NearestRows) -> Any:
        """Return DuckDB 2.0's handle of a source: its `name` can be read in SQL for as long as the handle lives."""
        with self.spare_cursor() as cursor:
            return cursor._register_source(table)

    def _variable(self, table: DuckTable | NearestRows) -> str:
        name = f"__lance_table_{next(self._numbers) % _NAMES}"
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in (__name__, "duckdb"):
            frame = frame.f_back
        if frame is None:
            raise InternalError("no Python frame runs the statement")
        add_variable(frame, name, table)
        return name


_BINDERS: weakref.WeakValueDictionary[str, Binder] = weakref.WeakValueDictionary()


@atexit.register
def _uninstall_all() -> None:
    """Remove our functions at exit: DuckDB 2.0 complains on stderr when they outlive the interpreter."""
    for binder in list(_BINDERS.values()):
        binder.uninstall()
