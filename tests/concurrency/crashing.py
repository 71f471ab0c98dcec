"""Table changes interrupted at any step, and the invariants that must hold afterwards."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.commit import REFUSALS
from lance_duck.errors import NotFoundError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import open_snapshot
from lance_duck.store import is_temporary, open_store
from lance_duck.verbs.pending_changes import PendingChanges
from lance_duck.verbs.public.lance_operation import Index
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.edits import RowEdits, write_edits

Files = dict[str, bytes]
UNFLUSHED = {"fsync": "false"}


@dataclass(frozen=True)
class Verb:
    """A change of the table at a URI.

    Attributes:
        commits: Whether it commits a version; otherwise it changes only tags, branches or files.
        creates: Whether it creates the table.
    """

    name: str
    act: Callable[[str], Any]
    commits: bool = True
    creates: bool = False


@dataclass(frozen=True)
class State:
    """What users see of a table."""

    rows: list[dict[str, Any]]
    schema: str
    fragments: int
    config: dict[str, str]
    refs: dict[str, Any]
    indices: dict[str, bytes | None]
    clone: int | None


def rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": pa.array(ids), "n": pa.array([0] * count), "s": [f"row {i}" for i in ids]})


def prepare(uri: str) -> None:
    """Write the table that every change begins with: three fragments, one with deleted rows, a tag."""
    ld.write_dataset(rows(0, 8), uri, storage_options=UNFLUSHED)
    ld.write_dataset(rows(8, 8), uri, mode="append", storage_options=UNFLUSHED)
    dataset = ld.write_dataset(rows(16, 8), uri, mode="append", storage_options=UNFLUSHED)
    dataset.delete("id = 5")
    dataset.tags.create("first", 1)


def opened(uri: str) -> ld.LanceDataset:
    return ld.dataset(uri, storage_options=UNFLUSHED)


def write(uri: str, data: pa.Table, mode: str) -> ld.LanceDataset:
    return ld.write_dataset(data, uri, mode=mode, storage_options=UNFLUSHED)


def upsert(uri: str) -> None:
    opened(uri).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(20, 8))


def alter(uri: str) -> None:
    opened(uri).alter_columns({"path": "n", "name": "m"})


def cast(uri: str) -> None:
    opened(uri).alter_columns({"path": "n", "data_type": pa.int32()})


def restore(uri: str) -> None:
    ld.dataset(uri, 2, storage_options=UNFLUSHED).restore()


def enter_index(uri: str) -> None:
    """Commit an index entry without index files."""
    entry = Index(str(uuid.UUID(int=7)), "n_idx", [1], 4, {0, 1, 2}, 0)
    ld.LanceDataset.commit(uri, ld.LanceOperation.CreateIndex([entry], []), 4, storage_options=UNFLUSHED)


def transaction(uri: str) -> None:
    """Commit a new column, deleted and updated rows, and metadata together, as a transaction in SQL does."""
    pending = PendingChanges(opened(uri).handle.base)
    try:
        ld.LanceDataset(uri, table=TableScan(pending.collecting())).add_columns({"twice": "id * 2"})
        for deleted, updated in (([3], [1 << 32]), ([3 << 32], [2 << 32])):
            values = pa.table({"twice": pa.array([0], pa.int64())})
            edits = RowEdits(np.array(deleted, np.uint64), np.array(updated, np.uint64), values)
            with UncommittedFiles(pending.current) as draft:
                pending.apply(write_edits(pending.current, edits, draft).operation)
        ld.LanceDataset(uri, table=TableScan(pending.collecting())).update_metadata({"key": "value"})
        pending.commit()
    except REFUSALS:
        pending.discard()
        raise


def clone(uri: str) -> None:
    opened(uri).deep_clone(f"{uri}/clone")


def clean(uri: str) -> None:
    opened(uri).cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False, delete_unverified=True)


VERBS = (
    Verb("create", lambda uri: write(uri, rows(0, 8), "create"), creates=True),
    Verb("append", lambda uri: write(uri, rows(100, 4), "append")),
    Verb("overwrite", lambda uri: write(uri, rows(100, 4), "overwrite")),
    Verb("insert", lambda uri: opened(uri).insert(rows(100, 4))),
    Verb("delete", lambda uri: opened(uri).delete("id % 3 = 0")),
    Verb("delete fragment", lambda uri: opened(uri).delete("id < 8")),
    Verb("truncate", lambda uri: opened(uri).truncate_table()),
    Verb("update", lambda uri: opened(uri).update({"n": "n + 1"}, where="id % 4 = 1")),
    Verb("upsert", upsert),
    Verb("add columns", lambda uri: opened(uri).add_columns({"twice": "id * 2"})),
    Verb("rename", alter),
    Verb("cast", cast),
    Verb("drop columns", lambda uri: opened(uri).drop_columns(["s"])),
    Verb("config", lambda uri: opened(uri).update_config({"key": "value"})),
    Verb("restore", restore),
    Verb("transaction", transaction),
    Verb("join", lambda uri: opened(uri).merge(pa.table({"id": [1, 2], "m": ["x", "y"]}), "id")),
    Verb("index", enter_index),
    Verb("clone", clone, commits=False),
    Verb("compact", lambda uri: opened(uri).optimize.compact_files()),
    Verb("cleanup", clean, commits=False),
    Verb("tag", lambda uri: opened(uri).tags.create("second", 2), commits=False),
    Verb("move tag", lambda uri: opened(uri).tags.update("first", 3), commits=False),
    Verb("untag", lambda uri: opened(uri).tags.delete("first"), commits=False),
    Verb("branch", lambda uri: opened(uri).create_branch("side"), commits=False),
)


def state(uri: str) -> State | None:
    """Return the newest version as users see it, or None if the table does not exist."""
    try:
        dataset = opened(uri)
    except NotFoundError:
        return None
    table = dataset.to_table()
    return State(
        rows=table.sort_by("id").to_pylist(),
        schema=str(table.schema),
        fragments=len(dataset.get_fragments()),
        config=dict(dataset.config()),
        refs={
            "tags": {name: tag["version"] for name, tag in dataset.tags.list().items()},
            "branches": sorted(dataset.branches.list()),
        },
        indices={index.name: index.fragment_bitmap for index in open_snapshot(uri).indices},
        clone=_count(f"{uri}/clone"),
    )


def _count(uri: str) -> int | None:
    try:
        return opened(uri).count_rows()
    except NotFoundError:
        return None


def version(uri: str) -> int:
    """Return the newest version number, or 0 if the table does not exist."""
    try:
        return opened(uri).version
    except NotFoundError:
        return 0


def read_files(uri: str) -> Files:
    """All files of a table."""
    store = open_store(uri)
    return {entry.path: store.get(entry.path) for entry in store.walk()}


def write_files(uri: str, files: Files) -> str:
    """Write files below a URI, and return it."""
    store = open_store(uri, {"fsync": "false"})
    for path, data in files.items():
        store.put(path, data)
    return uri


def fresh(folder: str) -> str:
    """A URI that was never used."""
    return f"{folder}/{uuid.uuid4().hex}.lance"


def forget(uri: str) -> None:
    """Delete a table."""
    store = open_store(uri)
    store.delete([entry.path for entry in store.walk()])


def assert_goes_on(uri: str) -> None:
    """Check that the table accepts another commit, and that cleanup leaves no unreferenced files."""
    before = state(uri)
    if before is None:
        write(uri, rows(0, 8), "create")
        before = state(uri)
        assert before is not None
    else:
        schema = opened(uri).schema
        write(uri, pa.Table.from_pylist([{"id": 999}], schema=schema), "append")
        after = state(uri)
        assert after is not None
        assert len(after.rows) == len(before.rows) + 1
        assert [row for row in after.rows if row["id"] != 999] == before.rows
    clean(uri)
    assert_clean(uri)
    opened(uri).validate()


def assert_clean(uri: str) -> None:
    """Every file of the table is one that a version refers to; branches and clones below it are tables of their own."""
    dataset = opened(uri)
    kept = [dataset.checkout_version(v["version"]) for v in dataset.versions()]
    named = {
        path
        for one in kept
        for fragment in one.get_fragments()
        for path in (
            *(f"data/{file.path}" for file in fragment.data_files()),
            *(f"data/{overlay.data_file.path}" for overlay in fragment.metadata.overlays),
            *([fragment.deletion_file()] if fragment.deletion_file() else []),
        )
    }
    found = [entry.path for entry in open_store(uri).walk() if not entry.path.startswith(("tree/", "clone/"))]
    assert not [path for path in found if is_temporary(path)]
    lying = {path for path in found if path.startswith(("data/", "_deletions/"))}
    assert lying == named
    assert sum(path.endswith(".manifest") for path in found if path.startswith("_versions/")) == len(kept)
