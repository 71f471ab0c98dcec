from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from support.coarse_codes import rounding_error
from unit.index.vector.written import Made, clustered, made

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.costs import SLICE_QUERIES
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.contract import Hits, Probe
from lance_duck.index.vector.search.ivf import IvfIndex

ALL = Probe(nprobes=1000)
CASES = [
    pytest.param(storage, metric, bits, id=f"{storage}{bits if storage == 'PQ' else ''}-{metric}")
    for storage, bits in (("FLAT", 8), ("SQ", 8), ("PQ", 8), ("PQ", 4))
    for metric in ("l2", "cosine", "dot")
]


def queries(count: int = 7, dim: int = 16) -> np.ndarray:
    vectors, _ = clustered(count, dim, seed=0)
    return vectors + np.float32(0.1)


def reference(case: Made, asked: np.ndarray) -> np.ndarray:
    """Return distances to decoded codes; cosine uses half the squared distance of normalised vectors."""
    metric = case.written.metric
    if metric == "dot":
        return (1 - asked.astype(np.float64) @ case.decoded.T.astype(np.float64)).astype(np.float32)
    if metric == "cosine":
        asked = normalized(asked)
    found = ((asked[:, None].astype(np.float64) - case.decoded[None]) ** 2).sum(axis=2)
    return (found / 2 if metric == "cosine" else found).astype(np.float32)


def nearest(case: Made, asked: np.ndarray, k: int, allowed: np.ndarray | None = None) -> np.ndarray:
    found = reference(case, asked)
    if allowed is not None:
        found = np.where(allowed, found, np.inf)
    return np.sort(found, axis=1)[:, :k]


def check(case: Made, asked: np.ndarray, hits: Hits, k: int, allowed: np.ndarray | None = None) -> None:
    """The hits are the nearest, with the distances of just these positions."""
    written, error = case.written, 2e-4
    if written.codebook is not None and written.metadata["nbits"] == 4:
        filled = written.centroids[np.array(written.lengths) > 0]
        error += rounding_error(written.codebook, filled, written.metric, asked)
    np.testing.assert_allclose(hits.distances, nearest(case, asked, k, allowed), rtol=1e-4, atol=error)
    found = reference(case, asked)
    there = hits.positions >= 0
    at = np.take_along_axis(found, np.where(there, hits.positions, 0), axis=1)
    np.testing.assert_allclose(hits.distances[there], at[there], rtol=1e-4, atol=error)
    for row in hits.positions:
        assert len(set(row[row >= 0].tolist())) == int((row >= 0).sum())


@pytest.mark.parametrize(("storage", "metric", "bits"), CASES)
def test_searching_all_partitions_finds_the_exact_neighbours(
    storage: str, metric: str, bits: int, tmp_path: Path
) -> None:
    case = made(storage, metric, bits=bits)
    index = IvfIndex(case.open(tmp_path))
    asked = queries()
    check(case, asked, index.search(asked, 10, None, ALL), 10)
    one = index.search(asked[2:3], 10, None, ALL)
    check(case, asked[2:3], one, 10)
    np.testing.assert_array_equal(index.rows(), case.written.rows)
    assert index.is_exact == (storage == "FLAT")
    assert index.shape.table_bytes == (4 * index.dim << bits if storage == "PQ" else 0)


@pytest.mark.parametrize(("storage", "metric", "bits"), CASES)
def test_all_partitions_are_searched_if_the_first_hold_too_few_allowed_rows(
    storage: str, metric: str, bits: int, tmp_path: Path
) -> None:
    case = made(storage, metric, bits=bits)
    index = IvfIndex(case.open(tmp_path))
    for asked in (queries()[:1], np.repeat(queries()[:1], 30, axis=0)):
        ranks = index.partition_ranks(asked[:1], np.arange(index.num_rows)[None])[0]
        allowed = (ranks >= 1) & (np.random.default_rng(5).random(index.num_rows) < 0.7)
        hits = index.search(asked, 10, allowed, Probe(nprobes=1, share=float(allowed.mean())))
        check(case, asked, hits, 10, allowed)
        few = index.search(asked, 10, allowed, Probe(nprobes=1, max_nprobes=2, share=float(allowed.mean())))
        assert set(ranks[few.positions[few.positions >= 0]]) <= {1}


@pytest.mark.parametrize(("storage", "metric", "bits"), CASES)
def test_a_filtered_search_finds_only_allowed_vectors(storage: str, metric: str, bits: int, tmp_path: Path) -> None:
    case = made(storage, metric, bits=bits)
    index = IvfIndex(case.open(tmp_path))
    asked = queries()
    for share in (0.5, 0.05, 0.01):
        allowed = np.random.default_rng(3).random(index.num_rows) < share
        check(case, asked, index.search(asked, 10, allowed, ALL), 10, allowed)
        few = index.search(asked, 10, allowed, Probe(nprobes=1))
        assert ((few.positions >= 0).sum(axis=1) == min(10, allowed.sum())).all()
        assert allowed[few.positions[few.positions >= 0]].all()
        assert (few.distances[few.positions < 0] == np.inf).all()


def test_an_empty_mask_finds_nothing(tmp_path: Path) -> None:
    index = IvfIndex(made("FLAT").open(tmp_path))
    hits = index.search(queries(2), 3, np.zeros(600, np.bool_), Probe())
    assert (hits.positions == -1).all()
    assert (hits.distances == np.inf).all()


@pytest.mark.parametrize("k", [599, 600, 1000])
def test_k_may_exceed_the_number_of_vectors(k: int, tmp_path: Path) -> None:
    case = made("FLAT")
    hits = IvfIndex(case.open(tmp_path)).search(queries(2), k, None, Probe(nprobes=1))
    assert hits.positions.shape == hits.distances.shape == (2, k)
    assert (hits.positions >= 0).sum() == 2 * min(k, 600)
    np.testing.assert_allclose(hits.distances[:, :599], nearest(case, queries(2), 599), rtol=1e-4)


def test_max_nprobes_limits_the_search(tmp_path: Path) -> None:
    case = made("FLAT")
    index = IvfIndex(case.open(tmp_path))
    hits = index.search(queries(3), 600, None, Probe(nprobes=1, max_nprobes=2))
    ends = np.cumsum(case.written.lengths)
    for row in hits.positions:
        parts = np.unique(np.searchsorted(ends, row[row >= 0], side="right"))
        assert len(parts) == 2
        assert (row >= 0).sum() == sum(case.written.lengths[p] for p in parts)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_distance_bounds_exclude_vectors(metric: str, tmp_path: Path) -> None:
    case = made("FLAT", metric)
    index = IvfIndex(case.open(tmp_path))
    asked = queries(4)
    found = np.sort(reference(case, asked), axis=1)
    lower, upper = float(np.median(found[:, 20])), float(np.median(found[:, 60]))
    hits = index.search(asked, 10, None, Probe(nprobes=1, lower=lower, upper=upper))
    for row, all_ in zip(hits.distances, found, strict=True):
        inside = all_[(all_ >= np.float32(lower)) & (all_ < np.float32(upper))][:10]
        assert (row[np.isfinite(row)] >= np.float32(lower)).all()
        assert (row[np.isfinite(row)] < np.float32(upper)).all()
        assert abs(np.isfinite(row).sum() - len(inside)) <= 1  # rounding at a bound
        np.testing.assert_allclose(row[1:8], inside[1:8], rtol=1e-3, atol=1e-3) if len(inside) > 9 else None


def test_vector_lists_are_evicted_above_the_cache_limit(tmp_path: Path) -> None:
    case = made("FLAT")
    index = IvfIndex(case.open(tmp_path), limit=10_000)
    asked = queries(20)
    for turn in range(3):
        for i in range(len(asked)):
            check(case, asked[i : i + 1], index.search(asked[i : i + 1], 5, None, ALL), 5)
            index.search(asked[i : i + 1], 5, None, Probe(nprobes=1, max_nprobes=1))
            assert index.nbytes < 10_000 + 600 * (4 * 16 + 16) + 10_000, turn
    check(case, asked, index.search(asked, 5, None, ALL), 5)


def test_several_threads_can_search_one_index(tmp_path: Path) -> None:
    case = made("FLAT")
    index = IvfIndex(case.open(tmp_path), limit=12_000)
    asked = queries(40)
    wrong: list[Exception | AssertionError] = []

    def run(first: int) -> None:
        try:
            for i in range(first, 40, 4):
                check(case, asked[i : i + 1], index.search(asked[i : i + 1], 5, None, ALL), 5)
        except (Exception, AssertionError) as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(("storage", "metric", "bits"), CASES)
@pytest.mark.parametrize("limit", [1 << 20, 3000], ids=["lists that stay", "lists that make room"])
def test_batched_queries_find_the_same_rows_as_single_queries(
    storage: str, metric: str, bits: int, limit: int, tmp_path: Path
) -> None:
    case = made(storage, metric, bits=bits)
    together, alone = IvfIndex(case.open(tmp_path), limit), IvfIndex(case.open(tmp_path), limit)
    asked = queries(2 * SLICE_QUERIES + 5)
    allowed = np.arange(together.num_rows) % 3 > 0
    for chosen in (None, allowed):
        hits = together.search(asked, 5, chosen, Probe(nprobes=2))
        each = [alone.search(asked[i : i + 1], 5, chosen, Probe(nprobes=2)) for i in range(len(asked))]
        expected = np.vstack([one.distances for one in each])
        np.testing.assert_allclose(hits.distances, expected, rtol=1e-4, atol=2e-4)
        if storage == "FLAT":
            np.testing.assert_array_equal(hits.positions, np.vstack([one.positions for one in each]))


def test_a_segment_without_rows_finds_nothing(tmp_path: Path) -> None:
    case = made("FLAT")
    case.written.codes = case.written.codes[:0]
    case.written.rows = case.written.rows[:0]
    case.written.lengths = [0] * len(case.written.lengths)
    index = IvfIndex(case.open(tmp_path))
    hits = index.search(queries(2), 3, None, Probe())
    assert hits.positions.tolist() == [[-1] * 3] * 2
    assert len(index.rows()) == 0


def test_invalid_queries_are_rejected(tmp_path: Path) -> None:
    index = IvfIndex(made("FLAT").open(tmp_path))
    with pytest.raises(InvalidInputError, match="the query vector has the wrong length"):
        index.search(np.zeros((1, 15), np.float32), 1, None, Probe())
    with pytest.raises(InvalidInputError, match="k: "):
        index.search(np.zeros((1, 16), np.float32), 0, None, Probe())
    with pytest.raises(InvalidInputError, match="allowed"):
        index.search(np.zeros((1, 16), np.float32), 1, np.ones(3, np.bool_), Probe())


def test_an_empty_batch_of_queries_finds_nothing(tmp_path: Path) -> None:
    hits = IvfIndex(made("FLAT").open(tmp_path)).search(np.empty((0, 16), np.float32), 4, None, Probe())
    assert hits.positions.shape == (0, 4)


def test_statistics_describe_the_segment(tmp_path: Path) -> None:
    case = made("PQ")
    files: VectorFiles = case.open(tmp_path)
    found = IvfIndex(files).statistics()
    assert found["index_type"] == "IVF_PQ"
    assert found["metric_type"] == "l2"
    assert found["num_partitions"] == 9
    assert [p["size"] for p in found["partitions"]] == case.written.lengths
    assert found["loss"] == 1.5
    assert found["sub_index"]["nbits"] == 8
    assert found["sub_index"]["index_type"] == "PQ"


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_many_searches_change_neither_results_nor_the_cache(metric: str, bits: int, tmp_path: Path) -> None:
    case = made("PQ", metric, bits=bits)
    index = IvfIndex(case.open(tmp_path))
    asked = queries(150)
    before = index.search(asked[:10], 5, None, ALL)
    small = index.nbytes
    check(case, asked, index.search(asked, 5, None, ALL), 5)
    assert index.nbytes == small
    np.testing.assert_array_equal(index.search(asked[:10], 5, None, ALL).distances, before.distances)


def test_code_lists_are_evicted_above_the_cache_limit(tmp_path: Path) -> None:
    case = made("PQ")
    index = IvfIndex(case.open(tmp_path), limit=3000)
    asked = queries(150)
    for i in range(0, 150, 10):
        index.search(asked[i : i + 10], 5, None, Probe(nprobes=1, max_nprobes=1))
        check(case, asked[i : i + 10], index.search(asked[i : i + 10], 5, None, ALL), 5)


@pytest.mark.parametrize("k", [1, 10, 40])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_a_batch_finds_by_4_bit_codes_what_single_queries_find(metric: str, k: int, tmp_path: Path) -> None:
    index = IvfIndex(made("PQ", metric, bits=4).open(tmp_path))
    asked = queries(70)
    for share in (1.0, 0.3, 0.03):
        allowed = None if share == 1 else np.random.default_rng(2).random(index.num_rows) < share
        for probe in (Probe(nprobes=1), Probe(nprobes=3, share=share), ALL):
            batch = index.search(asked, k, allowed, probe)
            for i in range(0, len(asked), 7):
                one = index.search(asked[i : i + 1], k, allowed, probe)
                np.testing.assert_array_equal(batch.positions[i], one.positions[0])
                np.testing.assert_array_equal(batch.distances[i], one.distances[0])


@pytest.mark.parametrize("k", [12])
@pytest.mark.parametrize(("storage", "metric", "bits"), CASES)
def test_a_walk_finds_what_a_search_finds(storage: str, metric: str, bits: int, k: int, tmp_path: Path) -> None:
    index = IvfIndex(made(storage, metric, bits=bits).open(tmp_path))
    walk = index.walk(k, Probe(nprobes=3))
    assert walk is not None
    for query in queries(10):
        hits, found = index.search(query[None], k, None, Probe(nprobes=3)), walk.nearest(query)
        assert found is not None
        np.testing.assert_array_equal(found[0], hits.distances[0])
        np.testing.assert_array_equal(found[1], hits.positions[0])
    whole = index.walk(600, Probe(nprobes=1))
    assert whole is not None
    one_partition = index.search(queries()[:1], 600, None, Probe(nprobes=1, max_nprobes=1))
    assert (whole.nearest(queries()[0]) is None) == (one_partition.positions.min() < 0)
