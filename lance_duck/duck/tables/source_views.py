"""Views of Arrow sources for DuckDB 1, if Python variables are out of its reach."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Any, Final

import duckdb

from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.forks import RLock

_DATABASE: Final = "__lance_source_"
_VIEW: Final = "t"
_KEPT: Final = 64
_UNREAD: Final = literal("a Lance table is read by a thread without Python")


class SourceViews:
    """Views of sources, each in its own database in memory.

    A statement that is being bound sees new databases, but not new views in a database that it has already used.
    DuckDB keeps a source as long as a statement reads it. Older databases are detached.

    Args:
        cursor: Returns a new cursor on the database instance.
    """

    def __init__(self, cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._new_cursor = cursor
        self._cursor: duckdb.DuckDBPyConnection | None = None
        self._numbers = count()
        self._attached: deque[str] = deque()
        self._lock = RLock()

    def name_of(self, source: Any) -> str:
        """Return the qualified name of a new view of a source in SQL."""
        name = f"{_DATABASE}{next(self._numbers)}"
        with self._lock:
            if self._cursor is None:  # scans of the sources use its context
                self._cursor = self._new_cursor()
            self._cursor.execute(f"ATTACH ':memory:' AS {name}; USE {name}")
            self._cursor.from_arrow(source).create_view(_VIEW)
            self._attached.append(name)
            if len(self._attached) > _KEPT:
                with suppress(duckdb.Error):
                    self._cursor.execute(f"DETACH {self._attached.popleft()}")
        return f"{name}.main.{_VIEW}"

    def let_go(self) -> None:
        """Close the cursor, which would keep the database instance open."""
        with self._lock:
            if self._cursor is not None:
                self._cursor.close()
                self._cursor = None


def columns_alone(cursor: duckdb.DuckDBPyConnection, source: Any) -> str:
    """Return SQL for a relation that has the columns of a source but cannot be read."""
    relation = cursor.from_arrow(source)
    columns = zip(relation.columns, relation.types, strict=True)
    values = ", ".join(f"CAST(error({_UNREAD}) AS {type_}) AS {quoted(name)}" for name, type_ in columns)
    return f"(SELECT {values})"
