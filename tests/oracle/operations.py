"""One small table, and operations on it: as pylance states them, and the same as this package does."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.dataset import Index
from lance.file import LanceFileWriter
from lance.fragment import DataFile, FragmentMetadata, LanceFragment

import lance_duck as ld
from lance_duck.rows import roaring_bytes, roaring_values
from lance_duck.snapshot import open_snapshot
from lance_duck.verbs.public import fragment_metadata as ours
from lance_duck.verbs.public.lance_operation import Index as OurIndex
from lance_duck.verbs.public.lance_schema import LanceSchema
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema_write import schema_from_arrow

READ_VERSION = 4
BOTH_ROWS = {0: roaring_bytes(np.array([0, 1], np.uint32))}
Theirs = lance.LanceOperation
Ours = ld.LanceOperation
COLUMNS = pa.schema([("a", pa.int64()), ("c", pa.int64()), ("b", pa.int64())])


class Sample:
    """A table of two fragments of two rows, its columns a, c (one file) and b (another), b with an index.

    Args:
        root: Where to make it.
        stable: Whether it has stable row ids.
    """

    def __init__(self, root: Path, *, stable: bool) -> None:
        self.path = str(root / "table")
        rows = pa.table({"a": [1, 2, 3, 4], "c": [1, 2, 3, 4]})
        data = lance.write_dataset(rows, self.path, max_rows_per_file=2, enable_stable_row_ids=stable)
        data.add_columns({"b": "a"})
        data.create_scalar_index("b", "BITMAP", name="present")
        data.update_config({"kept": "1"})
        assert data.version == READ_VERSION
        self._data = data
        self.operations = self._operations()
        self._template = str(root / "template")
        shutil.copytree(self.path, self._template)

    def copy(self) -> str:
        """Return a new copy of the table; the previous copy is deleted."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self._template, self.path)
        return self.path

    def _metadata(self, fragment_id: int) -> FragmentMetadata:
        return self._data.get_fragment(fragment_id).metadata

    def _new(self, rows: int = 1) -> FragmentMetadata:
        values = list(range(rows))
        return LanceFragment.create(self.path, pa.table({"a": values, "c": values, "b": values}))

    def _column(self, name: str, rows: int = 2) -> DataFile:
        path = Path(self.path) / "data" / f"{name}.lance"
        with LanceFileWriter(str(path), pa.schema([("b", pa.int64())]), version="2.2") as writer:
            writer.write_batch(pa.record_batch({"b": pa.array([7] * rows, pa.int64())}))
        return DataFile(path.name, [2], [0], 2, 2, os.path.getsize(path))

    def _with_new_b(self, fragment_id: int) -> FragmentMetadata:
        old = self._metadata(fragment_id)
        return _changed(old, files=[old.files[0], self._column(f"updated{fragment_id}")])

    def _rewritten(self, fragment_id: int, new_id: int) -> FragmentMetadata:
        old = self._metadata(fragment_id)
        return _changed(old, id=new_id, files=self._new(2).files)

    def _projected(self, *names: str) -> Any:
        scratch = self.path + "-schema"
        shutil.rmtree(scratch, ignore_errors=True)
        made = lance.write_dataset(pa.table({"a": [1], "c": [1]}), scratch)
        made.add_columns({"b": "a"})
        made.drop_columns([name for name in ("a", "c", "b") if name not in names])
        return made.lance_schema

    def _merged(self, keeps: bool) -> Any:
        made = [self._data.get_fragment(i).merge_columns(_doubled, columns=["a"]) for i in (0, 1)]
        return Theirs.Merge([fragment for fragment, _ in made], made[0][1], keeps)

    def _operations(self) -> Mapping[str, Any]:
        deleted = [self._data.get_fragment(i).delete(f"a = {1 + 2 * i}") for i in (0, 1)]
        change = Theirs.UpdateMap
        return {
            "append": Theirs.Append([self._new()]),
            "delete f0": Theirs.Delete([deleted[0]], [], "a = 1"),
            "delete f1": Theirs.Delete([deleted[1]], [], "a = 3"),
            "delete all of f0": Theirs.Delete([], [0], "a < 3"),
            "update rows of f0": Theirs.Update([], [deleted[0]], [self._new()], [], [0]),
            "update rows of f1": Theirs.Update([], [deleted[1]], [self._new()], [], [0]),
            "update b of f0": Theirs.Update([], [self._with_new_b(0)], [], [2], [], "rewrite_columns", BOTH_ROWS),
            "overwrite": Theirs.Overwrite(COLUMNS, [self._new()]),
            "index a": Theirs.CreateIndex([_index("on a", 0)], []),
            "index b": Theirs.CreateIndex([_index("on b", 2)], []),
            "rewrite f0": Theirs.Rewrite([Theirs.RewriteGroup([self._metadata(0)], [self._rewritten(0, 5)])], []),
            "rewrite f1": Theirs.Rewrite([Theirs.RewriteGroup([self._metadata(1)], [self._rewritten(1, 6)])], []),
            "merge": self._merged(False),
            "merge of nullable": self._merged(True),
            "project": Theirs.Project(self._projected("a", "b"), False),
            "project that keeps": Theirs.Project(self._projected("a", "b"), True),
            "project away b": Theirs.Project(self._projected("a", "c"), True),
            "restore": Theirs.Restore(1),
            "replace b of f0": self._replacement(0),
            "replace b of f1": self._replacement(1),
            "overlay row 0 of f0": self._overlay(0, [0]),
            "overlay row 1 of f0": self._overlay(0, [1]),
            "overlay f1": self._overlay(1, [1, 0]),
            "config x": Theirs.UpdateConfig(config_updates=change({"x": "1"})),
            "config y": Theirs.UpdateConfig(config_updates=change({"y": "1"})),
            "config without kept": Theirs.UpdateConfig(config_updates=change({"kept": None})),
            "config replaced": Theirs.UpdateConfig(config_updates=change({"z": "1"}, True)),
            "table metadata": Theirs.UpdateConfig(table_metadata_updates=change({"t": "1"})),
            "schema metadata": Theirs.UpdateConfig(schema_metadata_updates=change({"s": "1"})),
            "field metadata a": Theirs.UpdateConfig(field_metadata_updates={0: change({"f": "1"})}),
            "field metadata b": Theirs.UpdateConfig(field_metadata_updates={2: change({"f": "1"})}),
        }

    def _replacement(self, fragment_id: int) -> Any:
        new = self._column(f"replaced{fragment_id}")
        return Theirs.DataReplacement([Theirs.DataReplacementGroup(fragment_id, new)])

    def _overlay(self, fragment_id: int, offsets: list[int]) -> Any:
        new = self._column(f"overlay{fragment_id}-{offsets[0]}", len(offsets))
        overlay = Theirs.DataOverlayFile(new, offsets)
        return Theirs.DataOverlay([Theirs.DataOverlayGroup(fragment_id, [overlay])])


def commit_theirs(path: str, operation: Any, read_version: int = READ_VERSION, **options: Any) -> str:
    """Commit by pylance; "": done, else the error."""
    return _outcome(lambda: lance.LanceDataset.commit(path, operation, read_version=read_version, **options))


def commit_ours(path: str, operation: Any, read_version: int = READ_VERSION, **options: Any) -> str:
    """Commit by this package an operation of pylance; "": done, else the error."""
    mine = ours_of(operation)
    return _outcome(
        lambda: ld.LanceDataset.commit(
            path, mine, read_version=read_version, storage_options={"fsync": "false"}, **options
        )
    )


def verdict(outcome: str) -> str:
    """ "." done, "R" may be tried again, "X" incompatible, "?" anything else."""
    if not outcome:
        return "."
    text = outcome.lower()
    if "preempted" in text or outcome.startswith("RetryableError"):
        return "R"
    return "X" if "incompatible" in text else "?"


def state(path: str) -> tuple[table_pb2.Manifest, list[table_pb2.IndexMetadata]]:
    """Return the newest manifest without writer and time, and its index segments.

    The coverage of missing fragments is removed from the segments.
    """
    snapshot = open_snapshot(path)
    manifest = table_pb2.Manifest()
    manifest.CopyFrom(snapshot.manifest.proto)
    for name in ("timestamp", "writer_version", "transaction_file", "transaction_section", "index_section"):
        manifest.ClearField(name)
    segments = []
    for index in snapshot.indices:
        segment = table_pb2.IndexMetadata()
        segment.CopyFrom(index.proto)
        covered = roaring_values(segment.fragment_bitmap, "here", 1 << 32)
        live = np.intersect1d(covered, np.array(snapshot.fragments.ids(), np.uint32))
        segment.fragment_bitmap = roaring_bytes(live)
        segments.append(segment)
    return manifest, segments


def ours_of(operation: Any) -> Any:
    """The same operation, of this package."""
    kind = type(operation)
    if kind.__name__ == "LanceSchema":
        return _schema(operation)
    if isinstance(operation, FragmentMetadata):
        return ours.FragmentMetadata.from_json(json.dumps(operation.to_json()))
    if isinstance(operation, DataFile):
        fields = ("fields", "column_indices", "file_major_version", "file_minor_version", "file_size_bytes", "base_id")
        return ours.DataFile(operation.path, **{name: getattr(operation, name) for name in fields})
    if isinstance(operation, Index):
        parts = {f.name: getattr(operation, f.name) for f in dataclasses.fields(operation)}
        return OurIndex(**parts)
    if isinstance(operation, Bitmap):
        return list(operation)
    if isinstance(operation, list):
        return [ours_of(part) for part in operation]
    if isinstance(operation, dict):
        return {key: ours_of(value) for key, value in operation.items()}
    if dataclasses.is_dataclass(operation):
        parts = {f.name: ours_of(getattr(operation, f.name)) for f in dataclasses.fields(operation)}
        return getattr(Ours, kind.__name__)(**parts)
    return operation


def _schema(theirs: Any) -> Any:
    """A schema of pylance with its field ids, which it only shows."""
    plain = schema_from_arrow(theirs.to_pyarrow())
    ids = [field.id() for field in theirs.fields()]
    fields = tuple(dataclasses.replace(f, id=i) for f, i in zip(plain.fields, ids, strict=True))
    return LanceSchema(dataclasses.replace(plain, fields=fields))


def _outcome(do: Callable[[], Any]) -> str:
    try:
        do()
    except (OSError, ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _changed(metadata: FragmentMetadata, **parts: Any) -> FragmentMetadata:
    raw = {
        "id": metadata.id,
        "files": metadata.files,
        "physical_rows": metadata.physical_rows,
        "deletion_file": metadata.deletion_file,
        "row_id_meta": metadata.row_id_meta,
        "created_at_version_meta": metadata.created_at_version_meta,
        "last_updated_at_version_meta": metadata.last_updated_at_version_meta,
    }
    return FragmentMetadata(**(raw | parts))


def _index(name: str, field: int) -> Index:
    return Index(
        uuid=str(uuid.uuid4()),
        name=name,
        fields=[field],
        dataset_version=READ_VERSION,
        fragment_ids={0},
        index_version=0,
        index_details=("/lance.table.BitmapIndexDetails", b""),
    )


def _doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"d": batch["a"]})
