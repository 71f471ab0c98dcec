"""Data overlays, which pylance 14 writes for the curious: their values are read, changed, indexed and folded in."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from oracle.compare import assert_same
from oracle.tables import KINDS, make_table
from support.overlays import add_overlay

import lance_duck as ld
from lance_duck.cli.change import compact
from lance_duck.errors import CorruptError, RetryableError, UnsupportedError

import lance  # isort: skip  after setting the environment variables that it reads

ROWS = 60
POINT = pa.struct([("x", pa.int32()), ("y", pa.string())])


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return two fragments of six rows, each with two overlaid rows."""
    uri = str(tmp_path / "t.lance")
    rows = pa.table({"i": pa.array(range(12), pa.int32()), "s": [f"s{i}" for i in range(12)]})
    lance.write_dataset(rows, uri, max_rows_per_file=6)
    add_overlay(uri, 0, pa.table({"i": pa.array([100, None], pa.int32()), "s": ["a", "b"]}), [1, 4])
    add_overlay(uri, 1, pa.table({"i": pa.array([7, 106], pa.int32())}), [0, 2])
    return uri


NOW = [0, 100, 2, 3, None, 5, 7, 7, 106, 9, 10, 11]


def overlays(uri: str) -> list[int]:
    return [len(fragment.metadata.overlays) for fragment in lance.dataset(uri).get_fragments()]


def test_overlays_of_every_type_are_read(tmp_path: Path) -> None:
    chosen = random.Random(1)
    kinds = [k for k in KINDS if "nulls" in k.patterns() and not k.is_refused("2.2", "nulls") and not k.wide]
    kinds = [k for k in kinds if "packed" not in k.name and "blob" not in k.name]
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(make_table(kinds, "nulls", ROWS), uri, data_storage_version="2.2", max_rows_per_file=40)
    for _ in range(3):
        fragment = chosen.randrange(2)
        offsets = sorted(chosen.sample(range((40, 20)[fragment]), 9))
        values = make_table(chosen.sample(kinds, len(kinds) * 2 // 3), "nulls", 9)
        add_overlay(uri, fragment, values, offsets, version="2.2")
    dataset, theirs = ld.dataset(uri), lance.dataset(uri)
    rows = [0, 7, 8, 9, 30, 31, 45, ROWS - 1]
    found, taken = dataset.to_table(), dataset.take(rows)
    for kind in kinds:
        expected = theirs.to_table(columns=[kind.name]).column(0)
        assert_same(expected, found[kind.name])
        assert_same(expected.take(rows), taken[kind.name])
    dataset.optimize.compact_files()
    assert overlays(uri) == [0]
    compacted = ld.dataset(uri).to_table()
    for kind in kinds:
        assert_same(found[kind.name], compacted[kind.name])


def test_the_newest_value_counts_and_null_is_one(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    points = pa.array([None, {"x": 1, "y": "one"}, {"x": 2, "y": None}], POINT)
    lance.write_dataset(pa.table({"p": points, "i": pa.array(range(3), pa.int32())}), uri)
    add_overlay(uri, 0, pa.table({"i": pa.array([10, 11, 12], pa.int32())}), [0, 1, 2])
    add_overlay(uri, 0, pa.table({"i": pa.array([None], pa.int32())}), [1])
    add_overlay(uri, 0, pa.table({"p": pa.array([{"x": 9, "y": "nine"}, None], POINT)}), [0, 2])
    expected = {"p": [None, {"x": 1, "y": "one"}, {"x": None, "y": None}], "i": [10, None, 12]}
    assert lance.dataset(uri).to_table().to_pydict() == expected
    dataset = ld.dataset(uri)
    assert dataset.to_table().to_pydict() == expected
    assert dataset.to_table(columns=["p.x"])["p.x"].to_pylist() == [None, 1, None]
    assert dataset.checkout_version(2).to_table()["i"].to_pylist() == [10, 11, 12]


def test_filters_searches_and_sql_see_new_values(uri: str) -> None:
    dataset = ld.dataset(uri)
    dataset.create_scalar_index("i", "BTREE")
    add_overlay(uri, 0, pa.table({"i": pa.array([106], pa.int32())}), [0])
    dataset = ld.dataset(uri)
    for condition, rows in (
        ("i = 106", [0, 8]),
        ("i = 0", []),
        ("i > 6", [0, 1, 6, 7, 8, 9, 10, 11]),
        ("i IS NULL", [4]),
    ):
        assert dataset.to_table(filter=condition, columns=[], with_row_id=True).num_rows == len(rows), condition
        assert dataset.count_rows(filter=condition) == len(rows)
        assert lance.dataset(uri).count_rows(filter=condition) == len(rows)
    con = ld.connect(str(Path(uri).parent))
    assert con.sql("SELECT s FROM t WHERE i = 106 ORDER BY s").fetchall() == [("s0",), ("s8",)]
    dataset.optimize.optimize_indices()
    assert "ScalarIndexQuery" in lance.dataset(uri).scanner(filter="i = 106").explain_plan()
    for reader in (lance.dataset(uri), ld.dataset(uri)):
        assert reader.to_table(filter="i = 106")["s"].to_pylist() == ["s0", "s8"]


def test_changes_of_rows_start_from_new_values(uri: str) -> None:
    dataset = ld.dataset(uri)
    dataset.update({"s": "'changed'"}, where="i = 106 OR i = 100")
    dataset.delete("i = 7")
    values = [(0, "s0"), (2, "s2"), (3, "s3"), (None, "b"), (5, "s5"), (9, "s9"), (10, "s10"), (11, "s11")]
    expected = [*values, (100, "changed"), (106, "changed")]
    for reader in (lance.dataset(uri), ld.dataset(uri)):
        rows = reader.to_table()
        assert [*zip(rows["i"].to_pylist(), rows["s"].to_pylist(), strict=True)] == expected
    dataset.add_columns({"j": "i + 1"})
    assert dataset.count_rows(filter="j = i + 1") == 9
    assert dataset.validate() is None


def test_rewriting_a_column_removes_its_overlays(uri: str) -> None:
    dataset = ld.dataset(uri)
    new = pa.table({"_rowid": pa.array([1, 2], pa.uint64()), "i": pa.array([-1, -2], pa.int32())})
    fragment, fields, *_ = dataset.get_fragments()[0].update_columns(new)
    operation = ld.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    ld.LanceDataset.commit(uri, operation, read_version=dataset.version)
    expected = [0, -1, -2, 3, None, 5, *NOW[6:]]
    for reader in (lance.dataset(uri), ld.dataset(uri)):
        assert reader.to_table()["i"].to_pylist() == expected
        assert reader.to_table()["s"].to_pylist()[:5] == ["s0", "a", "s2", "s3", "b"]


def test_dropping_a_column_removes_its_overlays(uri: str) -> None:
    dataset = ld.dataset(uri)
    dataset.drop_columns(["i"])
    assert overlays(uri) == [1, 0]
    assert ld.dataset(uri).to_table() == lance.dataset(uri).to_table()


def test_compaction_applies_overlays_and_cleanup_removes_their_files(uri: str) -> None:
    dataset = ld.dataset(uri)
    files = [o.data_file.path for f in dataset.get_fragments() for o in f.metadata.overlays]
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert dataset.to_table()["i"].to_pylist() == NOW
    assert dataset.optimize.compact_files().fragments_removed == 2
    assert overlays(uri) == [0]
    assert lance.dataset(uri).to_table()["i"].to_pylist() == NOW
    dataset.cleanup_old_versions(timedelta(0), delete_unverified=True)
    assert not any((Path(uri) / "data" / path).exists() for path in files)


def test_many_overlays_are_a_reason_to_compact(uri: str) -> None:
    dataset = ld.dataset(uri)
    dataset.optimize.compact_files(target_rows_per_fragment=4)
    assert overlays(uri) == [1, 1]
    dataset.optimize.compact_files(target_rows_per_fragment=4, max_overlays_per_fragment=1)
    assert overlays(uri) == [1, 1]
    add_overlay(uri, 1, pa.table({"s": ["new"]}), [3])
    ld.dataset(uri).optimize.compact_files(target_rows_per_fragment=4, max_overlays_per_fragment=1)
    assert overlays(uri) == [1, 0]
    ld.dataset(uri).optimize.compact_files(target_rows_per_fragment=4, max_overlays_per_fragment=0)
    assert overlays(uri) == [0, 0]


def test_the_command_line_folds_in_all_overlays(uri: str) -> None:
    compact(uri, target_rows=4)
    assert overlays(uri) == [1, 1]
    compact(uri, target_rows=4, max_overlays=0)
    assert overlays(uri) == [0, 0]
    assert ld.dataset(uri).to_table()["i"].to_pylist() == NOW


def test_clones_and_metadata_keep_overlays(uri: str, tmp_path: Path) -> None:
    dataset = ld.dataset(uri)
    dataset.shallow_clone(str(tmp_path / "shallow.lance"))
    dataset.deep_clone(str(tmp_path / "deep.lance"))
    for name in ("shallow", "deep"):
        for reader in (lance.dataset, ld.dataset):
            assert reader(str(tmp_path / f"{name}.lance")).to_table()["i"].to_pylist() == NOW
    ours, theirs = (reader(uri).get_fragments()[0].metadata for reader in (ld.dataset, lance.dataset))
    assert json.loads(json.dumps(ours.to_json()["overlays"])) == theirs.to_json()["overlays"]
    assert ld.FragmentMetadata.from_json(json.dumps(ours.to_json())) == ours


def test_a_change_is_retried_if_its_fragment_gains_an_overlay(uri: str) -> None:
    read = ld.dataset(uri)
    fragment = read.get_fragments()[0].delete("i = 100")
    add_overlay(uri, 0, pa.table({"i": pa.array([100], pa.int32())}), [0])
    delete = ld.LanceOperation.Delete([fragment], [], "i = 100")
    with pytest.raises(RetryableError, match="DataOverlay"):
        ld.LanceDataset.commit(uri, delete, read_version=read.version)
    stale = ld.dataset(uri, version=3)
    ld.dataset(uri).delete("i = 100")
    assert lance.dataset(uri).to_table()["i"].to_pylist() == NOW[2:]
    assert stale.to_table()["i"].to_pylist() == NOW


def test_broken_overlays_are_errors(uri: str) -> None:
    add_overlay(uri, 0, pa.table({"i": pa.array([1, 2], pa.int32())}), [0, 1, 2])
    with pytest.raises(CorruptError):
        ld.dataset(uri).to_table()
    assert ld.dataset(uri).to_table(columns=["s"]).num_rows == 12


def test_a_missing_overlay_file_is_one_problem(uri: str) -> None:
    (overlay,) = ld.dataset(uri).get_fragments()[0].metadata.overlays
    (Path(uri) / "data" / overlay.data_file.path).unlink()
    (problem,) = ld.dataset(uri).find_problems()
    assert problem.where == "fragment 0: overlay"
    assert overlay.data_file.path in problem.what


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"")], ids=["missing", "empty"])
def test_repair_drops_only_the_rows_of_a_broken_overlay(uri: str, damage: Callable[[Path], object]) -> None:
    dataset = ld.dataset(uri)
    dataset.create_scalar_index("s", "BTREE")
    add_overlay(uri, 0, pa.table({"s": ["new", "newer", "newest"]}), [1, 3, 5])
    dataset = ld.dataset(uri)
    damage(Path(uri) / "data" / dataset.get_fragments()[0].metadata.overlays[0].data_file.path)
    lost = dataset.repair()
    assert {number: rows.tolist() for number, rows in lost.rows.items()} == {0: [1, 4]}
    assert lost.columns == {0: ("i", "s")}
    assert dataset.validate() is None
    for reader in (ld.dataset(uri), lance.dataset(uri)):
        assert reader.to_table()["i"].to_pylist() == [0, 2, 3, 5, *NOW[6:]]
        assert reader.to_table(filter="s = 'newer' OR s = 's3' OR s = 'a'")["i"].to_pylist() == [3]
    assert not dataset.repair()


def test_repair_keeps_all_rows_if_a_broken_overlay_covers_only_deleted_rows(uri: str) -> None:
    dataset = ld.dataset(uri)
    dataset.delete("s = 'a' OR s = 'b'")
    (Path(uri) / "data" / dataset.get_fragments()[0].metadata.overlays[0].data_file.path).unlink()
    dataset = ld.dataset(uri)
    assert dataset.repair().num_rows == 0
    assert dataset.to_table()["i"].to_pylist() == [0, 2, 3, 5, *NOW[6:]]


def test_overlays_of_blob_columns_are_rejected(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    rows: dict[str, Any] = {"b": [b"one", b"two"], "i": [1, 2]}
    schema = pa.schema([field, pa.field("i", pa.int64())])
    lance.write_dataset(pa.table(rows, schema=schema), uri, data_storage_version="2.1")
    add_overlay(uri, 0, pa.table({"b": pa.array([b"new"], pa.large_binary())}), [1])
    with pytest.raises(UnsupportedError, match="blob"):
        ld.dataset(uri).to_table()
    assert ld.dataset(uri).to_table(columns=["i"])["i"].to_pylist() == [1, 2]
