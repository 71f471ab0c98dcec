"""Prepared vector searches return what ordinary searches return."""

from __future__ import annotations

import gc
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError, WrongTypeError
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.store.request import watched

DIM = 16
ROWS = 3000
RNG = np.random.default_rng(7)
QUERIES = RNG.standard_normal((4, DIM)).astype(np.float32)


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    vectors = rng.standard_normal((count, DIM)).astype(np.float32)
    vectors[:: count // 10 or 1] = vectors[0]  # equal distances
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    return pa.table({"id": np.arange(first, first + count), "text": [f"row {i}" for i in range(count)], "v": column})


def table(folder: Path, kind: str | None, stable: bool = False, **options: Any) -> ld.LanceDataset:
    dataset = ld.write_dataset(rows(0, ROWS), folder / "t.lance", enable_stable_row_ids=stable)
    if kind is not None:
        dataset.create_index("v", kind, num_partitions=options.pop("num_partitions", 1), **options)
    return dataset


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Return a table that no test changes."""
    return table(tmp_path_factory.mktemp("prepared"), "IVF_HNSW_SQ")


def ordinary(dataset: ld.LanceDataset, q: Any, **options: Any) -> pa.Table:
    """Search the ordinary way, which counts its reads."""
    with watched():
        return dataset.search(q, options.pop("k", 10), "v", **options)


def check(near: Any, dataset: ld.LanceDataset, queries: Any = QUERIES, **options: Any) -> None:
    fresh = ld.dataset(dataset.uri, version=dataset.version)
    for q in queries:
        expected = ordinary(fresh, q, **options)
        assert near(q).equals(expected)
        ids = ordinary(fresh, q, **{**options, "columns": ["_rowid", "_distance"]})
        row_ids, distances = near.ids(q)
        assert (row_ids.dtype, distances.dtype) == (np.uint64, np.float32)
        assert row_ids.tolist() == ids["_rowid"].to_pylist()
        assert distances.tolist() == ids["_distance"].to_pylist()


@pytest.mark.parametrize(
    ("kind", "partitions", "metric", "stable"),
    [
        ("IVF_HNSW_SQ", 1, "l2", False),
        ("IVF_HNSW_SQ", 1, "cosine", True),
        ("IVF_HNSW_SQ", 1, "dot", False),
        ("IVF_HNSW_FLAT", 1, "cosine", False),
        ("IVF_HNSW_FLAT", 1, "l2", True),
        ("IVF_HNSW_PQ", 1, "dot", False),
        ("IVF_HNSW_PQ", 1, "l2", False),
        ("IVF_HNSW_SQ", 3, "l2", False),
        ("IVF_FLAT", 4, "cosine", False),
        ("IVF_PQ", 2, "dot", True),
    ],
)
def test_prepared_searches_equal_ordinary_ones(
    tmp_path: Path, kind: str, partitions: int, metric: str, stable: bool
) -> None:
    more = {"num_sub_vectors": 4} if "PQ" in kind else {}
    dataset = table(tmp_path, kind, stable, metric=metric, num_partitions=partitions, **more)
    for columns in (["id", "_rowid", "_rowaddr"], ["_distance", "text"]):
        near = dataset.prepare_search("v", k=10, columns=columns)
        check(near, dataset, columns=columns)
        for q in np.repeat(QUERIES, 5, axis=0):  # the columns are decoded after some takes
            near(q)
        check(near, dataset, columns=columns)


@pytest.mark.parametrize(
    "options",
    [
        {"ef": 16},
        {"refine_factor": 3},
        {"exact_distance": True},
        {"use_index": False},
        {"distance_range": (1.0, 20.0)},
        {"limit": 4, "offset": 2},
        {"filter": "id % 3 = 1"},
        {"filter": "id < 0"},
        {"filter": "id % 3 = 1", "prefilter": False},
        {"fast_search": True},
        {"with_row_id": True},
        {"columns": {"twice": "id * 2"}},
        {"columns": []},
        {"k": 40, "columns": ["id"]},
        {"k": 4000, "columns": ["id"]},
        {"use_threads": False},
        {"order_by": ["id"]},
    ],
    ids=str,
)
def test_prepared_searches_take_the_options_of_ordinary_ones(indexed: ld.LanceDataset, options: dict[str, Any]) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("v", **options)
    for _ in range(2):
        check(near, dataset, **options)


def test_a_plain_search_does_not_go_the_ordinary_way(indexed: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search(columns=["id"])
    expected = [ordinary(dataset, q, columns=["id"]) for q in QUERIES]

    def fail(*_: Any) -> Any:
        raise AssertionError("the ordinary way")

    monkeypatch.setattr(NearestScan, "_table_of", fail)
    for q, found in zip(QUERIES, expected, strict=True):
        assert near(q).equals(found)
        assert near(q.tolist()).equals(found)
        assert dataset.search(q, 10, columns=["id"]).equals(found)
        assert dataset.to_table(columns=["id"], nearest={"column": "v", "q": q}).equals(found)


@pytest.mark.parametrize("stable", [False, True])
def test_calls_read_the_version_of_the_dataset(tmp_path: Path, stable: bool) -> None:
    dataset = table(tmp_path, "IVF_HNSW_SQ", stable)
    older = ld.dataset(dataset.uri)
    near, near_older = dataset.prepare_search("v", columns=["id"]), older.prepare_search("v", columns=["id"])
    check(near, dataset, columns=["id"])
    dataset.delete("id % 7 = 3")
    check(near, dataset, columns=["id"])
    dataset.insert(rows(ROWS, 300))
    check(near, dataset, columns=["id"])
    dataset.update({"id": "id + 1"}, where="id % 5 = 0")
    check(near, dataset, columns=["id"])
    dataset.optimize.compact_files()
    check(near, dataset, columns=["id"])
    dataset.optimize.optimize_indices()
    check(near, dataset, columns=["id"])
    dataset.create_index("v", "IVF_HNSW_SQ", num_partitions=1, replace=True)
    check(near, dataset, columns=["id"])
    check(near_older, older, columns=["id"])
    older.checkout_latest()
    check(near_older, dataset, columns=["id"])


def test_several_queries_return_a_table_with_their_numbers(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("v", k=3)
    assert near.many(QUERIES).equals(ordinary(dataset, QUERIES, k=3))
    assert near.many(QUERIES.tolist()).equals(near(QUERIES))
    with pytest.raises(InvalidInputError, match="one query"):
        near.ids(QUERIES)


@pytest.mark.parametrize("form", [list, tuple, np.float64, pa.array])
def test_queries_may_have_any_form_of_an_ordinary_search(indexed: ld.LanceDataset, form: Any) -> None:
    dataset = ld.dataset(indexed.uri)
    q = QUERIES[0]
    given = q.astype(np.float64) if form is np.float64 else form(q)
    near = dataset.prepare_search("v")
    assert near(given).equals(ordinary(dataset, q))
    assert near.ids(given)[0].tolist() == near.ids(q)[0].tolist()
    assert near(np.repeat(q, 2)[::2]).equals(ordinary(dataset, q))


@pytest.mark.parametrize(
    "q",
    [
        np.zeros(DIM - 1, np.float32),
        np.zeros((2, 2, DIM), np.float32),
        np.full(DIM, np.nan, np.float32),
        np.full(DIM, np.inf, np.float32),
        "words",
        None,
        [None] * DIM,
        [],
        np.array(["a"] * DIM),
    ],
    ids=str,
)
def test_a_wrong_query_raises_the_error_of_an_ordinary_search(indexed: ld.LanceDataset, q: Any) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("v")
    with pytest.raises(LanceDuckError) as expected:
        dataset.to_table(nearest={"column": "v", "q": q})
    for call in (near, near.ids, near.many):
        with pytest.raises(type(expected.value)) as error:
            call(q)
        assert str(error.value) == str(expected.value)


def test_long_queries_are_found_like_in_an_ordinary_search(tmp_path: Path) -> None:
    dataset = table(tmp_path, "IVF_HNSW_FLAT")
    queries = [np.full(DIM, size, np.float32) for size in (1e-30, 1e6, 1e18, 3e38)]
    check(dataset.prepare_search("v", columns=["id"]), dataset, queries, columns=["id"])


def test_a_zero_query_finds_nothing_by_cosine(tmp_path: Path) -> None:
    near = table(tmp_path, "IVF_HNSW_SQ", metric="cosine").prepare_search("v")
    assert near(np.zeros(DIM, np.float32)).num_rows == 0


def test_threads_find_the_same(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("v", columns=["id"])
    expected = [ordinary(dataset, q, columns=["id"]) for q in QUERIES]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: near(QUERIES[i % 4]), range(200)))
    assert all(each.equals(expected[i % 4]) for i, each in enumerate(found))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_finds_the_same(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("v", columns=["id"])
    expected = [near(q).to_pydict() for q in QUERIES]
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()

    def search() -> None:
        with ThreadPoolExecutor(2) as threads:
            answers.put(
                [near(q).to_pydict() for q in QUERIES] + list(threads.map(lambda q: near(q).to_pydict(), QUERIES))
            )

    child = context.Process(target=search)
    child.start()
    found = answers.get()
    child.join()
    assert found == expected * 2


def test_a_closed_search_raises_and_releases_its_memory(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    assert dataset.cache_stats()["prepared_searches"] == 0
    with dataset.prepare_search("v") as near:
        near(QUERIES[0])
        assert near.nbytes > ROWS * DIM
        assert dataset.cache_stats()["prepared_searches"] == near.nbytes
        assert dataset.cache_stats()["indexes"] > 0
        assert "of v, k 10 in" in repr(near)
    assert dataset.cache_stats()["prepared_searches"] == near.nbytes == 0
    assert "closed" in repr(near)
    for call in (near, near.ids, near.many):
        with pytest.raises(InvalidInputError, match="closed"):
            call(QUERIES[0])
    other = dataset.prepare_search("v")
    other(QUERIES[0])
    del other
    gc.collect()
    assert dataset.cache_stats()["prepared_searches"] == 0


def test_wrong_arguments_are_refused(tmp_path: Path) -> None:
    dataset = table(tmp_path, None)
    with pytest.raises(UnsupportedError, match="full_text_query"):
        dataset.prepare_search("v", full_text_query="row")
    with pytest.raises(LanceDuckError, match="must be a vector"):
        dataset.prepare_search("id")
    with pytest.raises(WrongTypeError, match="colums"):
        dataset.prepare_search("v", colums=["id"])  # type: ignore[call-arg]
    with pytest.raises(WrongTypeError, match="limt"):
        dataset.to_table(nearest={"column": "v", "q": QUERIES[0], "limt": None})
    with pytest.raises(WrongTypeError, match="limt"):
        dataset.to_table(nearest={"column": "v", "q": QUERIES[0]}, limt=None)  # type: ignore[call-arg]
