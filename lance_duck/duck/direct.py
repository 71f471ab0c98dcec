"""Answers statements that select columns by a key, or aggregate whole columns, without DuckDB.

    SELECT name FROM t WHERE id = ?
    SELECT count(*) FROM t

The first run of a text is DuckDB's. Its column names and types show that the text means what `rules.key_select` or
`rules.aggregates` reads in it. Later runs find the rows by an index, or the aggregates as `run.prefetch_rows` does, at
the newest version of the table. They are left to DuckDB in a transaction, after a change of names, settings or columns,
for values or tables without the shape of `scan.searches.key_lookup`, and for aggregates that require a scan.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck import interrupts
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.execute import Execution
from lance_duck.duck.failures import own_errors
from lance_duck.duck.inherited import Inherited
from lance_duck.duck.rules import aggregates
from lance_duck.duck.rules.aggregates import AggregatedTable
from lance_duck.duck.rules.key_select import KeySelect
from lance_duck.duck.run.costs import FEW
from lance_duck.duck.run.named_tables import named, variables
from lance_duck.duck.run.prefetch_rows import BUILT_IN, about_aggregates, aggregate_values
from lance_duck.duck.settings import About
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.lifted import without_numbers
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.statement_versions import listing_context, statement_context
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.types import PLAIN_TYPES
from lance_duck.scan.searches.key_lookup import KeyLookup
from lance_duck.scan.searches.request import cached_lookup
from lance_duck.scan.table_scan import TableScan
from lance_duck.telemetry.observing import is_observed

_CACHED: Final = 256
_TYPES: Final = PLAIN_TYPES | {
    pa.binary(): "BLOB",
    pa.large_binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
}
"""Types of which DuckDB and pyarrow return the same Python values."""


_MARKS: Final = frozenset({b"ARROW:extension:name", b"lance-encoding:blob"})
_PLAIN_NAME: Final = re.compile(r"[a-z_]\w*", re.IGNORECASE | re.ASCII)
_MEANING: Final = About.SYNTAX | About.VALUES | About.TEXTS | About.RUNS
_AGGREGATE: Final = re.compile(r"\s*select\s+(?:count|min|max)\s*\(", re.IGNORECASE)


@dataclass
class _SelectedTable:
    """The table that a statement reads.

    Attributes:
        handle: The table.
        schema: Its columns.
        columns: The selected columns.
        key: The column of the condition.
        titles: The column names of the result.
        table: The version for which `lookup` was made, or None.
        lookup: Finds rows in this version. None if it is not possible.
        is_stale: Whether the columns have changed.
    """

    handle: TableHandle
    schema: pa.Schema
    columns: tuple[str, ...]
    key: str
    titles: tuple[str, ...]
    table: TableScan | None = None
    lookup: KeyLookup | None = None
    is_stale: bool = False

    def rows(self, values: Sequence[Any]) -> pa.Table | None:
        """Return the rows of the newest version with one of the values as key, or None if DuckDB must find them."""
        dataset = self.handle.current()
        table = dataset.handle.table
        if self.table is not table:
            self.is_stale = not dataset.schema.equals(self.schema, check_metadata=True)
            arguments = {"columns": list(dict.fromkeys(self.columns))}
            self.lookup = None if self.is_stale else cached_lookup(table, self.key, arguments)
            self.table = table  # last, because a failed read must not leave the lookup of another version
        rows = None if self.lookup is None else self.lookup.rows(values, FEW)
        return rows if rows is None or rows.num_columns == len(self.columns) else rows.select(self.columns)


@dataclass
class _WholeTable:
    """The table that a statement aggregates.

    Attributes:
        handle: The table.
        asked: The aggregates.
        titles: The column names of the result.
        types: The Arrow types of the result.
        table: The version of `answer`, or None.
        answer: The row of aggregates in this version. None if they require a scan.
        is_stale: Whether the types have changed.
    """

    handle: TableHandle
    asked: AggregatedTable
    titles: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    table: TableScan | None = None
    answer: pa.Table | None = None
    is_stale: bool = False

    def rows(self, values: Sequence[Any]) -> pa.Table | None:
        """Return the row of aggregates in the newest version, or None if DuckDB must compute it."""
        dataset = self.handle.current()
        table = dataset.handle.table
        if self.table is not table:
            found = [value for value in aggregate_values(dataset, self.asked) if value is not None]
            is_known = len(found) == len(self.types)
            self.is_stale = is_known and tuple(value.type for value in found) != self.types
            is_answer = is_known and not self.is_stale
            self.answer = pa.Table.from_arrays(found, list(self.titles)) if is_answer else None
            self.table = table
        return self.answer


_Source = _SelectedTable | _WholeTable


@dataclass
class _Known:
    """A statement that DuckDB has run.

    Attributes:
        select: What it selects, or None if it has a different form.
        state: The names and settings of the connection at that time.
        source: The table. None if the statement must run in DuckDB.
    """

    select: KeySelect | AggregatedTable | None
    state: object
    source: _Source | None

    @property
    def is_stale(self) -> bool:
        """Whether the columns of the table have changed since."""
        return self.source is not None and self.source.is_stale


class DirectReads:
    """Answers statements of one connection from indexes and metadata.

    Args:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        execution: Runs its other statements.
        inherited: The database, and whether this process may use it.
    """

    def __init__(
        self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, execution: Execution, inherited: Inherited
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._names = execution.names
        self._execution = execution
        self._inherited = inherited
        self._known: dict[str, _Known] = {}
        self._has_abort = hasattr(native, "abort")

    def answer(self, text: object, parameters: Any, *, has_rows: bool) -> bool:
        """Hold the result of a statement for the fetches of the connection. Returns False if DuckDB must run it.

        Args:
            text: The statement.
            parameters: Its parameters, or None.
            has_rows: Whether DuckDB still has rows of the last statement.
        """
        writer = self._execution.writer
        if not self._known or type(text) is not str or writer.in_transaction or is_observed():
            return False
        source, state, values = self._found(text, parameters)
        if source is None or values is None or (has_rows and not self._has_abort):
            return False
        with self._execution.measured(text, {} if parameters is None else {"parameters": parameters}) as statement:
            found = self._rows(source, state, values)
            if found is None:
                statement.leave()
                return False
            rows, tuples = found
            writer.drop_rows()
            writer.rowcount = None
            writer.count.hold(tuples, partial(self._make, source.titles, rows))
        return True

    def _found(self, text: str, parameters: Any) -> tuple[_Source | None, object, list[Any] | None]:
        """Return the table of a known statement, its state, and the values to compare with."""
        known = self._known.get(text)
        if known is None and parameters is None and (lifted := without_numbers(text)) is not None:
            known, parameters = self._known.get(lifted[0]), lifted[1]
        if known is None or known.select is None or known.source is None:
            return None, None, None
        if isinstance(known.select, AggregatedTable):
            return known.source, known.state, [] if parameters is None else None
        return known.source, known.state, known.select.keys(parameters)

    def _rows(self, source: _Source, state: object, values: list[Any]) -> tuple[pa.Table, list[tuple[Any, ...]]] | None:
        """Return the rows as a table and as tuples, or None if DuckDB must find them."""
        uses = self._inherited.begun()
        try:
            interrupts.check()
            rows = listing_context().run(self._newest_rows, source, state, values)
            return None if rows is None else (rows, _tuples(rows))
        except (LanceDuckError, duckdb.Error):  # DuckDB raises the error, or finds the rows
            return None
        except (OverflowError, ValueError):  # a date or time that Python does not represent
            return None
        finally:
            uses.pop()

    def _newest_rows(self, source: _Source, state: object, values: list[Any]) -> pa.Table | None:
        catalog = self._catalog
        catalog.refresh()
        if catalog.has_new_objects or state != self._names.state():
            return None
        return source.rows(values)

    def _make(self, titles: Sequence[str], rows: pa.Table) -> None:
        """Run a statement in DuckDB that returns the rows."""
        native = self._native
        names = [f"c{i}" for i in range(len(titles))]
        table = named(native, rows.rename_columns(names))
        items = ", ".join(f"{name} AS {quoted(title)}" for name, title in zip(names, titles, strict=True))
        sql = f'SELECT {items} FROM "{table.name}"'  # noqa: S608
        with own_errors(), self._inherited.use():
            call_as_user(partial(native.execute, sql), variables((table,)))

    def learn(self, text: object, parameters: Any) -> None:
        """Note a statement that DuckDB has just run, so that it can be answered from now on.

        Args:
            text: The statement.
            parameters: Its parameters, or None.
        """
        state = self._names.state()
        if state is None or type(text) is not str or self._execution.writer.in_transaction:
            return
        lifted = without_numbers(text) if parameters is None else None
        text = text if lifted is None else lifted[0]
        known = self._known.get(text)
        if known is not None and (known.select is None or (known.state == state and not known.is_stale)):
            return
        select = _read(text) if known is None else known.select
        if len(self._known) >= _CACHED:
            self._known.clear()
        self._known[text] = _Known(select, state, self._source(select))

    def _source(self, select: KeySelect | AggregatedTable | None) -> _Source | None:
        """Return the table of a statement. None if DuckDB must run the statement."""
        if isinstance(select, AggregatedTable):
            return self._aggregated(select)
        return None if select is None else self._selected(select)

    def _aggregated(self, asked: AggregatedTable) -> _WholeTable | None:
        """Return the table of a statement with aggregates. None if the text may mean others, or they require a scan."""
        names = self._names
        # Looking up unknown names would drop the result. They are known if the functions are.
        if not names.are_known_built_in(BUILT_IN):
            return None
        try:
            handle = names.table(asked.name, later=True)
            if handle is None or not names.dialect(asked.name, later=True).is_usual(about_aggregates(asked)):
                return None
            values = aggregate_values(statement_context().run(handle.current), asked)
        except LanceDuckError:
            return None
        titles = tuple(each.title for each in asked.aggregates)
        types = tuple(value.type for value in values if value is not None)
        is_meant = self._returned() == [(title, _TYPES.get(type_)) for title, type_ in zip(titles, types, strict=False)]
        return _WholeTable(handle, asked, titles, types) if is_meant else None

    def _returned(self) -> list[tuple[str, str]]:
        """Return the column names and types of the last result."""
        return [(each[0], str(each[1])) for each in self._native.description or ()]

    def _selected(self, select: KeySelect) -> _SelectedTable | None:
        """Return the table of a statement. None if DuckDB's result shows that the text has a different meaning."""
        names = self._names
        try:
            handle = names.table(select.table, later=True)
            if handle is None or not names.dialect(select.table, later=True).is_usual(_MEANING):
                return None
            schema = statement_context().run(handle.current).schema
        except LanceDuckError:
            return None
        stored = {folded(name): name for name in schema.names}
        if len(stored) < len(schema) or (select.is_qualified and folded(select.qualifier) in stored):
            return None
        items = [(name, None) for name in schema.names] if select.columns is None else select.columns
        wanted = [stored.get(folded(name), "") for name in (select.key, *(name for name, _ in items))]
        if not all(map(_PLAIN_NAME.fullmatch, wanted)):
            return None
        key, *columns = wanted
        titles = [title or name for name, (_, title) in zip(columns, items, strict=True)]
        expected = [(title, _type_name(schema.field(name))) for title, name in zip(titles, columns, strict=True)]
        is_meant = self._returned() == expected
        return _SelectedTable(handle, schema, tuple(columns), key, tuple(titles)) if is_meant else None

    def close(self) -> None:
        """Answer no more statements."""
        self._known.clear()


def _read(text: str) -> KeySelect | AggregatedTable | None:
    """Return what a statement seems to ask, or None if it has a different form."""
    if _AGGREGATE.match(text) is None:
        return KeySelect.of(text)
    found = aggregates.find(Statement.of(text))
    return found[0] if found else None


def _type_name(field: pa.Field) -> str | None:
    """Return the DuckDB type of a column. None if `_values` may return other Python values than DuckDB."""
    if not _MARKS.isdisjoint(field.metadata or ()):
        return None
    if pa.types.is_fixed_size_list(field.type):
        element = _TYPES.get(field.type.value_type)
        return None if element is None else f"{element}[{field.type.list_size}]"
    return _TYPES.get(field.type)


def _tuples(rows: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*map(_values, rows.columns), strict=True)) if rows.num_rows else []


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Return the Python values of a column. DuckDB returns arrays as tuples."""
    values: list[Any] = column.to_pylist()
    is_array = pa.types.is_fixed_size_list(column.type)
    return [None if value is None else tuple(value) for value in values] if is_array else values
