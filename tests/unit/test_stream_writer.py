"""stream_writer: threads, errors, keys, bounds, and changes of the table meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.stream_writer import _ERRORS_KEPT, Confirmation

NEVER = 1e9
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("text", pa.string())])


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return ld.write_dataset(SCHEMA.empty_table(), tmp_path / "t.lance").uri


def ids(uri: str) -> list[int]:
    found: list[int] = sorted(ld.dataset(uri).to_table(columns=["id"])["id"].to_pylist())
    return found


def rows(*numbers: int) -> dict[str, list[int]]:
    return {"id": list(numbers)}


def test_batches_of_many_threads_become_one_version(uri: str) -> None:
    before = ld.dataset(uri).version
    with ld.stream_writer(uri, interval=NEVER) as stream:
        with ThreadPoolExecutor(8) as pool:
            confirmations = list(pool.map(lambda i: stream.write(rows(2 * i, 2 * i + 1)), range(100)))
        assert not any(confirmation.done() for confirmation in confirmations)
        assert stream.flush() == before + 1
        assert {confirmation.result() for confirmation in confirmations} == {before + 1}
    assert ids(uri) == list(range(200))
    assert ld.dataset(uri).version == before + 1


def test_an_interval_of_zero_commits_without_a_flush(uri: str) -> None:
    with ld.stream_writer(uri, interval=timedelta(0)) as stream:
        assert stream.write(rows(1)).result() == 2
        assert stream.write(rows(2)).result() == 3


def test_the_end_of_the_block_commits_also_after_an_error(uri: str) -> None:
    stream = ld.stream_writer(uri, interval=NEVER)

    def broken() -> None:
        with stream:
            stream.write(rows(1))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert ids(uri) == [1]
    stream.close()
    with pytest.raises(ld.InvalidInputError, match="closed"):
        stream.write(rows(2))


@pytest.mark.parametrize("bound", [{"max_rows": 4}, {"max_bytes": 32}])
def test_a_bound_starts_a_commit_before_the_interval_is_over(uri: str, bound: dict[str, int]) -> None:
    with ld.stream_writer(uri, interval=NEVER, **bound) as stream:
        first, second = stream.write(rows(1, 2)), stream.write(rows(3, 4))
        assert first.result() == second.result() == 2


def test_producers_wait_while_the_writer_holds_too_many_bytes(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ld.stream_writer(uri, interval=NEVER, max_bytes=16)
    may_store, store, held = threading.Event(), stream._store, []

    def slow(table: pa.Table) -> None:
        may_store.wait()
        held.append(stream._held)
        store(table)

    monkeypatch.setattr(stream, "_store", slow)
    with ThreadPoolExecutor(4) as pool:
        writes = [pool.submit(stream.write, rows(i, i + 100)) for i in range(20)]
        may_store.set()
        for write in writes:
            write.result().result()
    stream.close()
    assert max(held) <= 32
    assert len(ids(uri)) == 40


def test_a_batch_larger_than_the_bound_is_written_alone(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER, max_bytes=1) as stream:
        assert stream.write(rows(*range(1000))).result() == 2


def test_rows_are_copied(uri: str) -> None:
    numbers = np.arange(5)
    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write({"id": numbers})
        numbers[:] = 9
    assert ids(uri) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"id": ["a"]}, "wrong type"),
        ({"id": [1], "n": [2**40]}, "column 'n'"),
        ({"id": [1], "other": [1]}, "not in the table"),
        ({"n": [1]}, "missing"),
        ({"id": [None]}, "null"),
        (7, "data"),
    ],
)
def test_a_wrong_batch_fails_for_its_producer_only(uri: str, data: Any, message: str) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write(rows(1))
        with pytest.raises(ld.InvalidInputError, match=message):
            stream.write(data)
        stream.write(rows(2))
    assert ids(uri) == [1, 2]


def test_batches_with_different_columns_and_types_are_joined(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write(pa.table({"id": pa.array([1], pa.int8()), "text": pa.array(["a"], pa.large_string())}))
        stream.write({"n": [5], "id": [2]})
        stream.write(pa.table({"id": pa.array([3], pa.uint64()), "text": pa.array([None], pa.null())}))
    assert ld.dataset(uri).version == 2
    assert ld.dataset(uri).to_table().sort_by("id").to_pydict() == {
        "id": [1, 2, 3],
        "n": [None, 5, None],
        "text": ["a", None, None],
    }


def test_each_key_is_stored_once(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER, key="id") as stream:
        stream.write({"id": [1, 2], "n": [1, 2]})
        stream.write({"id": [2, 3], "n": [7, 3]})
        stream.flush()
        again = stream.write({"id": [1, 2], "n": [8, 8]})
        assert stream.flush() == again.result()
    with ld.stream_writer(uri, interval=NEVER, key=["id", "n"]) as stream:
        for data in (rows(4), {"id": [4], "n": [None]}):
            with pytest.raises(ld.InvalidInputError, match="key column 'n' is missing or null"):
                stream.write(data)
    assert ld.dataset(uri).to_table().sort_by("id")["n"].to_pylist() == [1, 2, 3]


def test_a_declared_primary_key_is_the_key(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE t (a INTEGER, b VARCHAR, n INTEGER, PRIMARY KEY (a, b))")
    for _ in range(2):
        with ld.stream_writer(tmp_path / "t.lance") as stream:
            stream.write({"a": [1, 1], "b": ["x", "y"], "n": [1, 2]})
    assert ld.dataset(tmp_path / "t.lance").count_rows() == 2
    with ld.stream_writer(tmp_path / "t.lance", key=[]) as stream:
        stream.write({"a": [1], "b": ["x"], "n": [1]})
    assert ld.dataset(tmp_path / "t.lance").count_rows() == 3


def test_columns_that_were_added_meanwhile_are_accepted(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write(rows(1))
        ld.dataset(uri).add_columns(pa.field("new", pa.int64()))
        stream.write({"id": [2], "new": [5]})
    assert ld.dataset(uri).to_table().sort_by("id")["new"].to_pylist() == [None, 5]


def test_only_batches_with_a_column_that_was_dropped_meanwhile_fail(uri: str) -> None:
    stream = ld.stream_writer(uri, interval=NEVER)
    confirmations = [stream.write({"id": [i], "n": [i]} if i % 5 == 0 else rows(i)) for i in range(12)]
    ld.dataset(uri).drop_columns(["n"])
    with pytest.raises(ld.InvalidInputError, match="'n'"):
        stream.flush()
    failed = [i for i, confirmation in enumerate(confirmations) if confirmation.exception() is not None]
    assert failed == [0, 5, 10]
    stream.close()
    assert ids(uri) == [1, 2, 3, 4, 6, 7, 8, 9, 11]


def test_rows_go_to_the_table_that_replaced_the_first_one(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write(rows(1))
        stream.flush()
        ld.write_dataset(pa.table({"id": pa.array([7], pa.int64())}), uri, mode="overwrite")
        stream.write(rows(2))
    assert ids(uri) == [2, 7]


def failing(error: BaseException) -> Callable[[pa.Table], None]:
    def store(_: pa.Table) -> None:
        raise error

    return store


def test_an_error_of_the_store_reaches_all_producers_and_is_not_tried_again(
    uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        with monkeypatch.context() as patch:
            patch.setattr(stream, "_store", failing(ld.StoreError("the disk is gone")))
            confirmations = [stream.write(rows(i)) for i in range(3)]
            with pytest.raises(ld.StoreError, match="gone"):
                stream.flush()
        assert all(isinstance(each.exception(), ld.StoreError) for each in confirmations)
        stream.write(rows(9))
    assert ids(uri) == [9]


def test_a_flush_raises_the_errors_of_its_own_thread(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ld.stream_writer(uri, interval=NEVER)
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        patch.setattr(stream, "_store", failing(ld.StoreError("the disk is gone")))
        pool.submit(stream.write, rows(1)).result()
        stream.flush()
    with pytest.raises(ld.StoreError, match="gone"):
        stream.close()
    stream.close()


def test_a_lost_race_is_repeated(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ld.stream_writer(uri, interval=NEVER)
    store, errors = stream._store, [ld.RetryableError("lost"), ld.IncompatibleError("changed")]

    def sometimes(table: pa.Table) -> None:
        if errors:
            raise errors.pop()
        store(table)

    monkeypatch.setattr(stream, "_store", sometimes)
    stream.write(rows(1))
    stream.close()
    assert ids(uri) == [1]


def test_a_callback_may_write_but_not_wait(uri: str) -> None:
    errors: list[BaseException] = []
    again: list[Confirmation] = []
    with ld.stream_writer(uri, interval=NEVER) as stream:

        def after(_: object) -> None:
            again.append(stream.write(rows(2)))
            try:
                stream.flush()
            except ld.InvalidInputError as error:
                errors.append(error)

        stream.write(rows(1)).add_done_callback(after)
        stream.flush()
    assert len(errors) == len(again) == 1
    assert ids(uri) == [1, 2]


def test_a_callback_that_exits_does_not_end_the_commits(uri: str) -> None:
    def leave(_: object) -> None:
        raise SystemExit

    with ld.stream_writer(uri, interval=NEVER) as stream:
        stream.write(rows(1)).add_done_callback(leave)
        second = stream.write(rows(2))
        stream.flush()
        assert second.result() == 2
        stream.write(rows(3))
    assert ids(uri) == [1, 2, 3]


def test_many_errors_of_one_thread_do_not_hide_those_of_another(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = ld.stream_writer(uri, interval=NEVER)

    def fail(_: pa.Table) -> None:
        raise ld.NotFoundError("the table is gone")

    monkeypatch.setattr(stream, "_store", fail)
    stream.write(rows(0))
    with ThreadPoolExecutor(1) as pool:
        assert len([*pool.map(lambda i: stream.write(rows(i)), range(_ERRORS_KEPT))]) == _ERRORS_KEPT
    with pytest.raises(ld.NotFoundError):
        stream.flush()
    with pytest.raises(ld.NotFoundError):
        stream.close()


def test_a_confirmation_cannot_be_cancelled(uri: str) -> None:
    with ld.stream_writer(uri, interval=NEVER) as stream:
        confirmation = stream.write(rows(1))
        assert not confirmation.cancel()
    assert confirmation.result() == 2


@pytest.mark.parametrize(
    "settings",
    [
        *({"interval": wrong} for wrong in (-1, float("nan"), "1")),
        *({"max_rows": wrong} for wrong in (0, 1.5)),
        {"max_bytes": "0 MB"},
        *({"key": wrong} for wrong in ("nothing", ["id", "id"])),
    ],
)
def test_wrong_arguments_are_refused(uri: str, settings: dict[str, Any]) -> None:
    with pytest.raises(ld.InvalidInputError):
        ld.stream_writer(uri, **settings)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ld.NotFoundError):
        ld.stream_writer(tmp_path / "t.lance")


def test_a_dataset_does_not_move(uri: str) -> None:
    dataset = ld.dataset(uri)
    with ld.stream_writer(dataset) as stream:
        stream.write(rows(1))
    assert dataset.version == 1
    assert "t.lance" in repr(stream)
