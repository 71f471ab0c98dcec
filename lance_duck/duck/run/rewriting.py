"""The result of executing a proposal, and its context."""

from __future__ import annotations

from dataclasses import dataclass, field

import duckdb

from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.names import Names
from lance_duck.duck.run.named_tables import NamedTable
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.search_settings import Session
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.text import Statement


@dataclass(frozen=True)
class Rewriting:
    """Edits after which a statement reads less data and returns the same result.

    Attributes:
        edits: Edits of its text.
        tables: Tables that the edited text reads.
        dropped: Names of parameters that are no longer used.
        plan: Description of how the tables were created, for EXPLAIN. None if the scans add their own descriptions.
    """

    edits: tuple[Edit, ...]
    tables: tuple[NamedTable, ...] = ()
    dropped: frozenset[str] = frozenset()
    plan: str | None = None


@dataclass(frozen=True)
class Database:
    """The connection on which proposals are executed.

    Attributes:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        names: Resolves names on the connection.
        session: Its settings.
    """

    native: duckdb.DuckDBPyConnection
    catalog: TableCatalog
    names: Names
    session: Session


@dataclass
class Request:
    """One run of a statement.

    Attributes:
        statement: Its text.
        values: Values of its parameters, and number lists from its text.
        later: Whether the result is a relation, whose rows are read later, possibly more than once.
        rewritings: Rewritings by earlier proposals.
    """

    statement: Statement
    values: ParameterValues
    later: bool
    rewritings: list[Rewriting] = field(default_factory=list)

    def is_free(self, start: int, end: int) -> bool:
        """Return whether a range of the text does not overlap any edit so far."""
        return not any(edit.overlaps(start, end) for edit in self.edits)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Edits so far."""
        return tuple(edit for rewriting in self.rewritings for edit in rewriting.edits)
