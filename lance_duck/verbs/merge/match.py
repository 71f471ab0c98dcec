"""Matching: finds the table rows that match a source, and the source row of each match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.join import joined
from lance_duck.scan.indexes.indexed_columns import indexed_columns
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import Path
from lance_duck.scan.projection import CREATED_AT, ROW_ADDRESS, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import MATCHED_ROWS, ROWS_PER_KEY
from lance_duck.verbs.merge.plan import (
    DELETE,
    FAIL,
    NOTHING,
    UPDATE,
    MergePlan,
    PairCondition,
    by_source_filter,
    filter_columns,
    lost_rows,
    matched_row,
    repeated_key,
)
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.rows.keys import Codes, KeyIndex

Addresses = NDArray[np.uint64]


@dataclass
class MergeMatches:
    """The matches of a merge, row by row.

    Attributes:
        updated: Addresses of updated rows; uint64, shape (n,).
        sources: Source row of each updated row; int64, shape (n,).
        row_ids: Stable row ids of the updated rows; uint64, shape (n,). Empty if the table does not have them.
        created_at: Versions that created the updated rows; uint64, shape (n,). Empty without stable row ids.
        deleted: Addresses of deleted rows; uint64.
        inserted: Ascending source rows to insert; int64.
    """

    updated: Addresses
    sources: NDArray[np.int64]
    row_ids: NDArray[np.uint64]
    created_at: NDArray[np.uint64]
    deleted: Addresses
    inserted: NDArray[np.int64]

    @property
    def gone(self) -> Addresses:
        """Addresses of all moved or deleted rows."""
        return np.concatenate([self.updated, self.deleted])


def match_rows(snapshot: Snapshot, plan: MergePlan, source: MergeSource) -> MergeMatches:
    """Match the rows of a merge. Reads keys and condition columns of the rows that may match.

    Raises:
        InvalidInputError: The source has duplicate keys, a row matches but the action is FAIL, or a condition is
            invalid.
    """
    return _Matcher(snapshot, plan, source).run()


def indexed_keys(snapshot: Snapshot, keys: KeyIndex, on: Sequence[str]) -> dict[Path, pa.DataType]:
    """Return the indexed key columns used for lookups, with their types. Empty if the source has many keys."""
    if keys.count * ROWS_PER_KEY > snapshot.count_rows():
        return {}
    fields = {field.name: field for field in snapshot.schema.fields}
    return {(name,): fields[name].storage_type for name in indexed_columns(snapshot).intersection(on)}


@dataclass
class _MatchLists:
    updated: list[Addresses] = field(default_factory=list)
    sources: list[Codes] = field(default_factory=list)
    row_ids: list[Addresses] = field(default_factory=list)
    created_at: list[Addresses] = field(default_factory=list)
    deleted: list[Addresses] = field(default_factory=list)


class _Matcher:
    def __init__(self, snapshot: Snapshot, plan: MergePlan, source: MergeSource) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._source = source
        self._keys: KeyIndex = source.keys
        self._hit = np.zeros(self._keys.count, np.bool_)
        self._matches = _MatchLists()
        self._lineage = plan.matched == UPDATE and snapshot.has_stable_row_ids
        self._unless = by_source_filter(plan, snapshot.schema)
        self._condition: PairCondition | None = None
        if plan.condition is not None:
            self._condition = PairCondition.parse(
                plan.condition, source.table.schema, snapshot.schema.with_blob_bytes().scan_arrow
            )

    def run(self) -> MergeMatches:
        if self._plan.dedupe == "fail":
            self._refuse_repeated()
        for batch in self._rows():
            self._take(batch)
        pieces = self._matches
        return MergeMatches(
            joined(pieces.updated, np.uint64),
            joined(pieces.sources, np.int64),
            joined(pieces.row_ids, np.uint64),
            joined(pieces.created_at, np.uint64),
            joined(pieces.deleted, np.uint64),
            self._inserted(),
        )

    def _rows(self) -> Iterator[pa.Table]:
        """Yield table rows that may match. Batches are large: the cost of a lookup grows with the source size."""
        hidden = [ROW_ADDRESS, *([ROW_ID, CREATED_AT] if self._lineage else [])]
        columns = [*self._plan.on, *hidden]
        sieve = None
        if self._plan.by_source_delete:
            columns += filter_columns(self._unless)
        else:
            indexed = indexed_keys(self._snapshot, self._keys, self._plan.on) if self._plan.use_index else {}
            sieve = self._keys.sieve([(name,) for name in self._plan.on], indexed)
        if self._condition is not None:
            columns += self._condition.target_columns
        table = TableScan(self._snapshot, sieve)
        names = list(dict.fromkeys(columns))
        use_index = self._plan.use_index
        scan = table.plan(ScanOptions(columns=names, blob_handling="all_binary", use_scalar_index=use_index))
        batches: list[pa.RecordBatch] = []
        most, rows = max(MATCHED_ROWS, 2 * len(self._source)), 0
        if not self._keys.count and not self._plan.by_source_delete:
            return
        for batch in table.reader(scan):
            batches.append(batch)
            rows += batch.num_rows
            if rows >= most:
                yield pa.Table.from_batches(batches)
                batches, rows = [], 0
        if batches:
            yield pa.Table.from_batches(batches)

    def _take(self, rows: pa.Table) -> None:
        codes = self._keys.find([rows.column(name) for name in self._plan.on])
        hits = np.flatnonzero(codes >= 0)
        addresses = rows.column(ROW_ADDRESS).to_numpy()
        if len(hits):
            self._hit[codes[hits]] = True
            self._matched(rows, hits, self._keys.first_rows[codes[hits]], addresses)
        if self._plan.by_source_delete:
            lost = (codes < 0) & lost_rows(self._plan, self._unless, rows)
            self._matches.deleted.append(addresses[lost])

    def _matched(self, rows: pa.Table, hits: Codes, sources: Codes, addresses: Addresses) -> None:
        if self._plan.matched == NOTHING:
            return
        if self._plan.matched == FAIL:
            raise matched_row(self._source.key_text(int(sources[0])))
        if self._condition is not None:
            holds = self._condition.mask(
                self._source.rows(sources).select(list(self._condition.source_columns)),
                rows.select(list(self._condition.target_columns)).take(pa.array(hits)),
            )
            pairs = np.asarray(holds)
            hits, sources = hits[pairs], sources[pairs]
        if self._plan.matched == DELETE:
            self._matches.deleted.append(addresses[hits])
            return
        self._matches.updated.append(addresses[hits])
        self._matches.sources.append(sources)
        if self._lineage:
            self._matches.row_ids.append(rows.column(ROW_ID).to_numpy()[hits])
            self._matches.created_at.append(rows.column(CREATED_AT).to_numpy()[hits])

    def _inserted(self) -> Codes:
        if not self._plan.insert:
            return np.empty(0, np.int64)
        codes = self._keys.codes
        fresh = codes < 0
        fresh[codes >= 0] = ~self._hit[codes[codes >= 0]]
        fresh[self._keys.repeated] = False
        return np.flatnonzero(fresh)

    def _refuse_repeated(self) -> None:
        uses_rows = self._plan.insert or self._plan.matched != NOTHING
        if uses_rows and len(self._keys.repeated):
            raise repeated_key(self._source.key_text(int(self._keys.repeated[0])))
