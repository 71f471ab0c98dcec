"""Methods of DuckDB's relations that create or fill tables: in a Lance database, the statements of this package run.

DuckDB would create native tables and views in the in-memory database that shows the Lance tables, where they vanish.
The methods of `duckdb.DuckDBPyRelation` are therefore replaced once in each process. On other connections, and for
other databases, they call DuckDB's own methods.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from itertools import count
from typing import Any, Final, Protocol
from weakref import WeakValueDictionary

import duckdb

from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.identifiers import parts_of_name, quoted
from lance_duck.errors import UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE


class Owner(Protocol):
    """The methods of a connection that its relations call."""

    def execute(self, query: Any) -> Any:
        """Run a statement."""

    def execute_with(self, query: str, name: str, rows: Any) -> None:
        """Run a statement that reads rows by a name."""

    def append_or(self, native: Callable[[], object], table_name: str, rows: Any) -> None:
        """Append rows to a Lance table. For other names, call a function of DuckDB."""

    def sql(self, query: Any) -> Any:
        """Return the rows of a query as a relation."""

    def is_lance(self, name: tuple[str, ...]) -> bool:
        """Return whether a new table with this name would be a Lance table."""


_NUMBERS: Final = count(1)
_CONNECTIONS: Final[WeakValueDictionary[int, Owner]] = WeakValueDictionary()
_OWNER: Final = "__lance_connection"
_READS: Final = frozenset({"select", "from", "with", "values", "describe", "summarize", "show", "pivot", "unpivot"})
_RELATION: Final = "__lance_relation"
_NATIVE_INSERT_INTO: Final = duckdb.DuckDBPyRelation.insert_into
_OBJECT: Final = re.compile(r"__duckdb_source_|\b(?:pandas|arrow|python\w*|polars)_scan\w*\(|__lance_", re.IGNORECASE)
"""Matches the text of a relation that reads objects of this process."""


def follow_relations(connection: Owner, native: duckdb.DuckDBPyConnection) -> None:
    """Let relations of a connection create Lance tables and views."""
    number = next(_NUMBERS)
    _CONNECTIONS[number] = connection
    if SPEAKS_SOURCE:
        native.execute(f"SET VARIABLE {_OWNER} = {number}")
    else:  # a query on a relation would create a view
        native.execute(f"CREATE OR REPLACE TEMP MACRO {_OWNER}() AS {{'{_OWNER}_{number}': 0}}")


_HAS_HANDLES: Final = hasattr(duckdb.DuckDBPyRelation, "_handles")
"""Whether relations, and relations derived from them, can keep Python objects alive. DuckDB 1 cannot."""


def keep_connection(result: Any, connection: Owner) -> Any:
    """Keep a connection open while its relation exists. Returns the relation, or any other result."""
    if _HAS_HANDLES and isinstance(result, duckdb.DuckDBPyRelation):
        result._handles = (*result._handles, connection)
    return result


def _owner(relation: Any) -> Owner | None:
    """Return the connection of a relation, or None for other connections of DuckDB.

    Raises:
        UnsupportedError: Only the relation is left of the connection.
    """
    try:
        if SPEAKS_SOURCE:
            ((number,),) = relation.query(_RELATION, f"SELECT getvariable('{_OWNER}')").fetchall()
        else:
            (struct,) = relation.project(f"{_OWNER}() AS owner").types
            number = int(struct.children[0][0].rpartition("_")[2])
    except duckdb.Error:
        return None
    owner = None if number is None else _CONNECTIONS.get(number)
    if number is not None and owner is None:
        raise UnsupportedError(
            "the connection of this relation does not exist any more, and with it the folder of its tables",
            remedy="keep the connection in a variable: con = lance_duck.connect(folder)",
        )
    return owner


def _create(relation: Any, owner: Owner, name: str) -> None:
    owner.execute_with(f"CREATE TABLE {name} AS FROM {_RELATION}", _RELATION, relation)


def _insert_into(relation: Any, owner: Owner, name: str) -> None:
    owner.append_or(lambda: _NATIVE_INSERT_INTO(relation, name), name, relation)


def _create_view(relation: Any, owner: Owner, name: str, replace: bool = True) -> Any:
    text = relation.sql_query().strip()
    if _OBJECT.search(text):
        raise UnsupportedError(
            "the query of this relation reads objects of this process, and a stored view cannot",
            where=f"view {name}",
            remedy="run CREATE VIEW … AS with the text of the query, or use create() for a table",
        )
    owner.execute(f"CREATE {'OR REPLACE ' if replace else ''}VIEW {name} AS {text}")
    return owner.sql(f"FROM {name}")


def _query(native: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method `query`. Statements that change something run like any other of this package."""

    @wraps(native)
    def call(self: Any, virtual_table_name: str, sql_query: str) -> Any:
        reads = FirstWords.of(sql_query).word in _READS if isinstance(sql_query, str) else True
        owner = None if reads else _owner(self)
        if owner is None:
            return native(self, virtual_table_name, sql_query)
        return owner.execute_with(sql_query, virtual_table_name, self)

    return call


def _replaced(native: Callable[..., Any], method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls another one if the name, its first argument, is in a Lance database.

    DuckDB does not split the name of a view at dots.
    """

    @wraps(native)
    def call(self: Any, *arguments: Any, **options: Any) -> Any:
        name = next(iter([*arguments, *options.values()]), None)
        parts: tuple[str, ...] = ()
        if isinstance(name, str):
            parts = (name,) if method is _create_view else parts_of_name(name)
        owner = _owner(self) if parts else None
        if owner is None or not owner.is_lance(parts):
            return native(self, *arguments, **options)
        options = {key: value for key, value in options.items() if value is not name}
        arguments = arguments[1:] if arguments else ()
        return method(self, owner, ".".join(map(quoted, parts)), *arguments, **options)

    return call


def _replace_methods() -> None:
    methods: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(("create", "to_table"), _create),
        **dict.fromkeys(("create_view", "to_view"), _create_view),
        "insert_into": _insert_into,
    }
    for name, method in methods.items():
        native = getattr(duckdb.DuckDBPyRelation, name, None)
        if native is not None:
            setattr(duckdb.DuckDBPyRelation, name, _replaced(native, method))
    setattr(duckdb.DuckDBPyRelation, "query", _query(duckdb.DuckDBPyRelation.query))  # noqa: B010


_replace_methods()
