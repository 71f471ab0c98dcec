"""Numbers of a manifest that do not fit its fragments: ids that repeat, and wrong row counts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from corruption.containers import manifest_path, read_manifest, with_manifest

import lance_duck as ld
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import table_pb2


def rewritten(path: Path, change: Callable[[table_pb2.Manifest], None]) -> None:
    file = manifest_path(path)
    manifest = read_manifest(file.read_bytes())
    change(manifest)
    file.write_bytes(with_manifest(file.read_bytes(), manifest))


def repeat_id(manifest: table_pb2.Manifest) -> None:
    manifest.fragments[2].id = manifest.fragments[1].id


@pytest.fixture
def repeated(tmp_path: Path) -> Path:
    lance.write_dataset(pa.table({"a": range(15), "b": range(15)}), tmp_path / "t.lance", max_rows_per_file=5)
    rewritten(tmp_path / "t.lance", repeat_id)
    return tmp_path / "t.lance"


def _sql(text: str) -> Callable[[ld.LanceDataset], Any]:
    return lambda dataset: ld.connect({"t": dataset.uri}).execute(text).fetchall()


READS: dict[str, Callable[[ld.LanceDataset], Any]] = {
    "to_table": lambda dataset: dataset.to_table(),
    "filter": lambda dataset: dataset.to_table(filter="a > 3"),
    "head": lambda dataset: dataset.head(2),
    "take": lambda dataset: dataset.take([12]),
    "count_rows": lambda dataset: dataset.count_rows(),
    "get_fragments": lambda dataset: dataset.get_fragments(),
    "get_fragment": lambda dataset: dataset.get_fragment(0),
    "dataset_stats": lambda dataset: dataset.stats.dataset_stats(),
    "SELECT": _sql("SELECT sum(a) FROM t"),
    "count(*)": _sql("SELECT count(*) FROM t"),
    "lance_fragments": _sql("FROM lance_fragments('t')"),
    "lance_table_changes": _sql("FROM lance_table_changes('t', 1)"),
}
CHANGES: dict[str, Callable[[ld.LanceDataset], Any]] = {
    "insert": lambda dataset: dataset.insert(pa.table({"a": [1], "b": [1]})),
    "delete": lambda dataset: dataset.delete("a = 7"),
    "delete nothing": lambda dataset: dataset.delete("a = 70"),
    "update": lambda dataset: dataset.update({"a": "1"}),
    "merge_insert": lambda dataset: (
        dataset.merge_insert("a").when_not_matched_insert_all().execute(pa.table({"a": [99], "b": [1]}))
    ),
    "add_columns": lambda dataset: dataset.add_columns({"c": "a + 1"}),
    "drop_columns": lambda dataset: dataset.drop_columns(["b"]),
    "alter_columns": lambda dataset: dataset.alter_columns({"path": "a", "name": "z"}),
    "create_scalar_index": lambda dataset: dataset.create_scalar_index("a", "BTREE"),
    "compact_files": lambda dataset: dataset.optimize.compact_files(),
    "update_config": lambda dataset: dataset.update_config({"x": "y"}),
    "restore": lambda dataset: dataset.restore(),
    "INSERT": _sql("INSERT INTO t VALUES (1, 1)"),
    "DELETE": _sql("DELETE FROM t WHERE a = 7"),
    "UPDATE": _sql("UPDATE t SET a = 1"),
}


@pytest.mark.parametrize("name", [*READS, *CHANGES])
def test_duplicate_fragment_ids_are_rejected_by_id(repeated: Path, name: str) -> None:
    dataset = ld.dataset(repeated)
    assert dataset.schema.names == ["a", "b"]
    with pytest.raises(CorruptError, match=r"duplicate fragment id 1.*restore an older version, or overwrite"):
        {**READS, **CHANGES}[name](dataset)
    assert ld.dataset(repeated).version == 1


def test_validation_names_a_duplicate_fragment_id(repeated: Path) -> None:
    with pytest.raises(CorruptError, match=r"(?s)1 problem.*manifest: .*duplicate fragment id 1"):
        ld.dataset(repeated).validate()


def test_a_table_with_duplicate_fragment_ids_can_be_overwritten_and_cleaned_up(repeated: Path) -> None:
    ld.write_dataset(pa.table({"a": [1]}), repeated, mode="overwrite")
    dataset = ld.dataset(repeated)
    assert dataset.to_table()["a"].to_pylist() == [1]
    with pytest.raises(CorruptError, match="duplicate fragment id 1"):
        dataset.checkout_version(1).to_table()
    assert dataset.cleanup_old_versions(retain_versions=1).data_files_removed == 3


def test_restoring_an_earlier_version_fixes_duplicate_fragment_ids(tmp_path: Path) -> None:
    lance.write_dataset(pa.table({"a": range(15)}), tmp_path / "t.lance", max_rows_per_file=5)
    lance.dataset(tmp_path / "t.lance").delete("a = 3")
    rewritten(tmp_path / "t.lance", repeat_id)
    ld.dataset(tmp_path / "t.lance").checkout_version(1).restore()
    assert ld.dataset(tmp_path / "t.lance").to_table()["a"].to_pylist() == list(range(15))


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1"])
@pytest.mark.parametrize("writer", [True, False])
@pytest.mark.parametrize("rows", [4, 7])
def test_validation_reports_wrong_row_counts(tmp_path: Path, version: str, writer: bool, rows: int) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": range(10)}), path, max_rows_per_file=5, data_storage_version=version)

    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[1].physical_rows = rows
        if not writer:
            manifest.ClearField("writer_version")

    rewritten(path, change)
    with pytest.raises(CorruptError, match=rf"(?s)1 problem.*fragment 1: .*wrong row count: expected {rows}, found 5"):
        ld.dataset(path).validate()


def test_compaction_fixes_wrong_row_counts_of_early_writers(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(pa.table({"a": range(10)}), path, max_rows_per_file=5, data_storage_version="legacy")

    def change(manifest: table_pb2.Manifest) -> None:
        manifest.fragments[1].physical_rows = 4
        manifest.ClearField("writer_version")

    rewritten(path, change)
    with pytest.raises(UnsupportedError, match="compact_files"):
        ld.dataset(path).delete("a = 3")
    with pytest.raises(CorruptError, match="compact_files"):
        ld.dataset(path).validate()
    dataset = ld.dataset(path)
    assert dataset.to_table()["a"].to_pylist() == list(range(10))
    dataset.optimize.compact_files()
    dataset.validate()
    assert dataset.delete("a = 3")["num_deleted_rows"] == 1
