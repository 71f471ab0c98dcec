"""Files of large sorts are in a temporary folder, and none of them stays."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest

from lance_duck.serve.gate.gate import Gate
from lance_duck.serve.gate.scratch import ScratchFolder
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.statements import run_statements
from lance_duck.serve.gate.tokens import Caller, Role
from tests.serve.test_command import ENVIRONMENT, running

LARGE = "SELECT max(x) FROM (SELECT hash(range) AS x FROM range(4000000) ORDER BY x OFFSET 1)"


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, which is empty at first."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_large_sort_writes_below_the_temporary_folder(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    gate = Gate(ServeSettings(str(tmp_path / "served"), write=True, memory="30MB"))
    with gate.call(Caller("a", Role.READ)) as call:
        rows = run_statements(call, f"SELECT unnest(range(200000)) AS x, ({LARGE}) AS y ORDER BY x % 7, x")
        next(rows.batches)
        files = [path.name for path in temporary.glob("lance-duck-serve-*/duckdb_temp_*")]
        rows.batches.close()
    gate.close()
    assert files
    assert list(temporary.iterdir()) == []
    assert not (tmp_path / ".tmp").exists()


def test_the_folder_of_a_killed_server_is_removed_by_the_next_one(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "TMPDIR", str(temporary))
    (tmp_path / "served").mkdir()
    with running(str(tmp_path / "served")) as (process, _):
        (left,) = temporary.iterdir()
        ScratchFolder().close()
        assert left.exists()
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert left.exists()
    with running(str(tmp_path / "served")) as (process, _):
        (used,) = temporary.iterdir()
        assert used != left
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert list(temporary.iterdir()) == []


def test_folders_of_others_stay(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "in-use").touch()
    os.symlink(elsewhere, temporary / "lance-duck-serve-link")
    (temporary / "lance-duck-serve-unmarked").mkdir()
    before = {*temporary.iterdir()}
    used = ScratchFolder()
    second = ScratchFolder()
    assert {*temporary.iterdir()} == {*before, Path(used.path), Path(second.path)}
    used.close()
    second.close()
    assert {*temporary.iterdir()} == before
    assert (elsewhere / "in-use").exists()
