"""Merges SSTables of a write-ahead log (MemWAL) into the main table.

One Update brings the newest row of each key, deletes the rows of deleted keys, and records the last merged SSTable of
each shard. The files of the log do not change: a reader skips SSTables that the main table includes. Entries that are
not in an SSTable yet stay in the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from uuid import UUID

import pyarrow as pa

from lance_duck.commit import run_again
from lance_duck.commit.operations import CompactedSsTable, Update
from lance_duck.errors import UnsupportedError
from lance_duck.log.sources import LogSchema, open_sstable
from lance_duck.log.view import LogView, log_view
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.commit import MergeResult, WrittenMerge, commit_merge, joined_parts
from lance_duck.verbs.merge.match import match_rows
from lance_duck.verbs.merge.parts import write_matches
from lance_duck.verbs.merge.plan import DELETE, UPDATE, MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.merge.write import ordered_matches
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import delete_offsets
from lance_duck.write.files import write_new_fragments
from lance_duck.write.options import WriteOptions


@dataclass(frozen=True)
class LogCompactionMetrics:
    """Numbers of SSTables that were merged, and of rows of the main table that were inserted, updated and deleted."""

    sstables_merged: int = 0
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0


def compact_log(
    snapshot: Snapshot, properties: Mapping[str, str] | None, memory_limit: int | None
) -> tuple[Snapshot, LogCompactionMetrics]:
    """Merge all SSTables into the main table, and return the new version. Without SSTables, the version stays.

    Args:
        snapshot: Version to start from.
        properties: Properties of the transaction, or None.
        memory_limit: Approximate memory limit for rows of the log, in bytes. None is the default of merges.

    Raises:
        IncompatibleError: Another writer has merged the same SSTables, or removed the log.
        RetryableError: All attempts conflicted with other writers.
        CorruptError: A file of the log is corrupt.
        UnsupportedError: A primary key column is nested.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, LogCompactionMetrics]:
        view = log_view(base, "flushed")
        if not view.parts:
            return base, LogCompactionMetrics()
        options = WriteOptions(data_storage_version=view.main.data_storage_version, committed_here=True)
        if memory_limit is not None:
            options = options.within(memory_limit)
        with UncommittedFiles(view.main, options.bases) as draft:
            merged = _merged(view, options, draft, memory_limit)
            last = [CompactedSsTable(UUID(shard.uuid), shard.tables[-1].generation) for shard in view.parts]
            merged = replace(merged, operation=replace(merged.operation, compacted_sstables=last))
            after, counts = commit_merge(draft, merged, properties)
        return after, LogCompactionMetrics(
            sum(len(shard.tables) for shard in view.parts),
            counts["num_inserted_rows"],
            counts["num_updated_rows"],
            counts["num_deleted_rows"],
        )

    return run_again(snapshot, attempt)


def _merged(view: LogView, options: WriteOptions, draft: UncommittedFiles, memory_limit: int | None) -> WrittenMerge:
    """Write the merge of a view's log into its main table."""
    base, columns = view.main, LogSchema(view.main.schema, view.main.uri)
    own = set(base.fragments.ids())
    logged = [fragment.id for fragment in view.fragments if fragment.id not in own]
    table = TableScan(view)
    rows = table.reader(table.plan(ScanOptions(fragments=logged, blob_handling="all_binary")))
    if not columns.key:
        fragments = write_new_fragments(base.store, base.schema, rows, options)
        draft.note_fragments(fragments)
        count = sum(fragment.physical_rows for fragment in fragments)
        result: MergeResult = {"num_inserted_rows": count, "num_updated_rows": 0, "num_deleted_rows": 0}
        return WrittenMerge(Update(new_fragments=fragments), {}, None, result)
    on = tuple(field.name for field in columns.key)
    if columns.key_schema.names != list(on):
        found = ", ".join(columns.key_schema.names)
        raise UnsupportedError("a log with a nested primary key cannot be merged", where=base.uri, found=found)
    plan = MergePlan(on, matched=UPDATE, insert=True)
    with (
        closing(MergeSource(rows, base.schema, on, None, memory_limit)) as source,
        closing(MergeSource(_deleted(view, columns, source, on), base.schema, on, None, memory_limit)) as deleted,
    ):
        matches = ordered_matches(match_rows(base, plan, source), by_address=base.has_stable_row_ids)
        matches.deleted = match_rows(base, MergePlan(on, matched=DELETE), deleted).deleted
        part = write_matches(base, source, matches, options, draft)
        names = source.schema.names
        return joined_parts(base, plan, names, [part], lambda offsets: delete_offsets(base, offsets, draft))


def _deleted(view: LogView, columns: LogSchema, source: MergeSource, on: Sequence[str]) -> pa.RecordBatchReader:
    """Return the keys of the log, each once, whose newest row deletes the key."""

    def batches() -> Iterator[pa.RecordBatch]:
        for shard in view.parts:
            for sstable in shard.tables:
                rows = open_sstable(view.main, sstable, columns)
                yield from rows.keys.filter(pa.array(rows.deletes)).to_batches()

    keys = pa.Table.from_batches(batches(), columns.key_schema).group_by(list(on)).aggregate([])
    is_live = source.keys.find(keys.select(list(on)).columns) >= 0
    return keys.select(list(on)).filter(pa.array(~is_live)).to_reader()
