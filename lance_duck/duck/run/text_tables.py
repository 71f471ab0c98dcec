"""Runs substring conditions on tables. Rows that an n-gram index excludes are skipped.

The conditions stay in the statement. DuckDB evaluates them on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.text_filter import TextSelect
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import named
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.run.semi_join_pushdown import NarrowedTable
from lance_duck.duck.settings import about_condition
from lance_duck.duck.statement.deterministic_sql import TEXT_FUNCTIONS
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.duck.tables.table import select_all
from lance_duck.errors import LanceDuckError
from lance_duck.scan.predicate.tree import HasTrigrams, Predicate
from lance_duck.scan.sql.mixed import implied_tree


class TextTable(NarrowedTable):
    """A table without rows that cannot satisfy the string conditions of a statement."""

    @property
    def condition_words(self) -> str:
        """Plan text for the origin of the condition."""
        return "trigrams: implied by the statement's conditions, which DuckDB then checks on the remaining rows"


def run(proposal: TextSelect, request: Request, database: Database) -> Rewriting | None:
    """Restrict a table to possible matches. Returns None if no index excludes rows."""
    if not request.is_free(proposal.table.start, proposal.table.end):
        return None
    handle = database.names.table(proposal.table.name, later=request.later)
    if handle is None:
        return None
    try:
        narrowed = _narrowed(proposal, request, database, handle.current)
    except (NotFoundHere, LanceDuckError):
        return None  # the error is raised when the statement runs
    if narrowed is None:
        return None
    table = named(database.native, narrowed)
    return Rewriting((proposal.table.reading(f"({select_all(quoted(table.name))})"),), (table,))


def _narrowed(
    proposal: TextSelect, request: Request, database: Database, current: Callable[[], LanceDataset]
) -> TextTable | None:
    dataset, names, condition = current(), database.names, proposal.condition
    values = request.values.values(condition.keys)
    predicate = _trigrams(implied_tree(condition.where, dataset.schema, values or None))
    if predicate is None:
        return None
    about = about_condition(condition, dataset.schema, values)
    if not names.dialect(proposal.table.name, later=request.later).is_usual(about):
        return None
    expected = dataset.index_estimate(predicate)
    if expected is None or not names.are_built_in(TEXT_FUNCTIONS, later=request.later):
        return None
    holds = names.constancy() if request.later else _always
    return TextTable(current, predicate, expected, holds)


def _trigrams(predicate: Predicate | None) -> Predicate | None:
    """Return the predicate if it uses trigrams, otherwise None. DuckDB pushes down other predicates itself."""
    if predicate is None or not any(isinstance(leaf, HasTrigrams) for leaf in predicate.leaves()):
        return None
    return predicate


def _always() -> bool:
    return True
