"""The Python functions behind `lance_scan`, the searches and the history functions. DuckDB calls them at each bind.

`query(__lance_bind(…))` in a macro binds the SQL that the function returns. The macro thereby acts as a table function
whose columns depend on its arguments. The SQL refers to a source. On DuckDB 2.0, sources are registered under generated
names. On 1.x, a source is a Python variable that DuckDB finds in the frame that runs the statement.
"""

from __future__ import annotations

import atexit
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from types import FrameType
from typing import Any, Final

import duckdb

from lance_duck.arguments import did_you_mean
from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.duck.access import FileAccess
from lance_duck.duck.history.commits import commits
from lance_duck.duck.history.functions import HistoryCall
from lance_duck.duck.history.metrics import metric_rows
from lance_duck.duck.history.names import COMMITS, METRICS
from lance_duck.duck.history.source import BatchRows
from lance_duck.duck.macros import HISTORY_TYPES, HYBRID_TYPES, SEARCH_TYPES, TEXT_TYPES
from lance_duck.duck.search_filters import SearchFilters
from lance_duck.duck.statement.identifiers import folded, may_be_name, quoted, stored_name
from lance_duck.duck.tables.computed_columns import AskedColumns, TableWithColumns, TextMatches
from lance_duck.duck.tables.facts import FACTS, facts_as_sql
from lance_duck.duck.tables.handle import TableHandle, VersionChoice, pinned_versions
from lance_duck.duck.tables.hybrid import HybridRows
from lance_duck.duck.tables.matches import MatchingRows
from lance_duck.duck.tables.nearest import NearestRows, listed_numbers
from lance_duck.duck.tables.row_identifier_columns import row_identifiers
from lance_duck.duck.tables.search import SearchRows, select_found
from lance_duck.duck.tables.source_views import SourceViews, columns_alone
from lance_duck.duck.tables.table import DuckTable, select_all
from lance_duck.duck.tables.text_functions import TextFunctions
from lance_duck.duck.user_scope import add_variable
from lance_duck.errors import InternalError, InvalidInputError, LanceDuckError, NotFoundError
from lance_duck.forks import RLock
from lance_duck.groups.log import CommitLog
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.text.request import query_of_text

FUNCTION: Final = "__lance_bind"
_NEAREST: Final = "__lance_nearest"
_TEXT: Final = "__lance_text"
_HYBRID: Final = "__lance_hybrid"
_HISTORY: Final = "__lance_history"
_MATCHING: Final = "__lance_matches"
_WHICH: Final = "__lance_binder"
_SPECIAL: Any = "special"
_KEPT: Final = 1024
_Key = tuple[str, VersionChoice, tuple[tuple[str, str], ...]]
_NAMES: Final = 256
_OPENS: Final[ContextVar[bool]] = ContextVar("lance_duck_opens_tables", default=True)


def binder_of(connection: duckdb.DuckDBPyConnection) -> Binder:
    """Return the binder of the connection's database instance. Creates it if necessary."""
    known = connection.execute(
        "SELECT 1 FROM system.main.duckdb_functions() WHERE function_name = ?", [_WHICH]
    ).fetchall()
    if not known:
        binder = Binder()
        binder.install(connection)
        return binder
    binder = _BINDERS[connection.execute(f"SELECT {_WHICH}()").fetchall()[0][0]]
    binder.add(connection)
    return binder


@contextmanager
def without_opening() -> Iterator[None]:
    """Bind tables as a column `unreadable`. Only views are created in this context, so its rows are never read."""
    token = _OPENS.set(False)
    try:
        yield
    finally:
        _OPENS.reset(token)


class Binder:
    """A thread-safe map from the names and paths in statements to the tables of one database instance.

    At most 1024 (table, version) pairs are kept open. The least recently used pair is closed first.

    Args:
        find: Returns the handle of a table by its name, or None for a path.
        options: Returns the settings of the object store for a path.
        names: Returns the table names.
        qualify: Returns a name with the database in which a search path finds it. Returns a path unchanged.
        roots: Returns the locations of the connected folders and tables.
        missing: Returns the error if the folder of the name's database does not exist, or None.
        log: Returns the commit log of a database or folder. None is the first database of a search path.

    Attributes:
        texts: The functions behind `match` and `score`.
        access: The locations that statements may access.
        filters: Values to which the filters of searches refer.
    """

    def __init__(
        self,
        find: Callable[[str], TableHandle | None] = lambda _: None,
        options: Callable[[str], Mapping[str, str] | None] = lambda _: None,
        names: Callable[[], Iterable[str]] = tuple,
        qualify: Callable[[str, str], str] = lambda text, _: text,
        roots: Callable[[], Iterable[str]] = tuple,
        missing: Callable[[str], LanceDuckError | None] = lambda _: None,
        log: Callable[[str | None, str], CommitLog | None] = lambda folder, _: CommitLog(folder) if folder else None,
    ) -> None:
        self._find = find
        self._options = options
        self._names = names
        self._qualify = qualify
        self._missing = missing
        self._log = log
        self.access = FileAccess(self.spare_cursor, roots)
        self._views = SourceViews(self.spare_cursor)
        self._lock = RLock()
        self._handles: OrderedDict[_Key, TableHandle] = OrderedDict()
        self._sources: OrderedDict[int, tuple[TableHandle, Any]] = OrderedDict()
        self._connections: list[weakref.ref[duckdb.DuckDBPyConnection]] = []
        self._searches: deque[Any] = deque(maxlen=_NAMES)
        self._numbers = count()
        self.filters = SearchFilters()
        self._matches: LruCache[TextMatches] = LruCache(_NAMES)
        self.texts = TextFunctions(lambda path, which: self.handle(path, VersionChoice(**which)).newest())

    def let_go(self) -> None:
        """Forget all tables and searches. Statements that were bound to them fail afterwards."""
        with self._lock:
            for handle in self._handles.values():
                handle.let_go()
            self._handles.clear()
            self._sources.clear()
            self._searches.clear()
        self._matches.drop_where(lambda _: True)
        self._views.let_go()
        self.texts.let_go()

    def install(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Register the functions with the connection's database instance, which must not have them yet."""
        text: Any = "VARCHAR"
        key = str(id(self))
        _BINDERS[key] = self
        connection.create_function(FUNCTION, self.bind, [text] * 7, text, null_handling=_SPECIAL)
        connection.create_function(_NEAREST, self.bind_nearest, SEARCH_TYPES, text, null_handling=_SPECIAL)
        connection.create_function(_TEXT, self.bind_text, TEXT_TYPES, text, null_handling=_SPECIAL)
        connection.create_function(_HYBRID, self.bind_hybrid, HYBRID_TYPES, text, null_handling=_SPECIAL)
        connection.create_function(_MATCHING, self.bind_matching, [text, text], text, null_handling=_SPECIAL)
        connection.create_function(_HISTORY, self.bind_history, HISTORY_TYPES, text, null_handling=_SPECIAL)
        self.texts.install(connection)
        connection.create_function(_WHICH, lambda: key, [], text)
        self.add(connection)

    def add(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Also use cursors of this connection, as long as it is open."""
        with self._lock:
            self._connections = [ref for ref in self._connections if ref() is not None]
            self._connections.append(weakref.ref(connection))

    def bind(
        self,
        path: str | None,
        version: str | None,
        tag: str | None,
        asof: str | None,
        branch: str | None = None,
        search_path: str | None = None,
        identifiers: str | None = None,
    ) -> str:
        """Return SQL that reads a table: the body of `lance_scan`.

        Args:
            path: Name or path of the table.
            version: See `VersionChoice`.
            tag: See `VersionChoice`.
            asof: See `VersionChoice`.
            branch: See `VersionChoice`.
            search_path: DuckDB's `search_path` setting.
            identifiers: Names of row identifiers to add as columns, separated by spaces.

        Raises:
            LanceDuckError: The table or version does not exist or cannot be read.
        """
        if path is None:
            raise InvalidInputError("lance_scan needs a path", expected="the path of a table")
        if not _OPENS.get():
            return "SELECT NULL AS unreadable"
        handle = self.handle(self._qualify(path, search_path or ""), VersionChoice(version, tag, asof, branch))
        if identifiers:
            dataset = self._searched(path, handle.choice, search_path)
            columns = row_identifiers(identifiers.split(), dataset)
            return select_all(self._readable(TableWithColumns(lambda: dataset, columns, pinned=True)))
        if (pinned := pinned_versions()) is not None and not handle.choice.is_number:
            pinned.note_bound()
            return select_all(self._readable(DuckTable(handle.current, pinned=True)))
        return select_all(
            quoted(self._source(handle)) if SPEAKS_SOURCE else self._variable(DuckTable(handle.current, pinned=True))
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
        branch: str | None = None,
        recall: float | None = None,
        search_path: str | None = None,
    ) -> str:
        """Return SQL that reads the rows nearest to one or more vectors: the body of `lance_vector_search`.

        Raises:
            LanceDuckError: The table does not exist or cannot be read, or an argument is invalid.
        """
        needed = {"table": path, "column": column, "query vector": q, "k": k}
        _check_present("lance_vector_search", needed)
        dataset = self._searched(str(path), VersionChoice(version, tag, asof, branch), search_path)
        nearest = {"column": stored_name(str(column), dataset.schema.names), "q": listed_numbers(str(q)), "k": k}
        nearest |= {"nprobes": nprobes, "ef": ef, "metric": metric, "use_index": use_index is not False}
        nearest |= {"refine_factor": refine_factor, "recall": recall}
        options = {"filter": self.filters.filter(condition, dataset), "prefilter": prefilter is not False}
        return self._select(NearestRows(dataset, nearest, options))

    def bind_text(
        self,
        path: str | None,
        column: str | None,
        query: str | None,
        k: int | None,
        prefilter: bool | None,
        condition: str | None,
        version: str | None = None,
        tag: str | None = None,
        asof: str | None = None,
        branch: str | None = None,
        search_path: str | None = None,
    ) -> str:
        """Return SQL that reads the rows that match a full-text query: the body of `lance_fts`.

        Raises:
            LanceDuckError: The table does not exist or cannot be read, or an argument is invalid.
        """
        _check_present("lance_fts", {"table": path, "column": column, "query": query, "k": k})
        dataset = self._searched(str(path), VersionChoice(version, tag, asof, branch), search_path)
        options = {"filter": self.filters.filter(condition, dataset), "prefilter": prefilter is not False}
        name = stored_name(str(column), dataset.schema.names)
        return self._select(MatchingRows(dataset, name, str(query), int(k or 0), options))

    def bind_matching(self, path: str, columns_json: str) -> str:
        """Return SQL that reads a table with additional columns for matches, scores and row identifiers.

        Args:
            path: Name or path of the table.
            columns_json: The serialized `AskedColumns`.

        Raises:
            LanceDuckError: The table does not exist or cannot be read, or `columns_json` is invalid.
        """
        wanted = AskedColumns.of(columns_json)
        dataset = self._searched(path, VersionChoice(**wanted.version))
        computed = wanted.computed(lambda query: self._matches.get((path, query), partial(TextMatches, query)))
        columns = [*computed, *row_identifiers(wanted.identifiers, dataset)]
        return select_all(self._readable(TableWithColumns(lambda: dataset, columns, pinned=True)))

    def bind_hybrid(
        self,
        path: str | None,
        vector_column: str | None,
        q: str | None,
        text_column: str | None,
        query: str | None,
        k: int | None,
        alpha: float | None,
        oversample_factor: int | None,
        method: str | None,
        nprobes: int | None,
        refine_factor: int | None,
        ef: int | None,
        metric: str | None,
        use_index: bool | None,
        prefilter: bool | None,
        condition: str | None,
        which: Sequence[str | None],
        recall: float | None = None,
        search_path: str | None = None,
    ) -> str:
        """Return SQL that reads the rows that two searches find: the body of `lance_hybrid_search`.

        See `bind_nearest`, `bind_text` and `Hybrid.of` for the arguments. `which` is passed to `VersionChoice`.

        Raises:
            LanceDuckError: The table does not exist or cannot be read, or an argument is invalid.
        """
        needed: dict[str, object] = {"table": path, "vector column": vector_column, "query vector": q}
        needed |= {"text column": text_column, "query": query, "k": k}
        needed |= {"alpha": alpha, "oversample_factor": oversample_factor, "method": method}
        _check_present("lance_hybrid_search", needed)
        dataset = self._searched(str(path), VersionChoice(*which), search_path)
        vectors, texts = (stored_name(str(name), dataset.schema.names) for name in (vector_column, text_column))
        nearest = {"column": vectors, "q": listed_numbers(str(q)), "k": k, "nprobes": nprobes, "ef": ef}
        more = {"metric": metric, "use_index": use_index is not False, "refine_factor": refine_factor, "recall": recall}
        arguments = {
            "nearest": nearest | more,
            "full_text_query": query_of_text(str(query), texts),
            "hybrid": {"method": method, "alpha": alpha, "oversample_factor": oversample_factor},
            "filter": self.filters.filter(condition, dataset),
            "prefilter": prefilter is not False,
        }
        return self._select(HybridRows(dataset, arguments))

    def _searched(self, path: str, choice: VersionChoice, search_path: str | None = None) -> LanceDataset:
        """Return the version of a table that a search reads."""
        return self._noted(self.handle(self._qualify(path, search_path or ""), choice))

    def _noted(self, handle: TableHandle) -> LanceDataset:
        """Return the version that a statement reads. In a transaction, relations then read their rows immediately."""
        dataset = handle.current()
        if (pinned := pinned_versions()) is not None and not handle.choice.is_number:
            pinned.note_bound()
        return dataset

    def _select(self, rows: SearchRows) -> str:
        """Return SQL that reads the result of a search."""
        return select_found(self._readable(rows), rows.count_rows())

    def bind_history(
        self,
        name: str,
        database: str | None,
        table: str | None,
        which: Sequence[str | None],
        arguments: Sequence[str | None] | None,
        search_path: str | None = None,
    ) -> str:
        """Return SQL that reads the result of a history or metadata function.

        Args:
            name: Name of the function, without its prefix.
            database: Database of the table. Defaults to the table name's qualifier, then the search path. For
                `commits`, the database or folder.
            table: Name or path.
            which: Arguments of `VersionChoice`.
            arguments: Arguments of `HistoryCall`, or the column for functions of `FACTS`.
            search_path: DuckDB's `search_path` setting.

        Raises:
            LanceDuckError: The table or version does not exist or cannot be read, or an argument is invalid.
        """
        if name == COMMITS:
            log = self._log(database, search_path or "")
            if log is not None:
                self.access.check(log.root)
            return f"SELECT * FROM {self._readable(BatchRows.of(commits(log)))}"  # noqa: S608
        if name == METRICS:
            return f"SELECT * FROM {self._readable(BatchRows.of(metric_rows()))}"  # noqa: S608
        if table is None:
            raise InvalidInputError(f"lance_{name} needs a table", expected="its name or path", found="NULL")
        by_path = self._qualify(table, search_path or "")
        qualified = by_path if database is None else f"{quoted(database)}.{quoted(table)}"
        path = table if self._find(qualified) is None else qualified
        dataset = self._noted(self.handle(path, VersionChoice(*which)))
        if name in FACTS:
            return facts_as_sql(name, dataset, arguments[0] if arguments else None)
        rows = HistoryCall(name, tuple(arguments or ())).rows(dataset)
        return f"SELECT * FROM {self._readable(rows)}"  # noqa: S608

    def handle(self, path: str, choice: VersionChoice) -> TableHandle:
        """Return the handle of a table. The same arguments return the same handle.

        Raises:
            NotFoundError: The string looks like a name, not a path, and the table does not exist.
        """
        named = self._find(path)
        if named is not None and choice == VersionChoice():
            return named
        if named is None:
            self.access.check(path)
        handle = TableHandle(path, choice, self._options(path)) if named is None else named.at(choice)
        handle.log_rows = self.access.log_rows
        key = (handle.uri, handle.choice, tuple(sorted((handle.storage_options or {}).items())))
        if named is None and key not in self._handles and may_be_name(path, self._names()):
            self._check_there(path, handle.storage_options)
        with self._lock:
            handle = self._handles.setdefault(key, handle)
            self._handles.move_to_end(key)
            while len(self._handles) > _KEPT:
                self._handles.popitem(last=False)
            return handle

    def _check_there(self, name: str, options: Mapping[str, str] | None) -> None:
        try:
            TableHandle(name, VersionChoice(), options).newest()
        except NotFoundError as error:
            names = list(self._names())
            within = (each for each in names if folded(each).endswith(f".{folded(name)}"))
            nearest = did_you_mean(next(within, name), names)
            remedy = nearest or "check the name, or give the path of a table"
            raise self._missing(name) or NotFoundError("no such table", where=name, remedy=remedy) from error

    def spare_cursor(self) -> duckdb.DuckDBPyConnection:
        """Return a new cursor on the instance, for use while the connections are busy."""
        with self._lock:
            connections = [connection for ref in self._connections if (connection := ref()) is not None]
        for connection in connections:
            with suppress(duckdb.Error):
                return connection.cursor()
        raise InternalError("no open connection to the database", remedy="call lance_duck.register again")

    def uninstall(self) -> None:
        """Remove the functions, so that the database no longer refers to Python objects."""
        for connection in filter(None, (ref() for ref in self._connections)):
            with suppress(duckdb.Error):
                for name in (FUNCTION, _NEAREST, _TEXT, _HYBRID, _HISTORY, _MATCHING, _WHICH):
                    connection.remove_function(name)
                self.texts.uninstall(connection)
        self._sources.clear()
        self._searches.clear()

    def _source(self, handle: TableHandle) -> str:
        """Return the name of a table's source. The least recently used sources are dropped."""
        with self._lock:
            if id(handle) not in self._sources:
                handle.current()
                self._sources[id(handle)] = handle, self.register(DuckTable(handle.shared))
            self._sources.move_to_end(id(handle))
            while len(self._sources) > _KEPT:
                self._sources.popitem(last=False)
            return str(self._sources[id(handle)][1].name)

    def _held(self, rows: SearchRows | DuckTable | BatchRows) -> str:
        """Return the name of a source. It stays registered until many other sources have been registered."""
        source = self.register(rows)
        with self._lock:
            self._searches.append(source)
        return str(source.name)

    def register(self, table: DuckTable | SearchRows | BatchRows) -> Any:
        """Return DuckDB 2.0's handle of a source. SQL can read its `name` while the handle lives."""
        with self.spare_cursor() as cursor:
            return cursor._register_source(table)

    def _readable(self, table: DuckTable | SearchRows | BatchRows) -> str:
        """Return SQL that reads a table, only valid in the current statement."""
        return quoted(self._held(table)) if SPEAKS_SOURCE else self._variable(table)

    def _variable(self, table: DuckTable | SearchRows | BatchRows) -> str:
        """Return the SQL name of the variable or view through which DuckDB 1.x reads a table."""
        if self.access.is_confined:
            return self._views.name_of(table)
        name = f"__lance_table_{next(self._numbers) % _NAMES}"
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_globals.get("__name__") in (__name__, "duckdb"):
            frame = frame.f_back
        if frame is None:  # a DuckDB thread resolves the columns of a view
            with self.spare_cursor() as cursor:
                return columns_alone(cursor, table)
        add_variable(frame, name, table)
        return quoted(name)


def _check_present(function: str, arguments: Mapping[str, object]) -> None:
    for name, argument in arguments.items():
        if argument is None:
            article = "an" if name[0] in "ao" else "a"
            raise InvalidInputError(f"{function} needs {article} {name}", found="NULL")


_BINDERS: weakref.WeakValueDictionary[str, Binder] = weakref.WeakValueDictionary()


@atexit.register
def _uninstall_all() -> None:
    """Remove the Python functions at exit. DuckDB 2.0 prints errors to stderr if they outlive the interpreter."""
    for binder in list(_BINDERS.values()):
        binder.uninstall()
