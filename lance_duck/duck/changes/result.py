"""Results of statements that change a table: a row count, or the RETURNING rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import pyarrow as pa

from lance_duck.duck.statement.identifiers import literal, quoted

_ROWS: Final = "__lance_result"
_UNNAMED: Final = re.compile(r"STRUCT\([A-Z]+[,()\[]")
"""Matches tuple types as DuckDB 1 writes them. It cannot store tuples in a table, or parse their type in a CAST."""
_SIZES: Final[Mapping[str, int | None]] = {"fetchone": 1, "fetchmany": 1, "fetchall": None}
"""Methods that fetch tuples, each with the default number of rows."""


@dataclass(frozen=True)
class ChangeResult:
    """Result rows of a statement, as a query that DuckDB runs.

    Attributes:
        sql: The query.
        rowcount: Number of changed rows, or -1 if not counted.
        tables: Tables that the query reads, by name.
        is_count: Whether the result is one row with the number of changed rows.
    """

    sql: str
    rowcount: int = -1
    tables: Mapping[str, Any] = field(default_factory=dict)
    is_count: bool = False

    @property
    def called(self) -> str:
        """The query as a CALL statement. DuckDB computes all rows of a CALL before it returns."""
        return f"CALL query({literal(self.sql)})"


def holds_tuple(type_: str) -> bool:
    """Return whether a DuckDB 1 type name is or contains a tuple type."""
    return _UNNAMED.search(type_) is not None


def counted(rows: int) -> ChangeResult:
    """Return the result that DuckDB returns for a change without RETURNING."""
    return ChangeResult(f'SELECT {int(rows)}::BIGINT AS "Count"', int(rows), is_count=True)


def nothing(name: str = "Success", type_: str = "BOOLEAN") -> ChangeResult:
    """Return DuckDB's result for a statement without a row count."""
    return ChangeResult(f"SELECT NULL::{type_} AS {quoted(name)} WHERE false")


def returned(rows: pa.Table, types: Sequence[str], count: int, titles: Sequence[str] | None = None) -> ChangeResult:
    """Return the RETURNING rows.

    Args:
        rows: The rows.
        types: DuckDB types of the columns. Arrow has fewer types.
        count: Number of changed rows.
        titles: Column names, possibly repeated. Defaults to the names in `rows`.
    """
    names = [f"c{i}" for i in range(rows.num_columns)]
    casts = (
        f"{name if holds_tuple(type_) else f'CAST({name} AS {type_})'} AS {quoted(title)}"
        for name, type_, title in zip(names, types, titles or rows.column_names, strict=True)
    )
    sql = f"SELECT {', '.join(casts)} FROM {_ROWS}"  # noqa: S608
    return ChangeResult(sql, count, {_ROWS: rows.rename_columns(names)})


def listed(columns: Mapping[str, str], rows: Sequence[Sequence[Any]] | None) -> ChangeResult:
    """Return a result with the given rows.

    Args:
        columns: DuckDB types of the columns, by name.
        rows: Values in column order, if any.
    """
    values = zip(*rows, strict=True) if rows else [[] for _ in columns]
    arrays = [pa.array(list(column)) for column in values]
    return returned(pa.table(arrays, list(columns)), list(columns.values()), -1)


class HeldResult:
    """A result that is held until the next statement: the row count of a change, or rows that an index found.

    Methods that fetch tuples read it directly. Methods for data frames, column names and so on first create the result
    in DuckDB. Most callers do not use them. A DuckDB call takes 0.7 ms of the 5 ms of a single-row INSERT
    (`benchmarks/sql_changes.py`).

    Attributes:
        is_held: Whether a result is held.
    """

    def __init__(self) -> None:
        self.is_held = False
        self._make: Callable[[], Any] = nothing
        self._rows: list[tuple[Any, ...]] = []
        self._reads: list[Callable[[], Any]] = []

    def hold(self, rows: list[tuple[Any, ...]], make: Callable[[], Any]) -> None:
        """Hold a result.

        Args:
            rows: Its rows.
            make: Creates the result in DuckDB, so that the connection can fetch it.
        """
        self._make, self._rows, self._reads, self.is_held = make, rows, [], True

    def drop(self) -> None:
        """Drop the result, if there is one."""
        self.is_held = False

    def make(self) -> None:
        """Run the held result in DuckDB, and repeat the fetches made so far."""
        if self.is_held:
            self.is_held = False
            self._make()
            for read in self._reads:
                read()

    def fetched(self, name: str, method: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Fetch from the held result.

        Args:
            name: The name of the method.
            method: DuckDB's method.
            args: The positional arguments.
            options: The keyword arguments.
        """
        size = args[0] if args else _SIZES.get(name, -1)
        is_plain = name in _SIZES and not options and len(args) <= (name == "fetchmany")
        if is_plain and (size is None or (type(size) is int and size >= 0)):
            self._reads.append(partial(method, *args))
            return self._take(size, is_one=name == "fetchone")
        self.make()
        return method(*args, **options)

    def _take(self, size: int | None, *, is_one: bool) -> Any:
        rows, self._rows = self._rows[:size], [] if size is None else self._rows[size:]
        return rows if not is_one else rows[0] if rows else None
