"""Multivector distances and scores compared with plain loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.index.vector.metric import distances
from lance_duck.scan.nearest import multivector
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.nearest.multivector import best_rows, nearest_vectors

DIM = 4


def rows_of(metric: str) -> list[list[list[float] | None] | None]:
    rng = np.random.default_rng(3)
    rows: list[list[list[float] | None] | None] = [
        rng.integers(0, 9, (int(count), DIM)).astype(float).tolist() for count in rng.integers(0, 7, 40)
    ]
    rows[4], rows[5], rows[6] = None, [], [None, [1.0] * DIM]
    if metric != "hamming":
        rows[7] = [[float("nan")] * DIM, [2.0] * DIM]
        rows[8] = [[float("inf")] * DIM]
    return rows


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot", "hamming"])
def test_a_multivector_distance_is_the_sum_of_minimum_distances(
    metric: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multivector, "BLOCK_BYTES", 1000)  # a few vectors per block
    rows, item = rows_of(metric), pa.uint8() if metric == "hamming" else pa.float32()
    type_ = (pa.large_list if large else pa.list_)(pa.list_(item, DIM))
    query = np.array([[1, 2, 3, 4], [5, 0, 0, 1], [7, 7, 1, 0]], item.to_pandas_dtype())
    found = multivector.row_distances(metric, query, pa.array([[[1.0] * DIM], *rows], type_).slice(1))
    for row, distance in zip(rows, found.tolist(), strict=True):
        vectors = [v for v in row or [] if v is not None and np.isfinite(v).all() and (metric != "cosine" or any(v))]
        if not vectors:
            assert np.isnan(distance)
            continue
        pairs = distances(metric, query, np.array(vectors, query.dtype))
        assert distance == pytest.approx(sum(min(of_query) for of_query in pairs.tolist()), rel=1e-6)


def scores_one_by_one(nearest: list[tuple[int, float, int]], queries: int) -> dict[int, float]:
    """Return XTR scores, query vector by query vector."""
    totals: dict[int, float] = {}
    floors = 0.0
    for query in range(queries):
        mine = [(1 - distance, row) for number, distance, row in nearest if number == query]
        floor = min(similar for similar, _ in mine)
        best: dict[int, float] = {}
        for similar, row in mine:
            best[row] = max(best.get(row, similar), similar)
        for row in {*totals, *best}:
            totals[row] = totals.get(row, floors) + best.get(row, floor)
        floors += floor
    return totals


def test_multivector_scores_equal_per_vector_sums() -> None:
    rng = np.random.default_rng(1)
    found = Neighbours(
        rng.integers(0, 3, 300), rng.random(300).astype(np.float32), rng.integers(0, 40, 300).astype(np.uint64)
    )
    nearest = nearest_vectors(found, 25)
    triples = list(zip(nearest.queries.tolist(), nearest.distances.tolist(), nearest.addresses.tolist(), strict=True))
    all_ = zip(found.queries.tolist(), found.distances.tolist(), found.addresses.tolist(), strict=True)
    ordered = sorted(all_, key=lambda each: (each[0], each[1], each[2]))
    assert triples == [each for query in range(3) for each in [o for o in ordered if o[0] == query][:25]]
    scores = scores_one_by_one(triples, 3)
    expected = sorted(scores, key=lambda row: (-round(scores[row], 9), row))
    assert best_rows(nearest, 100).tolist() == expected
    assert best_rows(nearest, 7).tolist() == expected[:7]


def test_no_neighbours_give_no_rows() -> None:
    none = Neighbours(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.uint64))
    assert len(best_rows(nearest_vectors(none, 5), 5)) == 0
