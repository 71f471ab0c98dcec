from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest
from unit.index.vector.written import Rotated, rounded_segment

from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search import ivf, lists
from lance_duck.index.vector.search.contract import Hits, Probe
from lance_duck.index.vector.search.fast_scan import packed_blocks, rounded_blocks
from lance_duck.index.vector.search.ivf import IvfIndex


@pytest.mark.parametrize("rows", [1, 31, 32, 33, 100])
@pytest.mark.parametrize("parts", [2, 6])
def test_codes_are_packed_as_faiss_packs_them(rows: int, parts: int) -> None:
    plain = faiss.IndexIVFPQ(faiss.IndexFlatL2(4 * parts), 4 * parts, 1, parts, 4)
    vectors = np.random.default_rng(rows).standard_normal((rows + 64, 4 * parts), np.float32)
    plain.train(vectors)
    plain.add(vectors[:rows])
    fast = faiss.IndexIVFPQFastScan(plain)
    codes = faiss.rev_swig_ptr(plain.invlists.get_codes(0), rows * parts // 2).reshape(rows, -1)
    blocks = packed_blocks(codes)
    np.testing.assert_array_equal(blocks.ravel(), faiss.rev_swig_ptr(fast.invlists.get_codes(0), blocks.size))


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("metric", [faiss.METRIC_L2, faiss.METRIC_INNER_PRODUCT])
def test_signs_and_factors_are_stored_as_faiss_stores_them(rows: int, metric: int) -> None:
    plain = faiss.IndexIVFRaBitQ(faiss.IndexFlat(24, metric), 24, 1, metric)
    vectors = np.random.default_rng(rows).standard_normal((rows + 64, 24), np.float32)
    plain.train(vectors)
    plain.add(vectors[:rows])
    fast = faiss.IndexIVFRaBitQFastScan(plain)
    codes = faiss.rev_swig_ptr(plain.invlists.get_codes(0), rows * plain.code_size).reshape(rows, -1)
    blocks = rounded_blocks(codes, 3)
    np.testing.assert_array_equal(blocks.ravel(), faiss.rev_swig_ptr(fast.invlists.get_codes(0), blocks.size))


@pytest.mark.parametrize("rotation", ["fast", "matrix"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_one_bit_is_scanned_as_precisely_as_without_the_fast_scan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metric: str, rotation: str
) -> None:
    vectors, files = rounded_segment(tmp_path, Rotated(rotation, 1, metric))
    rng = np.random.default_rng(3)
    queries = vectors[rng.integers(0, len(vectors), 70)]
    queries = (queries * rng.uniform(0.9, 1.1, queries.shape)).astype(np.float32)
    fast = IvfIndex(files)
    assert fast.shape.is_fast
    for module in (ivf, lists):
        monkeypatch.setattr(module, "has_fast_scan", lambda files: False)
    plain = IvfIndex(files)
    assert not plain.shape.is_fast
    probe, count = Probe(nprobes=8), len(vectors) // 4
    for mask in (None, rng.random(len(vectors)) < 0.5):
        found, expected = (index.search(queries, count, mask, probe) for index in (fast, plain))
        assert mask is None or mask[found.positions].all()
        assert error_of(found, queries, vectors, files) <= 1.02 * error_of(expected, queries, vectors, files)
        for i in range(0, 70, 7):
            alone = fast.search(queries[i : i + 1], count, mask, probe)
            np.testing.assert_array_equal(alone.distances[0], found.distances[i])
            np.testing.assert_array_equal(alone.positions[0], found.positions[i])


def error_of(hits: Hits, queries: np.ndarray, vectors: np.ndarray, files: VectorFiles) -> float:
    """Return the mean error of squared distances, or of inner products."""
    rows = vectors[files.rows().astype(np.int64)[hits.positions]]
    if files.metric == "cosine":
        queries = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    if files.metric == "l2":
        true = ((rows - queries[:, None]) ** 2).sum(axis=2)
    else:
        true = 1 - np.einsum("ijk,ik->ij", rows, queries)
    return float(np.sqrt(np.mean((hits.distances - true) ** 2)))
