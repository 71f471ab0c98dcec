"""What carrying out a proposal makes of a statement."""

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
    """Edits of a statement after which it reads less, and gives the same.

    Attributes:
        edits: Edits of its text.
        tables: What the edited text reads.
        dropped: Names of parameters that nothing asks for any more.
        plan: How the tables came about, for EXPLAIN; None where the tables themselves tell.
    """

    edits: tuple[Edit, ...]
    tables: tuple[NamedTable, ...] = ()
    dropped: frozenset[str] = frozenset()
    plan: str | None = None


@dataclass(frozen=True)
class Database:
    """What a proposal is carried out on.

    Attributes:
        native: DuckDB's connection.
        catalog: Its Lance tables.
        names: What names mean on it.
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
        values: Those of its parameters, and lists of numbers of its text.
        later: Its rows are read at some later time, perhaps repeatedly: it is a relation.
        rewritings: What became of proposals that were carried out before.
    """

    statement: Statement
    values: ParameterValues
    later: bool
    rewritings: list[Rewriting] = field(default_factory=list)

    def is_free(self, start: int, end: int) -> bool:
        """Return whether no edit so far replaces any of a part of the text."""
        return not any(edit.overlaps(start, end) for edit in self.edits)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Edits so far."""
        return tuple(edit for rewriting in self.rewritings for edit in rewriting.edits)
