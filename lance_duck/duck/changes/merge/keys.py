"""Finds rows of a table by the keys of a MERGE's source, as `merge_insert` does.

    ON t.c = s.d [AND …] | USING (c, …)

For integers, strings and dates, DuckDB and `merge_insert` agree on which keys are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import AddressedTable, TargetTable
from lance_duck.duck.settings import About
from lance_duck.errors import InvalidInputError
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.merge.match import MergeMatches, match_rows
from lance_duck.verbs.merge.plan import NOTHING, UPDATE, MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import ordered_matches
from lance_duck.verbs.rows.find import AddressSieve

KeyPair = tuple[str, str]
"""A table column and the source column to compare it with."""


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


_KINDS: Final[tuple[Any, ...]] = (pa.types.is_integer, _is_text, pa.types.is_date32)


class SourceKeys:
    """Keys of a MERGE's source, for finding rows of a version.

    Args:
        table: The table at that version.
        keys: Key columns of the source, named as in the table.
    """

    def __init__(self, table: TargetTable, keys: MergeSource) -> None:
        self._table = table
        self._keys = keys

    @classmethod
    def of(
        cls, session: ChangeSession, table: TargetTable, source: pa.Table, pairs: Sequence[KeyPair]
    ) -> SourceKeys | None:
        """Return the keys. Returns None if DuckDB may compare them differently.

        Args:
            session: The statement.
            table: The table.
            source: The rows of the source.
            pairs: Pairs of compared columns.
        """
        columns: dict[str, pa.ChunkedArray] = {}
        for mine, theirs in pairs:
            column = table.column(mine)
            if column.name in columns or source.column_names.count(theirs) != 1:
                return None
            values = source.column(theirs)
            if not any(is_kind(column.arrow) and is_kind(values.type) for is_kind in _KINDS):
                return None
            columns[column.name] = values
        if not columns or (
            any(_is_text(values.type) for values in columns.values())
            and not session.names.dialect((table.name,), later=True).is_usual(About.TEXTS)
        ):
            return None
        schema = table.dataset.handle.snapshot.schema
        try:
            return cls(table, MergeSource(pa.table(columns), schema, tuple(columns)))
        except InvalidInputError:  # no row of the table can have this value
            return None

    def matches(self, *, updates: bool, inserts: bool) -> MergeMatches | None:
        """Return the matches, ascending by address. Returns None if a source key is repeated.

        Args:
            updates: Whether matching rows are needed.
            inserts: Whether source rows without a match are needed.
        """
        if len(self._keys.keys.repeated):
            return None
        plan = MergePlan(self._on, matched=UPDATE if updates else NOTHING, insert=inserts)
        return ordered_matches(match_rows(self._table.dataset.handle.snapshot, plan, self._keys), by_address=True)

    def values(self, matches: MergeMatches) -> pa.Table:
        """Return the key columns of the matching rows of the table."""
        return self._keys.rows(matches.sources)

    def rows(self) -> AddressedTable:
        """Return the rows of the table that have one of the keys, with their addresses."""
        snapshot = self._table.dataset.handle.snapshot
        plan = MergePlan(self._on, matched=UPDATE, dedupe="first_seen")
        addresses: NDArray[np.uint64] = np.sort(match_rows(snapshot, plan, self._keys).updated)
        restricted = TableScan(snapshot, AddressSieve(addresses))
        return AddressedTable(LanceDataset(snapshot.uri, table=restricted))

    @property
    def _on(self) -> tuple[str, ...]:
        return tuple(self._keys.table.column_names)
