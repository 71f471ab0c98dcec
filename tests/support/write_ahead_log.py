"""A writer of write-ahead logs (MemWAL): entries, SSTables, shard manifests and merges, like LanceDB's."""

from __future__ import annotations

import copy
import shutil
import uuid
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.snapshot import open_snapshot
from lance_duck.wire.index import MEM_WAL, IndexMetadata, index_from_proto
from lance_duck.wire.manifest import read_manifest
from lance_duck.wire.manifest_write import manifest_file
from lance_duck.wire.pb import index_pb2, table_pb2

TOMBSTONE = "_tombstone"
KEY = {"lance-schema:unenforced-primary-key": "true"}


def bits(number: int) -> str:
    return f"{number:064b}"[::-1]


def create_log(path: str) -> None:
    """Add the index entry of a log to a table."""
    snapshot = open_snapshot(path)
    proto = table_pb2.IndexMetadata(uuid={"uuid": uuid.uuid4().bytes}, name=MEM_WAL, dataset_version=snapshot.version)
    proto.index_details.type_url = "/lance.table.MemWalIndexDetails"
    commit(snapshot, CreateIndex((index_from_proto(proto, "here"),), ()))


class ShardWriter:
    """A shard of a table's log.

    Args:
        path: The table.
        name: UUID of the shard.
        keys: Names of the primary key's columns. The rows of an SSTable with one of several equal keys are deleted.
    """

    def __init__(self, path: str, name: str = "00000000-0000-4000-8000-000000000001", keys: tuple[str, ...] = ("id",)):
        self.path = path
        self.name = name
        self.keys = keys
        self.folder = Path(path) / "_mem_wal" / name
        self.state = index_pb2.ShardManifest()
        self.position = 0
        self.pending: list[pa.Table] = []
        (self.folder / "manifest").mkdir(parents=True)
        (self.folder / "wal").mkdir()
        self.publish()

    def copied(self, path: str) -> ShardWriter:
        """Copy the table, and return the writer of the copy's shard."""
        shutil.copytree(self.path, path)
        other = copy.deepcopy(self)
        other.path, other.folder = path, Path(path) / "_mem_wal" / self.name
        return other

    def publish(self) -> None:
        """Write the next manifest."""
        self.state.version += 1
        name = f"{bits(self.state.version)}.binpb"
        (self.folder / "manifest" / name).write_bytes(self.state.SerializeToString())

    def put(self, rows: pa.Table, *, deletes: bool = False) -> None:
        """Write an entry. With `deletes`, only the key columns of the rows count."""
        columns: dict[str, Any] = {}
        fields = []
        for field, stored in zip(rows.schema, open_snapshot(self.path).schema.fields, strict=True):
            assert field.name == stored.name
            hidden = deletes and field.name not in self.keys
            columns[field.name] = pa.nulls(rows.num_rows, field.type) if hidden else rows[field.name]
            nullable = field.nullable or hidden
            fields.append(_with_ids(field, stored).with_nullable(nullable))
        columns[TOMBSTONE] = pa.array([deletes] * rows.num_rows, pa.bool_())
        schema = pa.schema([*fields, pa.field(TOMBSTONE, pa.bool_(), False)], {"writer_epoch": "1"})
        table = pa.table(columns, schema)
        self.entry(table)
        if rows.num_rows:
            self.pending.append(table)

    def entry(self, table: pa.Table) -> None:
        """Write any table as an entry."""
        self.position += 1
        path = str(self.folder / "wal" / f"{bits(self.position)}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)

    def flush(self, *, indexes: tuple[str, ...] = ()) -> None:
        """Write the entries since the last flush as an SSTable, with B-trees on some columns."""
        self.state.replay_after_wal_entry_position = self.position
        if self.pending:
            generation = max((table.generation for table in self.state.sstables), default=0) + 1
            folder = f"{uuid.uuid4().hex[:8]}_gen_{generation}"
            rows = pa.concat_tables(self.pending)
            self.state.sstables.add(generation=generation, path=folder, num_rows=rows.num_rows)
            self._write_sstable(str(self.folder / folder), rows, indexes)
        self.pending = []
        self.publish()

    def merge(self) -> None:
        """Merge all SSTables into the main table."""
        main = ld.dataset(self.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.MemWalWarning)
            for table in self.state.sstables:
                rows = ld.dataset(str(self.folder / table.path)).to_table()
                merge = main.merge_insert(list(self.keys)).when_not_matched_insert_all()
                kept = rows.filter(pa.compute.invert(rows[TOMBSTONE])).drop([TOMBSTONE])
                merge.when_matched_update_all().execute(kept.select(main.schema.names))
                gone = rows.filter(rows[TOMBSTONE]).select(list(self.keys))
                if gone.num_rows:
                    main.merge_insert(list(self.keys)).when_matched_delete().execute(gone)
            details = index_pb2.MemWalIndexDetails.FromString(_log_entry(self.path).details)
            name = uuid.UUID(self.name).bytes
            others = [each for each in details.compacted_sstables if each.shard_id.uuid != name]
            del details.compacted_sstables[:]
            details.compacted_sstables.extend(others)
            details.compacted_sstables.add(shard_id={"uuid": name}, generation=self.state.sstables[-1].generation)
            self.set_details(details)

    def set_details(self, details: index_pb2.MemWalIndexDetails) -> None:
        """Replace the details of the log's index entry."""
        entry = _log_entry(self.path)
        proto = table_pb2.IndexMetadata()
        proto.CopyFrom(entry.proto)
        proto.index_details.value = details.SerializeToString()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ld.MemWalWarning)
            commit(open_snapshot(self.path), CreateIndex((index_from_proto(proto, "here"),), (entry,)))

    def _write_sstable(self, path: str, rows: pa.Table, indexes: tuple[str, ...]) -> None:
        plain = rows.cast(pa.schema([field.remove_metadata() for field in rows.schema]))
        dataset = ld.write_dataset(plain, path, data_storage_version=ld.dataset(self.path).data_storage_version)
        for column in indexes:
            dataset.create_scalar_index(column, "BTREE", name=f"{column}_idx")
        if self.keys:
            newest = {
                tuple(key): row for row, key in enumerate(zip(*(rows[k].to_pylist() for k in self.keys), strict=True))
            }
            older = sorted(set(range(rows.num_rows)) - set(newest.values()))
            if older:
                dataset.delete(f"_rowaddr IN ({', '.join(map(str, older))})")
        _set_field_ids(path, open_snapshot(self.path))


def _log_entry(path: str) -> IndexMetadata:
    (entry,) = (index for index in open_snapshot(path).indices if index.name == MEM_WAL)
    return entry


def _with_ids(field: pa.Field, stored: Any) -> pa.Field:
    """Return a column with the metadata `lance:field_id`, at all depths of structs."""
    type_ = field.type
    if pa.types.is_struct(type_):
        members = zip(type_, stored.children, strict=True)
        type_ = pa.struct([_with_ids(member, below) for member, below in members])
    return pa.field(field.name, type_, field.nullable, {"lance:field_id": str(stored.id)})


def _set_field_ids(path: str, main: Any) -> None:
    """Give the columns of an SSTable the field ids of the main table."""
    file = Path(open_snapshot(path).manifest.path)
    manifest = read_manifest(file.read_bytes(), str(file))
    ids = {
        f.id: g.id
        for top, other in zip(manifest.schema.fields, main.schema.fields, strict=False)
        for f, g in zip(top.walk(), other.walk(), strict=True)
    }
    spare = max(field.id for field in main.schema.walk()) + 1
    proto = manifest.proto
    for field in proto.fields:
        field.parent_id = ids.get(field.parent_id, field.parent_id)
        field.id = ids.get(field.id, spare)
    for fragment in proto.fragments:
        for data in fragment.files:
            data.fields[:] = [ids.get(field_id, spare) for field_id in data.fields]
    indices = [index.proto for index in manifest.indices]
    for index in indices:
        index.fields[:] = [ids.get(field_id, spare) for field_id in index.fields]
    file.write_bytes(manifest_file(proto, None, indices))
