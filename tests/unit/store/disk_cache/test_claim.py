from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.store.disk_cache.claim import MARKER, claim, is_cache


def test_a_new_folder_is_private_and_says_that_it_is_a_cache(tmp_path: Path) -> None:
    claim(str(tmp_path / "a" / "b"))
    assert stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode) == 0o700
    assert (tmp_path / "a" / "b" / MARKER).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert is_cache(str(tmp_path / "a" / "b"))
    claim(str(tmp_path / "a" / "b"))


def test_an_empty_folder_becomes_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    claim(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_with_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInputError, match="the cache folder contains other files"):
        claim(str(tmp_path))
    assert os.listdir(tmp_path) == ["letter.txt"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


def test_the_cache_of_another_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text("Signature: 8a477f597d28d172789f06886806bc55\n# of another program\n")
    (tmp_path / "x").touch()
    assert not is_cache(str(tmp_path))
    with pytest.raises(InvalidInputError, match="other files"):
        claim(str(tmp_path))


def test_a_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim(str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InvalidInputError, match="belongs to another user"):
        claim(str(tmp_path))


def test_a_file_is_not_a_cache(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(InvalidInputError, match="not a folder"):
        claim(str(tmp_path / "x"))


def test_remains_of_an_interrupted_claim_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / f"{MARKER}#123").touch()
    claim(str(tmp_path))
    assert is_cache(str(tmp_path))


def test_the_mark_survives_a_power_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_size))
    claim(str(tmp_path))
    assert flushed == [(tmp_path / MARKER).stat().st_size]
