"""Distances beyond float32: the same rows in the same order as pylance finds without an index."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

DIM = 8
SPECIAL = np.array(
    [
        [1e20] * 8,
        [-1e20] * 8,
        [np.inf, *[1] * 7],
        [-np.inf, *[1] * 7],
        [np.nan, *[1] * 7],
        [np.inf, -np.inf, *[0] * 6],
        [0] * 8,
        [3e38] * 8,
    ],
    np.float32,
)


@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("k", [1, 3, 400])
def test_the_same_rows_in_the_same_order(tmp_path: Path, metric: str, k: int) -> None:
    numbers = np.concatenate([SPECIAL, np.random.default_rng(0).standard_normal((300, DIM))]).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM)
    lance.write_dataset(pa.table({"n": range(len(numbers)), "v": vectors}), tmp_path / "t.lance")
    for query in ([1] * 8, [1e20] * 8, [0] * 8, [-1, 0, 1, 1, 1, 1, 1, 1]):
        nearest = {"column": "v", "q": np.array(query, np.float32), "k": k, "metric": metric}
        both = [
            each.dataset(tmp_path / "t.lance").to_table(["n", "_distance"], nearest=nearest) for each in (lance, ld)
        ]
        assert both[0]["n"].equals(both[1]["n"])
        np.testing.assert_allclose(both[0]["_distance"], both[1]["_distance"], rtol=1e-4, atol=1e-4)
