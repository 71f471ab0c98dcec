"""Groups a table by one small number in place of several strings.

DuckDB hashes and compares each string of each row. It groups numbers of one byte by an array, which is faster:
`docs/decisions/group-keys.md` has figures. All rows of a group have equal strings, so `any_value` returns them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.group_keys import ColumnPlace, GroupKeys
from lance_duck.duck.run.costs import LARGE
from lance_duck.duck.run.named_tables import named
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import CONDITIONS, About
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import are_distinct, folded, quoted
from lance_duck.duck.tables.grouped_table import GROUP, MOST_GROUPS, GroupedTable
from lance_duck.errors import LanceDuckError
from lance_duck.store import local_path


@dataclass
class _Groups:
    """Whether the combinations of some columns are few, as far as is known about a version."""

    are_few: bool

    def overflow(self) -> None:
        """Record that a scan found too many."""
        self.are_few = False


def run(proposal: GroupKeys, request: Request, database: Database) -> Rewriting | None:
    """Replace the group columns. Returns None for small and remote tables, and if there may be many groups."""
    columns_in_text = (*proposal.keys, *proposal.results)
    ranges = [(proposal.table.start, proposal.table.end), *((each.start, each.end) for each in columns_in_text)]
    if request.later or not all(request.is_free(start, end) for start, end in ranges):
        return None
    handle = database.names.table(proposal.table.name, later=False)
    if handle is None:
        return None
    dialect = database.names.dialect(proposal.table.name, later=False)
    if not dialect.is_usual(CONDITIONS | About.TEXTS) or not database.names.are_built_in(("any_value",), later=False):
        return None
    try:
        dataset = handle.current()
        columns = _columns(dataset, proposal.columns)
        if columns is None or dataset.count_rows() < LARGE or local_path(dataset.uri) is None:
            return None
        groups = dataset.handle.snapshot.derived(("few groups", columns), lambda: _Groups(_are_few(dataset, columns)))
    except LanceDuckError:
        return None  # the error is raised when the statement runs
    if not groups.are_few:
        return None
    table = named(database.native, GroupedTable(dataset, columns, groups.overflow))
    source = proposal.table.reading(f"(SELECT * FROM {quoted(table.name)})")  # noqa: S608
    titles = {folded(name): name for name in columns}
    results = [_result(place, titles[folded(place.name)], request) for place in proposal.results]
    group = Edit(proposal.keys[0].start, proposal.keys[-1].end, f"{proposal.qualifier}.{quoted(GROUP)}")
    return Rewriting((source, group, *results), (table,))


def _columns(dataset: LanceDataset, names: Sequence[str]) -> tuple[str, ...] | None:
    """Return the stored names of string columns. Returns None if a column has another type, or is unknown."""
    stored = {folded(field.name): field for field in dataset.schema}
    found = [stored.get(name) for name in names]
    if not are_distinct(dataset.schema.names) or GROUP in stored:
        return None
    known = [field.name for field in found if field is not None and pa.types.is_string(field.type)]
    return tuple(known) if len(known) == len(names) > 1 else None


def _are_few(dataset: LanceDataset, columns: Sequence[str]) -> bool:
    """Return whether a sample has few combinations."""
    sample = dataset.handle.table.sample(columns)
    return prod(len(values.unique()) + 1 for values in sample.columns) <= MOST_GROUPS


def _result(place: ColumnPlace, title: str, request: Request) -> Edit:
    """Return the edit of a result column. DuckDB names it as the table does."""
    text = request.statement.text[place.start : place.end]
    named_as = "" if place.is_titled else f" AS {quoted(title)}"
    return Edit(place.start, place.end, f"any_value({text}){named_as}")
