"""Decides whether a scan without an index reads only the rows with one of the keys of a join.

The scan then reads the key column, and the other columns of the rows that pass. DuckDB joins fewer rows. Samples of the
tables and their row counts decide: `docs/decisions/join-keys.md` has figures. Any table may be scanned either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.dataset import LanceDataset
from lance_duck.duck.rules.join_keys import KeyJoin
from lance_duck.duck.run.costs import (
    KEY_QUERY_NS,
    KEY_ROW_NS,
    SCANNED,
    SELECTIVE_WHEN_SCANNED,
    SKIPPED_BYTE_NS,
    SMALLER_WHEN_SCANNED,
    TINY,
)
from lance_duck.duck.run.rewriting import Database, Request
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import LanceDuckError
from lance_duck.scan.filters import TreeFilter, make_filter
from lance_duck.scan.predicate.arrays import row_width
from lance_duck.scan.predicate.tree import In
from lance_duck.store import local_path

SHARES: Final[LruCache[float]] = LruCache(256)
"""Shares of rows with one of the keys, 0 to 1, of recent key queries. Keys of many rows are not read again."""


@dataclass(frozen=True)
class AccessPath:
    """How a large table is read by its keys.

    Attributes:
        table: The table.
        column: Its key column.
        key: Key of `SHARES`, if a scan may look for the keys. None if only an index may.
        key_rows: Row count of the tables with the keys, if a scan may look for them.
        indexed: Whether the column has an index.
    """

    table: LanceDataset
    column: str
    key: Hashable | None
    key_rows: int
    indexed: bool


@dataclass(frozen=True)
class KeyScans:
    """Chooses scans for the joins of one statement."""

    request: Request
    database: Database

    def way(self, join: KeyJoin, table: LanceDataset, column: str) -> AccessPath | None:
        """Return how a table is read by keys, or None if neither an index nor a scan may be faster."""
        key, total = self._scan_key(join, table, column)
        indexed = column in table.indexed_columns()
        return AccessPath(table, column, key, total, indexed) if indexed or key is not None else None

    def worth(self, ways: Mapping[KeyJoin, AccessPath]) -> Mapping[KeyJoin, AccessPath]:
        """Return the lookups in an index, and the scans that save more time than their key queries take.

        Several scans may use the keys of the same query.
        """
        saved: Counter[str] = Counter()
        for join, way in ways.items():
            if way.key is not None:
                passing = SELECTIVE_WHEN_SCANNED * (SHARES.find(way.key) or 0.0)
                skipped = way.table.count_rows() * self._skipped_bytes(join, way)
                saved[join.keys] += int(skipped * SKIPPED_BYTE_NS * (1 - passing))
        kept = {}
        for join, way in ways.items():
            if way.key is not None and saved[join.keys] < KEY_QUERY_NS + KEY_ROW_NS * way.key_rows:
                way = replace(way, key=None)
            if way.indexed or way.key is not None:
                kept[join] = way
        return kept

    def _skipped_bytes(self, join: KeyJoin, way: AccessPath) -> int:
        """Return the size of the columns that a scan does not read for rows without a key, in bytes per row."""
        names = self.request.statement.names
        fields = [field for field in way.table.schema if join.takes_all or folded(field.name) in names]
        return sum(row_width(field.type) for field in fields if field.name != way.column)

    def _scan_key(self, join: KeyJoin, table: LanceDataset, column: str) -> tuple[Hashable | None, int]:
        """Return the key of `SHARES` for a scan by keys, and the row count of the tables with the keys.

        The key is None if these tables are not small, or may have many keys.
        """
        rows = table.count_rows()
        parameters = given(join, self.request.values.bound)
        if rows < SCANNED or not join.is_filtered or not join.reads or parameters is None:
            return None, 0
        if not pa.types.is_integer(table.schema.field(column).type) or local_path(table.uri) is None:
            return None, 0
        tables = self._key_tables(join)
        total = 0 if tables is None else sum(each.count_rows() for each in tables.values())
        if tables is None or total * SMALLER_WHEN_SCANNED > rows:
            return None, 0
        states = tuple((each.uri, each.handle.snapshot.state) for each in (table, *tables.values()))
        key = states, column, join.keys, repr(parameters)
        if (SHARES.find(key) or 0.0) * SELECTIVE_WHEN_SCANNED > 1:
            return None, 0
        if total * TINY > rows and not self._selects_few(join, tables):
            return None, 0
        return key, total

    def _key_tables(self, join: KeyJoin) -> Mapping[str, LanceDataset] | None:
        """Return the tables that a key query reads, by name. None if some are not Lance tables."""
        names, later = self.database.names, self.request.later
        handles = {name: names.table((name,), later=later) for name in join.reads}
        tables = {name: handle.current() for name, handle in handles.items() if handle is not None}
        is_repeated = any(self.database.catalog.is_repeated(name) for name in handles)
        return tables if len(tables) == len(handles) and not is_repeated else None

    def _selects_few(self, join: KeyJoin, tables: Mapping[str, LanceDataset]) -> bool:
        """Return whether few rows pass the conditions on the table of the keys, as far as a sample shows."""
        if join.sample is None or join.parameters:
            return False
        name, text = join.sample
        table = tables[name]

        def share() -> float:
            try:
                condition = make_filter(text, table.schema)
                return 1.0 if condition is None else table.handle.table.share_passing(condition)
            except LanceDuckError:
                return 1.0  # a condition that only DuckDB evaluates, or an error that the statement raises

        return SHARES.get((table.uri, table.handle.snapshot.state, text), share) * SELECTIVE_WHEN_SCANNED <= 1


def share_of(table: LanceDataset, condition: In) -> float:
    """Estimate the share of rows that satisfy a condition on one column, above 0 and up to 1."""
    sample = table.handle.table.sample(condition.columns())
    columns = {name: sample.column(name).combine_chunks() for name in sample.column_names}
    passing = int(TreeFilter(condition).mask(columns, len(sample)).true_count)
    return max(1, passing) / max(1, len(sample))


def given(join: KeyJoin, parameters: Any) -> dict[str, Any] | None:
    """Return the parameters of the key query, by their names in that query, or None if one is missing."""
    values = {}
    for name, key in join.parameters:
        if isinstance(parameters, Mapping):
            if str(key) not in parameters:
                return None
            values[name] = parameters[str(key)]
        elif isinstance(parameters, Sequence) and isinstance(key, int) and 0 < key <= len(parameters):
            values[name] = parameters[key - 1]
        else:
            return None
    return values
