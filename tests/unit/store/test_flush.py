"""The paths that a flush covers."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from lance_duck.store import flush
from lance_duck.store.flush import UnflushedPaths, _holds


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[set[str], set[str]]]:
    """Collects the files and directories of each flush."""
    calls: list[tuple[set[str], set[str]]] = []
    monkeypatch.setattr(flush, "_flush_all", lambda files, late, directories: calls.append(({*late}, {*directories})))
    monkeypatch.setattr(UnflushedPaths, "_not_safe", lambda *_: [])
    return calls


@pytest.mark.skipif(os.name != "posix", reason="only files are flushed")
@pytest.mark.parametrize("seed", range(5))
def test_a_flush_covers_recorded_paths_below_and_above_its_roots(
    flushed: list[tuple[set[str], set[str]]], tmp_path: Path, seed: int
) -> None:
    choose, unflushed = random.Random(seed), UnflushedPaths()
    files: set[str] = set()
    directories: set[str] = set()
    for name in ("a", "a/b", "a-b", "a/b/c", "ab", "a b/c"):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / "f").touch()
    names = [str(path) for path in (tmp_path, *tmp_path.rglob("*"))]
    for _ in range(200):
        path = choose.choice(names)
        if choose.random() < 0.2:
            roots = choose.choices([name for name in names if os.path.isdir(name)], k=choose.randint(1, 2))
            late = {file for file in files if any(_holds(root, file) for root in roots)}
            noted = {each for each in directories if any(_holds(r, each) or _holds(each, r) for r in roots)}
            unflushed.flush([root + choose.choice(["", "/"]) for root in roots])
            assert flushed.pop() == (late, noted)
            files, directories = files - late, directories - noted
        elif os.path.isdir(path):
            unflushed.note(path)
            directories.add(path)
        else:
            unflushed.note_file(path)
            files.add(path)
            directories.add(os.path.dirname(path))


@pytest.mark.skipif(os.name != "posix", reason="only files are flushed")
def test_deleted_directories_are_forgotten(flushed: list[tuple[set[str], set[str]]], tmp_path: Path) -> None:
    unflushed = UnflushedPaths()
    for i in range(1_000):
        unflushed.note(str(tmp_path / f"gone{i}"))
    unflushed.note(str(tmp_path))
    unflushed.flush([str(tmp_path)])
    _, directories = flushed.pop()
    assert str(tmp_path) in directories
    assert len(directories) <= 65
