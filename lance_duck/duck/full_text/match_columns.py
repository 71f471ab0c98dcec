"""Use index searches to compute `match` and `score` calls anywhere in a statement.

The table is read with an additional column for each query: whether the row matches, or its score (see
`computed_columns`). The calls become references to these columns. The strings themselves are then not read or analyzed.
DuckDB pushes conditions on these columns down to the scan, which then reads only the matching rows.

Calls stay unchanged and run on each string in three cases: no index covers the column, the query is not a constant or a
parameter, or the added columns could become visible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.full_text.asked_tables import AskedCall, AskedTable, find_asked_tables
from lance_duck.duck.names import handle_of, version_texts
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import named
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.computed_columns import (
    TOKEN,
    AskedColumn,
    AskedColumns,
    MatchColumn,
    TableWithColumns,
    TextMatches,
    with_columns,
)
from lance_duck.duck.tables.handle import TableHandle, pinned_versions
from lance_duck.duck.tables.row_identifier_columns import own_columns
from lance_duck.duck.tables.table import DuckTable, select_all
from lance_duck.duck.tables.text_request import TextRequest
from lance_duck.errors import LanceDuckError
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery
from lance_duck.scan.text.route import text_route

_NUMBERS: Final = count()


@dataclass
class MatchColumns:
    """Columns added to a table, and the edits of the statement that reads them.

    Attributes:
        columns: The columns.
        calls: The replaced call for each column.
        edits: Edits of these calls.
    """

    columns: list[MatchColumn] = field(default_factory=list)
    calls: list[AskedCall] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    @classmethod
    def of(cls, asked_table: AskedTable, parameters: ParameterValues, dataset: LanceDataset) -> MatchColumns | None:
        """Return columns for the calls that a search can answer. Returns None if a search cannot answer any call.

        Args:
            asked_table: The table and its calls.
            parameters: Parameter values.
            dataset: The version that is read.
        """
        if _may_be_seen(asked_table, dataset):
            return None
        result = cls()
        searches: dict[MatchQuery | PhraseQuery, TextMatches] = {}
        for call in asked_table.calls:
            with suppress(NotFoundHere, LanceDuckError):  # the function raises errors when it runs
                query = _query(call, parameters, dataset, is_kept=asked_table.is_kept)
                if query not in searches:
                    search = TextMatches(query)
                    search.of(dataset)
                    searches[query] = search
                name = (
                    f"{asked_table.start}_{len(result.columns)}" if asked_table.is_kept else f"{TOKEN}_{next(_NUMBERS)}"
                )
                result._add(call, searches[query], asked_table.read.alias, f"__lance_match_{name}")
        return result if result.columns else None

    @classmethod
    def of_scores(
        cls, asked_table: AskedTable, parameters: ParameterValues, dataset: LanceDataset, matches: TextMatches
    ) -> MatchColumns:
        """Return columns for the scores of a single search whose matches are the only rows read.

        Args:
            asked_table: See `of`.
            parameters: See `of`.
            dataset: See `of`.
            matches: Matches of the search.
        """
        result = cls()
        is_seen = asked_table.is_kept or _may_be_seen(asked_table, dataset)
        for call in () if is_seen else asked_table.calls:
            with suppress(NotFoundHere, LanceDuckError):
                if call.is_score and _query(call, parameters, dataset, is_kept=False) == matches.query:
                    result._add(call, matches, asked_table.read.alias, f"__lance_match_{TOKEN}_{next(_NUMBERS)}")
        return result

    def _add(self, call: AskedCall, search: TextMatches, alias: str, column: str) -> None:
        if not call.is_score and not call.null_is_false and not call.texts.startswith("["):
            raise NotFoundHere("which lists have no text is not known without them")
        name = f"{quoted(alias)}.{quoted(column)}"
        # DuckDB rejects values for unused parameters.
        used = f"typeof({call.mark}) IS NOT NULL" if call.mark else ""
        if call.is_score:
            text = f"CASE WHEN {used or 'true'} THEN coalesce({name}, 0::FLOAT) END"
        elif call.null_is_false:
            text = f"{name} = true" + (f" AND {used}" if used else "")
        else:
            text = f"CASE WHEN {name} THEN {used or 'true'} WHEN {call.texts[1:-1]} IS NOT NULL THEN false END"
        self.columns.append(MatchColumn(column, search, is_score=call.is_score))
        self.calls.append(call)
        self.edits.append(Edit(call.start, call.end, f"({text})"))

    def reading(self, asked_table: AskedTable, source: str) -> list[Edit]:
        """Return the edits that make a statement read the table with the added columns.

        Args:
            asked_table: The table's mention in the statement.
            source: SQL of the table with the added columns.
        """
        alias = "" if asked_table.read.is_called else f" AS {quoted(asked_table.read.alias)}"
        return [Edit(asked_table.start, asked_table.end, source + alias), *self.beside(asked_table)]

    def beside(self, asked_table: AskedTable) -> list[Edit]:
        """Return the edits outside the table name. They replace the calls, and exclude the columns from stars."""
        names = ", ".join(quoted(column.field.name) for column in self.columns)
        return [*self.edits, *(Edit(star.place, star.place, star.text.format(names)) for star in asked_table.stars)]


def run(asked_table: AskedTable, request: Request, database: Database) -> Rewriting | None:
    """Read a table with its match columns. Returns None if a search cannot answer any call."""
    parts = [(asked_table.start, asked_table.end), *((call.start, call.end) for call in asked_table.calls)]
    if not all(request.is_free(*part) for part in parts):
        return None
    if request.later and pinned_versions() is not None:
        return None
    handle = handle_of(asked_table.read, database.catalog, database.names, later=request.later)
    columns = None if handle is None else columns_for(asked_table, request.values, handle)
    if handle is None or columns is None:
        return None
    if asked_table.is_kept:
        return Rewriting(tuple(columns.reading(asked_table, _kept(asked_table, columns))))
    computed = [*own_columns(asked_table.read, handle), *columns.columns]
    table = named(database.native, TableWithColumns(handle.reader(), computed))
    return Rewriting(tuple(columns.reading(asked_table, f"({select_all(quoted(table.name))})")), (table,))


def searched(
    statement: Statement, parameters: Mapping[str, Any], table_of: Callable[[TableRead], DuckTable | None]
) -> tuple[list[Edit], Mapping[str, TableWithColumns]]:
    """Return edits that let searches compute the calls of a query, and the tables that the edited query reads, by name.

    Args:
        statement: The query.
        parameters: Its parameter values, by name.
        table_of: Returns a Lance table of the query at the requested version, or None for other tables.
    """
    edits: list[Edit] = []
    tables: dict[str, TableWithColumns] = {}
    asked_tables: tuple[AskedTable, ...] = statement.result("asked tables", find_asked_tables)
    for asked_table in asked_tables:
        with suppress(LanceDuckError):  # the error is raised when the statement runs
            table = table_of(asked_table.read)
            match_columns = (
                None if table is None else MatchColumns.of(asked_table, ParameterValues((), parameters), table.dataset)
            )
            if table is not None and match_columns is not None:
                name, columns = f"__lance_searched_{asked_table.start}", match_columns.columns
                if isinstance(table, TableWithColumns):
                    tables[name] = table.widened(columns)
                else:
                    tables[name] = with_columns(table.dataset, columns)
                edits += match_columns.reading(asked_table, name)
    return edits, tables


def _may_be_seen(asked_table: AskedTable, dataset: LanceDataset) -> bool:
    """Return whether the added columns could become visible, because the statement uses rows as values."""
    names = {folded(name) for name in dataset.schema.names}
    return asked_table.may_be_value and folded(asked_table.read.alias) not in names


def _kept(asked_table: AskedTable, match_columns: MatchColumns) -> str:
    """Return SQL of a table with its columns, for a statement that runs later, perhaps in a different process."""
    pairs = zip(match_columns.columns, match_columns.calls, strict=True)
    columns = [AskedColumn(column.field.name, call.request, call.words or "", call.is_score) for column, call in pairs]
    table, table_read = TextRequest.of(match_columns.calls[0].request).table, asked_table.read
    asked = AskedColumns(columns, version_texts(table_read))
    if table_read.columns is not None:
        own = AskedColumns.of(table_read.columns)
        table, asked = str(table_read.path), replace(own, columns=[*own.columns, *columns])
    return f"__lance_matching({literal(table)}, {literal(asked.text)})"


def columns_for(asked_table: AskedTable, parameters: ParameterValues, handle: TableHandle) -> MatchColumns | None:
    """Return the match columns of a table, or None if a search cannot answer any call."""
    try:
        return MatchColumns.of(asked_table, parameters, handle.current())
    except LanceDuckError:
        return None  # the error is raised when the statement runs


def _query(
    call: AskedCall, parameters: ParameterValues, dataset: LanceDataset, *, is_kept: bool
) -> MatchQuery | PhraseQuery:
    """Return the query of a call that an index can answer.

    Raises:
        NotFoundHere: An index for the column is missing, or the query string is unknown.
        LanceDuckError: The query is invalid.
    """
    request = TextRequest.of(call.request)
    words = call.words if is_kept else _words(call, parameters)
    if is_kept and request.held is not None:
        raise NotFoundHere("a version that only a transaction reads")
    if request.named or not isinstance(words, str):
        raise NotFoundHere("words or options are not constants")
    if text_route(dataset.handle.snapshot, request.column, None).name is None:
        raise NotFoundHere("no index covers the column")
    return request.query(words, "")


def _words(call: AskedCall, parameters: ParameterValues) -> object:
    if call.words is not None:
        return call.words
    name = call.mark.removeprefix("$")
    return parameters.value(int(name) if name.isdigit() else name)
