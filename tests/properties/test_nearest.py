"""Exact search equals the plain reference for all numbers, metrics, k and deleted rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lance_duck.index.vector.metric import distances
from lance_duck.scan.nearest.best import TopK
from lance_duck.scan.nearest.blocks import block_of
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.options import VectorColumn

DIM = 6
COLUMN = VectorColumn("v", ("v",), DIM, np.dtype(np.float32), pa.list_(pa.float32(), DIM))

numbers = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, float("nan"), float("inf"), 1e4]), st.floats(-100, 100, width=16)
)
matrices = st.integers(1, 40).flatmap(
    lambda n: st.lists(numbers, min_size=n * DIM, max_size=n * DIM).map(
        lambda flat: np.array(flat, np.float32).reshape(-1, DIM)
    )
)
finite = st.floats(-100, 100, width=16)


def reference(metric: str, query: NDArray[np.float32], stored: NDArray[np.float32]) -> NDArray[np.float32]:
    with np.errstate(all="ignore"):
        return distances(metric, query[None], stored)[0]


@given(
    stored=matrices,
    asked=st.lists(st.lists(finite, min_size=DIM, max_size=DIM), min_size=1, max_size=12),
    metric=st.sampled_from(["l2", "cosine", "dot"]),
    k=st.integers(1, 12),
    data=st.data(),
)
def test_neighbours_equal_those_of_the_reference(
    stored: NDArray[np.float32], asked: list[list[float]], metric: str, k: int, data: st.DataObject
) -> None:
    queries = np.array(asked, np.float32)
    lives = np.array(data.draw(st.lists(st.booleans(), min_size=len(stored), max_size=len(stored))), np.bool_)
    rows = np.flatnonzero(lives)
    array = pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), DIM)
    question, best = Question(metric, queries, k), TopK(len(queries), k)
    cut = data.draw(st.integers(0, len(rows)))
    for mine in (rows[:cut], rows[cut:]):
        best.add(question.near(block_of(array, COLUMN), mine, mine.astype(np.uint64), best.limits))
    found = best.neighbours()
    for number, query in enumerate(queries):
        known = reference(metric, query, stored)
        known[~lives] = np.nan
        wanted = np.sort(known[~np.isnan(known)])[:k]
        own = found.where(found.queries == number)
        np.testing.assert_allclose(own.distances, np.maximum(wanted, 0) if metric == "cosine" else wanted, 1e-5, 1e-6)
        np.testing.assert_allclose(
            own.distances,
            np.maximum(known, 0)[own.addresses.astype(int)] if metric == "cosine" else known[own.addresses.astype(int)],
            1e-5,
            1e-6,
        )


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("scale", [1.0, 1e20, 3e-22, 2e37])
def test_vectors_of_any_length_are_compared_with_many_queries(metric: str, scale: float) -> None:
    rng = np.random.default_rng(8)
    stored = rng.standard_normal((400, DIM)).astype(np.float32)
    for place, length in enumerate([1e20, 3e-22, 2e37, 0.0]):
        stored[place::20] *= np.float32(length)
    queries = (rng.standard_normal((20, DIM)) * scale).astype(np.float32)
    block = block_of(pa.FixedSizeListArray.from_arrays(pa.array(stored.ravel()), DIM), COLUMN)
    question, best = Question(metric, queries, 9), TopK(len(queries), 9)
    best.add(question.near(block, None, np.arange(400, dtype=np.uint64), best.limits))
    found = best.neighbours()
    for number, query in enumerate(queries):
        known = reference(metric, query, stored)
        wanted = np.sort(known[~np.isnan(known)])[:9]
        own = found.distances[found.queries == number]
        np.testing.assert_allclose(own, np.maximum(wanted, 0) if metric == "cosine" else wanted, 1e-5, 1e-6)
