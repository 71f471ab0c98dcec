"""Restricts tables to the rows that a statement's conditions allow, if an index finds them or if they are few.

The conditions stay in the statement. DuckDB evaluates them on the remaining rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.names import Names, handle_of
from lance_duck.duck.rules import indexed_condition
from lance_duck.duck.rules.indexed_condition import IndexedCondition
from lance_duck.duck.rules.table_read import Condition
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.costs import LARGE, SELECTIVE
from lance_duck.duck.run.named_tables import NamedTable, named
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import about_condition
from lance_duck.duck.statement.deterministic_sql import CONDITION_FUNCTIONS
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, folded, quoted
from lance_duck.duck.statement.scope import TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.computed_columns import TableWithColumns
from lance_duck.duck.tables.handle import TableHandle
from lance_duck.duck.tables.row_identifier_columns import own_columns
from lance_duck.duck.tables.table import DuckTable, Note, Restriction, select_all
from lance_duck.errors import LanceDuckError
from lance_duck.index.catalog import catalog
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.filters import TreeFilter
from lance_duck.scan.indexes.plan import reasons
from lance_duck.scan.predicate.tree import all_of
from lance_duck.scan.sql.mixed import implied_tree
from lance_duck.store import local_path
from lance_duck.wire.column_path import split_path

_ORIGIN: Final = "implied by the statement's conditions, which DuckDB then checks on the remaining rows"


def run(proposal: IndexedCondition, request: Request, database: Database) -> Rewriting | None:
    """Restrict a table to possible matches. Returns None if neither an index nor a selective scan excludes rows."""
    if not all(request.is_free(*place) for place in ((proposal.start, proposal.end), *proposal.qualifiers)):
        return None
    later = request.later
    handle = handle_of(proposal.read, database.catalog, database.names, later=later)
    try:
        found = None if handle is None else restricted_source(proposal, handle, request, database)
    except LanceDuckError:
        return None  # the error is raised when the statement runs
    return None if found is None else Rewriting(tuple(proposal.reading(found[0])), (found[1],))


def restricted_source(
    proposal: IndexedCondition, handle: TableHandle, request: Request, database: Database
) -> tuple[str, NamedTable] | None:
    """Return SQL that reads a restricted table, and the table. Returns None if no index excludes rows.

    Args:
        proposal: The conditions.
        handle: The table.
        request: The run of the statement.
        database: The connection.

    Raises:
        LanceDuckError: The table cannot be read.
    """
    names, later = database.names, request.later
    holds = names.constancy() if later else _always
    restriction = _Conditions(proposal, request.values, names, later).restriction(handle.current(), holds)
    if restriction is None:
        return None
    own = own_columns(proposal.read, handle)
    if own:
        table: DuckTable = TableWithColumns(handle.reader(), own, restriction=restriction)
    else:
        table = DuckTable(handle.current, restriction=restriction)
    source = named(database.native, table)
    return f"({select_all(quoted(source.name))})", source


def run_whole(proposal: IndexedCondition, request: Request, database: Database) -> Rewriting | None:
    """Let DuckDB 1.x evaluate the conditions on a table. Returns None if the scan should do it."""
    if not all(request.is_free(*place) for place in ((proposal.start, proposal.end), *proposal.qualifiers)):
        return None
    handle = handle_of(proposal.read, database.catalog, database.names, later=request.later)
    try:
        if handle is None or own_columns(proposal.read, handle):
            return None
        if not _keep_most(proposal, handle.current(), request, database):
            return None
        source = named(database.native, DuckTable(handle.current, takes_conditions=False))
    except LanceDuckError:
        return None  # the error is raised when the statement runs
    return Rewriting(tuple(proposal.reading(f"({select_all(quoted(source.name))})")), (source,))


def restricted(
    statement: Statement,
    values: ParameterValues,
    names: Names,
    table_of: Callable[[TableRead], DuckTable | None],
    edits: Sequence[Edit],
) -> tuple[list[Edit], dict[str, DuckTable]]:
    """Return edits that make a query read restricted tables, and these tables, by name.

    Args:
        statement: The query.
        values: Its parameter values.
        names: Resolves names on the connection.
        table_of: Returns a Lance table of the query at the requested version, or None for other tables.
        edits: Edits of the query, which are part of the result.
    """
    all_edits = list(edits)
    tables: dict[str, DuckTable] = {}
    proposals: tuple[IndexedCondition, ...] = statement.result("indexed conditions", indexed_condition.find)
    for proposal in proposals:
        name = f"__lance_restricted_{proposal.start}"
        own = list(proposal.reading(quoted(name)))
        if proposal.is_passed or any(edit.overlaps(each.start, each.end) for edit in all_edits for each in own):
            continue
        try:
            table = table_of(proposal.read)
            conditions = _Conditions(proposal, values, names, later=True)
            restriction = None if table is None else conditions.restriction(table.dataset, _always)
        except LanceDuckError:
            continue  # the error is raised when the statement runs
        if table is not None and restriction is not None:
            tables[name] = table.restricted(restriction)
            all_edits += own
    return all_edits, tables


@dataclass(frozen=True)
class _Conditions:
    """The conditions on one table of a statement.

    Attributes:
        proposal: The conditions.
        values: The parameter values of the statement.
        names: Resolves names on the connection.
        later: See `Request`.
    """

    proposal: IndexedCondition
    values: ParameterValues
    names: Names
    later: bool

    def restriction(self, dataset: LanceDataset, holds: Callable[[], bool]) -> Restriction | None:
        """Return the restriction that indexes allow. Returns None if no index excludes rows and nothing is explained.

        Args:
            dataset: The table.
            holds: Returns whether the statement still implies the conditions.
        """
        condition = self._indexed(dataset)
        table = dataset.handle.table
        rows = None if condition is None else table.rows_left(condition)
        notes = tuple(self._notes(dataset, is_used=rows is not None))
        if condition is None or rows is None:
            condition, rows = self._selective(dataset), dataset.count_rows()
        if condition is None:
            return Restriction(None, 0, "", dataset.schema, holds, notes) if notes else None
        return Restriction(condition.predicate, rows, _ORIGIN, dataset.schema, holds, notes)

    def _indexed(self, dataset: LanceDataset) -> TreeFilter | None:
        """Return the conditions as a filter. Returns None if no index answers a condition that DuckDB evaluates."""
        condition = self._implied(self.proposal.condition, dataset)
        if condition is None or dataset.handle.table.routes(condition).are_open:
            return None
        if not self.names.are_built_in(CONDITION_FUNCTIONS, later=self.later):
            return None
        passed = self._implied(self.proposal.passed, dataset)
        return condition if passed is None else TreeFilter(all_of(condition.predicate, passed.predicate))

    def _selective(self, dataset: LanceDataset) -> TreeFilter | None:
        """Return the conditions that DuckDB offers one by one, if few rows of a large table satisfy all of them.

        DuckDB still evaluates them, and plans its joins accordingly.
        """
        if not SPEAKS_SOURCE or dataset.count_rows() < LARGE or local_path(dataset.handle.snapshot.uri) is None:
            return None
        condition = self._implied(self.proposal.passed, dataset)
        if condition is None or dataset.handle.table.share_passing(condition) * SELECTIVE > 1:
            return None
        return condition if self.names.are_built_in(CONDITION_FUNCTIONS, later=self.later) else None

    def passed(self, dataset: LanceDataset) -> TreeFilter | None:
        """Return the conditions that DuckDB 1.x passes to a scan, or None."""
        types = {folded(field.name): field.type for field in dataset.schema}
        return self._implied(self.proposal.passed_alone(types), dataset)

    def _implied(self, condition: Condition | None, dataset: LanceDataset) -> TreeFilter | None:
        """Return the predicate that a condition implies, or None if it is unknown. Recent predicates are cached."""
        if condition is None:
            return None
        condition = condition.with_lists(self.values.lists)
        try:
            values = self.values.values(condition.keys)
        except NotFoundHere:
            return None
        about = about_condition(condition, dataset.schema, values)
        if not self.names.dialect(self.proposal.name, later=self.later).is_usual(about):
            return None

        def read() -> TreeFilter | None:
            predicate = implied_tree(condition.where, dataset.schema, values or None)
            return None if predicate is None else TreeFilter(predicate)

        found = dataset.handle.table.option_cache.statement_filter(f"implied by {condition.where}", values, read)
        return found if isinstance(found, TreeFilter) else None

    def _notes(self, dataset: LanceDataset, *, is_used: bool) -> Iterator[Note]:
        """Yield a note, with the reason, for each condition on an indexed column that no index answers."""
        for condition in self.proposal.evaluated:
            names = frozenset(name.lower() for name in condition.columns)
            indexes = [i for i in catalog(dataset.handle.snapshot) if i.path and split_path(i.path)[0].lower() in names]
            reason = self._reason(condition, dataset, is_used=is_used) if indexes else None
            if reason is not None:
                listed = ", ".join(f"{i.name} ({i.kind.name if i.kind else 'unknown kind'}, {i.path})" for i in indexes)
                yield Note(names, f"without an index: DuckDB evaluates {condition.where}; not used: {listed}: {reason}")

    def _reason(self, condition: Condition, dataset: LanceDataset, *, is_used: bool) -> str | None:
        """Return why no index answers a condition, or None if one does."""
        implied = self._implied(condition, dataset)
        if implied is None:
            return self._unread(condition, dataset)
        routes = dataset.handle.table.routes(implied)
        if routes.are_open:
            return "; ".join(dict.fromkeys(text for plan in routes.plans for text in reasons(plan)))
        if is_used:
            return None
        if not self.names.are_built_in(CONDITION_FUNCTIONS, later=self.later):
            return "a macro has the name of a function that indexes answer"
        return "it would return most of the table"

    def _unread(self, condition: Condition, dataset: LanceDataset) -> str:
        """Return why it is unknown which rows a condition implies."""
        if not are_distinct(dataset.schema.names):
            return "two columns of the table have names that differ only in case"
        about = about_condition(condition, dataset.schema)
        if not self.names.dialect(self.proposal.name, later=self.later).is_usual(about):
            return "a setting or a collation may change what the condition means"
        return "indexes do not answer conditions of this form"


def _keep_most(proposal: IndexedCondition, dataset: LanceDataset, request: Request, database: Database) -> bool:
    """Return whether the conditions that DuckDB 1.x passes to a scan keep most rows of a large table.

    DuckDB 2.0 asks the scan about each condition: see `ScanSource.accepts`.

    Raises:
        LanceDuckError: The table cannot be read.
    """
    if dataset.count_rows() < LARGE:
        return False
    condition = _Conditions(proposal, request.values, database.names, request.later).passed(dataset)
    table = dataset.handle.table
    if condition is None or table.filter_pays(condition.predicate):
        return False
    return table.share_passing(condition) * SELECTIVE > 1


def _always() -> bool:
    return True
