"""Rows whose distance float32 does not hold are ranked: at infinity, or before all others if it is negative."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

DIM, ROWS = 8, 1200
FAR = np.full(DIM, 1e20, np.float32)


def table(path: Path, dtype: str = "f4") -> ld.LanceDataset:
    numbers = np.random.default_rng(3).standard_normal((ROWS, DIM)).astype(dtype)
    numbers[5], numbers[900] = FAR, -FAR
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM)
    return ld.write_dataset(pa.table({"id": range(ROWS), "v": vectors}), path, max_rows_per_file=500)


def found(dataset: ld.LanceDataset, q: Any, k: int, metric: str, **options: Any) -> list[tuple[int, float]]:
    scan = {name: options.pop(name) for name in ("filter", "prefilter") if name in options}
    rows = dataset.to_table(["id"], nearest={"column": "v", "q": q, "k": k, "metric": metric, **options}, **scan)
    return list(zip(rows["id"].to_pylist(), rows["_distance"].to_pylist(), strict=True))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_best_inner_product_may_be_infinite(tmp_path: Path, dtype: str) -> None:
    dataset = table(tmp_path / "t.lance", dtype)
    assert found(dataset, FAR, 1, "dot") == [(5, -np.inf)]
    every = found(dataset, FAR, ROWS, "dot")
    assert (every[0], every[-1], len(every)) == ((5, -np.inf), (900, np.inf), ROWS)


def test_rows_at_infinite_distance_are_ordered_by_address(tmp_path: Path) -> None:
    dataset = table(tmp_path / "t.lance")
    assert found(dataset, FAR, 4, "l2") == [(5, 0.0), (0, np.inf), (1, np.inf), (2, np.inf)]
    assert found(dataset, np.zeros(DIM), ROWS, "l2")[-2:] == [(5, np.inf), (900, np.inf)]
    assert found(dataset, FAR, 3, "l2", filter="id >= 700") == [(700, np.inf), (701, np.inf), (702, np.inf)]
    assert found(dataset, FAR, 9, "l2", distance_range=(None, np.inf)) == [(5, 0.0)]


@pytest.mark.parametrize("metric", ["l2", "dot"])
def test_batched_queries_find_the_same_rows_as_single_queries(tmp_path: Path, metric: str) -> None:
    dataset = table(tmp_path / "t.lance")
    queries = np.random.default_rng(4).standard_normal((40, DIM)).astype(np.float32)
    queries[7], queries[9] = FAR, -FAR
    each = [pair for query in queries for pair in found(dataset, query, 5, metric)]
    assert found(dataset, queries, 5, metric) == each
    assert len(each) == 200


@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize(
    "kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
)
def test_an_index_and_a_scan_return_the_same_rows(tmp_path: Path, kind: str, metric: str) -> None:
    dataset = table(tmp_path / "t.lance")
    dataset.create_index("v", kind, metric=metric, num_partitions=4)
    near = np.random.default_rng(5).standard_normal(DIM).astype(np.float32)
    for q in (FAR, -FAR, np.stack([near, FAR])):
        for options in ({}, {"refine_factor": 2}, {"nprobes": 1}, {"maximum_nprobes": 1}, {"filter": "id < 1100"}):
            expected = found(dataset, q, 3, metric, use_index=False, **options)
            answer = found(dataset, q, 3, metric, **options)
            assert len(answer) == len(expected)
            assert answer[-3:] == expected[-3:]


def test_multivector_rows_are_ranked_at_infinity(tmp_path: Path) -> None:
    lists = pa.array([[[1.0] * 4], [[1e20] * 4, [0.0] * 4], [[-1e20] * 4]], pa.list_(pa.list_(pa.float32(), 4)))
    dataset = ld.write_dataset(pa.table({"id": [0, 1, 2], "v": lists}), tmp_path / "t.lance")
    assert found(dataset, [[1e20] * 4, [1.0] * 4], 3, "dot") == [(1, -np.inf), (0, pytest.approx(-4e20)), (2, np.inf)]


@pytest.mark.parametrize(
    ("number", "words"),
    [(1e300, r"exceeds float32.*±3\.4e\+38.*1e\+300"), (np.inf, "found inf"), (np.nan, "found nan")],
)
def test_a_query_without_finite_distances_is_rejected_by_its_number(tmp_path: Path, number: float, words: str) -> None:
    dataset = table(tmp_path / "t.lance")
    with pytest.raises(InvalidInputError, match=words):
        found(dataset, [number] * DIM, 1, "l2")
    with pytest.raises(InvalidInputError, match=words):
        found(dataset, [[1.0] * DIM, [1.0] * 7 + [number]], 1, "l2")
