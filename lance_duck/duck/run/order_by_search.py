"""Runs `ORDER BY distance LIMIT k`. A search finds candidate rows, and the statement reads only these."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.order_by_distance import NearestSelect
from lance_duck.duck.run.candidates import Ask, NotFoundHere, candidates
from lance_duck.duck.run.costs import MOST_NEAREST
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.nearest_table import FoundRows, NearestTable
from lance_duck.duck.run.parameters import vector_numbers
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import About, about_condition
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, quoted
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.duckdb.types import duckdb_arrow_type

ALL_ROWS: Final = (1 << 63) - 1
ROUNDING: Final = 2.0**-22


def run(proposal: NearestSelect, request: Request, database: Database) -> Rewriting | None:
    """Replace a table with its nearest rows. Returns None if it is not a Lance table with this vector column."""
    later, place = request.later, proposal.place
    if not request.is_free(place.start, place.end):
        return None
    handle = database.names.table(place.name, later=later)
    if handle is None:
        return None
    dataset = handle.current()
    vectors = sql_vector_column(dataset, proposal.column)
    if vectors is None:
        return None
    search = _OrderBySearch(proposal, request, database, handle, dataset, vectors)
    try:
        if not database.names.dialect(place.name, later=later).is_usual(About.ORDER | search.about_condition()):
            raise NotFoundHere("settings give other words another meaning")
        search.prepare()
    except (NotFoundHere, LanceDuckError):
        search.tables.clear()
        search.edits.clear()
    search.cast()
    return Rewriting(tuple(search.edits), tuple(search.tables)) if search.edits else None


@dataclass
class _OrderBySearch:
    """The search of one statement.

    Attributes:
        proposal: The proposal for the statement.
        request: The run of the statement.
        database: The database on which the statement runs.
        handle: The table.
        dataset: The version to search.
        vectors: The vector column, with its DuckDB type.
        tables: Tables that the edited text reads.
        edits: Edits of the text.
    """

    proposal: NearestSelect
    request: Request
    database: Database
    handle: TableHandle
    dataset: LanceDataset
    vectors: pa.Field
    tables: list[NamedTable] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)

    def about_condition(self) -> About:
        """Return the SQL features that the condition depends on."""
        condition = self.proposal.condition
        return about_condition(condition, self.dataset.schema, self.request.values.values_of(condition))

    def prepare(self) -> None:
        """Replace the table with its candidate rows.

        Raises:
            NotFoundHere: DuckDB must read all rows.
        """
        proposal, names = self.proposal, self.database.names
        later = self.request.later or proposal.explained
        ask = self._ask(later)
        rows: Any
        if later:
            rows = NearestTable(self.handle.reader(), ask, names.constancy())
        else:
            neighbours = candidates(self.dataset, ask)
            rows = neighbours if SPEAKS_SOURCE else FoundRows(neighbours)
        table = named(self.database.native, rows)
        self.tables.append(table)
        columns = ", ".join(quoted(each) for each in ask.schema(self.dataset).names)
        # The limit exceeds the row count. It only prevents DuckDB from pushing filters into the table.
        inner = f'(SELECT {columns} FROM "{table.name}" LIMIT {ALL_ROWS})'  # noqa: S608
        self.edits.append(proposal.place.reading(inner))

    def cast(self) -> None:
        """Cast the vector to an array if DuckDB would reject a list."""
        if self.proposal.bare is not None:
            start, end = self.proposal.bare
            kind = "DOUBLE" if self.vectors.type.value_type == pa.float64() else "FLOAT"
            vector = self.request.statement.text[start:end]
            self.edits.append(Edit(start, end, f"({vector}::{kind}[{self.vectors.type.list_size}])"))

    def _ask(self, later: bool) -> Ask:
        proposal, parameters, settings = self.proposal, self.request.values, self.database.session.settings
        if settings.nearest == "off":
            raise NotFoundHere("it is switched off")
        limit = parameters.number(proposal.limit) + parameters.number(proposal.offset)
        if not parameters.number(proposal.limit) or limit > MOST_NEAREST // 4:
            raise NotFoundHere("more rows than a search is for")
        vector = (
            parameters.vector(proposal.vector)
            if proposal.query_place is None
            else self._query(proposal.query_place, later)
        )
        length = self.vectors.type.list_size
        if vector.shape != (length,) or proposal.length not in (None, length):
            raise NotFoundHere("another length")
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise NotFoundHere("no finite numbers")
        return Ask(
            proposal.metric,
            proposal.largest_first,
            self.vectors.name,
            narrow,
            np.array([np.linalg.norm(vector - narrow) + ROUNDING * np.linalg.norm(vector)]),
            limit,
            proposal.condition,
            tuple(parameters.values_of(proposal.condition)),
            proposal.columns,
            settings,
        )

    def _query(self, place: tuple[int, int], later: bool) -> NDArray[np.float64]:
        """Run the query for the vector, and replace it in the statement with its result.

        Raises:
            NotFoundHere: The query does not return a vector, or may return a different one when the statement runs.
        """
        if later:
            raise NotFoundHere("its vector is not known before it is run")
        values = {name: self.request.values.value(key) for name, key, _ in self.proposal.vector_keys}
        try:
            text = f"SELECT v FROM ({self.proposal.vector}) AS q(v)"  # noqa: S608
            rows = call_as_user(partial(self.database.native.sql, text, params=values or None)).to_arrow_table()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise NotFoundHere("its vector cannot be found") from error
        if rows.num_rows != 1 or not rows.column(0)[0].is_valid:
            raise NotFoundHere("there is no vector")
        table = named(self.database.native, rows)
        self.tables.append(table)
        # The parameters of the query are kept, because DuckDB rejects unused values.
        is_known = "".join(f" AND typeof({mark}) IS NOT NULL" for _, _, mark in self.proposal.vector_keys)
        self.edits.append(Edit(*place, f'SELECT v FROM "{table.name}" WHERE true{is_known}'))  # noqa: S608
        return vector_numbers(rows.column(0)[0].as_py())


def sql_vector_column(dataset: LanceDataset, name: str) -> pa.Field | None:
    """Return a vector column by its SQL name, with its DuckDB type. Returns None if no column matches."""
    fields = [each for each in dataset.schema if each.name.lower() == name.lower()]
    if len(fields) != 1 or not are_distinct(dataset.schema.names):
        return None
    type_ = duckdb_arrow_type(fields[0])
    if not pa.types.is_fixed_size_list(type_) or type_.value_type not in (pa.float32(), pa.float64()):
        return None
    return fields[0].with_type(type_)
