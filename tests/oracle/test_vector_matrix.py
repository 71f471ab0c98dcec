"""Kinds, metrics and types of vectors, built by each, searched by both: each finds as much as the other."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.vector import build
from lance_duck.index.vector.metric import distances

ROWS, DIM, QUERIES, K = 3000, 32, 200, 10
AS_FAR = 0.02
BUILDERS: dict[str, Any] = {"lance_duck": ld, "pylance": lance}
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_SQ": {},
    "IVF_PQ": {"num_sub_vectors": 16},
    "IVF_PQ 4 bits": {"num_sub_vectors": 32, "num_bits": 4},
    "IVF_RQ": {"num_bits": 5},
    "IVF_RQ 8 bits": {"num_bits": 8},
    "IVF_HNSW_FLAT": {"ef_construction": 60},
    "IVF_HNSW_SQ": {"ef_construction": 60},
    "IVF_HNSW_PQ": {"num_sub_vectors": 16, "ef_construction": 60},
    "IVF_HNSW_PQ 4 bits": {"num_sub_vectors": 32, "num_bits": 4, "ef_construction": 60},
}
METRICS = ("l2", "cosine", "dot")
TYPES = ("float16", "float32", "float64")  # pylance searches no bfloat16
WHOLE = list(itertools.product(BUILDERS, KINDS, METRICS, TYPES))
CROSS_SECTION = (  # each kind, metric and type, by each builder
    ("lance_duck", "IVF_FLAT", "cosine", "float64"),
    ("pylance", "IVF_SQ", "dot", "float16"),
    ("lance_duck", "IVF_PQ", "dot", "float32"),
    ("pylance", "IVF_PQ 4 bits", "cosine", "float32"),
    ("lance_duck", "IVF_RQ", "cosine", "float32"),
    ("pylance", "IVF_RQ", "l2", "float64"),
    ("pylance", "IVF_RQ 8 bits", "dot", "float16"),
    ("pylance", "IVF_HNSW_FLAT", "l2", "float64"),
    ("lance_duck", "IVF_HNSW_SQ", "cosine", "float16"),
    ("pylance", "IVF_HNSW_PQ", "dot", "float32"),
    ("lance_duck", "IVF_HNSW_PQ 4 bits", "l2", "float16"),
)


@cache
def made(type_: str) -> tuple[np.ndarray, np.ndarray, pa.Array]:
    """Vectors as the type has them, queries, and the column."""
    random = np.random.default_rng(11)
    centres = 1.5 * random.normal(size=(60, DIM))
    values = centres[random.integers(60, size=ROWS + QUERIES)] + 0.8 * random.normal(size=(ROWS + QUERIES, DIM))
    queries = values[ROWS:].astype(np.float16).astype(np.float32)
    typed = values[:ROWS].astype(type_)
    return typed.astype(np.float32), queries, pa.FixedSizeListArray.from_arrays(pa.array(typed.ravel()), DIM)


def searched(library: Any, uri: str, queries: np.ndarray, **options: Any) -> np.ndarray:
    """Rows of the nearest."""
    dataset = library.dataset(uri)
    found = []
    for query in queries:
        nearest = {"column": "v", "q": query, "k": K, **options}
        found.append(dataset.to_table(columns=["id", "_distance"], nearest=nearest)["id"].to_numpy())
    return np.stack(found)


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    return float(np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, truth, strict=True)]))


@pytest.mark.parametrize(
    ("builder", "kind", "metric", "type_"),
    [pytest.param(*case, marks=() if case in CROSS_SECTION else pytest.mark.slow) for case in WHOLE],
)
def test_both_libraries_reach_the_same_recall(builder: str, kind: str, metric: str, type_: str, tmp_path: Path) -> None:
    ours, theirs = recalls(builder, kind, metric, type_, str(tmp_path / "t.lance"))
    assert ours >= theirs - AS_FAR
    assert kind == "IVF_PQ 4 bits" or ours <= theirs + AS_FAR  # by default, these candidates are reranked
    assert ours > 0.7


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("IVF_HNSW_FLAT", "cosine"),
        ("IVF_HNSW_SQ", "l2"),
        pytest.param("IVF_HNSW_FLAT", "l2", marks=pytest.mark.slow),
        pytest.param("IVF_HNSW_SQ", "cosine", marks=pytest.mark.slow),
        pytest.param("IVF_HNSW_PQ", "l2", marks=pytest.mark.slow),
        pytest.param("IVF_HNSW_PQ", "cosine", marks=pytest.mark.slow),
    ],
)
def test_both_libraries_reach_the_same_recall_on_joined_graphs(
    kind: str, metric: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graphs of many vectors are built this way."""
    monkeypatch.setattr(build, "JOINED", 256)
    ours, theirs = recalls("lance_duck", kind, metric, "float32", str(tmp_path / "t.lance"))
    other, _ = recalls("pylance", kind, metric, "float32", str(tmp_path / "u.lance"))
    assert abs(ours - theirs) <= AS_FAR
    assert ours > other - 2 * AS_FAR  # partitions differ as well


def recalls(builder: str, kind: str, metric: str, type_: str, uri: str) -> tuple[float, float]:
    """What we find in an index, and what pylance does."""
    values, queries, column = made(type_)
    lance.write_dataset(pa.table({"id": np.arange(ROWS), "v": column}), uri)
    given = {"metric": metric, "num_partitions": 4, "max_iters": 10, **KINDS[kind]}
    BUILDERS[builder].dataset(uri).create_index("v", kind.partition(" ")[0], **given)
    truth = np.argsort(distances(metric, queries, values), axis=1)[:, :K]
    look = {"nprobes": 2, "metric": metric, **({"ef": 40} if "HNSW" in kind else {})}
    ours, theirs = (recall(searched(library, uri, queries, **look), truth) for library in (ld, lance))
    return ours, theirs


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
@pytest.mark.parametrize("builder", BUILDERS)
def test_both_libraries_reach_the_same_hamming_recall(builder: str, kind: str, tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    centres = random.integers(0, 256, (40, DIM)).astype(np.uint8)
    noise = np.packbits(random.random((ROWS + QUERIES, 8 * DIM)) < 0.15, axis=1)
    values = centres[random.integers(40, size=ROWS + QUERIES)] ^ noise
    uri = str(tmp_path / "t.lance")
    column = pa.FixedSizeListArray.from_arrays(pa.array(values[:ROWS].ravel()), DIM)
    lance.write_dataset(pa.table({"id": np.arange(ROWS), "v": column}), uri)
    BUILDERS[builder].dataset(uri).create_index("v", kind, metric="hamming", num_partitions=4)
    measured = distances("hamming", values[ROWS:], values[:ROWS])
    furthest = np.sort(measured, axis=1)[:, K - 1 : K]  # many are just as far
    shares = []
    for library in (ld, lance):
        found = searched(library, uri, values[ROWS:], nprobes=2, metric="hamming")
        shares.append(float(np.mean(np.take_along_axis(measured, found, axis=1) <= furthest)))
    assert abs(shares[0] - shares[1]) <= AS_FAR
    assert shares[0] > 0.7
