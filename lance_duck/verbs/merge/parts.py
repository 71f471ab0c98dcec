"""A merge in parts: any process can write a part, and all parts are committed together.

Source and table are joined by encoded keys (`key_bytes`). The pairs are split so that all pairs with rows of one
fragment, and all unmatched source rows with one key, belong to the same part. A merge in one process (`builder`) writes
one such part. It does not build key bytes: while it scans the table, `match` looks up each row's key among the source's
keys. Building key bytes, sorting by address and reading matching rows again would make it slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.join import joined
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import CREATED_AT, ROW_ADDRESS, ROW_ID
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import PART_KEYS
from lance_duck.verbs.merge.match import MergeMatches, indexed_keys
from lance_duck.verbs.merge.plan import (
    DELETE,
    FAIL,
    NOTHING,
    MergePlan,
    PairCondition,
    by_source_filter,
    filter_columns,
    lost_rows,
    matched_row,
    repeated_key,
)
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import new_rows
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import AddressSieve, rows_at
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.verbs.rows.rows_moved import Offsets, moved_rows, offsets_by_fragment
from lance_duck.wire.fragment import Fragment
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import WriteOptions

Addresses = NDArray[np.uint64]


@dataclass(frozen=True)
class Pairs:
    """Pairs of the outer join of a source and a table. The pairs of a part are ordered by address, then by key.

    Attributes:
        source: Columns of the source. Undefined for pairs without a source row.
        keys: Encoded key of the source row, binary. Null without a source row.
        matched: Whether the pair has a table row; bool, shape (n,).
        addresses: Address of the table row; uint64, shape (n,). Undefined without a table row.
        has_source: Whether the pair has a source row; bool, shape (n,). Otherwise, the table row is deleted.
    """

    source: pa.RecordBatch
    keys: pa.Array
    matched: NDArray[np.bool_]
    addresses: Addresses
    has_source: NDArray[np.bool_]


@dataclass(frozen=True)
class MergePart:
    """The results of a part of a merge.

    Attributes:
        fragments: New fragments.
        updated: Offsets of the rewritten table rows, by fragment.
        deleted: Offsets of the deleted table rows, by fragment.
        inserted: Number of inserted rows.
        keys: Key columns of inserted rows, with the table's types. None if there are too many.
    """

    fragments: tuple[Fragment, ...]
    updated: Offsets
    deleted: Offsets
    inserted: int
    keys: pa.Table | None


def table_keys(
    snapshot: Snapshot, plan: MergePlan, fragments: Sequence[int], sought: KeyIndex | None = None
) -> Iterator[tuple[pa.Array, Addresses, NDArray[np.bool_]]]:
    """Yield the keys and addresses of table rows, and whether each row is deleted if it does not match.

    Args:
        snapshot: The version.
        plan: The merge.
        fragments: Ids of the fragments to read.
        sought: Keys of the source. Rows with other keys may be skipped. None if unknown.
    """
    condition = by_source_filter(plan, snapshot.schema) if plan.by_source_delete else None
    columns = list(dict.fromkeys([*plan.on, ROW_ADDRESS, *filter_columns(condition)]))
    sieve = None
    if sought is not None and not plan.by_source_delete:
        sieve = sought.sieve([(name,) for name in plan.on], indexed_keys(snapshot, sought, plan.on))
    table = TableScan(snapshot, sieve)
    for batch in table.reader(table.plan(ScanOptions(columns=columns, fragments=fragments))):
        lost = lost_rows(plan, condition, pa.Table.from_batches([batch]))
        keys = key_bytes([batch.column(name) for name in plan.on], plan.on)
        yield keys, batch.column(ROW_ADDRESS).to_numpy(), lost


def write_part(
    snapshot: Snapshot, plan: MergePlan, pairs: Iterable[Pairs], options: WriteOptions, draft: UncommittedFiles
) -> MergePart:
    """Write the part of a merge for some pairs.

    Args:
        snapshot: The version to merge into.
        plan: The merge. It must not rewrite columns.
        pairs: See `Pairs`.
        options: Write options.
        draft: Records the files, and deletes them if the change fails.

    Raises:
        InvalidInputError: Several source rows have the same key, a row matches but the action is FAIL, a condition is
            invalid, or a row does not fit the table.
    """
    part = _PartWriter(snapshot, plan)
    if any(each.blob_version for top in snapshot.schema.fields for each in top.walk()):
        options = replace(options, blobs=kept_blobs(snapshot))
    new_fragments = write_new_fragments(snapshot.store, snapshot.schema, part.rows(pairs), options)
    draft.note_fragments(new_fragments)
    fragments = tuple(new_fragments)
    if snapshot.has_stable_row_ids:
        fragments = moved_rows(new_fragments, joined(part.row_ids, np.uint64), joined(part.created_at, np.uint64))
    return MergePart(
        fragments,
        Offsets(offsets_by_fragment(joined(part.updated, np.uint64))),
        Offsets(offsets_by_fragment(joined(part.deleted, np.uint64))),
        part.inserted,
        part.inserted_keys(),
    )


def write_matches(
    snapshot: Snapshot, source: MergeSource, matches: MergeMatches, options: WriteOptions, draft: UncommittedFiles
) -> MergePart:
    """Write the only part of a merge from its matches.

    Args:
        snapshot: The version to merge into.
        source: The source.
        matches: The matches, in the order of `ordered_matches`.
        options: Write options.
        draft: Records the files, and deletes them if the change fails.

    Raises:
        InvalidInputError: An inserted row lacks a non-nullable column.
    """
    if any(field.blob_version for top in (*source.missing, *source.partial) for field in top.walk()):
        options = replace(options, blobs=kept_blobs(snapshot))
    rows = new_rows(snapshot, source, matches)
    fragments = tuple(write_new_fragments(snapshot.store, snapshot.schema, rows, options))
    draft.note_fragments(fragments)
    if snapshot.has_stable_row_ids:
        fragments = moved_rows(fragments, matches.row_ids, matches.created_at)
    return MergePart(
        fragments,
        Offsets(offsets_by_fragment(matches.updated)),
        Offsets(offsets_by_fragment(matches.deleted)),
        len(matches.inserted),
        source.key_columns(matches.inserted),
    )


@dataclass
class _PartWriter:
    """Writes the pairs of a part, and collects the results that are not stored in fragments."""

    snapshot: Snapshot
    plan: MergePlan
    updated: list[Addresses] = field(default_factory=list)
    row_ids: list[Addresses] = field(default_factory=list)
    created_at: list[Addresses] = field(default_factory=list)
    deleted: list[Addresses] = field(default_factory=list)
    inserted: int = 0
    _keys: list[pa.Table] = field(default_factory=list)
    _before: tuple[int | None, bytes | None] = (None, None)
    _condition: PairCondition | None = None

    def rows(self, pairs: Iterable[Pairs]) -> Iterator[pa.RecordBatch]:
        """Yield the rows to write: first updated rows, then inserted rows."""
        for each in pairs:
            if each.source.num_rows:
                yield from self._rows(each)

    def inserted_keys(self) -> pa.Table | None:
        """Return the keys of the inserted rows, or None if there are too many."""
        if self.inserted > PART_KEYS:
            return None
        return pa.concat_tables(self._keys).combine_chunks() if self._keys else None

    def _rows(self, pairs: Pairs) -> Iterator[pa.RecordBatch]:
        plan = self.plan
        lone = ~pairs.has_source
        self.deleted.append(pairs.addresses[lone])
        first = pairs.has_source & ~self._repeated(pairs)
        matched = np.flatnonzero(pairs.matched & first)
        fresh = np.flatnonzero(~pairs.matched & first) if plan.insert else np.empty(0, np.int64)
        if plan.matched == FAIL and len(matched):
            raise matched_row(_key_text(plan, pairs, int(matched[0])))
        if plan.matched == DELETE:
            self.deleted.append(pairs.addresses[matched])
        if plan.matched in (NOTHING, DELETE):
            matched = matched[:0]
        if not len(matched) and not len(fresh):
            return
        source = MergeSource(
            pairs.source.take(pa.array(np.concatenate([matched, fresh]))), self.snapshot.schema, plan.on
        )
        places = self._updated(source, pairs.addresses[matched])
        addresses = self._moved(pairs.addresses[matched][places])
        inserts = np.arange(len(matched), len(matched) + len(fresh))
        if len(fresh):
            self._note_keys(source, inserts)
        self.updated.append(addresses)
        nothing = np.empty(0, np.uint64)
        yield from new_rows(self.snapshot, source, MergeMatches(addresses, places, nothing, nothing, nothing, inserts))

    def _updated(self, source: MergeSource, addresses: Addresses) -> NDArray[np.int64]:
        """Return the indices of the matched pairs that are updated."""
        everyone = np.arange(len(addresses))
        if self.plan.condition is None or not len(addresses):
            return everyone
        target_schema = self.snapshot.schema.with_blob_bytes().scan_arrow
        if self._condition is None:
            self._condition = PairCondition.parse(self.plan.condition, source.table.schema, target_schema)
        condition = self._condition
        source_rows = source.table.slice(0, len(addresses)).select(list(condition.source_columns))
        target = self._target(addresses, list(condition.target_columns))
        return everyone[np.asarray(condition.mask(source_rows, target), np.bool_)]

    def _target(self, addresses: Addresses, columns: list[str]) -> pa.Table:
        """Return columns of table rows. Blobs are returned as bytes."""
        table = TableScan(self.snapshot, AddressSieve(addresses))
        ids = distinct(addresses >> np.uint64(32)).tolist()
        scan = ScanOptions(columns=[*columns, ROW_ADDRESS], fragments=ids, blob_handling="all_binary")
        return table.reader(table.plan(scan)).read_all().select(columns)

    def _moved(self, addresses: Addresses) -> Addresses:
        """Collect the stable row ids of moved rows, and return their addresses."""
        if self.snapshot.has_stable_row_ids and len(addresses):
            for batch in rows_at(self.snapshot, addresses, [ROW_ID, CREATED_AT]):
                self.row_ids.append(batch.column(ROW_ID).to_numpy())
                self.created_at.append(batch.column(CREATED_AT).to_numpy())
        return addresses

    def _note_keys(self, source: MergeSource, rows: NDArray[np.int64]) -> None:
        self.inserted += len(rows)
        if self.inserted <= PART_KEYS:
            self._keys.append(source.rows(rows).select(list(self.plan.on)))

    def _repeated(self, pairs: Pairs) -> NDArray[np.bool_]:
        """Return the mask of pairs that repeat a key or table row. Raises an error if the plan rejects duplicates."""
        uses_rows = self.plan.insert or self.plan.matched != NOTHING
        if not uses_rows:
            return np.zeros(len(pairs.has_source), np.bool_)
        repeated = _same(pairs, self._before)
        self._before = _last(pairs)
        repeated &= pairs.has_source
        if self.plan.dedupe == "fail" and repeated.any():
            raise repeated_key(_key_text(self.plan, pairs, int(np.flatnonzero(repeated)[0])))
        return repeated


def _same(pairs: Pairs, before: tuple[int | None, bytes | None]) -> NDArray[np.bool_]:
    """Return whether each pair repeats the previous pair's table row, or the previous key if neither pair matched."""
    matched, addresses = pairs.matched, pairs.addresses
    same = np.zeros(len(matched), np.bool_)
    same[1:] = matched[1:] & matched[:-1] & (addresses[1:] == addresses[:-1])
    keys = pairs.keys
    equal = np.asarray(pa.compute.equal(keys.slice(1), keys.slice(0, len(keys) - 1)).fill_null(False), np.bool_)
    same[1:] |= ~matched[1:] & ~matched[:-1] & equal
    address, key = before
    if matched[0]:
        same[0] = address is not None and int(addresses[0]) == address
    else:
        same[0] = key is not None and keys[0].as_py() == key
    return same


def _last(pairs: Pairs) -> tuple[int | None, bytes | None]:
    if pairs.matched[-1]:
        return int(pairs.addresses[-1]), None
    return None, pairs.keys[len(pairs.keys) - 1].as_py()


def _key_text(plan: MergePlan, pairs: Pairs, row: int) -> str:
    source = pairs.source
    return ", ".join(f"{name} = {source.column(name)[row].as_py()!r}" for name in plan.on)
