"""Vector segments written here: pylance finds the same neighbours as with its index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.vector.metric import distances

DIM = 32
ROWS = 2500
KINDS = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
CASES = [(k, m, np.float32) for k in KINDS for m in ("l2", "cosine", "dot") if k != "IVF_HNSW_PQ" or m == "l2"]
CASES += [(kind, "l2", type_) for kind in ("IVF_FLAT", "IVF_PQ") for type_ in (np.float16, np.float64)]


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, np.ndarray]:
    chance = np.random.default_rng(0)
    centers = chance.normal(size=(20, DIM))
    rows, queries = (centers[chance.integers(0, 20, n)] + 0.5 * chance.normal(size=(n, DIM)) for n in (ROWS, 15))
    return rows.astype("f4"), queries.astype("f4")


def write(uri: Path, vectors: np.ndarray) -> str:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), DIM)
    lance.write_dataset(pa.table({"id": np.arange(len(vectors)), "v": column}), uri, max_rows_per_file=1500)
    return str(uri)


def recall(dataset: Any, data: tuple[np.ndarray, np.ndarray], metric: str, nprobes: int) -> float:
    vectors, queries = data
    nearest = np.argsort(distances(metric, queries, vectors), axis=1)[:, :10]
    found = 0
    for query, ids in zip(queries, nearest, strict=True):
        asked = {"column": "v", "q": query, "k": 10, "nprobes": nprobes}
        found += len(np.intersect1d(dataset.to_table(columns=["id"], nearest=asked)["id"].to_numpy(), ids))
    return found / nearest.size


@pytest.mark.parametrize(("kind", "metric", "type_"), CASES)
def test_pylance_searches_vector_indexes_built_by_lance_duck(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], kind: str, metric: str, type_: Any
) -> None:
    ours, theirs = (write(tmp_path / f"{name}.lance", data[0].astype(type_)) for name in ("ours", "theirs"))
    parameters = {"num_partitions": 4, "metric": metric, **({"num_sub_vectors": 16} if "PQ" in kind else {})}
    built = ld.dataset(ours).create_index("v", kind, **parameters)
    other = lance.dataset(theirs)
    other.create_index("v", kind, **parameters)
    read = lance.dataset(ours)
    plan = read.scanner(nearest={"column": "v", "q": data[1][0], "k": 10}).explain_plan()
    assert "ANN" in plan
    assert [index.index_type for index in read.describe_indices()] == [kind]
    assert read.describe_indices()[0].num_rows_indexed == ROWS
    figures = read.stats.index_stats("v_idx")
    assert figures["num_unindexed_rows"] == 0
    assert sum(part["size"] for part in figures["indices"][0]["partitions"]) == ROWS
    # Codebooks are trained, and vectors of RaBitQ rotated, by chance: recall differs from one to the next by more.
    slack = 0.08 if "PQ" in kind or kind == "IVF_RQ" else 0.02
    for nprobes in (2, 4):
        found = recall(read, data, metric, nprobes)
        assert found >= recall(other, data, metric, nprobes) - slack
        assert found == pytest.approx(recall(built, data, metric, nprobes), abs=0.025)


@pytest.mark.parametrize("kind", KINDS)
def test_pylance_searches_remapped_vector_indexes(
    tmp_path: Path, data: tuple[np.ndarray, np.ndarray], kind: str
) -> None:
    uri = write(tmp_path / "t.lance", data[0])
    parameters = {"num_sub_vectors": 16} if "PQ" in kind else {"num_bits": 8}
    dataset = ld.dataset(uri)
    dataset.create_index("v", kind, num_partitions=2, **parameters)
    dataset.delete("id % 11 = 5")
    dataset.optimize.compact_files()
    read = lance.dataset(uri)
    assert read.stats.index_stats("v_idx")["num_unindexed_rows"] == 0
    living = np.flatnonzero(np.arange(ROWS) % 11 != 5)
    nearest = living[np.argsort(distances("l2", data[1], data[0][living]), axis=1)[:, :10]]
    found = 0
    for query, ids in zip(data[1], nearest, strict=True):
        table = read.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": 10, "nprobes": 2})
        assert table.num_rows == 10
        found += len(np.intersect1d(table["id"].to_numpy(), ids))
    assert found / nearest.size >= (0.75 if "PQ" in kind else 0.93)
