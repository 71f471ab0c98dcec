"""The fault harness itself: its effect on each step, and recovery of the store."""

from __future__ import annotations

import errno
import uuid
from contextlib import suppress
from pathlib import Path

import pytest
from support.faults import Crash, Faults, answer_twice, fail_at, fail_from, lose_answer, stop_at

from lance_duck.errors import AlreadyExistsError, StoreError
from lance_duck.store import Store, is_temporary, open_store


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return open_store(tmp_path / "t" if request.param == "local" else f"memory://{uuid.uuid4().hex}/t")


def change(store: Store) -> None:
    with store.create("data/a") as sink:
        sink.write(bytes(100))
    store.sync()
    store.put_if_absent("v/1", b"1")
    store.put("hint", b"1")
    store.delete(["data/a"])


def files(store: Store) -> set[str]:
    return {entry.path for entry in store.walk() if not is_temporary(entry.path)}


def fresh(store: Store) -> Store:
    return open_store(f"{store.uri.rpartition('/')[0]}/{uuid.uuid4().hex}")


def steps(store: Store) -> list[str]:
    with Faults() as seen:
        change(fresh(store))
    return [step.split()[0] for step in seen.steps]


def test_every_store_operation_is_counted(store: Store) -> None:
    found = steps(store)
    if store.uri.startswith("memory"):
        assert found == ["close", "put", "put", "delete"]
    else:
        for name in ("open", "flush", "fsync", "replace", "link", "unlink", "mkdir"):
            assert name in found


def test_a_crash_keeps_only_the_steps_before_it(store: Store) -> None:
    states = [set(), {"data/a"}, {"data/a", "v/1"}, {"data/a", "v/1", "hint"}, {"v/1", "hint"}]
    seen = []
    for at in range(len(steps(store))):
        store = fresh(store)
        with pytest.raises(Crash), Faults(stop_at(at)):
            change(store)
        assert files(store) in states
        seen.append(files(store))
    assert seen == sorted(seen, key=states.index)
    assert len({frozenset(state) for state in seen}) >= 4


def test_a_failure_is_a_store_error_and_leaves_no_temporary_file(store: Store) -> None:
    for at, name in enumerate(steps(store)):
        for plan in (fail_at(at, errno.EIO), fail_from(at, errno.ENOSPC)):
            store = fresh(store)
            with suppress(StoreError), Faults(plan):
                change(store)
            if name != "unlink":
                assert not [entry.path for entry in store.walk() if is_temporary(entry.path)]


def test_a_lost_response_is_a_store_error_although_the_write_happened(store: Store) -> None:
    at = next(i for i, name in enumerate(steps(store)) if name in ("replace", "close"))
    with pytest.raises(StoreError), Faults(lose_answer(at)):
        change(store)
    assert files(store) == {"data/a"}


def test_a_duplicated_request_is_harmless(store: Store) -> None:
    at = next(i for i, name in enumerate(steps(store)) if name in ("link", "put"))
    if store.uri.startswith("memory"):
        with pytest.raises(AlreadyExistsError), Faults(answer_twice(at)):
            change(store)
        assert files(store) == {"data/a", "v/1"}
    else:  # the store sees that the name is its own
        with Faults(answer_twice(at)):
            change(store)
        assert files(store) == {"v/1", "hint"}


def test_the_fault_harness_uninstalls_itself(store: Store) -> None:
    with pytest.raises(Crash), Faults(stop_at(0)):
        change(store)
    change(store)
    assert files(store) == {"v/1", "hint"}
