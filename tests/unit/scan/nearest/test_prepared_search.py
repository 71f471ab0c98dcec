"""Repeated searches with other queries find the same rows as first searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import LanceDuckError, WrongTypeError

DIM = 8


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((3000, DIM)).astype(np.float32)
    vectors[::50] = vectors[1]  # distances that are the same
    rows = pa.table(
        {
            "id": np.arange(3000),
            "n": rng.integers(0, 3, 3000),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM),
        }
    )
    dataset = ld.write_dataset(rows, tmp_path_factory.mktemp("again") / "t.lance", max_rows_per_file=1100)
    dataset.create_index("v", "IVF_FLAT", num_partitions=8)
    dataset.delete("id % 13 = 5")
    return dataset


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"columns": ["id", "_distance"]},
        {"columns": ["id"], "filter": "n = 1"},
        {"columns": ["id"], "filter": "n = 1", "prefilter": False},
        {"columns": ["id", "n"], "limit": 3, "offset": 2, "with_row_id": True},
        {"filter": "id < 40", "columns": ["id"]},
        {"columns": {"twice": "id * 2"}},
    ],
)
@pytest.mark.parametrize("look", [{}, {"nprobes": 2, "k": 30}, {"refine_factor": 3}, {"use_index": False}])
def test_a_repeated_search_finds_the_same_rows(
    table: ld.LanceDataset, options: dict[str, Any], look: dict[str, Any]
) -> None:
    again, rng = ld.dataset(table.uri), np.random.default_rng(0)
    for turn in range(4):
        q = rng.standard_normal((3, DIM) if turn == 2 else DIM).astype(np.float32 if turn else np.float64)
        nearest = {"column": "v", "q": q, **look}
        assert again.to_table(nearest=nearest, **options).equals(
            ld.dataset(table.uri).scanner(nearest=nearest, **options).to_table()
        )


def test_several_queries_return_the_same_rows_as_single_ones(table: ld.LanceDataset) -> None:
    queries = np.random.default_rng(5).standard_normal((40, DIM)).astype(np.float32)
    for look in ({}, {"nprobes": 3, "refine_factor": 2}, {"filter": "n = 2"}):
        options = {name: look[name] for name in ("filter",) if name in look}
        nearest = {"column": "v", "k": 5, **{n: v for n, v in look.items() if n != "filter"}}
        found = table.to_table(columns=["id"], nearest=nearest | {"q": queries}, **options)
        for i, query in enumerate(queries):
            one = table.to_table(columns=["id"], nearest=nearest | {"q": query}, **options)
            mine = found.filter(pa.compute.equal(found["query_index"], i)).drop_columns("query_index")
            assert mine.equals(one)


def test_a_random_filter_is_evaluated_each_time(table: ld.LanceDataset) -> None:
    q = np.zeros(DIM, np.float32)
    found = {
        tuple(
            table.to_table(
                columns=["id"], filter="random() < 0.5", nearest={"column": "v", "q": q, "use_index": False}
            )["id"].to_pylist()
        )
        for _ in range(8)
    }
    assert len(found) > 1


def test_a_repeated_search_still_validates_its_arguments(table: ld.LanceDataset) -> None:
    good = {"column": "v", "q": np.zeros(DIM, np.float32), "k": 1}
    table.to_table(nearest=good)
    for bad in ({"q": np.zeros(DIM + 1, np.float32)}, {"q": np.full(DIM, np.nan, np.float32)}, {"q": "text"}):
        with pytest.raises(LanceDuckError):
            table.to_table(nearest=good | bad)
    with pytest.raises(WrongTypeError):
        table.to_table(nearest=good | {"k": True})


def test_cached_rows_are_not_shared_between_versions(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.eye(4, dtype=np.float32).ravel()), 4)
    dataset = ld.write_dataset(pa.table({"id": range(4), "v": vectors}), tmp_path / "t.lance")
    nearest = {"column": "v", "q": np.array([1, 0, 0, 0], np.float32), "k": 1}
    assert dataset.to_table(columns=["id"], filter="id >= 0", nearest=nearest)["id"].to_pylist() == [0]
    dataset.delete("id = 0")
    assert dataset.to_table(columns=["id"], filter="id >= 0", nearest=nearest)["id"].to_pylist() == [1]


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("metric", ["l2", "cosine"])
def test_flat_segment_distances_equal_those_of_a_scan(tmp_path: Path, type_: pa.DataType, metric: str) -> None:
    rng = np.random.default_rng(2)
    numbers = rng.standard_normal((700, DIM)).astype(np.float16)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()).cast(type_), DIM)
    dataset = ld.write_dataset(pa.table({"id": range(700), "v": vectors}), tmp_path / "t.lance")
    dataset.create_index("v", "IVF_FLAT", metric=metric, num_partitions=4)
    for q in (rng.standard_normal((40, DIM)), rng.standard_normal(DIM)):
        nearest = {"column": "v", "q": q.astype(np.float32), "nprobes": 4}
        found = dataset.to_table(columns=["id"], nearest=nearest)
        exact = dataset.to_table(columns=["id"], nearest=nearest | {"use_index": False, "metric": metric})
        assert found["id"].equals(exact["id"])
        np.testing.assert_allclose(found["_distance"], exact["_distance"], rtol=1e-6, atol=1e-6)
