"""Searches by 4-bit codes in tables with deleted, changed and uncovered rows, beside the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.vector.metric import distances

ROWS, DIM, QUERIES, K = 1800, 16, 24, 10
FILTERS = (None, "x % 5 <> 0", "x >= 900 AND x < 1300")


def rows(rng: np.random.Generator, first: int, count: int) -> pa.Table:
    """Vectors around centres, and a column to filter by."""
    centres = np.random.default_rng(0).standard_normal((12, DIM))
    values = centres[rng.integers(0, 12, count)] + 0.4 * rng.standard_normal((count, DIM))
    column = pa.FixedSizeListArray.from_arrays(pa.array(values.astype(np.float32).ravel()), DIM)
    return pa.table({"x": np.arange(first, first + count), "v": column})


def changed_table(folder: Path, metric: str) -> ld.LanceDataset:
    """A table with two segments, rows that no index covers, and deleted and changed rows in each part."""
    rng = np.random.default_rng(7)
    table = ld.write_dataset(rows(rng, 0, ROWS), folder / "t.lance", max_rows_per_file=1000)
    table.create_index("v", "IVF_PQ", metric=metric, num_bits=4, num_partitions=8)
    table.insert(rows(rng, ROWS, 600))
    table.optimize.optimize_indices(num_indices_to_merge=0)
    table.insert(rows(rng, ROWS + 600, 200))
    table.delete("x % 11 = 5")
    table.update({"x": "x + 100000"}, "x % 13 = 4")
    return table


def found(table: ld.LanceDataset, q: np.ndarray, text: str | None, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return x and the distance of the nearest rows, (queries, k)."""
    nearest = {"column": "v", "q": q, "k": K, **options}
    result = table.to_table(columns=["x", "_distance"], filter=text, prefilter=True, nearest=nearest)
    return tuple(result[name].to_numpy().reshape(-1, K) for name in ("x", "_distance"))  # type: ignore[return-value]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_batches_and_single_queries_find_the_same_rows_at_exact_distances(metric: str, tmp_path: Path) -> None:
    table = changed_table(tmp_path, metric)
    queries = np.stack(rows(np.random.default_rng(3), 0, QUERIES)["v"].to_numpy())
    for text in FILTERS:
        live = table.to_table(filter=text)
        values, x = np.stack(live["v"].to_numpy()), live["x"].to_numpy()
        exact = distances(metric, queries, values)
        places = {number: place for place, number in enumerate(x.tolist())}
        for options in ({}, {"nprobes": 3}, {"nprobes": 5, "refine_factor": 2}):
            batch, far = found(table, queries, text, **options)
            at = np.vectorize(places.__getitem__)(batch)
            np.testing.assert_allclose(far, np.take_along_axis(exact, at, axis=1), rtol=1e-5, atol=1e-5)
            assert (np.diff(far, axis=1) >= 0).all()
            for i in range(0, QUERIES, 8):
                one, near = found(table, queries[i], text, **options)
                np.testing.assert_array_equal(one[0], batch[i])
                np.testing.assert_array_equal(near[0], far[i])
            true = exact.argsort(axis=1)[:, :K]
            share = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(at, true, strict=True)])
            assert share >= (0.6 if options else 0.88)


def test_equal_vectors_are_found_by_4_bit_codes(tmp_path: Path) -> None:
    column = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(300 * DIM, np.float32)), DIM)
    table = ld.write_dataset(pa.table({"x": np.arange(300), "v": column}), tmp_path / "t.lance")
    table.create_index("v", "IVF_PQ", num_bits=4, num_partitions=1)
    x, far = found(table, np.zeros(DIM, np.float32), None, nprobes=1)
    assert len(set(x[0].tolist())) == K
    assert (far == DIM).all()
