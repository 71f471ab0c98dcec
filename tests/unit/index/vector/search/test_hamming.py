from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from unit.index.vector.written import Written

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.search.hamming import HammingIndex

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (200, 4)).astype(np.uint8)
ASKED = RNG.integers(0, 256, (3, 4)).astype(np.float32)


@pytest.fixture(params=["a nearest partition of its own", "an empty one"])
def index(tmp_path: Path, request: pytest.FixtureRequest) -> HammingIndex:
    """Four partitions; the second one is empty, and it may be the nearest one of all queries."""
    centroids = np.random.default_rng(1).integers(0, 256, (4, 4)).astype(np.uint8)
    if request.param == "an empty one":
        centroids[1] = ASKED[0]
        centroids[[0, 2, 3]] = ~ASKED.astype(np.uint8)
    written = Written(CODES, [50, 0, 100, 50], centroids, "FLAT", "hamming", {"dim": 4})
    return HammingIndex(VectorFiles(written.write(tmp_path)))


def test_the_nearest_vectors_have_the_fewest_different_bits(index: HammingIndex) -> None:
    hits = index.search(ASKED, 7, None, Probe())
    all_ = distances("hamming", ASKED, CODES)
    np.testing.assert_array_equal(hits.distances, np.sort(all_, axis=1)[:, :7])
    np.testing.assert_array_equal(np.take_along_axis(all_, hits.positions, axis=1), hits.distances)


def test_a_search_continues_until_k_are_found(index: HammingIndex) -> None:
    allowed = np.arange(200) % 40 == 3
    hits = index.search(ASKED, 9, allowed, Probe(nprobes=1))
    assert ((hits.positions >= 0).sum(axis=1) == 5).all()
    few = index.search(ASKED, 200, None, Probe(nprobes=1, max_nprobes=1))
    assert ((few.positions >= 0).sum(axis=1) < 200).all()


def test_distance_bounds_exclude_vectors(index: HammingIndex) -> None:
    hits = index.search(ASKED, 200, None, Probe(lower=10, upper=14))
    all_ = np.sort(distances("hamming", ASKED, CODES), axis=1)
    for row, far in zip(hits.distances, all_, strict=True):
        np.testing.assert_array_equal(row[np.isfinite(row)], far[(far >= 10) & (far < 14)])


def test_queries_that_are_not_bytes_are_rejected(index: HammingIndex) -> None:
    for wrong in (ASKED + np.float32(0.5), ASKED[:, :3], ASKED[0]):
        with pytest.raises(InvalidInputError):
            index.search(wrong, 1, None, Probe())


def test_statistics_and_memory_use_are_reported(index: HammingIndex) -> None:
    before = index.nbytes
    index.prewarm()
    assert index.nbytes >= before + CODES.nbytes
    assert index.statistics()["metric_type"] == "hamming"


def test_all_partitions_are_searched_if_the_first_hold_too_few_allowed_rows(
    index: HammingIndex,
) -> None:
    for row in range(len(ASKED)):
        ranks = index.partition_ranks(ASKED[row : row + 1], np.arange(200)[None])[0]
        allowed = ranks > ranks.min()
        hits = index.search(ASKED[row : row + 1], 9, allowed, Probe(nprobes=1, share=float(allowed.mean())))
        far = distances("hamming", ASKED[row : row + 1], CODES)[:, allowed]
        np.testing.assert_array_equal(hits.distances, np.sort(far, axis=1)[:, :9])
