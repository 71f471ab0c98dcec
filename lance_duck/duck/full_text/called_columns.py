"""Resolve the columns that calls mention, either in tables of the enclosing SELECTs or through other queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_duck.arguments import did_you_mean, known_names, unknown_column
from lance_duck.arrow.types import is_list, storage_type
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import Place, TableCatalog
from lance_duck.duck.full_text.calls import TextCall, TextCalls
from lance_duck.duck.full_text.origins import Origin, Origins, QueryText, ReadTable
from lance_duck.duck.names import Names, View
from lance_duck.duck.statement.identifiers import folded, quoted
from lance_duck.duck.statement.scope import Part, Scope, TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.statement.user_text import drawn
from lance_duck.duck.tables.computed_columns import AskedColumns
from lance_duck.duck.tables.handle import TableHandle, VersionChoice, pinned_versions
from lance_duck.errors import InvalidInputError, LanceDuckError, UnknownColumnError, UnsupportedError
from lance_duck.scan.text.columns import TextColumn, text_column
from lance_duck.wire.column_path import join_path


@dataclass(frozen=True, eq=False)
class CalledColumn:
    """The column of a call.

    Attributes:
        table: The table's mention in the call's SELECT.
        path: Its path in the Lance table.
        texts: SQL for the list of its strings.
        origin: Its origin through other queries, or None if the SELECT reads the table directly.
        scope: The SELECT that reads the outermost of these queries.
        texts_below: SQL for the list of its strings in the SELECT that reads the table.
    """

    table: ReadTable
    path: str
    texts: str
    origin: Origin | None = None
    scope: Scope | None = None
    texts_below: str = ""


class CalledColumns:
    """Resolver for the columns in the calls of one statement.

    Args:
        catalog: The Lance tables.
        names: Name resolver of the connection.
        statement: The statement.
        calls: Its calls.
        later: Whether an unfetched result is kept while names are looked up.
    """

    def __init__(
        self, catalog: TableCatalog, names: Names, statement: Statement, calls: TextCalls, *, later: bool
    ) -> None:
        self._catalog = catalog
        self._names = names
        self._statement = statement
        self._later = later
        self._tables: dict[TableRead, ReadTable | None] = {}
        self.text = QueryText(calls.scopes)
        self._origins = Origins(self.text, self.table, self._view)

    def column(self, call: TextCall) -> CalledColumn:
        """Return the column of a call."""
        parts = call.column
        if not parts:
            expected = "a column of a Lance table"
            argument = call.positional[0].text.strip()
            raise self.placed(
                call, InvalidInputError("first argument", where=call.function, expected=expected, found=argument)
            )
        scope: Scope | None = call.scope
        while scope is not None:
            found_here = self._column_in(call, scope, parts)
            if found_here is not None:
                return found_here
            scope = scope.outer
        tables = [table for table_read in call.scope.tables if (table := self.table(table_read)) is not None]
        if any(table.read.is_hidden and table.column(parts[-1:]) is not None for table in tables):
            what = f"{call.function} of a table that the statement turns"
            remedy = "call it in a subquery that reads the table"
            raise self.placed(call, UnsupportedError(what, where=".".join(parts), remedy=remedy))
        columns = [name for table in tables for name in table.dataset.schema.names]
        name, expected = ".".join(parts), known_names(columns)
        error = UnknownColumnError(
            f"no Lance table in this SELECT has a column {name!r}",
            where=call.function,
            expected=expected,
            remedy=did_you_mean(name, columns),
        )
        raise self.placed(call, error)

    def _column_in(self, call: TextCall, scope: Scope, parts: tuple[str, ...]) -> CalledColumn | None:
        """Resolve a call's column in one SELECT. Returns None if only an enclosing SELECT may have the column."""
        named = [
            table_read for table_read in scope.tables if len(parts) > 1 and folded(table_read.alias) == folded(parts[0])
        ]
        if named:
            table = self.table(named[0])
            column = None if table is None else table.column(parts[1:])
            if table is not None and column is not None:
                return self._text_column(call, table, column)
            if table is not None:
                names = table.dataset.schema.names
                raise self.placed(call, unknown_column(".".join(parts[1:]), names, f"table {parts[0]}"))
            origin = self._origins.of(named[0], parts[1:])
            if origin is not None:
                return self._passed_column(call, named[0], origin, parts[1:], scope)
        seen = [table_read for table_read in scope.tables if not table_read.is_hidden or call.clause == "from"]
        tables = [table for table_read in seen if (table := self.table(table_read)) is not None]
        has_it = [(table, column) for table in tables if (column := table.column(parts)) is not None]
        if len(has_it) == 1 and not named:
            return self._text_column(call, *has_it[0])
        if not has_it and not named:
            traced = [(each, origin) for each in seen if (origin := self._origins.of(each, parts)) is not None]
            if len(traced) == 1:
                return self._passed_column(call, *traced[0], parts, scope)
            has_it = [(replace(origin.table, read=each), origin.column) for each, origin in traced]
        if has_it and not named:
            aliases = ", ".join(table.read.alias for table, _ in has_it)
            what, remedy = f"column {parts[0]!r} exists in several tables: {aliases}", "qualify it with its table"
            raise self.placed(call, InvalidInputError(what, where=call.function, remedy=remedy))
        if named or len(tables) < len(seen):
            raise self.placed(
                call,
                InvalidInputError(
                    f"{'.'.join(parts)} is not a column of a Lance table that this SELECT reads",
                    where=call.function,
                    expected="a column of a Lance table that the SELECT reads by its name or path",
                    remedy="call the function in the SELECT that reads the table, or qualify the column with its table",
                ),
            )
        return None

    def _text_column(self, call: TextCall, table: ReadTable, column: tuple[str, ...]) -> CalledColumn:
        """Return a column of a table that the SELECT reads directly."""
        field = self._field(call, table, column)
        return CalledColumn(table, field.path, _texts(table.read, table.shown(column), field))

    def _passed_column(
        self, call: TextCall, table_read: TableRead, origin: Origin, spelled: tuple[str, ...], scope: Scope
    ) -> CalledColumn:
        """Return a column that reaches the SELECT through other queries, perhaps under a different name."""
        field = self._field(call, origin.table, origin.column)
        texts = _texts(table_read, spelled, field)
        below = _texts(origin.table.read, origin.table.shown(origin.column), field)
        return CalledColumn(replace(origin.table, read=table_read), field.path, texts, origin, scope, below)

    def _field(self, call: TextCall, table: ReadTable, column: tuple[str, ...]) -> TextColumn:
        path = join_path(column) if len(column) > 1 else column[0]
        try:
            field = text_column(table.dataset.handle.snapshot.schema, path)
        except LanceDuckError as error:
            raise self.placed(call, error) from error
        if field.below:
            raise self.placed(
                call,
                UnsupportedError(
                    "full-text functions cannot search structs in a list", where=call.function, found=field.path
                ),
            )
        return field

    def table(self, table_read: TableRead, text: QueryText | None = None) -> ReadTable | None:
        """Return the Lance table that a SELECT reads, in the statement or in a view, or None."""
        if table_read not in self._tables:
            self._tables[table_read] = self._find(table_read, None if text is None else text.within)
        return self._tables[table_read]

    def _find(self, table_read: TableRead, within: Place | None) -> ReadTable | None:
        handle: TableHandle | None
        if table_read.columns is not None and AskedColumns.of(table_read.columns).version:
            return None
        if table_read.path is not None:
            handle, name = self._catalog.path_handle(table_read.path), table_read.path
        elif table_read.name is None:
            return None
        else:
            schema = self._names.schema_of(table_read.name, later=self._later, within=within)
            handle = None if schema is None else schema.find(table_read.name[-1])
            name = "" if schema is None else schema.table_sql(table_read.name[-1])
        if handle is None:
            return None
        dataset = _at_version(handle, table_read.version)
        is_held = pinned_versions() is not None and not table_read.version
        held = self._catalog.binder.texts.hold(dataset) if is_held else None
        return ReadTable(table_read, name, dataset, held, table_read.version)

    def _view(self, name: tuple[str, ...], text: QueryText) -> View | None:
        return self._names.view(name, later=self._later, within=text.within)

    def placed(self, call: TextCall, error: LanceDuckError) -> LanceDuckError:
        """Return a copy of an error that also contains the call's position in the statement."""
        place = drawn(self._statement.text, call.start, len(call.function))
        remedy = f"{error.remedy.removesuffix('?')}, here:{place}" if error.remedy else f"here:{place}"
        where = call.function if error.where is None else error.where
        return type(error)(error.what, where=where, expected=error.expected, found=error.found, remedy=remedy)


def _texts(table_read: TableRead, names: Sequence[str], field: TextColumn) -> str:
    """Return SQL for the list of a column's strings."""
    text = ".".join(map(quoted, (table_read.alias, *names) if table_read.alias else names))
    if field.is_json:
        text = f"CAST({text} AS VARCHAR)"
    return text if is_list(storage_type(field.type)) else f"[{text}]"


def _at_version(handle: TableHandle, version: Sequence[tuple[str, Part]]) -> LanceDataset:
    """Return the table at a constant version.

    Without a version, or if it is an expression, returns the newest version.
    """
    texts = {name: part.text.strip() if part.string is None else part.string for name, part in version}
    are_constants = all(part.string is not None or texts[name].isdecimal() for name, part in version)
    if texts and are_constants and "asof" not in texts:  # DuckDB parses times
        try:
            return handle.at(VersionChoice(**texts)).current()
        except LanceDuckError:
            pass  # the scan reports the error
    return handle.current()
