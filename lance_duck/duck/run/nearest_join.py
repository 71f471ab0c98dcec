"""Runs LATERAL searches. One search covers all rows, and the statement reads its result.

The other table is read once, before the statement runs, and the statement uses that copy. The searched table is
replaced with the found rows, each with its query vector. A condition in the edited text joins on that vector. DuckDB
then sorts only the rows found for each query vector.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from lance_duck.duck.rules.lateral import LateralNearest
from lance_duck.duck.run.candidates import Ask, NotFoundHere, candidates
from lance_duck.duck.run.costs import MOST_NEAREST, MOST_QUERIES
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.order_by_search import ALL_ROWS, ROUNDING, sql_vector_column
from lance_duck.duck.run.parameters import vector_numbers
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import HAS_COLLATIONS, About, about_condition
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, quoted
from lance_duck.duck.tables.nearest import DISTANCE, QUERY
from lance_duck.duck.user_scope import call_as_user, user_variable
from lance_duck.errors import LanceDuckError

FOR: Final = "__lance_query"
_SAME: Final = re.compile(
    r"(TINY|SMALL|BIG|UTINY|USMALL|UBIG|U)?INT(EGER)?|FLOAT|DOUBLE|BOOLEAN|VARCHAR|BLOB|DATE|TIMESTAMP"
    r"|(FLOAT|DOUBLE)(\[\d*\])|DECIMAL\(\d+,\s*\d+\)"
)
"""Types whose values survive a round trip through Arrow."""
_FRAMES: Final = ("pandas", "polars")


def run(proposal: LateralNearest, request: Request, database: Database) -> Rewriting | None:
    """Replace both tables with the result of one search. Returns None if DuckDB has to run the join itself."""
    place = proposal.inner.place
    free = request.is_free(place.start, place.end) and request.is_free(proposal.start, proposal.end)
    if not free or database.session.settings.nearest == "off" or not database.names.are_ours(place.name, later=False):
        return None
    try:
        search = NearestSearch(proposal, request, database)
        queries = search.queries()
        edit, neighbours, plan = search.nearest_in_place(queries)
    except (NotFoundHere, LanceDuckError):
        return None
    others = named(database.native, queries)
    return Rewriting((edit, search.others_in_place(others)), (neighbours, others), plan=plan)


@dataclass(frozen=True)
class NearestSearch:
    """The search of one table for each row of the other table.

    Attributes:
        proposal: The proposal of the search.
        request: The run of the statement.
        database: The database on which the statement runs.
        is_exact: Whether the search does not use an index.
        skips_null: Whether NULL query vectors are skipped.
    """

    proposal: LateralNearest
    request: Request
    database: Database
    is_exact: bool = False
    skips_null: bool = False

    def nearest_in_place(self, queries: pa.Table) -> tuple[Edit, NamedTable, str | None]:
        """Search, and return the edit that replaces the table with the found rows.

        Args:
            queries: The other table.

        Returns:
            The edit, the rows, and the plan if the statement is an EXPLAIN.

        Raises:
            NotFoundHere: DuckDB has to run the join itself.
        """
        proposal, inner, parameters, names = (
            self.proposal,
            self.proposal.inner,
            self.request.values,
            self.database.names,
        )
        handle = names.table(inner.place.name, later=False)
        if handle is None:
            raise NotFoundHere("no such table")
        dataset = handle.current()
        field = sql_vector_column(dataset, inner.column)
        if field is None:
            raise NotFoundHere("no column of vectors")
        about = About.ORDER | about_condition(inner.condition, dataset.schema, parameters.values_of(inner.condition))
        if not names.dialect(inner.place.name, later=False).is_usual(about | About.TEXTS):
            raise NotFoundHere("the other table loses the order of its texts on the way through Arrow")
        vectors = _distinct(queries, str(inner.vector), field.type.list_size, skips_null=self.skips_null)
        ask = self._ask(field.name, vectors)
        nearest = candidates(dataset, ask)
        which = nearest.column(QUERY)
        nearest = nearest.drop_columns([QUERY]).append_column(FOR, vectors.take(which.combine_chunks()))
        rows = named(self.database.native, nearest)
        columns = ", ".join(map(quoted, ask.schema(dataset).names))
        source = (
            f'(SELECT {columns} FROM (SELECT * FROM "{rows.name}" LIMIT {ALL_ROWS}) AS found '  # noqa: S608
            f"WHERE found.{FOR} = {quoted(proposal.alias)}.{quoted(str(inner.vector))})"
        )
        plan = ask.scanner(dataset, ask.first).explain_plan() if inner.explained else None
        return inner.place.reading(source), rows, plan

    def others_in_place(self, others: NamedTable) -> Edit:
        """Return the edit that replaces the other table with its copy."""
        proposal = self.proposal
        outer = f'(SELECT * FROM "{others.name}" LIMIT {ALL_ROWS})'  # noqa: S608
        outer += "" if proposal.has_alias else f" AS {quoted(proposal.alias)}"
        return Edit(proposal.start, proposal.end, outer)

    def queries(self, where: str | None = None, values: Mapping[str, Any] | None = None) -> pa.Table:
        """Return the rows of the other table.

        Args:
            where: Condition on its rows, or None for all rows.
            values: Values of its parameters.

        Raises:
            NotFoundHere: The table is large, cannot be read twice, or does not survive a round trip through Arrow.
        """
        proposal, native = self.proposal, self.database.native
        variable = None if len(proposal.name) > 1 else user_variable(proposal.name[0])
        frame = type(variable).__module__.split(".")[0] in _FRAMES and type(variable).__name__ == "DataFrame"
        if not (variable is None or frame or isinstance(variable, pa.Table)):
            raise NotFoundHere("a variable that may be read once")
        name = self.request.statement.text[proposal.start : proposal.end]
        text = f"SELECT * FROM {name} AS {quoted(proposal.alias)}"  # noqa: S608
        text += f"{'' if where is None else f' WHERE {where}'} LIMIT {MOST_QUERIES + 1}"
        try:
            relation = call_as_user(partial(native.sql, text, params=dict(values) if values else None))
            if not all(_SAME.fullmatch(str(type_)) for type_ in relation.types) or self._has_collations():
                raise NotFoundHere("types that Arrow does not have")
            table: pa.Table = call_as_user(relation.to_arrow_table)
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise NotFoundHere("the statement itself will say what is wrong") from error
        if not (self.skips_null or table.num_rows) or table.num_rows > MOST_QUERIES:
            raise NotFoundHere("no queries, or too many")
        return table

    def _has_collations(self) -> bool:
        return bool(self.database.native.execute(HAS_COLLATIONS).fetchall()[0][0])

    def _ask(self, column: str, vectors: pa.Array) -> Ask:
        inner, parameters, settings = self.proposal.inner, self.request.values, self.database.session.settings
        limit = parameters.number(inner.limit) + parameters.number(inner.offset)
        if not parameters.number(inner.limit) or limit > MOST_NEAREST // 4:
            raise NotFoundHere("more rows than a search is for")
        wide = vector_numbers(vectors.flatten().to_numpy(zero_copy_only=False)).reshape(len(vectors), -1)
        with np.errstate(over="ignore"):
            narrow = wide.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise NotFoundHere("no finite numbers")
        rough = np.linalg.norm(wide - narrow, axis=1)
        return Ask(
            inner.metric,
            inner.largest_first,
            column,
            narrow,
            rough + ROUNDING * np.linalg.norm(wide, axis=1),
            limit,
            inner.condition,
            tuple(parameters.values_of(inner.condition)),
            inner.columns,
            replace(settings, nearest="exact") if self.is_exact else settings,
        )


def _distinct(table: pa.Table, name: str, length: int, *, skips_null: bool) -> pa.Array:
    """Return the distinct vectors of a column.

    Raises:
        NotFoundHere: The column is missing or empty, does not contain vectors, contains NULLs, or has a different
            vector length.
    """
    matches = [each for each in table.column_names if each.lower() == name.lower()]
    if (
        len(matches) != 1
        or not are_distinct(table.column_names)
        or {DISTANCE, QUERY, FOR} & {each.lower() for each in table.column_names}
    ):
        raise NotFoundHere("no column of vectors")
    array = table.column(matches[0]).combine_chunks()
    type_ = array.type
    if not pa.types.is_fixed_size_list(type_) and not pa.types.is_list(type_):
        raise NotFoundHere("no column of vectors")
    array = array.drop_null() if skips_null else array
    inner = array.flatten()
    if not len(array) or array.null_count or inner.null_count or len(inner) != len(array) * length:
        raise NotFoundHere("null, or another length")
    if pa.types.is_list(type_) and not (array.value_lengths().to_numpy() == length).all():
        raise NotFoundHere("another length")
    matrix = np.ascontiguousarray(inner.to_numpy(zero_copy_only=False).reshape(len(array), length) + 0.0)  # no -0.0
    rows = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * length)))
    return array.take(pa.array(np.unique(rows, return_index=True)[1]))
