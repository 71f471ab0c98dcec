from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.snapshot import open_snapshot

Make = Callable[[], Any]
TAG = {"branch": None, "version": 1, "createdAt": "2026-11-20T14:26:22.505557895Z", "manifestSize": 7, "metadata": {}}


@pytest.fixture
def root(hand_made: Make, tmp_path: Path) -> str:
    table = hand_made()
    table.commit(1)
    table.commit(2)
    branch = hand_made()
    base = {"id": 0, "is_dataset_root": True, "path": str(tmp_path)}
    branch.commit(2, branch="dev/x", base_paths=[base])
    branch.commit(3, branch="dev/x", base_paths=[base])
    table.files |= {f"tree/dev/x/{path}": data for path, data in branch.files.items()}
    table.add_json("_refs/tags/first.json", TAG)
    table.add_json("_refs/tags/there.json", TAG | {"branch": "dev/x", "version": 2})
    identifier = {"version_mapping": [[2, "8a6b"]]}
    about = {"parentBranch": None, "identifier": identifier, "parentVersion": 2, "createAt": 5, "manifestSize": 7}
    table.add_json("_refs/branches/dev%2Fx.json", about)
    return table.write(tmp_path)


def test_a_tag_opens_its_version_on_its_branch(root: str) -> None:
    assert (open_snapshot(root, "first").version, open_snapshot(root, "first").branch) == (1, None)
    there = open_snapshot(root, "there")
    assert (there.version, there.branch, there.uri) == (2, "dev/x", f"{root}/tree/dev/x")


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (("dev/x", None), (3, "dev/x")),
        (("dev/x", 2), (2, "dev/x")),
        (("dev/x", "there"), (2, "dev/x")),
        ((None, None), (2, None)),
        (("main", 1), (1, None)),
    ],
)
def test_a_branch_opens_by_number_and_tag_from_any_branch(
    root: str, version: tuple[str | None, int | str | None], expected: tuple[int, str | None]
) -> None:
    for start in (open_snapshot(root), open_snapshot(f"{root}/tree/dev/x")):
        found = start.checkout(version)
        assert (found.version, found.branch) == expected


def test_a_version_number_refers_to_the_current_branch(root: str) -> None:
    branch = open_snapshot(root, ("dev/x", None))
    assert branch.checkout(2).branch == "dev/x"
    assert branch.version_numbers() == [2, 3]
    assert branch.latest_version() == 3


def test_tags_and_branches_are_listed_from_any_branch(root: str) -> None:
    for start in (open_snapshot(root), open_snapshot(f"{root}/tree/dev/x")):
        assert start.tags()["first"].as_dict() == {
            "branch": None,
            "version": 1,
            "created_at": datetime(2026, 11, 20, 14, 26, 22, 505557, UTC),
            "updated_at": None,
            "manifest_size": 7,
            "metadata": {},
        }
        assert start.branches()["dev/x"].as_dict() == {
            "parent_branch": None,
            "branch_identifier": [(2, "8a6b")],
            "parent_version": 2,
            "create_at": 5,
            "manifest_size": 7,
            "metadata": {},
        }


@pytest.mark.parametrize(
    "version", ["nope", "../first", "first/../first", ("nope", None), ("../x", 1), ("dev/x", "first"), ("dev/x", 9)]
)
def test_unknown_names_raise_not_found(root: str, version: Any) -> None:
    with pytest.raises(NotFoundError):
        open_snapshot(root, version)


@pytest.mark.parametrize("version", [1.5, True, ("dev/x",), [1]])
def test_invalid_versions_are_rejected(root: str, version: Any) -> None:
    with pytest.raises(InvalidInputError):
        open_snapshot(root, version)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"version": "1"}', b'{"version": 1, "branch": 2}', b"[" * 100_000])
def test_broken_tags_are_corrupt(root: str, content: bytes) -> None:
    (Path(root) / "_refs/tags/first.json").write_bytes(content)
    with pytest.raises(CorruptError):
        open_snapshot(root, "first")
