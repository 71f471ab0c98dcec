"""The footprint of a transaction: the fragments, rows, fields and keys that it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.commit.index_coverage import FRAGMENT_REUSE, SYSTEM, bitmap_fragments
from lance_duck.rows import roaring_values
from lance_duck.wire.limits import ROW_OFFSETS
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.wire.transaction import UNKNOWN, transaction_from_proto

_T = transaction_pb2.Transaction


@dataclass(frozen=True)
class MapKeys:
    """The map keys that a change sets, and the keys that it removes."""

    set: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def clash(self, other: MapKeys) -> bool:
        """Return whether both set the same key, or one sets a key that the other removes.

        Removing the same key twice is not a conflict.
        """
        return bool(self.set & (other.set | other.removed) or self.removed & other.set)


class Footprint:
    """A transaction, and its effect on a table.

    Args:
        transaction: The transaction message.
        has_affected_rows: Whether the caller knows which rows the transaction deletes or changes.
    """

    def __init__(self, transaction: transaction_pb2.Transaction, *, has_affected_rows: bool = False) -> None:
        self.transaction = transaction
        self.has_affected_rows = has_affected_rows

    @property
    def kind(self) -> str:
        """Name of the operation, such as "Append". It is "Unknown" for an operation of a newer format."""
        return transaction_from_proto(self.transaction).operation

    @cached_property
    def _message(self) -> Any:
        arm = self.transaction.WhichOneof("operation")
        return None if arm is None else getattr(self.transaction, arm)

    @cached_property
    def updated(self) -> frozenset[int]:
        """Fragments that remain, with changed rows or values."""
        if self.kind == "DataReplacement":
            return frozenset(r.fragment_id for r in self._message.replacements)
        if self.kind == "DataOverlay":
            return frozenset(group.fragment_id for group in self._message.groups)
        if self.kind in ("Delete", "Update"):
            return frozenset(f.id for f in self._message.updated_fragments)
        return frozenset()

    @cached_property
    def removed(self) -> frozenset[int]:
        """Fragments that the transaction removes."""
        if self.kind == "Delete":
            return frozenset(self._message.deleted_fragment_ids)
        if self.kind == "Update":
            return frozenset(self._message.removed_fragment_ids)
        if self.kind == "Rewrite":
            groups = [*(g.old_fragments for g in self._message.groups), self._message.old_fragments]
            return frozenset(f.id for fragments in groups for f in fragments)
        return frozenset()

    @cached_property
    def touched(self) -> frozenset[int]:
        """Fragments that the transaction changes or removes."""
        return self.updated | self.removed

    @cached_property
    def moves_rows(self) -> bool:
        """Whether rows move to new fragments."""
        if self.kind != "Update":
            return False
        return bool(self._message.new_fragments) and self._message.update_mode != _T.REWRITE_COLUMNS

    @cached_property
    def fields_modified(self) -> frozenset[int]:
        """Fields whose values an Update changes in place."""
        return frozenset(self._message.fields_modified) if self.kind == "Update" else frozenset()

    @property
    def changes_values_in_place(self) -> bool:
        """Whether an Update changes values in place, without moving the rows."""
        if self.kind != "Update":
            return False
        return bool(self.fields_modified) or self._message.update_mode == _T.REWRITE_COLUMNS

    @cached_property
    def replaced(self) -> Mapping[int, frozenset[int]]:
        """Fields whose files a DataReplacement replaces or adds, by fragment."""
        result: dict[int, frozenset[int]] = {}
        if self.kind == "DataReplacement":
            for replacement in self._message.replacements:
                fields = frozenset(i for i in replacement.new_file.fields if i >= 0)
                result[replacement.fragment_id] = result.get(replacement.fragment_id, frozenset()) | fields
        return result

    @cached_property
    def overlaid(self) -> Mapping[int, NDArray[np.uint32]]:
        """Ascending offsets of the rows with new values in a DataOverlay, by fragment.

        Raises:
            CorruptError: A bitmap is corrupt.
        """
        if self.kind != "DataOverlay":
            return {}
        rows: dict[int, list[NDArray[np.uint32]]] = {}
        for group in self._message.groups:
            for overlay in group.overlays:
                rows.setdefault(group.fragment_id, []).append(overlaid_offsets(overlay))
        return {fragment_id: distinct(np.concatenate(parts)) for fragment_id, parts in rows.items()}

    @cached_property
    def keeps_nullability(self) -> bool:
        """Whether rows written before a Merge or a Project also fit the schema after it."""
        return bool(getattr(self._message, "preserves_nullability", False))

    @cached_property
    def new_rows(self) -> frozenset[frozenset[int]]:
        """Fields stored in the files of each new fragment, for an Append or Update."""
        added = {"Append": "fragments", "Update": "new_fragments"}.get(self.kind)
        fragments = () if added is None else getattr(self._message, added)
        return frozenset(frozenset(i for file in f.files for i in file.fields if i >= 0) for f in fragments)

    def loses_structure(self, stored: frozenset[int]) -> bool:
        """Return whether a Project removes all stored fields of a struct, list or map in a fragment.

        Args:
            stored: Fields that the fragment stores.
        """
        parents = {field.id: field.parent_id for field in self._message.schema}
        bearing = set()
        for field_id in stored.difference(parents.values()):
            while field_id in parents:
                field_id = parents[field_id]
                bearing.add(field_id)
        return not bearing.issuperset(parents.values()) and not stored.issubset(parents)

    @cached_property
    def indices(self) -> tuple[table_pb2.IndexMetadata, ...]:
        """Index segments that the transaction adds."""
        return tuple(self._message.new_indices) if self.kind == "CreateIndex" else ()

    @cached_property
    def index_names(self) -> frozenset[str]:
        """Names of the added indices."""
        return frozenset(i.name for i in self.indices)

    @cached_property
    def indexed_fields(self) -> frozenset[int]:
        """Fields of the added indices."""
        return frozenset(field for i in self.indices for field in i.fields)

    @cached_property
    def indexed_fragments(self) -> frozenset[int] | None:
        """Fragments covered by added index segments. None if a segment does not store its coverage."""
        result: set[int] = set()
        for segment in self.indices:
            if segment.name in SYSTEM:
                continue
            ids = bitmap_fragments(segment)
            if ids is None:
                return None
            result.update(ids.tolist())
        return frozenset(result)

    @cached_property
    def config(self) -> MapKeys:
        """Changes to table settings."""
        if self.kind == "Overwrite":
            return MapKeys(frozenset(self._message.config_upsert_values))
        if self.kind != "UpdateConfig":
            return MapKeys()
        new = _keys(self._message.config_updates)
        old = MapKeys(frozenset(self._message.upsert_values), frozenset(self._message.delete_keys))
        return MapKeys(new.set | old.set, new.removed | old.removed)

    @cached_property
    def table_metadata(self) -> MapKeys:
        """Changes to table metadata."""
        return _keys(self._message.table_metadata_updates) if self.kind == "UpdateConfig" else MapKeys()

    @cached_property
    def has_schema_metadata(self) -> bool:
        """Whether schema metadata changes."""
        if self.kind != "UpdateConfig":
            return False
        return self._message.HasField("schema_metadata_updates") or bool(self._message.schema_metadata)

    @cached_property
    def field_metadata(self) -> frozenset[int]:
        """Fields whose metadata changes."""
        if self.kind != "UpdateConfig":
            return frozenset()
        return frozenset((*self._message.field_metadata_updates, *self._message.field_metadata))

    @cached_property
    def bases(self) -> frozenset[tuple[str, str | int]]:
        """Ids, names and paths of the added base paths."""
        if self.kind != "UpdateBases":
            return frozenset()
        names = {("name", b.name) for b in self._message.new_bases if b.name}
        ids = {("id", b.id) for b in self._message.new_bases if b.id}
        return frozenset({("path", b.path) for b in self._message.new_bases} | names | ids)

    @cached_property
    def inserted_keys(self) -> _T.KeyExistenceFilter | None:
        """Key filter of the rows that an Update inserts, or None if the transaction does not store a filter."""
        if self.kind != "Update" or not self._message.HasField("inserted_rows"):
            return None
        key_filter: _T.KeyExistenceFilter = self._message.inserted_rows
        return key_filter

    @cached_property
    def compacted_shards(self) -> frozenset[bytes]:
        """Shards of the write-ahead log whose SSTables an Update merges into the table."""
        if self.kind != "Update":
            return frozenset()
        return frozenset(table.shard_id.uuid for table in self._message.compacted_sstables)

    @property
    def is_known(self) -> bool:
        """Whether the operation is known."""
        return self.kind != UNKNOWN

    @cached_property
    def reuses_fragments(self) -> bool:
        """Whether the transaction replaces or removes the fragment reuse index."""
        if self.kind != "CreateIndex":
            return False
        return any(i.name == FRAGMENT_REUSE for i in (*self._message.new_indices, *self._message.removed_indices))


def overlaid_offsets(overlay: table_pb2.DataOverlayFile) -> NDArray[np.uint32]:
    """Return the ascending offsets of the rows for which an overlay has a value in any field.

    Raises:
        CorruptError: A bitmap is corrupt.
    """
    is_shared = overlay.WhichOneof("coverage") == "shared_offset_bitmap"
    bitmaps = [overlay.shared_offset_bitmap] if is_shared else overlay.field_coverage.offset_bitmaps
    where = f"rows of overlay {overlay.data_file.path}"
    rows = [roaring_values(bitmap, where, ROW_OFFSETS).astype(np.uint32) for bitmap in bitmaps]
    return distinct(np.concatenate(rows)) if rows else np.array([], np.uint32)


def _keys(update: _T.UpdateMap) -> MapKeys:
    entries = update.update_entries
    set_ = frozenset(e.key for e in entries if e.HasField("value"))
    return MapKeys(set_, frozenset(e.key for e in entries) - set_)
