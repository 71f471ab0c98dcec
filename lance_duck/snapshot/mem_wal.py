"""The write-ahead log (MemWAL) that other writers use, and its constraints on changes.

    _mem_wal/{shard}/manifest/{bits}.binpb    ShardManifest; {bits}: the manifest version as 64 binary digits, reversed
    _mem_wal/{shard}/wal/{bits}.arrow         rows in write order; {bits}: the position, in the same form
    _mem_wal/{shard}/{folder of an SSTable}/  a table of rows that are not merged into the main table yet

This package never changes these files. The log's index entry stores the last merged SSTable of each shard: see
`snapshot.shards`. `optimize.log_compaction` merges SSTables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from uuid import UUID

from google.protobuf.message import DecodeError

from lance_duck.errors import CorruptError, IncompatibleError, UnsupportedError, warn_of_log
from lance_duck.snapshot import shards
from lance_duck.snapshot.snapshot import Snapshot
from lance_duck.wire.index import MEM_WAL
from lance_duck.wire.pb import index_pb2, table_pb2, transaction_pb2
from lance_duck.wire.schema import schema_from_proto
from lance_duck.wire.schema_write import primary_key

_warned: Final[set[str]] = set()


def has_log(snapshot: Snapshot) -> bool:
    """Return whether a table has a write-ahead log."""
    return shards.log_entry(snapshot) is not None


def refuse_values(snapshot: Snapshot) -> None:
    """Reject values for new fields, including casts, in a table with a write-ahead log.

    Raises:
        UnsupportedError: The table has a log, and rows of the log would be null in these fields.
    """
    if has_log(snapshot):
        raise _no_values(snapshot.uri)


def refuse_not_null(snapshot: Snapshot) -> None:
    """Reject non-null constraints in a table with a write-ahead log.

    Raises:
        UnsupportedError: The table has a log, and rows of the log may contain nulls.
    """
    if has_log(snapshot):
        raise _no_not_null(snapshot.uri)


def check_schema_change(
    before: table_pb2.Manifest, after: table_pb2.Manifest, segments: Iterable[table_pb2.IndexMetadata]
) -> None:
    """Reject a schema change that cannot be applied to rows in a write-ahead log.

    Args:
        before: A version.
        after: The next version.
        segments: Index segments, including the log's entry.

    Raises:
        UnsupportedError: See `refuse_values` and `refuse_not_null`. Also raised if a primary key column is renamed.
    """
    if all(segment.name != MEM_WAL for segment in segments):
        return
    old = {field.id: field for field in before.fields}
    new = {field.id for field in after.fields if field.id not in old}
    if new and any(not new.isdisjoint(file.fields) for fragment in after.fragments for file in fragment.files):
        raise _no_values()
    if any(not f.nullable and f.id in old and old[f.id].nullable for f in after.fields):
        raise _no_not_null()
    names = {field.id: field.name for field in after.fields}
    for key in primary_key(schema_from_proto(before.fields)):
        if names.get(key.id, key.name) != key.name:
            raise UnsupportedError(
                "a primary key column cannot be renamed in a table with a write-ahead log (MemWAL)",
                where=f"column {key.name!r}",
                remedy=f"merge the log and remove it with drop_index({MEM_WAL!r})",
            )


def forget_progress(before: Sequence[table_pb2.IndexMetadata], after: Sequence[table_pb2.IndexMetadata]) -> None:
    """Remove the merge progress of changed indexes from the entry of a write-ahead log.

    Args:
        before: Segments of the previous version.
        after: Segments of the next version. The log's entry is changed in place.
    """
    entry = next((segment for segment in after if segment.name == MEM_WAL), None)
    if entry is None:
        return
    old, new = _states(before), _states(after)
    try:
        details = index_pb2.MemWalIndexDetails.FromString(entry.index_details.value)
    except DecodeError:
        return
    kept = [each for each in details.index_catchup if new.get(each.index_name) == old.get(each.index_name) is not None]
    if len(kept) < len(details.index_catchup):
        progress = index_pb2.MemWalIndexDetails(index_catchup=kept)
        details.ClearField("index_catchup")
        details.MergeFrom(progress)
        entry.index_details.value = details.SerializeToString()


def note_progress(
    segments: Iterable[table_pb2.IndexMetadata], merged: Sequence[transaction_pb2.Transaction.CompactedSsTable]
) -> None:
    """Record merged SSTables in the entry of a write-ahead log.

    Args:
        segments: Segments of the next version. The log's entry is changed in place.
        merged: The newest merged SSTable of each shard.

    Raises:
        IncompatibleError: The log was removed, or another writer has merged these SSTables.
    """
    if not merged:
        return
    entry = next((segment for segment in segments if segment.name == MEM_WAL), None)
    if entry is None:
        raise IncompatibleError("the write-ahead log (MemWAL) was removed from the table while it was merged")
    details = index_pb2.MemWalIndexDetails.FromString(entry.index_details.value)
    known = {each.shard_id.uuid: each for each in details.compacted_sstables}
    for table in merged:
        shard = known.get(table.shard_id.uuid)
        if shard is None:
            shard = details.compacted_sstables.add(shard_id=table.shard_id)
        elif shard.generation >= table.generation:
            raise IncompatibleError(
                "another writer has merged the same rows of the write-ahead log (MemWAL)",
                where=f"shard {UUID(bytes=table.shard_id.uuid)}",
                expected=f"a generation above {shard.generation}",
                found=table.generation,
                remedy="call checkout_latest() on the dataset, and compact the log again",
            )
        shard.generation = table.generation
    entry.index_details.value = details.SerializeToString()


def warn_of_waiting_rows(snapshot: Snapshot, change: str, *, removes: bool = False) -> None:
    """Warn that a change does not affect rows in a write-ahead log. Warns once per table and process.

    Args:
        snapshot: The version to be changed.
        change: Name of the operation.
        removes: Whether the change removes the log from the table. These changes warn each time.

    Raises:
        MemWalWarning: Warnings of this category are errors.
    """
    if not has_log(snapshot) or (snapshot.uri in _warned and not removes):
        return
    waiting = _waiting_shards(snapshot)
    if not waiting:
        return
    effect = (
        "readers will no longer find these rows"
        if removes
        else "readers of the log still see these rows, and merging them later undoes the change for their keys"
    )
    warn_of_log(
        f"{snapshot.uri}: {change} does not change rows in {len(waiting)} unmerged shards of the "
        f"write-ahead log (MemWAL): {effect}. Merge the log first."
    )
    _warned.add(snapshot.uri)


def _waiting_shards(snapshot: Snapshot) -> list[str]:
    """Return the shards with unmerged rows. Includes shards whose state cannot be read."""
    try:
        merged = shards.merged_generations(snapshot)
    except CorruptError:
        merged = {}
    waiting = []
    for name in shards.shard_names(snapshot.store):
        try:
            shard = shards.open_shard(snapshot.store, name, merged.get(name, 0))
            if shard.tables or shard.entries:
                waiting.append(name)
        except CorruptError:
            waiting.append(name)
    return waiting


def _states(segments: Sequence[table_pb2.IndexMetadata]) -> dict[str, set[tuple[bytes, bytes]]]:
    """Return the segments of each index as (UUID, fragment bitmap)."""
    states: dict[str, set[tuple[bytes, bytes]]] = {}
    for segment in segments:
        states.setdefault(segment.name, set()).add((segment.uuid.uuid, segment.fragment_bitmap))
    return states


def _no_values(where: str | None = None) -> UnsupportedError:
    return UnsupportedError(
        "columns with values cannot be added or cast in a table with a write-ahead log (MemWAL)",
        where=where,
        remedy=f"add a column of nulls, or merge the log and remove it with drop_index({MEM_WAL!r})",
    )


def _no_not_null(where: str | None = None) -> UnsupportedError:
    return UnsupportedError(
        "a column cannot become non-nullable in a table with a write-ahead log (MemWAL)",
        where=where,
        remedy=f"merge the log and remove it with drop_index({MEM_WAL!r})",
    )
