"""Data overlays written by this package: pylance reads and extends them, and no index returns an old value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from oracle.compare import assert_same
from oracle.operations import ours_of
from oracle.tables import KINDS, make_table
from support.overlays import add_overlay, write_values

import lance_duck as ld
from lance_duck.errors import IncompatibleError, InvalidInputError, RetryableError, UnsupportedError

import lance  # isort: skip  after setting the environment variables that it reads

OVERLAY: dict[str, Any] = {"update_mode": "data_overlay"}
LINEAGE = ["_row_created_at_version", "_row_last_updated_at_version"]


def rows(count: int = 12) -> pa.Table:
    return pa.table({"i": pa.array(range(count), pa.int32()), "s": [f"s{i}" for i in range(count)]})


def same(uri: str, hidden: list[str] | None = None) -> pa.Table:
    """The rows of a table, which are the same to both."""
    columns = ["i", "s", *(hidden or [])]
    ours, theirs = (reader(uri).to_table(columns=columns) for reader in (ld.dataset, lance.dataset))
    assert ours.to_pylist() == theirs.to_pylist()
    return ours


def overlays(uri: str) -> list[int]:
    return [len(fragment.metadata.overlays) for fragment in lance.dataset(uri).get_fragments()]


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_overlay_updates_write_only_new_values(stable: bool, version: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    options: dict[str, Any] = {"enable_stable_row_ids": stable, "data_storage_version": version}
    ds = ld.write_dataset(rows(), uri, max_rows_per_file=6, **options)
    ds.create_scalar_index("i", "BTREE")
    ds.delete("i = 3 OR i = 7")
    hidden = ["_rowid", "_rowaddr", *(LINEAGE if stable else [])]
    before = same(uri, hidden)
    assert ds.update({"i": "i + 100"}, where="i % 3 = 2", **OVERLAY) == {"num_rows_updated": 4}
    assert ds.update({"i": "NULL", "s": "s || '!'"}, where="i = 4", **OVERLAY) == {"num_rows_updated": 1}
    assert ds.update({"s": "'none'"}, where="i = 1000", **OVERLAY) == {"num_rows_updated": 0}
    assert overlays(uri) == [2, 1]
    after = same(uri, hidden)
    assert after["i"].to_pylist() == [0, 1, 102, None, 105, 6, 108, 9, 10, 111]
    assert after["s"].to_pylist() == ["s0", "s1", "s2", "s4!", "s5", "s6", "s8", "s9", "s10", "s11"]
    assert after.select(hidden[:2]) == before.select(hidden[:2])
    if stable:
        assert after[LINEAGE[1]].to_pylist() == [1, 1, 4, 5, 4, 1, 4, 1, 1, 4]
    for reader in (ld.dataset(uri), lance.dataset(uri)):
        for value, count in ((2, 0), (102, 1), (4, 0), (111, 1), (6, 1)):
            assert reader.count_rows(filter=f"i = {value}") == count
    assert ds.validate() is None
    assert {file.checksums for file in ds.check_files()} == {"sound"}
    ds.optimize.optimize_indices()
    ds.optimize.compact_files()
    assert overlays(uri) == [0]
    assert same(uri, hidden[:1] if stable else None)["i"].to_pylist() == after["i"].to_pylist()
    flags = ld.dataset(uri).handle.snapshot.manifest.proto.reader_feature_flags
    assert not flags & 64


def test_overlays_of_every_type_can_be_written(tmp_path: Path) -> None:
    kinds = [k for k in KINDS if "nulls" in k.patterns() and not k.is_refused("2.2", "nulls") and not k.wide]
    kinds = [k for k in kinds if "blob" not in k.name and "packed" not in k.name and k.duckdb]
    types = make_table(kinds, "nulls", 1).schema
    kinds = [k for k in kinds if is_overlaid(types.field(k.name).type)]
    table = make_table(kinds, "nulls", 60)
    assert len(kinds) > 20
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(table, uri, data_storage_version="2.2", max_rows_per_file=40)
    dataset = ld.dataset(uri)
    dataset.update({kind.name: f'"{kind.name}"' for kind in kinds}, where="_rowid % 3 < 2", **OVERLAY)
    dataset.update({kind.name: "NULL" for kind in kinds[::2]}, where="_rowid % 5 = 2", **OVERLAY)
    dataset.update({kind.name: f'"{kind.name}"' for kind in kinds[1::2]}, where="_rowid % 7 = 2", **OVERLAY)
    assert overlays(uri) == [3, 3]
    ours, theirs = dataset.to_table(), lance.dataset(uri)
    for place, kind in enumerate(kinds):
        assert_same(theirs.to_table(columns=[kind.name]).column(0), ours[kind.name])
        if place % 2 and kind.name not in (
            "duration_ns",
            "binary_view",
        ):  # which DuckDB rounds, and which is stored as binary
            assert_same(table[kind.name], ours[kind.name])


def is_overlaid(type_: pa.DataType) -> bool:
    """Return whether an update stores new values of a type in an overlay: DuckDB must compute them."""
    is_wide = pa.types.is_decimal256(type_) and type_.precision > 38
    return not (is_wide or pa.types.is_struct(type_))


def test_rows_with_updated_vectors_are_searched_by_their_new_vectors(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    random = np.random.default_rng(5)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(random.random(300 * 8, np.float32)), 8)
    ds = ld.write_dataset(pa.table({"i": range(300), "v": vectors}), uri)
    ds.create_index("v", "IVF_FLAT", num_partitions=2)
    ds.update({"v": "[9, 9, 9, 9, 9, 9, 9, 9]"}, where="i = 7", **OVERLAY)
    for reader in (ld.dataset(uri), lance.dataset(uri)):
        near = reader.to_table(columns=["i"], nearest={"column": "v", "q": [9.0] * 8, "k": 1, "nprobes": 2})
        assert near["i"].to_pylist() == [7]
        old = vectors[7].as_py()
        assert 7 not in reader.to_table(columns=["i"], nearest={"column": "v", "q": old, "k": 5})["i"].to_pylist()


def test_overlay_updates_of_one_row_by_two_handles_both_apply(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows(6), uri, max_rows_per_file=3)
    first, second, third = (ld.dataset(uri) for _ in range(3))
    for handle, mode in ((first, OVERLAY), (second, OVERLAY), (third, {})):
        handle.update({"i": "i * 10 + 1"}, where="s = 's1'", **mode)
    ld.dataset(uri, version=1).update({"i": "i + 1"}, where="s = 's1' OR s = 's4'", **OVERLAY)
    assert sorted(same(uri)["i"].to_pylist()) == [0, 2, 3, 5, 5, 1112]


def test_an_overlay_conflicts_with_a_concurrent_delete_or_move(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(rows(6), uri)
    stale = [ld.dataset(uri) for _ in range(3)]
    lance.dataset(uri).delete("i = 1")
    lance.dataset(uri).update({"s": "'moved'"}, where="i = 2")
    assert stale[0].update({"i": "i + 10"}, where="i IN (1, 2, 3)", **OVERLAY) == {"num_rows_updated": 2}
    assert same(uri).to_pydict() == {"i": [0, 13, 4, 5, 12], "s": ["s0", "s3", "s4", "s5", "moved"]}
    with pytest.raises(RetryableError):
        stale[1].update({"i": "0"}, where="i = 3", conflict_retries=0, **OVERLAY)
    stale[2].delete("i = 3")
    assert same(uri).num_rows == 5


def overlay(uri: str, values: pa.Table, offsets: Any, fragment_id: int = 0) -> Any:
    file = ours_of(write_values(uri, values, "2.2"))
    operation = ld.LanceOperation
    return operation.DataOverlay([operation.DataOverlayGroup(fragment_id, [operation.DataOverlayFile(file, offsets)])])


def test_overlays_are_committed_like_in_pylance(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    version = ld.write_dataset(rows(6), uri).version
    values = pa.table({"i": pa.array([40, 10], pa.int32()), "s": ["a", None]})
    change = overlay(uri, values, [np.array([5, 1]), (2, 4)])
    ds = ld.LanceDataset.commit(uri, change, read_version=version)
    assert same(uri).to_pydict() == {"i": [0, 40, 2, 3, 4, 10], "s": ["s0", "s1", "a", "s3", None, "s5"]}
    mine, theirs = (reader(uri).read_transaction(ds.version).operation for reader in (ld.dataset, lance.dataset))
    assert type(mine).__name__ == type(theirs).__name__ == "DataOverlay"
    (file,) = mine.groups[0].overlays
    assert (file.offsets, [list(each) for each in theirs.groups[0].overlays[0].offsets]) == ([[1, 5], [2, 4]],) * 2
    ld.LanceDataset.commit(uri, overlay(uri, pa.table({"s": ["b"]}), [2]), read_version=version)
    add_overlay(uri, 0, pa.table({"s": ["c"]}), [4])
    assert same(uri)["s"].to_pylist() == ["s0", "s1", "b", "s3", "c", "s5"]


def test_invalid_overlay_updates_are_rejected(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = ld.write_dataset(rows(6), uri)
    values = pa.table({"i": pa.array([1, 2], pa.int32())})
    for offsets, fragment, error, message in (
        ([1, 1], 0, InvalidInputError, "two values.*offset 1"),
        ([1, 6], 0, InvalidInputError, "out of range.*6"),
        ([1, -1], 0, InvalidInputError, "offsets"),
        ([1, "x"], 0, InvalidInputError, "offsets"),
        ([1.5], 0, InvalidInputError, "offsets"),
        ([[1], [2]], 0, InvalidInputError, "number of offset lists"),
        ([1, 2], 7, IncompatibleError, "fragment 7"),
    ):
        with pytest.raises(error, match=message):
            ld.LanceDataset.commit(uri, overlay(uri, values, offsets, fragment), read_version=ds.version)
    nested = ld.write_dataset(pa.table({"p": [{"x": 1}], "l": [[{"x": 1}]]}), str(tmp_path / "nested.lance"))
    with pytest.raises(UnsupportedError, match=r"struct.*rewrite_rows"):
        nested.update({"p": "{'x': 2}"}, **OVERLAY)
    packed = pa.field("item", pa.struct([("x", pa.int32())]), metadata={"lance-encoding:packed": "true"})
    packs = ld.write_dataset(pa.table({"k": pa.array([[{"x": 1}]], pa.list_(packed))}), str(tmp_path / "packed.lance"))
    with pytest.raises(UnsupportedError, match="packed"):
        packs.update({"k": "[{'x': 2}]"}, **OVERLAY)
    nested.update({"l": "[{'x': 2}, NULL]"}, **OVERLAY)
    assert lance.dataset(nested.uri).to_table().to_pylist() == [{"p": {"x": 1}, "l": [{"x": 2}, None]}]
    legacy = ld.write_dataset(rows(6), str(tmp_path / "legacy.lance"), data_storage_version="legacy")
    with pytest.raises(UnsupportedError, match=r"0\.1.*compact_files"):
        legacy.update({"i": "1"}, **OVERLAY)
    with pytest.raises(InvalidInputError, match="data_overlay"):
        ds.update({"i": "1"}, update_mode="overlay")
    files = {*Path(uri).rglob("*.lance")}
    with pytest.raises(InvalidInputError):
        ds.update({"i": "CAST(s AS INTEGER)"}, **OVERLAY)
    assert {*Path(uri).rglob("*.lance")} == files


def test_pylance_rejects_tables_with_overlays_unless_the_feature_is_enabled(tmp_path: Path) -> None:
    ds = ld.write_dataset(rows(6), str(tmp_path / "t.lance"))
    ds.update({"i": "7"}, where="i = 3", **OVERLAY)
    code = f"import lance; print(lance.dataset({ds.uri!r}).to_table()['i'].to_pylist())"
    environment = {k: v for k, v in os.environ.items() if k != "LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES"}
    run = [sys.executable, "-c", code]
    refused = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert refused.returncode
    assert "[0, 1, 2, 7, 4, 5]" not in refused.stdout
    environment["LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES"] = "1"
    assert "[0, 1, 2, 7, 4, 5]" in subprocess.run(run, env=environment, capture_output=True, text=True).stdout
