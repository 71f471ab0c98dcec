"""Tables of an object store give the same answers with and without a disk cache, and with a tiny one."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, DIM, create

import lance_duck as ld
from lance_duck.store import uri as uris
from lance_duck.store.disk_cache import cache as disk_cache
from lance_duck.store.disk_cache import clear, usage

INDEXES: Final[dict[str, tuple[str, ...]]] = {
    "btree": ("id", "BTREE"),
    "bitmap": ("n", "BITMAP"),
    "text": ("text", "INVERTED"),
}
QUERY: Final = np.zeros(DIM, np.float32)
READS: Final[dict[str, Callable[[ld.LanceDataset], Any]]] = {
    "scan": lambda ds: ds.to_table(),
    "columns": lambda ds: ds.to_table(columns=["st", "v", "holes"]),
    "filter": lambda ds: ds.to_table(filter="id % 5 = 2 AND n < 3"),
    "key": lambda ds: ds.to_table(filter="id = 17"),
    "keys": lambda ds: ds.to_table(filter="n = 2", columns=["id"]),
    "count": lambda ds: ds.count_rows("id < 30"),
    "take": lambda ds: ds.take([0, ds.count_rows() - 1], columns=["text", "half"]),
    "nearest": lambda ds: ds.to_table(nearest={"column": "v", "q": QUERY, "k": 5, "nprobes": 2}, columns=["id"]),
    "words": lambda ds: ds.to_table(full_text_query="row", columns=["id"]),
    "old": lambda ds: ds.checkout_version(1).to_table(columns=["id", "text"]),
}
STEPS: Final = st.lists(
    st.tuples(
        st.sampled_from([*CHANGES, "vector", *INDEXES, "optimize", "restart", "clear"]),
        st.integers(0, 20),
        st.lists(st.sampled_from(sorted(READS)), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=5,
)


@pytest.fixture(autouse=True)
def objects_in_memory_are_cached() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uris, "_OF_PROCESS", ())
        yield
        disk_cache._opened.cache_clear()


def change(dataset: ld.LanceDataset, kind: str, number: int, folder: str) -> None:
    if kind in CHANGES:
        CHANGES[kind](dataset, number)
    elif kind in INDEXES:
        dataset.create_scalar_index(*INDEXES[kind], replace=True)
    elif kind == "vector":
        dataset.create_index("v", "IVF_FLAT", num_partitions=2, replace=True)
    elif kind == "optimize":
        dataset.optimize.optimize_indices()
    elif kind == "restart":
        disk_cache._opened.cache_clear()
    else:
        clear(folder)


def same(one: Any, other: Any) -> bool:
    return bool(one.equals(other)) if isinstance(one, pa.Table) else one == other


@settings(max_examples=25, deadline=None)
@given(STEPS, st.booleans(), st.sampled_from([10_000, 150_000, 600_000, 20_000_000_000]))
def test_a_cache_never_changes_an_answer(steps: list[tuple[str, int, list[str]]], stable: bool, limit: int) -> None:
    uri = f"memory:///{uuid4()}.lance"
    create(uri, stable_row_ids=stable)
    with tempfile.TemporaryDirectory() as folder:
        options = {"cache": folder, "cache_size": str(limit), "fsync": "false"}
        cached = ld.dataset(uri, storage_options=options)
        for kind, number, reads in steps:
            change(cached, kind, number, folder)
            for read in reads:
                expected = READS[read](ld.dataset(uri))
                for _ in range(2):
                    assert same(READS[read](ld.dataset(uri, storage_options=options)), expected), (kind, read)
                assert same(READS[read](cached), expected), (kind, read)
            assert usage(folder).size <= limit


def test_a_second_process_reads_blocks(tmp_path: Any) -> None:
    uri = f"memory:///{uuid4()}.lance"
    create(uri, stable_row_ids=False)
    expected = ld.dataset(uri).to_table()
    for _ in range(2):
        before = transferred()
        assert ld.dataset(uri, cache=tmp_path / "cache").to_table().equals(expected)
        fetched = transferred() - before
        disk_cache._opened.cache_clear()
    assert usage(str(tmp_path / "cache")).objects == 3
    assert 0 < fetched < 10_000  # the manifest


def transferred() -> float:
    return sum(each.value for each in ld.metrics() if each.name == "lance_object_store_request_bytes_total")
