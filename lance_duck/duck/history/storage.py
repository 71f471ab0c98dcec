"""Fragments and files of a table version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.history.rows import TEXTS, table_of
from lance_duck.duck.places import shown_place
from lance_duck.index.catalog import field_path
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile, DeletionFile

_FRAGMENTS: Final = pa.schema(
    {
        "fragment_id": pa.int64(),
        "rows": pa.int64(),
        "deleted_rows": pa.int64(),
        "physical_rows": pa.int64(),
        "files": pa.int64(),
        "bytes": pa.int64(),
        "deletion_file": pa.string(),
    }
)
_FILES: Final = pa.schema(
    {
        "fragment_id": pa.int64(),
        "kind": pa.string(),
        "path": pa.string(),
        "base": pa.string(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "file_version": pa.string(),
        "columns": TEXTS,
    }
)


def fragments(dataset: LanceDataset) -> pa.Table:
    """Return a row for each fragment of a version, in table order."""
    snapshot = dataset.handle.snapshot

    def rows() -> Iterable[Sequence[Any]]:
        for fragment in snapshot.fragments:
            live, physical = snapshot.num_rows(fragment), snapshot.physical_rows(fragment)
            deletions = fragment.deletion_file
            path = None if deletions is None else deletions.path(fragment.id)
            size = _sum(file.file_size for file in fragment.all_files)
            yield fragment.id, live, physical - live, physical, len(fragment.files), size, path

    return table_of(_FRAGMENTS, rows())


def files(dataset: LanceDataset) -> pa.Table:
    """Return a row for each data file, overlay and deletion file of a version, ordered by fragment."""
    snapshot = dataset.handle.snapshot

    def rows() -> Iterable[Sequence[Any]]:
        for fragment in snapshot.fragments:
            physical = snapshot.physical_rows(fragment)
            for file in fragment.files:
                columns = [path for i in file.fields if (path := _path_of(snapshot, i)) is not None]
                size, version = file.file_size, file.version
                yield fragment.id, "data", *_place(snapshot, fragment.id, file), physical, size, version, columns
            for file in (overlay.file for overlay in fragment.overlays):
                columns = [path for i in file.fields if (path := _path_of(snapshot, i)) is not None]
                size, version = file.file_size, file.version
                yield fragment.id, "overlay", *_place(snapshot, fragment.id, file), None, size, version, columns
            deletions = fragment.deletion_file
            if deletions is not None:
                deleted = physical - snapshot.num_rows(fragment)
                yield fragment.id, "deletion", *_place(snapshot, fragment.id, deletions), deleted, None, None, None

    return table_of(_FILES, rows())


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return the sum of sizes. Returns None if a size is not known."""
    known = list(sizes)
    return None if None in known else sum(size for size in known if size is not None)


def _place(snapshot: Snapshot, fragment_id: int, file: DataFile | DeletionFile) -> tuple[str, str]:
    """Return the relative path of a file, and its base location."""
    base = None if file.base_id is None else snapshot.base_paths[file.base_id]
    is_root = base is None or base.is_dataset_root
    path = (
        file.path(fragment_id)
        if isinstance(file, DeletionFile)
        else paths.data_file(file.path, is_dataset_root=is_root)
    )
    return path, shown_place(snapshot.uri if base is None else base.path)


def _path_of(snapshot: Snapshot, field_id: int) -> str | None:
    """Return the path of a file's field. Returns None if the table no longer has the field."""
    return None if field_id < 0 else field_path(snapshot.schema, field_id)
