"""Result of carrying out a proposal."""

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
    """Edits that make a statement read less for the same result.

    Attributes:
        edits: Edits of its text.
        tables: Tables that the edited text reads.
        dropped: Names of parameters that are no longer used.
        plan: How the tables were built, for EXPLAIN. Unset if the tables describe themselves.
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
        names: Meaning of names on the connection.
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
        values: Values of its parameters, and lists of numbers in its text.
        later: Whether the result is a relation, whose rows are read later, possibly more than once.
        rewritings: Rewritings by earlier proposals.
    """

    statement: Statement
    values: ParameterValues
    later: bool
    rewritings: list[Rewriting] = field(default_factory=list)

    def is_free(self, start: int, end: int) -> bool:
        """Return whether no edit so far overlaps a range of the text."""
        return not any(edit.overlaps(start, end) for edit in self.edits)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Edits so far."""
        return tuple(edit for rewriting in self.rewritings for edit in rewriting.edits)
