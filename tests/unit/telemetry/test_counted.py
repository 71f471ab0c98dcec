"""Requests to object stores, commits, indexes and caches are counted where they happen."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from obstore.store import MemoryStore
from support.servers import s3_server

import lance_duck as ld
from lance_duck.cache import SizedCache
from lance_duck.errors import CommitConflictError, StoreError
from lance_duck.retry import RetryPolicy
from lance_duck.store.client import call
from lance_duck.store.object import ObjectStore


class Delta:
    """The metrics that have changed since the object was made."""

    def __init__(self) -> None:
        self._before = self._values()

    @staticmethod
    def _values() -> Counter[tuple[Any, ...]]:
        return Counter({(each.name, *each.labels.items()): each.value for each in ld.metrics()})

    def of(self, name: str, *labels: str) -> Mapping[Any, float]:
        """Return the changes of a metric by the values of some labels."""
        found: dict[Any, float] = {}
        now = self._values()
        for key, value in now.items():
            if key[0] == name and value != self._before[key]:
                values = tuple(dict(key[1:])[label] for label in labels)
                place = values[0] if len(values) == 1 else values
                found[place] = found.get(place, 0) + value - self._before[key]
        return found

    def one(self, name: str) -> float:
        """Return the change of a metric without labels."""
        return self.of(name).get((), 0)


@pytest.fixture
def delta() -> Delta:
    return Delta()


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore("memory:", MemoryStore(), "", checksums=False)


def test_requests_and_bytes_of_an_object_store_are_counted(store: ObjectStore, delta: Delta) -> None:
    store.put("a/one", b"12345")
    store.put_if_absent("a/two", b"123")
    sink = store.create("a/three")
    sink.write(b"1234567")
    sink.close()
    assert store.get("a/one") == b"12345"
    assert [bytes(data) for data in store.open("a/three", 7).read([(0, 2)])] == [b"12"]
    assert store.exists("a/two")
    assert not store.exists("a/four")
    assert len(list(store.walk())) == 3
    store.copy("a/one", "a/four")
    store.delete(["a/one", "a/two"])
    requests = {"put": 3, "get": 2, "head": 3, "list": 1, "copy": 1, "delete": 1}
    assert delta.of("lance_object_store_requests_total", "operation") == requests
    assert delta.of("lance_object_store_request_duration_seconds_count", "operation") == requests
    assert delta.of("lance_object_store_request_bytes_total", "operation") == {"put": 15, "get": 7}
    assert delta.of("lance_duck_bytes_read_total", "source") == {"store": 7}
    assert delta.of("lance_object_store_requests_total", "base") == {"memory": 11}
    assert delta.of("lance_object_store_errors_total", "operation") == {}
    assert delta.of("lance_object_store_in_flight_requests", "operation") == {}


def test_ranges_far_apart_are_requests_of_one_call(store: ObjectStore, delta: Delta) -> None:
    store.put("big", bytes(40 << 20))
    store.open("big", 40 << 20).read([(0, 10), (20 << 20, 10), (30 << 20, 10)])
    assert delta.of("lance_object_store_requests_total", "operation")["get"] == 3
    assert delta.of("lance_object_store_request_duration_seconds_count", "operation")["get"] == 1


def test_the_kept_end_of_an_object_counts_as_memory(store: ObjectStore, delta: Delta) -> None:
    store.put("a", b"0123456789")
    file = store.open("a", 10)
    file.read([(6, 4)])
    file.read([(7, 2)])
    assert delta.of("lance_duck_bytes_read_total", "source") == {"store": 4, "memory": 2}
    assert delta.of("lance_object_store_requests_total", "operation")["get"] == 1


@pytest.mark.parametrize(
    ("text", "retryable", "throttled"),
    [
        ("Server returned non-2xx status code: 503 Service Unavailable", {"503": 1}, {"503": 1}),
        ("status: 429 Too Many Requests", {"429": 1}, {"429": 1}),
        ("status: 500 Internal Server Error", {"500": 1}, {}),
        ("connection refused by 10.0.0.500", {}, {}),
    ],
)
def test_failed_requests_are_counted_by_status(
    text: str, retryable: dict[str, int], throttled: dict[str, int], delta: Delta
) -> None:
    def fail() -> None:
        raise OSError(text)

    with pytest.raises(StoreError):
        call("get", "s3://bucket/key", fail)
    assert delta.of("lance_object_store_errors_total", "operation", "base") == {("get", "s3"): 1}
    assert delta.of("lance_object_store_requests_total", "operation", "base") == {("get", "s3"): 1}
    assert delta.of("lance_object_store_retryable_responses_total", "status") == retryable
    assert delta.of("lance_object_store_throttle_total", "status") == throttled
    assert delta.of("lance_object_store_in_flight_requests", "operation") == {}


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    with s3_server() as options:
        yield options


def test_labels_of_requests_are_those_of_a_uri(s3: dict[str, str], delta: Delta) -> None:
    ld.write_dataset({"a": [1, 2, 3]}, "s3://bucket/t.lance", storage_options=s3)
    assert ld.dataset("s3://bucket/t.lance", storage_options=s3).count_rows() == 3
    assert set(delta.of("lance_object_store_requests_total", "base")) == {"s3"}
    assert delta.of("lance_object_store_request_bytes_total", "operation")["put"] > 100


def test_commits_are_counted_by_operation_and_outcome(tmp_path: Path, delta: Delta) -> None:
    ds = ld.write_dataset({"id": [1, 2, 3], "x": [1, 2, 3]}, tmp_path / "t.lance")
    late = ld.dataset(ds.uri)
    ds.insert({"id": [4], "x": [4]})
    ds.update({"x": "x + 1"}, where="id = 2")
    ds.delete("id = 1")
    commits = {("Overwrite", "committed"): 1, ("Append", "committed"): 1, ("Delete", "committed"): 1}
    assert delta.of("lance_duck_commits_total", "operation", "outcome") == {**commits, ("Update", "committed"): 1}
    assert delta.one("lance_duck_commit_conflicts_total") == 0
    with pytest.raises(CommitConflictError):
        ld.LanceDataset.commit(late.uri, ld.LanceOperation.Append(()), read_version=1, max_retries=0)
    assert delta.of("lance_duck_commits_total", "operation", "outcome")["Append", "conflict"] == 1
    assert delta.one("lance_duck_commit_conflicts_total") == 1


def test_index_uses_are_counted_by_kind(tmp_path: Path, delta: Delta) -> None:
    values = np.random.default_rng(1).random((600, 8), np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(values.ravel(), 8)
    words = [f"word{i % 7} duck" for i in range(600)]
    ds = ld.write_dataset(pa.table({"id": range(600), "text": words, "v": vectors}), tmp_path / "t.lance")
    ds.create_scalar_index("id", "BTREE")
    ds.create_scalar_index("text", "INVERTED")
    ds.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2)
    ds.create_scalar_index("text", "NGRAM", name="grams")
    before = Delta()
    assert ds.count_rows("id = 7") == 1
    assert ds.to_table(filter="id > 5 AND id < 9").num_rows == 3
    assert ds.search(values[3], k=2).num_rows == 2
    assert ds.search("word3", k=2, column="text").num_rows == 2
    ds.to_table(filter="contains(text, 'word4')")
    assert before.of("lance_duck_index_uses_total", "kind") == {"BTree": 2, "Vector": 1, "Inverted": 1, "NGram": 1}


def test_rows_of_whole_results_are_counted(tmp_path: Path, delta: Delta) -> None:
    ds = ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "t.lance")
    ds.to_table(limit=2)
    ds.scanner(filter="id = 3").to_table()
    list(ds.to_batches())
    assert delta.one("lance_duck_rows_returned_total") == 3


def test_caches_count_hits_misses_and_evictions(delta: Delta, caplog: pytest.LogCaptureFixture) -> None:
    cache: SizedCache[bytes] = SizedCache(100, len)
    with caplog.at_level(logging.DEBUG, "lance_duck"):
        for key in "abab":
            cache.get(key, lambda: bytes(40))
        cache.get("c", lambda: bytes(60))
    assert delta.of("lance_duck_cache_misses_total", "cache")["memory"] == 3
    assert delta.of("lance_duck_cache_hits_total", "cache")["memory"] == 2
    assert delta.of("lance_duck_cache_evicted_bytes_total", "cache")["memory"] == 40
    assert [record.getMessage() for record in caplog.records] == ["evicted 40 bytes from a cache"]


def test_repeated_attempts_are_logged_without_values(caplog: pytest.LogCaptureFixture) -> None:
    def attempt(number: int) -> int:
        if number < 2:
            raise ValueError("secret")
        return number

    with caplog.at_level(logging.DEBUG, "lance_duck"):
        assert RetryPolicy(3, first_wait=0).run(attempt, ValueError) == 2
    assert [record.getMessage() for record in caplog.records] == [
        "retry 1 after ValueError",
        "retry 2 after ValueError",
    ]
