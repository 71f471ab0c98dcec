"""Writers on one machine commit one after the other, and none waits forever."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError
from lance_duck.snapshot import turns
from lance_duck.store.local import LocalStore

HASTY = {"fsync": "false"}


@pytest.fixture
def path(tmp_path: Path) -> str:
    ld.write_dataset(pa.table({"x": [0]}), tmp_path / "t.lance", storage_options=HASTY)
    return str(tmp_path / "t.lance")


def test_a_turn_begins_after_the_previous_one_ends(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_TURN", 60.0)
    steps: list[str] = []
    is_held = Event()

    def second() -> None:
        is_held.wait()
        with turns.own_turn(LocalStore(path)):
            steps.append("second")

    with ThreadPoolExecutor(1) as pool:
        with turns.own_turn(LocalStore(path)):
            future = pool.submit(second)
            is_held.set()
            time.sleep(0.02)
            steps.append("first")
        future.result()
    assert steps == ["first", "second"]


def test_waiting_for_a_turn_is_limited(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_TURN", 0.02)
    with turns.own_turn(LocalStore(path)):
        ld.write_dataset(pa.table({"x": [1]}), path, mode="append", storage_options=HASTY)
    assert ld.dataset(path).count_rows() == 2


def test_a_turn_ends_after_an_error(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_TURN", 60.0)
    with pytest.raises(ZeroDivisionError), turns.own_turn(LocalStore(path)):
        raise ZeroDivisionError
    with turns.own_turn(LocalStore(path)):
        pass


def test_without_file_locks_writers_do_not_wait(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with turns.own_turn(LocalStore(f"{path}/nowhere")):
        pass

    def refused(handle: int, operation: int) -> None:
        raise OSError(9, "no locks on this disk")

    monkeypatch.setattr(turns.fcntl, "flock", refused)
    assert ld.write_dataset(pa.table({"x": [1]}), path, mode="append", storage_options=HASTY).count_rows() == 2


def test_writers_that_take_turns_do_not_conflict(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "LONGEST_TURN", 60.0)
    lost: list[str] = []
    claim = LocalStore.put_if_absent

    def counted(self: LocalStore, *arguments: Any, **options: Any) -> None:
        try:
            claim(self, *arguments, **options)
        except AlreadyExistsError:
            lost.append(arguments[0])
            raise

    monkeypatch.setattr(LocalStore, "put_if_absent", counted)

    def append(writer: int) -> None:
        for _ in range(4):
            ld.write_dataset(pa.table({"x": [writer]}), path, mode="append", storage_options=HASTY)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    assert ld.dataset(path).count_rows() == 17
    assert not lost
