from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, CorruptError, InvalidInputError, NotFoundError, ReferencedError

Make = Callable[[], Any]


@pytest.fixture
def table(hand_made: Make, tmp_path: Path) -> ld.LanceDataset:
    made = hand_made()
    made.commit(1)
    made.commit(2)
    for name, parent, pairs in [("dev", None, [[2, "aa"]]), ("dev/sub", "dev", [[2, "aa"], [2, "bb"]])]:
        branch = hand_made()
        base = {"id": 0, "is_dataset_root": True, "path": str(tmp_path)}
        branch.commit(2, branch=name, base_paths=[base])
        branch.commit(3, branch=name, base_paths=[base])
        made.files |= {f"tree/{name}/{path}": data for path, data in branch.files.items()}
        about = {"parentBranch": parent, "identifier": {"version_mapping": pairs}, "parentVersion": 2, "createAt": 5}
        made.add_json(f"_refs/branches/{name.replace('/', '%2F')}.json", about)
    return ld.dataset(made.write(tmp_path))


def on_disk(table: ld.LanceDataset, path: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads((Path(table.uri) / path).read_bytes())
    return raw


def test_a_tag_refers_to_the_version_of_the_handle_by_default(table: ld.LanceDataset) -> None:
    table.tags.create("new")
    table.checkout_version(1).tags.create("old")
    table.tags.create("by-number", 1)
    table.tags.create("by.tag", "old")
    table.tags.create("there", ("dev", None))
    table.checkout_version(("dev", 2)).tags.create("here")
    found = {name: (tag["branch"], tag["version"]) for name, tag in table.tags.list().items()}
    assert found == {
        "new": (None, 2),
        "old": (None, 1),
        "by-number": (None, 1),
        "by.tag": (None, 1),
        "there": ("dev", 3),
        "here": ("dev", 2),
    }
    assert table.checkout_version("there").uri == f"{table.uri}/tree/dev"


def test_a_name_that_is_too_long_for_a_file_is_refused(table: ld.LanceDataset) -> None:
    table.tags.create("a" * 200, 1)
    table.create_branch("b" * 200)
    for name in ("a" * 201, "a/" * 70 + "a"):
        with pytest.raises(InvalidInputError, match=r"the branch name is too long.* found \d+"):
            table.create_branch(name)
    with pytest.raises(InvalidInputError, match="the tag name is too long"):
        table.tags.create("a" * 201, 1)
    with pytest.raises(NotFoundError):
        table.tags.update("a" * 500, 1)
    with pytest.raises(NotFoundError):
        table.branches.delete("b" * 500)


def test_the_error_for_a_missing_tag_suggests_the_branch_of_that_name(table: ld.LanceDataset) -> None:
    with pytest.raises(NotFoundError, match=r"no tag 'dev'.*a branch of this name exists: pass \('dev', None\)"):
        table.checkout_version("dev")
    with pytest.raises(NotFoundError, match="no tag 'nope'") as caught:
        table.checkout_version("nope")
    assert "branch" not in str(caught.value)


def test_a_tag_file_has_the_fields_pylance_needs(table: ld.LanceDataset) -> None:
    before = datetime.now(UTC)
    table.tags.create("t")
    raw = on_disk(table, "_refs/tags/t.json")
    created = datetime.fromisoformat(raw.pop("createdAt"))
    assert before - timedelta(milliseconds=1) <= created <= datetime.now(UTC)
    assert raw.pop("updatedAt").endswith("Z")
    assert raw.pop("checksum").startswith("xxh3-64:")
    size = next(p.stat().st_size for p in Path(table.uri, "_versions").iterdir() if p.name.endswith("613.manifest"))
    assert raw == {"branch": None, "version": 2, "manifestSize": size, "metadata": {}}


def test_moving_a_tag_keeps_its_creation_time_and_metadata(table: ld.LanceDataset) -> None:
    table.tags.create("t", 1)
    table.tags.replace_metadata("t", {"why": "ä"})
    before = table.tags.list()["t"]
    table.tags.update("t", 2)
    after = table.tags.list()["t"]
    assert (after["version"], after["created_at"], after["metadata"]) == (2, before["created_at"], {"why": "ä"})
    assert after["updated_at"] > before["updated_at"]
    table.tags.delete("t")
    assert table.tags.list() == {}


@pytest.mark.parametrize("name", ["", "a b", "a/b", "..", ".x", "x.", "x..y", "ä", "a.lock", "/x", "a\0", 3])
def test_invalid_tag_names_are_rejected(table: ld.LanceDataset, name: Any) -> None:
    with pytest.raises(InvalidInputError, match="invalid tag name"):
        table.tags.create(name)
    assert table.tags.list() == {}


def test_existing_and_missing_tags_are_rejected(table: ld.LanceDataset) -> None:
    table.tags.create("t", 1)
    with pytest.raises(AlreadyExistsError, match="tag 't' already"):
        table.tags.create("t", 2)
    assert table.tags.get_version("t") == 1
    for change in [
        lambda: table.tags.create("u", 99),
        lambda: table.tags.update("t", 99),
        lambda: table.tags.update("u", 1),
        lambda: table.tags.delete("u"),
        lambda: table.tags.replace_metadata("u", {}),
        lambda: table.branches.delete("u"),
        lambda: table.branches.replace_metadata("u", {}),
    ]:
        with pytest.raises(NotFoundError):
            change()
    with pytest.raises(InvalidInputError, match="not a string"):
        table.tags.replace_metadata("t", {"a": 1})  # type: ignore[dict-item]


def test_a_branch_is_deleted_only_if_nothing_references_it(table: ld.LanceDataset) -> None:
    with pytest.raises(ReferencedError, match="branch 'dev/sub'"):
        table.branches.delete("dev")
    table.tags.create("t", ("dev/sub", 3))
    with pytest.raises(ReferencedError, match="tag 't'"):
        table.branches.delete("dev/sub")
    table.tags.delete("t")
    table.branches.replace_metadata("dev/sub", {"a": "b"})
    assert table.branches.list()["dev/sub"]["metadata"] == {"a": "b"}
    table.branches.delete("dev/sub")
    assert list(table.branches.list()) == ["dev"]
    assert not (Path(table.uri) / "tree/dev/sub").exists()
    assert table.checkout_version(("dev", None)).version == 3
    with pytest.raises(InvalidInputError, match="main"):
        table.branches.delete("main")


def test_deleting_a_branch_keeps_the_branch_below_it(table: ld.LanceDataset) -> None:
    path = Path(table.uri) / "_refs/branches/dev%2Fsub.json"
    raw = json.loads(path.read_bytes())
    path.write_text(json.dumps(raw | {"parentBranch": None, "identifier": {"version_mapping": [[2, "cc"]]}}))
    table.branches.delete("dev")
    assert list(table.branches.list()) == ["dev/sub"]
    assert table.checkout_version(("dev/sub", None)).version == 3
    assert not (Path(table.uri) / "tree/dev/_versions").exists()


def damage(table: ld.LanceDataset, path: str) -> None:
    file = Path(table.uri) / path
    file.write_bytes(file.read_bytes().replace(b'ersion": ', b'ersion": 1'))


def test_a_damaged_tag_affects_no_other_and_can_be_replaced_or_deleted(table: ld.LanceDataset) -> None:
    table.tags.create("good", 2)
    table.tags.create("bad", 1)
    damage(table, "_refs/tags/bad.json")
    for read in [
        table.tags.list,
        lambda: table.checkout_version("bad"),
        lambda: table.tags.get_version("bad"),
        lambda: table.tags.update("bad"),
        lambda: table.tags.update("bad", "bad"),
        lambda: table.tags.replace_metadata("bad", {}),
        lambda: table.cleanup_old_versions(retain_versions=1),
    ]:
        with pytest.raises(CorruptError, match=r"bad\.json: tag 'bad': checksum.*remove it with tags\.delete\('bad'\)"):
            read()
    assert table.tags.get_version("good") == 2
    assert [problem.where for problem in table.find_problems()] == ["tag 'bad'"]
    table.tags.update("bad", 1)
    assert {name: tag["version"] for name, tag in table.tags.list().items()} == {"bad": 1, "good": 2}
    damage(table, "_refs/tags/bad.json")
    table.tags.delete("bad")
    assert list(table.tags.list()) == ["good"]


@pytest.fixture
def branches(tmp_path: Path) -> ld.LanceDataset:
    """A table with a branch and one that was made from that."""
    table = ld.write_dataset({"id": [1]}, tmp_path / "t.lance")
    parent = ld.write_dataset({"id": [2]}, table.create_branch("parent"), mode="append")
    parent.create_branch("child")
    return table


@pytest.mark.parametrize("damaged", [["parent"], ["child"], ["parent", "child"]])
def test_a_damaged_branch_without_children_can_be_deleted(damaged: list[str], branches: ld.LanceDataset) -> None:
    for name in damaged:
        damage(branches, f"_refs/branches/{name}.json")
    with pytest.raises(CorruptError, match=rf"branches\.delete\('{sorted(damaged)[0]}'\) removes it"):
        branches.branches.list()
    assert ld.dataset(f"{branches.uri}/tree/{damaged[0]}").count_rows() == 2
    branches.create_branch("sound", 1)
    with pytest.raises(ReferencedError, match="branch 'child'"):
        branches.branches.delete("parent")
    for name in ("child", "sound", "parent"):
        branches.branches.delete(name)
    assert branches.branches.list() == {}
    assert [path for path in Path(branches.uri, "tree").rglob("*") if path.is_file()] == []
    assert branches.count_rows() == 1


def test_a_branch_is_kept_while_a_damaged_tag_may_name_it(branches: ld.LanceDataset) -> None:
    branches.tags.create("t", 1)
    damage(branches, "_refs/tags/t.json")
    with pytest.raises(CorruptError, match="tag 't'"):
        branches.branches.delete("child")
    branches.tags.delete("t")
    branches.branches.delete("child")


def test_a_table_with_a_damaged_branch_is_dropped(branches: ld.LanceDataset) -> None:
    damage(branches, "_refs/branches/child.json")
    ld.LanceDataset.drop(branches.uri)
    assert not Path(branches.uri).exists()


def test_internal_folders_of_a_branch_are_not_branches(branches: ld.LanceDataset) -> None:
    for folder in ("_versions", "data"):
        with pytest.raises(NotFoundError):
            branches.branches.delete(f"parent/{folder}")
    branches.create_branch("parent/data")
    branches.branches.delete("parent/data")
    assert branches.checkout_version(("parent", None)).to_table().num_rows == 2


def test_deleting_a_branch_with_a_hostile_name_affects_only_it(branches: ld.LanceDataset) -> None:
    folder = Path(branches.uri, "_refs/branches")
    (folder / "x%2F..%2Fchild.json").write_bytes((folder / "child.json").read_bytes())
    with pytest.raises(CorruptError, match="the name is not valid for a folder"):
        branches.branches.list()
    branches.branches.delete("x/../child")
    assert list(branches.branches.list()) == ["child", "parent"]
    assert branches.checkout_version(("child", None)).count_rows() == 2


@pytest.mark.parametrize("file", ["gr%C3%B6%C3%9Fe", "größe", "gr%c3%b6%c3%9fe"])
def test_a_tag_written_by_another_library_is_found_by_its_listed_name(file: str, table: ld.LanceDataset) -> None:
    table.tags.create("t", 1)
    folder = Path(table.uri, "_refs/tags")
    (folder / "t.json").rename(folder / f"{file}.json")
    assert list(table.tags.list()) == ["größe"]
    assert table.checkout_version("größe").version == 1
    table.tags.update("größe", 2)
    assert [path.name for path in folder.iterdir()] == [f"{file}.json"]
    assert table.tags.get_version("größe") == 2
    assert table.find_problems() == []
    table.tags.delete("größe")
    assert table.tags.list() == {}
