"""A table whose versions are claimed in an external manifest store, by all that a table can do."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from concurrency import crashing
from concurrency.crashing import VERBS, Verb, fresh, read_files, rows, state, version, write_files
from support.faults import Crash, Faults, stop_at
from support.servers import s3_server

import lance_duck as ld
from lance_duck.errors import NotFoundError, StoreError
from lance_duck.store import open_store


@pytest.fixture(params=["disk", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "t.lance") if request.param == "disk" else f"memory://{uuid.uuid4().hex}/t.lance"


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    return {"manifest_store": f"sqlite://{tmp_path}/claims.db", "fsync": "false"}


def test_a_table_in_a_manifest_store_is_also_readable_without_the_store(uri: str, options: dict[str, str]) -> None:
    dataset = ld.write_dataset(rows(0, 8), uri, storage_options=options)
    dataset.insert(rows(8, 8))
    dataset.update({"n": "n + 1"}, where="id < 4")
    dataset.optimize.compact_files()
    claims = open_store(uri, options).external
    assert claims is not None
    (number, path) = claims.get_latest(str(Path(uri).resolve()) if uri.startswith("/") else uri) or (0, "")
    assert number == dataset.version == ld.dataset(uri).version
    assert open_store(uri).exists(path)
    assert ld.dataset(uri).to_table() == dataset.to_table()
    assert dataset.checkout_version(2).count_rows() == 16


def test_a_manifest_store_replaces_conditional_put(tmp_path: Path) -> None:
    with s3_server() as service:
        plain = service | {"aws_conditional_put": "disabled"}
        uri = "s3://bucket/plain.lance"
        with pytest.raises(StoreError, match="manifest_store"):
            ld.write_dataset(rows(0, 8), uri, storage_options=plain)
        options = plain | {"manifest_store": f"sqlite://{tmp_path}/claims.db"}
        dataset = ld.write_dataset(rows(0, 8), uri, storage_options=options)
        stale = ld.dataset(uri, storage_options=options)
        dataset.insert(rows(8, 8))
        stale.insert(rows(16, 8))
        assert stale.version == ld.dataset(uri, storage_options=service).version == 3
        assert ld.dataset(uri, storage_options=plain).count_rows() == 24


def test_a_table_and_its_branches_can_be_dropped_and_created_again(uri: str, options: dict[str, str]) -> None:
    for _ in range(2):
        dataset = ld.write_dataset(rows(0, 8), uri, storage_options=options)
        for _ in range(2):
            branch = dataset.create_branch("side")
            branch.insert(rows(8, 8))
            dataset.branches.delete("side")
        dataset.create_branch("side").insert(rows(8, 1))
        assert ld.dataset(uri, ("side", None), storage_options=options).count_rows() == 9
        ld.LanceDataset.drop(uri, options)
        with pytest.raises(NotFoundError):
            ld.dataset(uri, storage_options=options)


@pytest.mark.parametrize("verb", [v for v in VERBS if v.name in ("append", "update", "compact")], ids=lambda v: v.name)
def test_a_killed_writer_leaves_the_old_or_the_new_state(
    verb: Verb, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crashing, "UNFLUSHED", options)
    prepared = fresh("memory://claimed")
    crashing.prepare(prepared)
    files = read_files(prepared)
    counted = write_files(fresh("memory://claimed"), files)
    old = state(counted)
    with Faults() as faults:
        verb.act(counted)
    new, last = state(counted), version(counted)
    for at in range(len(faults.steps)):
        uri = write_files(fresh("memory://claimed"), files)
        with pytest.raises(Crash), Faults(stop_at(at)):
            verb.act(uri)
        assert state(uri) in (old, new)
        assert version(uri) <= last
        crashing.assert_goes_on(uri)
