"""Filters that allow clusters far from a query; settings are measured with random filters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

ROWS, DIM, TOPICS, K = 6_000, 8, 12, 10
FILTER = "topic >= 6"


def topics(path: Path, kind: str, partitions: int = 12) -> tuple[ld.LanceDataset, np.ndarray]:
    """Return an indexed table of clusters by topic, and queries of topics that the filter does not allow."""
    rng = np.random.default_rng(4)
    centres = (3 * rng.standard_normal((TOPICS, DIM))).astype(np.float32)
    topic = rng.integers(0, TOPICS, ROWS)
    vectors = centres[topic] + rng.standard_normal((ROWS, DIM)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    dataset = ld.write_dataset(pa.table({"id": np.arange(ROWS), "topic": topic, "v": column}), path / "t.lance")
    more = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    dataset.create_index("v", kind, num_partitions=partitions, **more)
    return dataset, vectors[topic < 6][:40]


def recall(dataset: ld.LanceDataset, queries: Sequence[np.ndarray], **settings: object) -> float:
    hits = 0
    for query in queries:
        nearest = {"column": "v", "q": query, "k": K}
        found, true = (
            set(dataset.to_table(["id"], filter=FILTER, prefilter=True, nearest={**nearest, **more})["id"].to_pylist())
            for more in (settings, {"use_index": False})
        )
        hits += len(found & true)
    return hits / (K * len(queries))


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ"])
def test_recall_holds_if_partitions_mix_allowed_and_other_clusters(kind: str, tmp_path: Path) -> None:
    dataset, queries = topics(tmp_path, kind, partitions=5)
    assert recall(dataset, queries) >= 0.95


@pytest.mark.parametrize("kind", ["IVF_PQ", "IVF_HNSW_FLAT"])
def test_recall_holds_if_the_filter_allows_distant_clusters(kind: str, tmp_path: Path) -> None:
    dataset, queries = topics(tmp_path, kind)
    assert recall(dataset, queries) >= 0.95
    assert recall(dataset, queries, nprobes=1) < 0.9  # explicit settings are respected


def test_more_candidates_do_not_reduce_recall(tmp_path: Path) -> None:
    dataset, queries = topics(tmp_path, "IVF_HNSW_FLAT")
    assert recall(dataset, queries, ef=40, nprobes=12) >= 0.95
    assert recall(dataset, queries, ef=200, nprobes=12) >= 0.95


def test_batched_queries_find_the_same_rows_as_single_queries(tmp_path: Path) -> None:
    dataset, queries = topics(tmp_path, "IVF_FLAT")
    nearest = {"column": "v", "k": K}
    together = dataset.to_table(["id"], filter=FILTER, prefilter=True, nearest={**nearest, "q": queries})
    alone = [dataset.to_table(["id"], filter=FILTER, prefilter=True, nearest={**nearest, "q": q}) for q in queries]
    assert together["id"].to_pylist() == [row for each in alone for row in each["id"].to_pylist()]
