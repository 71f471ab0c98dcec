"""Concurrent upserts of one key create one row, with or without a declared primary key."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from concurrency.children import LOADED
from concurrency.upserting import OPTIONS, rows, upsert, upsert_often

import lance_duck as ld
from lance_duck.errors import RetryableError

KEY = {"lance-schema:unenforced-primary-key": "true"}


@pytest.fixture(params=[False, True], ids=["no key", "primary key"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    key = pa.field("id", pa.int64(), nullable=not request.param, metadata=KEY if request.param else None)
    empty = pa.table({"id": pa.array([], pa.int64()), "writer": pa.array([], pa.int64())}).cast(
        pa.schema([key, pa.field("writer", pa.int64())])
    )
    ld.write_dataset(empty, tmp_path / "t", enable_stable_row_ids=request.param)
    return str(tmp_path / "t")


def ids(uri: str) -> list[int]:
    theirs = lance.dataset(uri)
    theirs.validate()
    found = sorted(theirs.to_table()["id"].to_pylist())
    assert found == sorted(ld.dataset(uri).to_table()["id"].to_pylist())
    return found


def test_threads_that_upsert_the_same_new_keys(uri: str) -> None:
    begin = threading.Barrier(4)

    def work(writer: int) -> None:
        upsert_often(uri, writer, 8, 2, begin)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert ids(uri) == list(range(8))


@pytest.mark.parametrize("uri", [False], indirect=True, ids=["no key"])
def test_processes_that_upsert_the_same_new_keys(uri: str) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["concurrency.upserting", *LOADED])
    begin = context.Barrier(3)
    workers = [context.Process(target=upsert_often, args=(uri, writer, 6, 2, begin)) for writer in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert ids(uri) == list(range(6))


def test_a_stale_handle_updates_rows_that_another_handle_inserted(uri: str) -> None:
    stale, other = (ld.dataset(uri, storage_options=OPTIONS) for _ in range(2))
    assert upsert(other, rows([1, 2], 0))["num_inserted_rows"] == 2
    assert upsert(stale, rows([2, 3], 1)) == {
        "num_inserted_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
    }
    assert ids(uri) == [1, 2, 3]
    assert stale.version == stale.latest_version


BEFORE: dict[str, Callable[[str], Any]] = {
    "an append by us": lambda uri: ld.write_dataset(rows([5], 9), uri, mode="append"),
    "an append by pylance": lambda uri: lance.write_dataset(rows([5], 9), uri, mode="append"),
    "an upsert by pylance": lambda uri: upsert(lance.dataset(uri), rows([5], 9)),
    "an append and a compaction": lambda uri: (
        lance.write_dataset(rows([4], 9), uri, mode="append"),
        lance.write_dataset(rows([5], 9), uri, mode="append"),
        lance.dataset(uri).optimize.compact_files(),
    ),
    "an update of another row to this key": lambda uri: (
        lance.write_dataset(rows([4], 9), uri, mode="append"),
        lance.dataset(uri).update({"id": "5"}, where="id = 4"),
    ),
}


@pytest.mark.parametrize("change", BEFORE)
def test_a_key_added_by_another_change_is_not_inserted_again(uri: str, change: str) -> None:
    stale = ld.dataset(uri, storage_options=OPTIONS)
    BEFORE[change](uri)
    assert upsert(stale, rows([5], 1))["num_updated_rows"] == 1
    assert ids(uri).count(5) == 1
    assert ld.dataset(uri).to_table(filter="id = 5")["writer"].to_pylist() == [1]


def test_insert_if_absent_keeps_the_first_row(uri: str) -> None:
    stale = ld.dataset(uri, storage_options=OPTIONS)
    upsert(ld.dataset(uri, storage_options=OPTIONS), rows([1], 0))
    result = stale.merge_insert("id").when_not_matched_insert_all().execute(rows([1, 2], 1))
    assert result["num_inserted_rows"] == 1
    assert ld.dataset(uri).to_table().sort_by("id").to_pylist() == [{"id": 1, "writer": 0}, {"id": 2, "writer": 1}]


@pytest.mark.parametrize("uri", [False], indirect=True, ids=["no key"])
def test_inserts_of_other_keys_do_not_rerun_a_merge(uri: str) -> None:
    stale = ld.dataset(uri, storage_options=OPTIONS)
    ld.write_dataset(rows([7], 9), uri, mode="append")
    merge = stale.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    merge.conflict_retries(0).execute(rows([8], 1))
    assert ids(uri) == [7, 8]


def test_a_merge_without_retries_fails_and_leaves_nothing(uri: str) -> None:
    stale = ld.dataset(uri, storage_options=OPTIONS)
    ld.write_dataset(rows([7], 9), uri, mode="append")
    files = sorted(Path(uri).rglob("*"))
    merge = stale.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(RetryableError, match=r"same key|concurrent commit"):
        merge.conflict_retries(0).execute(rows([7], 1))
    assert sorted(Path(uri).rglob("*")) == files
    assert stale.version == 1


def test_concurrent_increments_are_all_counted(uri: str) -> None:
    ld.write_dataset(rows([1], 0), uri, mode="append")

    def count(_: int) -> None:
        ld.dataset(uri, storage_options=OPTIONS).update({"writer": "writer + 1"}, conflict_retries=100)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(count, range(8)))
    assert ld.dataset(uri).to_table()["writer"].to_pylist() == [8]


def test_deletes_of_different_rows_in_one_fragment_both_commit(uri: str) -> None:
    ld.write_dataset(rows(list(range(10)), 0), uri, mode="append")
    one, other = (ld.dataset(uri, storage_options=OPTIONS) for _ in range(2))
    one.delete("id = 3", conflict_retries=0)
    other.delete("id = 4", conflict_retries=0)
    assert ids(uri) == [0, 1, 2, 5, 6, 7, 8, 9]
