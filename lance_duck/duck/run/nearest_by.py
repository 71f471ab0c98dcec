"""Runs joins with nearest rows. One search covers all rows of the other table, and DuckDB sorts the result.

The join becomes a LATERAL join over the rows that the search found for each vector (see `nearest_join`).
"""

from __future__ import annotations

import pyarrow as pa

from lance_duck.duck.rules.nearest_by import NearestBy, NearestJoins
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.nearest_join import NearestSearch
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.statement.edits import Edit
from lance_duck.errors import LanceDuckError

Place = tuple[int, int]
"""Start and end offsets in the text."""


def run(proposal: NearestJoins, request: Request, database: Database) -> Rewriting | None:
    """Replace tables with search results. Returns None if DuckDB must run the joins itself."""
    if database.session.settings.nearest == "off":
        return None
    joins = _Joins(request, database)
    for join in proposal.joins:
        if joins.is_free(join) and database.names.are_ours(join.search.inner.place.name, later=False):
            try:
                joins.search(join)
            except (NotFoundHere, LanceDuckError):
                continue
    return joins.rewriting()


class _Joins:
    """The joins of one statement.

    Args:
        request: The run of the statement.
        database: The database on which the statement runs.
    """

    def __init__(self, request: Request, database: Database) -> None:
        self._request = request
        self._database = database
        self._edits: list[Edit] = []
        self._tables: list[NamedTable] = []
        self._plans: list[str] = []
        self._others: dict[Place, pa.Table] = {}

    def is_free(self, join: NearestBy) -> bool:
        """Return whether both tables of a join are unedited. The other table may already be replaced with its copy."""
        inner, other = join.search.inner.place, (join.search.start, join.search.end)
        places = [(inner.start, inner.end), *([] if other in self._others else [other])]
        return not any(edit.overlaps(*place) for edit in (*self._request.edits, *self._edits) for place in places)

    def search(self, join: NearestBy) -> None:
        """Search for one join.

        Raises:
            NotFoundHere: DuckDB has to run the join itself.
        """
        clause, inner = join.clause, join.search.inner
        search = NearestSearch(join.search, self._request, self._database, clause.is_exact, skips_null=True)
        other = (join.search.start, join.search.end)
        if join.is_guess and self._has(inner.place.name, str(inner.vector)):
            raise NotFoundHere("the name is that of a column of the table itself")
        parameters = self._request.values
        queries = self._others.get(other)
        if queries is None:
            queries = search.queries(join.where, {name: parameters.value(key) for name, key in join.where_keys})
        edit, neighbours, plan = search.nearest_in_place(queries)
        if other not in self._others:
            others = named(self._database.native, queries)
            self._others[other] = queries
            self._edits.append(search.others_in_place(others))
            self._tables.append(others)
        self._edits += [edit, *clause.sorted_lateral()]
        self._tables.append(neighbours)
        self._plans += [] if plan is None else [plan]

    def rewriting(self) -> Rewriting | None:
        """Return the rewriting of the statement."""
        if not self._edits:
            return None
        return Rewriting(tuple(self._edits), tuple(self._tables), plan="\n".join(self._plans) or None)

    def _has(self, name: tuple[str, ...], column: str) -> bool:
        """Return whether a table has a column with this name."""
        handle = self._database.names.table(name, later=False)
        names = () if handle is None else handle.current().schema.names
        return any(each.lower() == column.lower() for each in names)
