"""kill -9 at any moment, full disks and folders for reading only."""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from concurrency import children, crashing
from concurrency.children import Model, change_for_ever, rows, start

import lance_duck as ld

pytestmark = pytest.mark.skipif(os.name == "nt", reason="no signals")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A directory that all users of the machine may enter."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def found(uri: str) -> dict[int, int]:
    table = ld.dataset(uri).to_table(columns=["id", "n"])
    ids = table["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, table["n"].to_pylist(), strict=True))


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_killed_writer_leaves_a_committed_version(tmp_path: Path, seconds: float, stable_row_ids: bool) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows({-1: 0}), uri, storage_options=children.OPTIONS, enable_stable_row_ids=stable_row_ids)
    rng, model, end = random.Random(stable_row_ids), Model(), time.monotonic() + seconds / 2
    while time.monotonic() < end:
        process, connection = start(change_for_ever, uri, rng.randrange(2**32), model.rows)
        if connection.poll(30):
            model.hear(connection.recv())
        time.sleep(rng.random() * 0.2)
        os.kill(process.pid, signal.SIGKILL)
        try:
            while True:
                model.hear(connection.recv())
        except (EOFError, OSError):
            process.join()
        now = found(uri)
        assert now in (model.rows, model.begun)
        model.rows, model.begun = now, None
    ld.dataset(uri).validate()
    ld.dataset(uri).insert(rows({-9: 9}))
    crashing.clean(uri)
    crashing.assert_clean(uri)
    assert found(uri) == model.rows | {-9: 9}


def test_a_file_size_limit_raises_an_error_and_creates_no_version(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    dataset = ld.write_dataset(rows({-1: 0}), uri)
    process, connection = start(children.append_in_a_small_world, uri, 100_000)
    kind, text = connection.recv()
    process.join()
    assert kind == "StoreError"
    assert "smaller files" in text
    assert ld.dataset(uri).version == dataset.version
    assert found(uri) == {-1: 0}
    crashing.assert_clean(uri)


def test_a_read_only_table_can_be_read_but_not_changed(open_folder: Path) -> None:
    uri = str(open_folder / "t.lance")
    ld.write_dataset(rows({-1: 0}), uri)
    before = crashing.read_files(uri)
    for folder, folders, names in os.walk(open_folder):
        for name in (*folders, *names):
            os.chmod(os.path.join(folder, name), 0o555 if name in folders else 0o444)
    os.chmod(open_folder, 0o555)
    process, connection = start(children.change_without_rights, uri)
    outcomes = [connection.recv() for _ in range(7)]
    process.join()
    os.chmod(open_folder, 0o755)
    for folder, _, _ in os.walk(open_folder):
        os.chmod(folder, 0o755)
    assert outcomes[0] == ("", "1")
    for kind, text in outcomes[1:]:
        assert kind == "StoreError"
        assert "check the permissions" in text
    assert crashing.read_files(uri) == before
    assert os.listdir(open_folder) == ["t.lance"]
