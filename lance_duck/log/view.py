"""A version of a table together with its write-ahead log, in memory.

    fragments of the main table     rows whose key a newer row has count as deleted
    fragments of SSTables           with new ids, in base paths: one for each SSTable
    fragments of entries            with new ids, in stores in memory

In a shard, entries are newer than all SSTables, and SSTables with higher generations are newer. All rows of the log are
newer than the main table.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping
from dataclasses import replace
from itertools import count
from os import PathLike
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import LruCache
from lance_duck.errors import NotFoundError
from lance_duck.log import keys as key_sets
from lance_duck.log.keys import KeySet
from lance_duck.log.read_only import ReadOnlyStore
from lance_duck.log.sources import EntryRows, LogSchema, SsTableRows, key_batches, open_sstable, read_entries
from lance_duck.rows import DeletionVector, RowIdSequence, roaring_bytes
from lance_duck.scan.filters import TreeFilter
from lance_duck.scan.predicate.tree import In
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, Version, open_snapshot, shards
from lance_duck.snapshot.shards import Shard
from lance_duck.snapshot.with_log import FRESH, checked_mode, only_newest
from lance_duck.store import Store
from lance_duck.wire.column_path import split_path
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.fragment_write import fragment_to_proto
from lance_duck.wire.index import IndexMetadata, revised
from lance_duck.wire.manifest import BasePath, Manifest
from lance_duck.wire.pb import table_pb2

_BTREE: Final = "BTreeIndexDetails"
_LOOKUPS_PAY_BELOW: Final = 100
"""If the main table has this many times more rows than the log, keys are looked up. Otherwise, all keys are read."""
_REOPENED: Final = 4
"""Maximum number of views from other processes that this process keeps open."""
_numbers = count(1)


def open_view(
    uri: str | PathLike[str],
    version: Version | None,
    asof: object,
    storage_options: Mapping[str, str] | None,
    mode: str,
) -> LogView:
    """Open the newest version of a table, or of a branch, with its write-ahead log: see `log_view`.

    Raises:
        UnsupportedError: Another version is requested. The log does not have versions.
    """
    is_newest = version is None or (isinstance(version, tuple) and version[1:] == (None,))
    if asof is not None or not is_newest:
        raise only_newest(os.fspath(uri))
    return log_view(open_snapshot(uri, version, None, storage_options), mode)


def log_view(base: Snapshot, mode: str) -> LogView:
    """Return the newest state of a table with its write-ahead log. A table without a log is its own view.

    Args:
        base: Version of the main table.
        mode: "flushed" reads SSTables. "fresh" also reads the entries that are not in an SSTable yet.

    Raises:
        InvalidInputError: The mode is unknown.
        NotFoundError: An SSTable is missing.
        CorruptError: A file of the log is corrupt.
        UnsupportedError: The store does not list files.
    """
    checked_mode(mode)
    while True:
        try:
            return LogView(base, mode, _open_shards(base, mode))
        except NotFoundError:
            newest = base.checkout()
            if shards.merged_generations(newest) == shards.merged_generations(base):
                raise
            base = newest  # a merge into the main table has finished, and its SSTables were removed


def _open_shards(base: Snapshot, mode: str) -> tuple[Shard, ...]:
    found = shards.open_shards(base)
    if mode == FRESH:
        return found
    return tuple(replace(shard, entries=()) for shard in found if shard.tables)


class LogView(Snapshot):
    """A version of a table with the rows of its write-ahead log. It cannot be changed.

    Args:
        base: Version of the main table.
        mode: See `log_view`.
        parts: The parts of the shards that are in the view.

    Attributes:
        log: The mode.
        main: Version of the main table.
        parts: The parts of the shards that are in the view.
    """

    log: str

    def __init__(self, base: Snapshot, mode: str, parts: tuple[Shard, ...]) -> None:
        built = _Build(base)
        for shard in parts:
            built.add(shard)
        built.hide_replaced()
        super().__init__(base.location, built.manifest())
        self.log = mode
        self.main = base
        self.moved = built.moved
        self.parts = parts
        self._masks = built.masks
        self._memory = built.memory
        self._segments = (*base.indices, *built.segments)
        self.share_with(base)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.main, self.log, self.parts)

    @property
    def store(self) -> Store:
        """Root of the table, without methods that change files."""
        return cast("Store", ReadOnlyStore(super().store))

    @property
    def state(self) -> Hashable:
        """A value that is equal for equal states of the main table and its log."""
        return self.version, self.parts

    @property
    def indices(self) -> tuple[IndexMetadata, ...]:
        """Index segments of the main table, and B-trees of SSTables."""
        return self._segments

    def deletion_vector(self, fragment: Fragment) -> DeletionVector | None:
        """Return the rows of a fragment that are deleted or replaced: see `Snapshot.deletion_vector`."""
        mask = self._masks.get(fragment.id)
        return super().deletion_vector(fragment) if mask is None else mask

    def place(self, base_id: int | None) -> tuple[Store, BasePath | None]:
        """Return the store for a base id: see `Snapshot.place`."""
        store = None if base_id is None else self._memory.get(base_id)
        if store is None or base_id is None:
            return super().place(base_id)
        return store, BasePath(base_id, None, True, store.uri)

    def checkout(self, version: Version | None = None, asof: Any = None) -> Snapshot:
        """Return the newest state of the table and its log, or of a branch and its log.

        Raises:
            UnsupportedError: Another version is requested. The log does not have versions.
        """
        if asof is None and version in (None, self.version):
            return self if version is not None or self.is_newest() else log_view(self.main.checkout(), self.log)
        if asof is None and isinstance(version, tuple) and version[1:] == (None,):
            return log_view(self.main.checkout(version), self.log)
        raise only_newest(self.uri)

    def is_newest(self) -> bool:
        """Return whether neither the main table nor the part of the log in this view has changed."""
        return self.main.checkout() is self.main and _open_shards(self.main, self.log) == self.parts


def _reopened(main: Snapshot, mode: str, parts: tuple[Shard, ...]) -> LogView:
    """Return a view that another process made. The tasks of a worker share it."""
    key = (main.manifest.path, main.manifest.timestamp, mode, parts)
    return _views.get(key, lambda: LogView(main, mode, parts))


class _Build:
    """A view under construction. SSTables and entries are added shard by shard."""

    def __init__(self, base: Snapshot) -> None:
        self.columns = LogSchema(base.schema, base.uri)
        self.masks: dict[int, DeletionVector] = {}
        self.moved: dict[int, Mapping[int, int]] = {}
        self.memory: dict[int, Store] = {}
        self.segments: list[IndexMetadata] = []
        self._base = base
        self._proto = table_pb2.Manifest()
        self._proto.CopyFrom(base.manifest.proto)
        self._keys: list[pa.Table] = []
        self._indexed = {(index.name, index.fields) for index in base.indices if _is_btree(index)}
        ids = base.fragments.ids()
        self._fragments = count(max([base.manifest.max_fragment_id or 0, *ids, -1]) + 1)
        self._bases = count(max([0, *base.base_paths]) + 1)

    def add(self, shard: Shard) -> None:
        """Add the rows of a shard."""
        newer: list[pa.Table] = []
        entries = read_entries(self._base, shard.entries, self.columns) if shard.entries else None
        sources = []
        if entries is not None:
            newer.append(entries.keys)
        for sstable in reversed(shard.tables):
            source = open_sstable(self._base, sstable, self.columns)
            hidden = source.deletes
            if self.columns.key and newer:
                hidden = hidden | key_sets.union(newer, self.columns.key_schema).contains(source.keys)
            newer.append(source.keys)
            sources.append((source, source.addresses[hidden]))
        for source, replaced in reversed(sources):
            self._add_sstable(source, replaced)
        if entries is not None:
            self._add_entries(entries)
        self._keys += newer

    def hide_replaced(self) -> None:
        """Mark the rows of the main table as deleted whose key a row of the log has."""
        keys = key_sets.union(self._keys, self.columns.key_schema) if self.columns.key else None
        if keys is None or not keys.num_rows:
            return
        addresses = self._addresses_of(keys)
        protos = {proto.id: proto for proto in self._proto.fragments}
        for fragment_id in np.unique(addresses >> np.uint64(32)).tolist():
            fragment = self._base.fragment(fragment_id)
            self._hide(protos[fragment_id], self._base, fragment, addresses)

    def _addresses_of(self, keys: KeySet) -> NDArray[np.uint64]:
        """Return the addresses of the rows of the main table whose key is in a set."""
        condition = None
        if keys.num_rows * _LOOKUPS_PAY_BELOW <= self._base.count_rows():
            path = tuple(split_path(self.columns.key_schema.names[0]))
            condition = TreeFilter(In(path, keys.values(0)))
        width = len(self.columns.key)
        found = [np.empty(0, np.uint64)]
        for rows in key_batches(TableScan(self._base), self.columns, condition):
            mask = keys.contains(self.columns.checked_keys(rows.select(range(width)), self._base.uri))
            found.append(rows.column(width).to_numpy()[mask])
        return np.concatenate(found)

    def manifest(self) -> Manifest:
        """Return the manifest of the view. It is never written."""
        return replace(self._base.manifest, head=self._proto, fragment_bytes=None)

    def _add_sstable(self, source: SsTableRows, replaced: NDArray[np.uint64]) -> None:
        """Add an SSTable, of which some rows are hidden. `replaced` are their addresses."""
        base_id = next(self._bases)
        self._proto.base_paths.add(id=base_id, path=source.snapshot.uri, is_dataset_root=True)
        moved = {}
        for fragment in source.snapshot.fragments:
            new_id = moved[fragment.id] = next(self._fragments)
            proto = self._new_fragment(replace(fragment, files=source.own_files(fragment)), new_id, base_id)
            self._hide(proto, source.snapshot, fragment, replaced)
        self.moved[base_id] = moved
        for index in source.snapshot.indices:
            if _is_btree(index) and (index.name, index.fields) in self._indexed:
                bitmap = roaring_bytes(np.array(sorted(moved.values()), np.uint32))
                self.segments.append(revised(index, base_id=base_id, fragment_bitmap=bitmap))

    def _add_entries(self, entries: EntryRows) -> None:
        base_id = next(self._bases)
        self.memory[base_id] = entries.store
        for fragment in entries.fragments:
            self._new_fragment(fragment, next(self._fragments), base_id)

    def _new_fragment(self, fragment: Fragment, fragment_id: int, base_id: int) -> table_pb2.DataFragment:
        files = tuple(replace(file, base_id=base_id) for file in fragment.files)
        row_ids = None
        if self._base.has_stable_row_ids:
            row_ids = RowIdSequence.range_of(self._proto.next_row_id, fragment.physical_rows).to_bytes()
            self._proto.next_row_id += fragment.physical_rows
        own = replace(fragment, id=fragment_id, files=files, deletion_file=None, row_ids=row_ids)
        proto = self._proto.fragments.add()
        proto.CopyFrom(fragment_to_proto(replace(own, created_at=None, last_updated_at=None)))
        return proto

    def _hide(
        self,
        proto: table_pb2.DataFragment,
        snapshot: Snapshot,
        fragment: Fragment,
        addresses: NDArray[np.uint64],
    ) -> None:
        """Mark rows of a fragment as deleted in the view.

        Args:
            proto: The fragment in the view.
            snapshot: The main table or the SSTable.
            fragment: The fragment in `snapshot`.
            addresses: Addresses of hidden rows in `snapshot`, perhaps also in other fragments.
        """
        hidden = DeletionVector.of(addresses[addresses >> np.uint64(32) == fragment.id])
        deleted = snapshot.deletion_vector(fragment)
        vector = hidden if deleted is None else deleted.union(hidden)
        if vector.count:
            self.masks[proto.id] = vector
            # Caches distinguish the fragments of different views by this number.
            file = table_pb2.DeletionFile(id=next(_numbers), num_deleted_rows=vector.count)
            proto.deletion_file.CopyFrom(file)


def _is_btree(index: IndexMetadata) -> bool:
    return (index.details_type or "").endswith(_BTREE)


_views: LruCache[LogView] = LruCache(_REOPENED)
