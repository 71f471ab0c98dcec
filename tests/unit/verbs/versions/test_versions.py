from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError

ROWS = pa.table({"a": [1, 2, 3], "b": ["x", "y", None]})


@pytest.fixture(params=[False, True], ids=["plain", "stable"])
def table(request: Any, place: str, hasty: dict[str, str]) -> ld.LanceDataset:
    made = ld.write_dataset(ROWS, place, storage_options=hasty, enable_stable_row_ids=request.param)
    made.delete("a = 2")
    made.update_config({"k": "v"})
    return made


def values(table: ld.LanceDataset) -> list[int]:
    found: list[int] = table.to_table(["a"])["a"].to_pylist()
    return found


def test_restore_returns_rows_columns_and_settings(table: ld.LanceDataset) -> None:
    table.drop_columns(["b"])
    old = table.checkout_version(1)
    old.restore(commit_message="back")
    assert (old.version, old.to_table(), old.config()) == (5, ROWS, {})
    assert old.get_transactions(1)[0].commit_message == "back"  # type: ignore[union-attr]
    assert values(table) == [1, 3]
    again = ld.write_dataset(ROWS, old, mode="append")
    assert len(set(again.to_table(["_rowid"])["_rowid"].to_pylist())) == 6


def test_a_branch_is_independent_of_its_table(table: ld.LanceDataset) -> None:
    branch = table.create_branch("dev")
    assert (branch.version, branch.uri) == (3, f"{table.uri}/tree/dev")
    branch = ld.write_dataset(pa.table({"a": [4]}), branch, mode="append")
    branch.add_columns({"n": "a * 2"})
    branch.delete("a = 1")
    assert (values(branch), values(table), table.latest_version) == ([3, 4], [1, 3], 3)
    assert table.checkout_version(("dev", None)).to_table() == branch.to_table()
    about = table.branches.list()["dev"]
    assert (about["parent_branch"], about["parent_version"]) == (None, 3)


def test_branches_start_at_any_version_and_from_branches(table: ld.LanceDataset) -> None:
    table.tags.create("first", 1)
    by_tag = table.create_branch("by-tag", "first")
    of_branch = by_tag.create_branch("deep/er", ("by-tag", None))
    of_branch.update_config({"x": "y"})
    further = of_branch.create_branch("further")
    assert [values(t) for t in (by_tag, of_branch, further)] == [[1, 2, 3]] * 3
    assert further.config() == {"x": "y"}
    about = table.branches.list()
    assert about["further"]["parent_branch"] == "deep/er"
    assert [version for version, _ in about["further"]["branch_identifier"]] == [1, 1, 2]
    assert about["further"]["branch_identifier"][:2] == about["deep/er"]["branch_identifier"]


@pytest.mark.parametrize(
    "name", ["", "main", "a b", "/a", "a/", "a//b", "..", "a/../b", ".", "a/./b", "x.lock", "ä", 3]
)
def test_invalid_branch_names_are_rejected(table: ld.LanceDataset, name: Any) -> None:
    with pytest.raises(InvalidInputError, match="branch"):
        table.create_branch(name)
    assert table.branches.list() == {}


def test_existing_names_and_missing_references_are_rejected(table: ld.LanceDataset) -> None:
    table.create_branch("dev")
    with pytest.raises(AlreadyExistsError, match="'dev' already"):
        table.create_branch("dev", 1)
    for reference in (99, "none", ("none", 1), ("dev", 99)):
        with pytest.raises(NotFoundError):
            table.create_branch("other", reference)
    assert list(table.branches.list()) == ["dev"]


@pytest.mark.parametrize("deep", [False, True])
def test_a_clone_is_an_independent_table(table: ld.LanceDataset, tmp_path: Path, deep: bool) -> None:
    clone = table.deep_clone if deep else table.shallow_clone
    made = clone(tmp_path / "copy", 3)
    assert (made.version, values(made), made.config()) == (3, [1, 3], {"k": "v"})
    assert (tmp_path / "copy" / "data").exists() == deep
    made.delete("a = 1")
    made = ld.write_dataset(ROWS, made, mode="append")
    assert (values(made), values(ld.dataset(table.uri))) == ([3, 1, 2, 3], [1, 3])
    with pytest.raises(AlreadyExistsError):
        clone(tmp_path / "copy", 1)
    with pytest.raises(NotFoundError):
        clone(tmp_path / "other", 99)
    assert not (tmp_path / "other").exists()


def test_a_failed_clone_leaves_no_files(table: ld.LanceDataset, tmp_path: Path) -> None:
    last = sorted((Path(table.uri) / "data").iterdir())[-1]
    last.unlink()
    with pytest.raises(NotFoundError, match=last.name):
        table.deep_clone(tmp_path / "folder" / "copy")
    assert not (tmp_path / "folder").exists()


def test_a_deep_clone_of_a_shallow_clone_is_self_contained(table: ld.LanceDataset, tmp_path: Path) -> None:
    shallow = table.create_branch("dev").shallow_clone(tmp_path / "shallow", ("dev", None))
    deep = shallow.deep_clone(tmp_path / "deep", shallow.version)
    ld.LanceDataset.drop(table.uri)
    assert (values(deep), deep.base_paths()) == ([1, 3], {})


def test_sidecars_of_blobs_are_cloned(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"})])
    made = ld.write_dataset(pa.table({"x": [b"s" * 100_000, b"t"]}, schema=schema), tmp_path / "t")
    copied = made.deep_clone(tmp_path / "copy", 1)
    ld.LanceDataset.drop(made.uri)
    assert copied.to_table(blob_handling="all_binary")["x"].to_pylist() == [b"s" * 100_000, b"t"]


def test_base_paths_can_be_added_later(table: ld.LanceDataset, tmp_path: Path) -> None:
    bases = [ld.DatasetBasePath(str(tmp_path / "a"), name="a"), ld.DatasetBasePath(str(tmp_path / "b"))]
    assert table.add_bases(bases) is table
    assert {i: base.name for i, base in table.base_paths().items()} == {1: "a", 2: None}
    table.add_bases([ld.DatasetBasePath(str(tmp_path / "c"), id=7)], {"who": "me"})
    assert list(table.base_paths()) == [1, 2, 7]
    with pytest.raises(InvalidInputError, match="already exists"):
        table.add_bases([ld.DatasetBasePath(str(tmp_path / "a"))])
    assert table.latest_version == 5


def test_drop_removes_the_whole_table_and_no_other_folder(table: ld.LanceDataset, tmp_path: Path) -> None:
    table.create_branch("dev")
    (Path(table.uri) / "notes.txt").write_text("beside")
    ld.LanceDataset.drop(table.uri)
    assert not Path(table.uri).exists()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x.txt").write_text("mine")
    for place in (table.uri, tmp_path / "folder"):
        with pytest.raises(NotFoundError, match="nothing was dropped"):
            ld.LanceDataset.drop(place)
    ld.LanceDataset.drop(table.uri, ignore_not_found=True)
    with pytest.raises(NotFoundError, match="nothing was dropped"):
        ld.LanceDataset.drop(tmp_path / "folder", ignore_not_found=True)
    assert (tmp_path / "folder" / "x.txt").exists()


def test_manifests_get_their_newer_names(place: str) -> None:
    table = ld.write_dataset(ROWS, place, enable_v2_manifest_paths=False)
    table.update_config({"k": "v"})
    other = ld.dataset(place, version=1)
    for _ in range(2):
        table.migrate_manifest_paths_v2()
        names = {p.name for p in (Path(place) / "_versions").glob("*.manifest")}
        assert names == {f"{2**64 - 1 - v:020d}.manifest" for v in (1, 2)}
    table.update_config({"k": "w"})
    assert (other.latest_version, other.checkout_version(2).config()) == (3, {"k": "v"})
