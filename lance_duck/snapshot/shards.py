"""The shards of a write-ahead log (MemWAL): rows that are not in the main table yet.

Rows of a shard are first written as entries, in order. Later, a writer writes them again as an SSTable, which is a
table in a folder of the shard, and then merges SSTables into the main table. `snapshot.mem_wal` lists the files.

The newest manifest of a shard lists its SSTables, and the position of the last entry whose rows are in an SSTable. The
log's index entry stores the last merged SSTable of each shard.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Final
from uuid import UUID

import pyarrow as pa

from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.snapshot.snapshot import Snapshot, open_snapshot
from lance_duck.store import Store, join_uri
from lance_duck.wire.index import MEM_WAL, IndexMetadata
from lance_duck.wire.manifest import parse_message
from lance_duck.wire.paths import WRITE_AHEAD_LOG
from lance_duck.wire.pb import index_pb2

_SHARD: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_FILE: Final = re.compile(r"(?P<bits>[01]{64})\.(?:binpb|arrow)")
_ATTEMPTS: Final = 4
"""Number of times that a shard is listed while a writer removes its old manifests."""


@dataclass(frozen=True)
class SsTable:
    """An SSTable that is not merged into the main table.

    Attributes:
        generation: Number of the SSTable. Rows of higher generations replace rows of lower ones.
        path: Path below the root of the main table.
        num_rows: Number of rows, including rows that later rows of the SSTable replace. None if it is not stored.
    """

    generation: int
    path: str
    num_rows: int | None


@dataclass(frozen=True)
class Shard:
    """The part of a shard that is not merged into the main table.

    Attributes:
        uuid: Name of the shard.
        tables: SSTables, oldest first.
        entries: Paths of the entries that are not in an SSTable, oldest first, below the root of the main table.
    """

    uuid: str
    tables: tuple[SsTable, ...]
    entries: tuple[str, ...]


def log_entry(snapshot: Snapshot) -> IndexMetadata | None:
    """Return the index entry of the write-ahead log, or None for a table without a log."""
    return next((index for index in snapshot.indices if index.name == MEM_WAL), None)


def merged_generations(snapshot: Snapshot) -> Mapping[str, int]:
    """Return the last SSTable of each shard that is merged into this version. Other shards are not merged at all.

    Raises:
        CorruptError: The index entry of the log cannot be read.
    """
    entry = log_entry(snapshot)
    if entry is None:
        return {}
    where = f"{snapshot.manifest.path} (index {MEM_WAL})"
    details = parse_message(entry.details, index_pb2.MemWalIndexDetails.FromString, where)
    merged: dict[str, int] = {}
    for each in details.compacted_sstables:
        if len(each.shard_id.uuid) != 16:
            raise CorruptError("invalid id of a shard", where=where, expected="16 bytes", found=len(each.shard_id.uuid))
        shard = str(UUID(bytes=each.shard_id.uuid))
        merged[shard] = max(merged.get(shard, 0), each.generation)
    return merged


def shard_names(store: Store) -> list[str]:
    """Return the names of all shards, sorted.

    Raises:
        UnsupportedError: The store does not list files.
    """
    if not store.can_list:
        raise UnsupportedError(
            "the write-ahead log (MemWAL) cannot be read, because the server does not list files", where=store.uri
        )
    names = store.names_at_once(WRITE_AHEAD_LOG)
    if names is None:
        names = [entry.path.split("/")[1] for entry in store.walk(WRITE_AHEAD_LOG)]
    return sorted({name for name in names if _SHARD.fullmatch(name)})


def open_shard(store: Store, name: str, merged: int) -> Shard:
    """Read the state of a shard from its newest manifest.

    The file with a hint at the newest manifest is not read: it may be old.

    Args:
        store: Root of the main table.
        name: Name of the shard.
        merged: Last generation that is merged into the main table, or 0.

    Raises:
        CorruptError: The manifest cannot be read, or names a file outside the shard.
        NotFoundError: Another writer removes manifests faster than they are read.
    """
    folder = f"{WRITE_AHEAD_LOG}/{name}"
    manifest, where = _newest_manifest(store, folder)
    tables: dict[int, SsTable] = {}
    for each in manifest.sstables:
        if each.path in ("", ".", "..") or any(letter in each.path for letter in "/\\\0"):
            raise CorruptError(
                "invalid folder of an SSTable", where=where, expected="a name without slashes", found=repr(each.path)
            )
        if each.generation in tables or not each.generation:
            raise CorruptError(
                "invalid generation of an SSTable",
                where=where,
                expected="a different number from 1 for each SSTable",
                found=each.generation,
            )
        rows = each.num_rows if each.HasField("num_rows") else None
        tables[each.generation] = SsTable(each.generation, f"{folder}/{each.path}", rows)
    present = dict(_numbered(store, f"{folder}/wal"))
    entries = []
    for position in count(manifest.replay_after_wal_entry_position + 1):
        if position not in present:
            break
        entries.append(f"{folder}/wal/{present[position]}")
    return Shard(name, tuple(tables[g] for g in sorted(tables) if g > merged), tuple(entries))


def open_shards(snapshot: Snapshot) -> tuple[Shard, ...]:
    """Return the shards of a table's log that have rows outside the main table. Raises the errors of `open_shard`."""
    if log_entry(snapshot) is None:
        return ()
    merged = merged_generations(snapshot)
    shards = (open_shard(snapshot.store, name, merged.get(name, 0)) for name in shard_names(snapshot.store))
    return tuple(shard for shard in shards if shard.tables or shard.entries)


def waiting_rows(snapshot: Snapshot) -> str | None:
    """Describe the rows of a table's log that are not in the main table, for messages. Returns None without a log.

    Rows that newer rows replace are counted, too.
    """
    if log_entry(snapshot) is None:
        return None
    try:
        parts = open_shards(snapshot)
        tables = [_num_rows(snapshot, table) for part in parts for table in part.tables]
        entries = [read_entry(snapshot.store, path).num_rows for part in parts for path in part.entries]
    except LanceDuckError as error:
        return f"unknown, because {error}"
    return f"{sum(tables)} in SSTables ({len(tables)}), {sum(entries)} in newer entries ({len(entries)})"


def _num_rows(snapshot: Snapshot, table: SsTable) -> int:
    if table.num_rows is not None:
        return table.num_rows
    uri = join_uri(snapshot.uri, table.path)
    return open_snapshot(uri, storage_options=snapshot.location.storage_options).count_rows()


def read_entry(store: Store, path: str) -> pa.Table:
    """Read an entry of the log.

    Raises:
        CorruptError: The file is not a valid Arrow stream.
        NotFoundError: The file does not exist.
    """
    where = join_uri(store.uri, path)
    data = store.get(path)
    try:
        with pa.ipc.open_stream(pa.py_buffer(data)) as stream:
            table = stream.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, MemoryError, OverflowError) as error:
        raise CorruptError("the entry of the log is not an Arrow stream", where=where, found=str(error)) from error
    return table


def _newest_manifest(store: Store, folder: str) -> tuple[index_pb2.ShardManifest, str]:
    """Return the newest manifest of a shard, and its location."""
    for attempt in count(1):
        names = dict(_numbered(store, f"{folder}/manifest"))
        if not names:  # the shard is being created, or its writer failed
            return index_pb2.ShardManifest(), folder
        version = max(names)
        path = f"{folder}/manifest/{names[version]}"
        try:
            data = store.get(path)
        except NotFoundError:
            if attempt == _ATTEMPTS:
                raise
            continue
        where = join_uri(store.uri, path)
        manifest = parse_message(data, index_pb2.ShardManifest.FromString, where)
        if manifest.version != version:
            raise CorruptError("wrong version of a shard", where=where, expected=version, found=manifest.version)
        return manifest, where
    raise AssertionError


def _numbered(store: Store, directory: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the name of each numbered file in a directory."""
    for name in store.names(directory):
        match = _FILE.fullmatch(name)
        if match is not None:
            yield int(match["bits"][::-1], 2), name
