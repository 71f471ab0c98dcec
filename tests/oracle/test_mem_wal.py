"""Tables with a write-ahead log of pylance: changes that are refused or warn, and the entry of the log."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import UnsupportedError
from lance_duck.wire.index import index_from_proto
from lance_duck.wire.pb import index_pb2

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("x", pa.int64()),
        pa.field("s", pa.struct([("a", pa.int64())])),
    ]
)


def rows(*ids: int) -> pa.Table:
    return pa.table([ids, [10 * i for i in ids], [{"a": i} for i in ids]], schema=SCHEMA)


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A table of rows 1 to 3, with a log that has row 2 again."""
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(rows(1, 2, 3), path)
    dataset.create_scalar_index("x", "BTREE")
    dataset.initialize_mem_wal(unsharded=True)
    with lance.dataset(path).mem_wal_writer(str(uuid.uuid4())) as writer:
        writer.put(rows(2))
    return path


REFUSED: dict[str, Callable[[Any], object]] = {
    "cast": lambda d: d.alter_columns({"path": "x", "data_type": pa.int32()}),
    "cast in a struct": lambda d: d.alter_columns({"path": "s.a", "data_type": pa.int32()}),
    "SQL": lambda d: d.add_columns({"y": "x * 2"}),
    "function": lambda d: d.add_columns(lambda b: pa.record_batch({"y": b["id"]}), read_columns=["id"]),
    "reader": lambda d: d.add_columns(pa.table({"y": [1, 2, 3]}).to_reader()),
    "not null": lambda d: d.alter_columns({"path": "x", "nullable": False}),
    "rename of the key": lambda d: d.alter_columns({"path": "id", "name": "key"}),
}
ALLOWED: dict[str, Callable[[Any], object]] = {
    "null column": lambda d: d.add_columns(pa.field("y", pa.int32())),
    "null member": lambda d: d.add_columns(pa.field("s", pa.struct([("b", pa.int8())]))),
    "SQL null": lambda d: d.add_columns({"y": "CAST(NULL AS INT)"}),
    "rename": lambda d: d.alter_columns({"path": "x", "name": "z"}),
    "nullable": lambda d: d.alter_columns({"path": "s.a", "nullable": True}),
    "drop": lambda d: d.drop_columns(["s"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_column_changes_that_conflict_with_the_log_are_rejected(name: str, path: str) -> None:
    with pytest.raises(OSError, match="MemWAL"):
        REFUSED[name](lance.dataset(path))
    before = sorted(Path(path).rglob("*"))
    with pytest.raises(UnsupportedError, match=r"MemWAL.*drop_index\('__lance_mem_wal'\)"):
        REFUSED[name](ld.dataset(path))
    assert sorted(Path(path).rglob("*")) == before


@pytest.mark.parametrize("name", ALLOWED)
def test_other_column_changes_are_allowed(name: str, path: str) -> None:
    ALLOWED[name](lance.dataset(path))
    schema = lance.dataset(path).schema
    lance.dataset(path, version=3).restore()
    dataset = ld.dataset(path)
    before = dataset.version
    ALLOWED[name](dataset)
    assert (dataset.version, dataset.schema) == (before + 1, schema)


def test_joined_and_staged_columns_are_rejected(path: str) -> None:
    dataset = ld.dataset(path)
    with pytest.raises(UnsupportedError, match="MemWAL"):
        dataset.merge(pa.table({"id": [1], "y": [2]}), "id")
    (fragment,) = dataset.get_fragments()
    with pytest.raises(UnsupportedError, match="MemWAL"):
        fragment.add_columns({"y": "x"})


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t ALTER COLUMN x TYPE INTEGER",
        "ALTER TABLE t ADD COLUMN y INTEGER DEFAULT 1",
        "ALTER TABLE t ALTER COLUMN x SET NOT NULL",
        "ALTER TABLE t RENAME COLUMN id TO key",
    ],
)
def test_statements_that_conflict_with_the_log_are_rejected(statement: str, path: str) -> None:
    with ld.connect({"t": path}) as connection, pytest.raises(UnsupportedError, match="MemWAL"):
        connection.execute(statement)


CHANGES: dict[str, Callable[[str], object]] = {
    "delete": lambda path: ld.dataset(path).delete("id = 2"),
    "update": lambda path: ld.dataset(path).update({"x": "0"}, "id = 2"),
    "overlay": lambda path: ld.dataset(path).update({"x": "0"}, "id = 2", update_mode="data_overlay"),
    "merge": lambda path: ld.dataset(path).merge_insert("id").when_matched_update_all().execute(rows(2)),
    "restore": lambda path: ld.dataset(path, version=3).restore(),
    "truncate": lambda path: ld.dataset(path).truncate_table(),
    "DELETE": lambda path: sql(path, "DELETE FROM t WHERE id = 2"),
    "UPDATE": lambda path: sql(path, "UPDATE t SET x = 0 WHERE id = 2"),
    "MERGE": lambda path: sql(path, "MERGE INTO t USING (SELECT 2 AS id) u USING (id) WHEN MATCHED THEN DELETE"),
    "transaction": lambda path: sql(path, "BEGIN; DELETE FROM t WHERE id = 2; COMMIT"),
}


def sql(path: str, text: str) -> None:
    with ld.connect({"t": path}) as connection:
        for statement in text.split("; "):
            connection.execute(statement)


@pytest.mark.parametrize("name", CHANGES)
def test_changes_that_bypass_the_log_warn_once(name: str, path: str) -> None:
    with pytest.warns(
        ld.MemWalWarning, match=r"1 unmerged shards of the write-ahead log \(MemWAL\): readers of the log still see"
    ) as caught:
        CHANGES[name](path)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    ld.dataset(path).delete("id = 3")  # without another warning, which would be an error here


@pytest.mark.parametrize("name", CHANGES)
def test_changes_that_bypass_the_log_fail_if_the_warning_is_an_error(name: str, path: str) -> None:
    before = sorted(Path(path).rglob("*"))
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ld.MemWalWarning)
            with pytest.raises(ld.MemWalWarning):
                CHANGES[name](path)
    assert ld.dataset(path).to_table() == rows(1, 2, 3)
    assert sorted(Path(path).rglob("*")) == before


def test_changes_that_remove_the_log_always_warn(path: str) -> None:
    with pytest.warns(ld.MemWalWarning, match="removal of the log .* readers will no longer find these rows"):
        ld.dataset(path).drop_index("__lance_mem_wal")
    lance.dataset(path, version=3).restore()
    with pytest.warns(ld.MemWalWarning, match="Overwrite .* readers will no longer find these rows"):
        ld.write_dataset(rows(1), path, mode="overwrite")
    lance.dataset(path, version=3).restore()
    with pytest.warns(ld.MemWalWarning, match="Restore .* readers will no longer find these rows"):
        ld.dataset(path, version=1).restore()


def test_an_empty_log_does_not_warn(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(rows(1, 2, 3), path).initialize_mem_wal(unsharded=True)
    dataset = ld.dataset(path)
    dataset.delete("id = 1")
    dataset.insert(rows(4))
    assert dataset.count_rows() == 3


def progress(path: str) -> list[str]:
    (entry,) = [i for i in ld.dataset(path).handle.snapshot.indices if i.name == "__lance_mem_wal"]
    return [each.index_name for each in index_pb2.MemWalIndexDetails.FromString(entry.details).index_catchup]


def with_progress(path: str, *names: str) -> Any:
    """Note in the log's entry, by a commit, that indexes follow the log; return the entry's other details."""
    dataset = ld.dataset(path)
    snapshot = dataset.handle.snapshot
    (entry,) = [i for i in snapshot.indices if i.name == "__lance_mem_wal"]
    proto = type(entry.proto).FromString(entry.proto.SerializeToString())
    details = index_pb2.MemWalIndexDetails.FromString(entry.details)
    for name in names:
        details.index_catchup.add(index_name=name)
    proto.index_details.value = details.SerializeToString()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.MemWalWarning)
        commit(snapshot, CreateIndex((index_from_proto(proto, "here"),), (entry,)))
    return entry.details


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda d: d.drop_index("x_idx"), ["id_idx"]),
        (lambda d: d.create_scalar_index("x", "BTREE", replace=True), ["id_idx"]),
        (lambda d: d.update({"x": "0"}, "id = 2"), ["x_idx", "id_idx"]),
        (lambda d: d.drop_columns(["x"]), ["id_idx"]),
        (lambda d: d.insert(rows(9)), ["x_idx", "id_idx"]),
        (lambda d: (d.insert(rows(9)), d.optimize.optimize_indices()), []),
    ],
    ids=["drop", "replace", "update", "drop column", "append", "optimize"],
)
def test_an_index_that_changes_loses_its_progress_in_the_log(
    change: Callable[[ld.LanceDataset], object], left: list[str], path: str
) -> None:
    ld.dataset(path).create_scalar_index("id", "BTREE")
    details = with_progress(path, "x_idx", "id_idx")
    assert progress(path) == ["x_idx", "id_idx"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.MemWalWarning)
        change(ld.dataset(path))
    assert progress(path) == left
    (entry,) = [i for i in ld.dataset(path).handle.snapshot.indices if i.name == "__lance_mem_wal"]
    found = index_pb2.MemWalIndexDetails.FromString(entry.details)
    found.ClearField("index_catchup")
    assert found == index_pb2.MemWalIndexDetails.FromString(details)
    assert lance.dataset(path).mem_wal_index_details() is not None
