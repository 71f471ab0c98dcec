"""Gives DuckDB access to the user's Python variables. DuckDB looks up unknown table names there.

DuckDB only searches the frame that calls it. On the call stack, frames of this package are between the user's frame and
DuckDB. DuckDB is therefore called in the namespace of the user's frame.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from types import FrameType, FunctionType
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import duckdb
import pyarrow as pa

from lance_duck import interrupts
from lance_duck.duck.history.source import BatchRows
from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.placeholders import with_constants
from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

T = TypeVar("T")

_VIEWS: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()
_MISSING: Final = re.compile(r"Table with name (.+?) does not exist!")
_FLOATS: Final = re.compile("float|double")
_AT_ONCE: Final = (duckdb.StatementType.EXPLAIN, duckdb.StatementType.EXECUTE, duckdb.StatementType.CALL)
_NAME: Final = "__lance_call"
_CALL: Final = compile(f"{_NAME}()", "<lance_duck>", "eval")
call_alone: Final[Callable[[Callable[..., Any], str, Mapping[str, Any]], Any]] = FunctionType(
    (lambda __lance_call, __lance_sql, __lance_options: __lance_call(__lance_sql, **__lance_options)).__code__,
    {"__builtins__": builtins},
)
"""Calls a DuckDB method with a statement and options in an otherwise empty frame. The frame does not contain variables.
Its globals only contain the builtins that functions need for imports."""
call_without_variables: Final[Callable[[Callable[[], Any]], Any]] = FunctionType(
    (lambda __lance_call: __lance_call()).__code__, {"__builtins__": builtins}
)
"""Calls a function in an empty frame that `call_as_user` takes for the user's frame."""
_OURS: Final = ("lance_duck.", "contextlib", "tenacity")
"""Prefixes of modules whose frames may be between the user's frame and DuckDB."""


def call_as_user(call: Callable[[], T], tables: Mapping[str, Any] | None = None) -> T:
    """Call a DuckDB function with the variables of the nearest frame outside this package in scope.

    Args:
        call: A C function, or a `functools.partial` of one.
        tables: More tables, by the name or path in the statement.
    """
    interrupts.check()
    frame = _user_frame()
    native = _lock_keeper(call)
    if native is None:
        return _seen(frame, call, tables)
    with _one_thread(native) as is_alone:
        return _seen(frame, call if is_alone else _lazy(call), tables)


def _seen(frame: FrameType | None, call: Callable[[], T], tables: Mapping[str, Any] | None) -> T:
    """Call a function with tables in scope, even after `SET enable_external_access = false`.

    With that setting, DuckDB ignores Python variables. The tables are then temporary views until `drop_views`.
    """
    if not SPEAKS_SOURCE and tables:
        tables = {name: _with_exact_floats(table) for name, table in tables.items()}
    native = getattr(getattr(call, "func", None), "__self__", None) if tables else None
    if not isinstance(native, duckdb.DuckDBPyConnection):
        return _evaluated(frame, call, tables)
    if native in _VIEWS:
        _make_views(native, tables or {})
        return _evaluated(frame, call, tables)
    try:
        return _evaluated(frame, call, tables)
    except duckdb.CatalogException as error:
        missing = _MISSING.search(str(error))
        if missing is None or missing[1] not in (tables or {}):
            raise
    watch(native)
    _make_views(native, tables or {})
    return _evaluated(frame, call, tables)


def _with_exact_floats(table: Any) -> Any:
    """Return a source for which DuckDB 1.x filters NaN correctly.

    DuckDB 1.x filters with pyarrow, in which NaN > 1 is false.
    """
    if isinstance(table, pa.Table) and any(_FLOATS.search(str(type_)) for type_ in table.schema.types):
        return BatchRows.of(table)
    return table


def watch(native: duckdb.DuckDBPyConnection) -> None:
    """Pass tables to statements on this connection as views, because DuckDB ignores Python variables."""
    _VIEWS.setdefault(native, set())


def _make_views(native: duckdb.DuckDBPyConnection, tables: Mapping[str, Any]) -> None:
    for name, table in tables.items():
        native.register(name, table)
        _VIEWS[native].add(name)


def drop_views(native: duckdb.DuckDBPyConnection) -> None:
    """Drop the views that earlier statements needed. Never raises."""
    names = _VIEWS.get(native)
    while names:
        with suppress(duckdb.Error):  # a ROLLBACK may have dropped the view
            native.unregister(names.pop())


def _evaluated(frame: FrameType | None, call: Callable[[], T], tables: Mapping[str, Any] | None) -> T:
    names: dict[str, Any] = {_NAME: call}
    if frame is None:
        return eval(_CALL, {**(tables or {}), **names})  # type: ignore[no-any-return]  # noqa: S307  # a constant
    if frame.f_locals is not frame.f_globals:
        names = {**frame.f_locals, **names}
    if tables:
        names.update(tables)
    return eval(_CALL, frame.f_globals, names)  # type: ignore[no-any-return]  # noqa: S307  # a constant


def _lock_keeper(call: object) -> duckdb.DuckDBPyConnection | None:
    """Return the connection if DuckDB holds the GIL during the whole call, while its threads may wait for the GIL.

    DuckDB 1 does this in `sql` for relations that it computes immediately, such as those with parameters. Its threads
    may call Python, or free Python buffers.
    """
    if SPEAKS_SOURCE or not isinstance(call, partial) or getattr(call.func, "__name__", "") != "sql":
        return None
    native = getattr(call.func, "__self__", None)
    is_at_once = call.keywords.get("params") or not _is_lazy(*call.args)
    return native if is_at_once and isinstance(native, duckdb.DuckDBPyConnection) else None


def _is_lazy(query: object) -> bool:
    """Return whether DuckDB reads the tables of a statement without parameters later, or not at all."""
    if isinstance(query, duckdb.Statement):
        return query.type not in _AT_ONCE
    words = FirstWords.of(str(query))
    return "analyze" not in words.explain.lower() and words.word not in ("execute", "call")


@contextmanager
def _one_thread(native: duckdb.DuckDBPyConnection) -> Iterator[bool]:
    """Make DuckDB run on the calling thread only. Yields False if its configuration is locked with several threads."""
    if _is_called_by_duckdb():
        raise _in_a_function("it would wait for the statement that calls the function")
    with native.cursor() as cursor:
        (threads,) = cursor.execute("SELECT system.main.current_setting('threads')").fetchall()[0]
        if threads == 1:
            yield True
            return
        try:
            cursor.execute("SET threads = 1")
        except duckdb.InvalidInputException:
            yield False
            return
        except RuntimeError as error:  # called on a DuckDB worker thread that runs a Python function
            raise _in_a_function(str(error)) from error
        try:
            yield True
        finally:
            cursor.execute(f"SET threads = {int(threads)}")


def _lazy(call: Callable[[], T]) -> Callable[[], T]:
    """Return a call whose relation is computed later, without the GIL. Its parameters become constants.

    Raises:
        UnsupportedError: The statement is computed immediately, or a parameter has no exact constant.
    """
    assert isinstance(call, partial), "`_lock_keeper` found a method"
    (query,), values = call.args, call.keywords.get("params")
    text = with_constants(query, values or ()) if isinstance(query, str) and _is_lazy(query) else None
    if text is None:
        raise UnsupportedError(
            "DuckDB 1 may wait forever for its threads when it computes this relation",
            expected="one thread",
            found="several threads, and a locked configuration",
            remedy="use cursor.execute, set threads = 1 before the lock, or upgrade to DuckDB 2",
        )
    return partial(call.func, text, **{key: value for key, value in call.keywords.items() if key != "params"})


def _is_called_by_duckdb() -> bool:
    """Return whether this thread is inside a DuckDB call that runs a Python function."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL or frame.f_code is call_alone.__code__:
            return True
        frame = frame.f_back
    return False


def _in_a_function(reason: str) -> UnsupportedError:
    return UnsupportedError(
        "a Python function called by DuckDB 1 cannot create a relation with parameters",
        found=reason,
        remedy="use cursor.execute(query, parameters), or upgrade to DuckDB 2",
    )


def add_variable(frame: FrameType, name: str, value: Any) -> None:
    """Add a variable to a frame. Frames of `call_as_user` get a local variable, other frames a global variable."""
    (frame.f_locals if frame.f_code is _CALL else frame.f_globals)[name] = value


def user_variable(name: str) -> Any:
    """Return the value of a case-insensitive name in the nearest frame outside this package, or None."""
    frame = _user_frame()
    if frame is None:
        return None
    for scope in (frame.f_locals, frame.f_globals):
        if name in scope:
            return scope[name]
        values = [value for known, value in scope.items() if isinstance(known, str) and known.lower() == name.lower()]
        if values:
            return values[0] if len(values) == 1 else None
    return None


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and _is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return frame


@lru_cache
def _is_ours(module: object) -> bool:
    """Return whether frames of this module may be between the user's frame and DuckDB."""
    return str(module).startswith(_OURS)
