"""`branches.diff`: rows that differ between two branches, by row id and by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import DataMismatchError, InvalidInputError, NotFoundError, UnsupportedError

Changes = set[tuple[str, int, Any]]


def table(path: Path, *, stable: bool = True) -> ld.LanceDataset:
    return ld.write_dataset({"k": range(6), "v": [f"v{i}" for i in range(6)]}, path, enable_stable_row_ids=stable)


def changes(ds: ld.LanceDataset, first: str, second: str, on: list[str] | None = None) -> Changes:
    rows = ds.branches.diff(first, second, on)
    return set(zip(*(rows.column(name).to_pylist() for name in ("change_type", "k", "v")), strict=True))


def test_rows_of_a_branch_differ_from_its_base(tmp_path: Path) -> None:
    ds = table(tmp_path / "t")
    branch = ds.create_branch("dev")
    branch.update({"v": "'x'"}, where="k = 1")
    branch.insert({"k": [9], "v": ["new"]})
    branch.delete("k = 2")
    branch.optimize.compact_files()
    expected = {("update_preimage", 1, "v1"), ("update_postimage", 1, "x"), ("insert", 9, "new"), ("delete", 2, "v2")}
    assert changes(ds, "main", "dev") == expected
    assert changes(ds, "main", "dev", ["k"]) == expected
    assert changes(ds, "dev", "dev") == set()
    rows = ds.branches.diff("main", "dev")
    assert rows.schema.names == ["change_type", "_rowid", "k", "v"]
    assert dict(zip(rows.column("k").to_pylist(), rows.column("_rowid").to_pylist(), strict=True))[1] == 1


def test_rows_that_two_branches_inserted_are_not_the_same(tmp_path: Path) -> None:
    ds = table(tmp_path / "t")
    for name in ("a", "b"):
        ds.create_branch(name).insert({"k": [7], "v": [name]})
    assert changes(ds, "a", "b") == {("delete", 7, "a"), ("insert", 7, "b")}
    assert changes(ds, "a", "b", ["k"]) == {("update_preimage", 7, "a"), ("update_postimage", 7, "b")}


def test_a_branch_of_a_branch_diverges_later(tmp_path: Path) -> None:
    ds = table(tmp_path / "t")
    first = ds.create_branch("a")
    first.insert({"k": [7], "v": ["both"]})
    second = first.create_branch("b")
    second.update({"v": "'only b'"}, where="k = 7")
    first.update({"v": "'only a'"}, where="k = 0")
    assert changes(ds, "a", "b") == {
        ("update_preimage", 0, "only a"),
        ("update_postimage", 0, "v0"),
        ("update_preimage", 7, "both"),
        ("update_postimage", 7, "only b"),
    }


def test_a_row_that_was_written_again_is_not_the_same(tmp_path: Path) -> None:
    ds = table(tmp_path / "t")
    ds.create_branch("a").insert({"k": [0], "v": ["v0"]}, mode="overwrite")
    assert changes(ds, "main", "a") == {("delete", i, f"v{i}") for i in range(6)} | {("insert", 0, "v0")}


@pytest.mark.parametrize("seed", range(4))
def test_random_lives_equal_a_comparison_of_all_rows(tmp_path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ds = table(tmp_path / "t")
    heads = {"main": ds, "a": ds.create_branch("a")}
    heads["b"] = heads["a"].create_branch("b")
    for step in range(9):
        head = heads[["main", "a", "b"][int(rng.integers(0, 3))]]
        key = int(rng.integers(0, 8))
        if rng.random() < 0.4:
            head.update({"v": f"'s{step}'"}, where=f"k = {key}")
        elif rng.random() < 0.5:
            head.delete(f"k = {key}")
        elif not head.count_rows(f"k = {key}"):
            head.insert({"k": [key], "v": [f"i{step}"]})
    for first, second in (("main", "a"), ("a", "b"), ("b", "main")):
        old, new = (
            dict(zip(*(heads[n].to_table().column(c).to_pylist() for c in "kv"), strict=True)) for n in (first, second)
        )
        expected = {("delete", k, v) for k, v in old.items() if k not in new}
        expected |= {("insert", k, v) for k, v in new.items() if k not in old}
        other = {k for k in old.keys() & new.keys() if old[k] != new[k]}
        expected |= {("update_preimage", k, old[k]) for k in other} | {("update_postimage", k, new[k]) for k in other}
        assert changes(ds, first, second, ["k"]) == expected
        by_id = changes(ds, first, second)
        assert {each for each in by_id if each[0].startswith("update")} <= expected
        assert {row[1:] for row in by_id if row[0] in ("insert", "update_postimage")} >= {
            row[1:] for row in expected if row[0] in ("insert", "update_postimage")
        }


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    ds = table(tmp_path / "t", stable=False)
    branch = ds.create_branch("a")
    with pytest.raises(UnsupportedError, match=r"without stable row ids.*on="):
        ds.branches.diff("main", "a")
    with pytest.raises(NotFoundError, match="nope"):
        ds.branches.diff("main", "nope", ["k"])
    with pytest.raises(InvalidInputError, match="at least one column"):
        ds.branches.diff("main", "a", [])
    branch.insert({"k": [1], "v": ["again"]})
    with pytest.raises(DataMismatchError, match="null or repeated: found k = 1"):
        ds.branches.diff("main", "a", ["k"])
    branch.delete("v = 'again'")
    branch.alter_columns({"path": "v", "data_type": pa.large_string()})
    with pytest.raises(UnsupportedError, match="column 'v' has different types"):
        ds.branches.diff("main", "a", ["k"])
    branch.drop_columns(["v"])
    assert ds.branches.diff("main", "a", ["k"]).num_rows == 0
    assert ds.branches.diff("a", "main", ["k"]).schema.names == ["change_type", "_rowid", "k", "v"]


def test_a_column_that_one_branch_renamed_is_refused(tmp_path: Path) -> None:
    ds = table(tmp_path / "t")
    branch = ds.create_branch("dev")
    branch.alter_columns({"path": "v", "name": "w"})
    branch.update({"w": "'x'"}, where="k = 1")
    for on in (None, ["k"]):
        with pytest.raises(UnsupportedError, match="different names: found 'v' and 'w'"):
            ds.branches.diff("main", "dev", on)
