"""A query has one bit-identical answer, regardless of earlier and concurrent searches and filters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.index.vector.graph_segments import segment_of
from unit.index.vector.written import Rotated, made, rounded_segment

from lance_duck.index.files import SegmentReader
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.contract import Hits, Probe
from lance_duck.index.vector.search.graphs import GraphIndex
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.index.vector.threads import one_thread
from lance_duck.store import open_store

K = 12
NARROW, ALL = Probe(nprobes=2), Probe(nprobes=1000)
QUERIES = 48
CASES = [
    (storage, bits, metric, offset)
    for storage, bits in (("FLAT", 8), ("SQ", 8), ("PQ", 8), ("PQ", 4))
    for metric, offset in (("l2", 0), ("l2", 10_000), ("cosine", 0), ("dot", 0))
]
ROTATED = [
    (kind, bits, metric)
    for kind, bits in (("fast", 1), ("fast", 5), ("matrix", 1))
    for metric in ("l2", "cosine", "dot")
]


@dataclass
class Asked:
    """A segment, queries, and the answers of a newly opened index to each query.

    With multi-bit codes, distances are not compared if the first bits exclude a vector: which of these are found
    depends on the other results.
    """

    files: VectorFiles
    queries: np.ndarray
    alone: list[Hits]
    of_all: list[Hits]

    @property
    def is_pruned(self) -> bool:
        return self.files.rounding is not None and self.files.rounding.extra > 0


@pytest.fixture(scope="module", params=[*CASES, *ROTATED], ids=lambda case: "-".join(map(str, case)))
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    folder = Path(tmp_path_factory.mktemp("segment"))
    if request.param in ROTATED:
        kind, bits, metric = request.param
        return asked_alone(*rotated(folder, Rotated(kind, bits, metric)))
    storage, bits, metric, offset = request.param
    case = made(storage, metric, bits=bits, rows=700)
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, len(case.decoded), QUERIES)
    queries = (case.decoded[chosen] + 0.3 * rng.standard_normal((QUERIES, 16)) + offset).astype(np.float32)
    case.written.centroids += np.float32(offset)
    if storage == "FLAT":
        case.written.codes += np.float32(offset)
    elif storage == "SQ":
        bounds = case.written.metadata["bounds"]
        case.written.metadata["bounds"] = {end: number + offset for end, number in bounds.items()}
    return asked_alone(VectorFiles(case.written.write(folder)), queries)


def rotated(folder: Path, case: Rotated) -> tuple[VectorFiles, np.ndarray]:
    """A segment of IVF_RQ, and queries near its vectors."""
    vectors, files = rounded_segment(folder, case)
    rng = np.random.default_rng(5)
    near = vectors[rng.integers(0, len(vectors), QUERIES)]
    return files, (near + 0.3 * rng.standard_normal(near.shape)).astype(np.float32)


def asked_alone(files: VectorFiles, queries: np.ndarray) -> Asked:
    """What an index that was just opened answers to each query."""
    alone, of_all = (
        [IvfIndex(files).search(queries[i : i + 1], k, None, probe) for i in range(QUERIES)]
        for k, probe in ((K, NARROW), (files.num_rows, ALL))
    )
    return Asked(files, queries, alone, of_all)


def batches() -> st.SearchStrategy[list[list[int]]]:
    """Return batches of query numbers."""
    return st.lists(st.lists(st.integers(0, QUERIES - 1), min_size=1, max_size=40), min_size=1, max_size=4)


@settings(max_examples=15)
@given(batches=batches(), limit=st.sampled_from([1 << 30, 4_000]))
def test_earlier_and_concurrent_queries_do_not_change_an_answer(
    asked: Asked, batches: list[list[int]], limit: int
) -> None:
    index = IvfIndex(asked.files, limit)
    for batch in batches:
        hits = index.search(asked.queries[batch], K, None, NARROW)
        for place, number in enumerate(batch):
            alone = asked.alone[number]
            np.testing.assert_array_equal(hits.distances[place], alone.distances[0])
            ties = np.isin(alone.distances[0], alone.distances[0][1:][np.diff(alone.distances[0]) == 0])
            ties |= alone.distances[0] == alone.distances[0][-1]  # of equal ones any is the last
            np.testing.assert_array_equal(hits.positions[place][~ties], alone.positions[0][~ties])


@settings(max_examples=15)
@given(batches=batches(), share=st.sampled_from([0.9, 0.5, 0.03]), seed=st.integers(0, 9))
def test_a_filter_does_not_change_distances(asked: Asked, batches: list[list[int]], share: float, seed: int) -> None:
    index = IvfIndex(asked.files)
    allowed = np.random.default_rng(seed).random(index.num_rows) < share
    for batch in batches:
        hits = index.search(asked.queries[batch], K, allowed, ALL)
        for place, number in enumerate(batch):
            alone = asked.of_all[number]
            wanted = alone.distances[0][allowed[alone.positions[0]]][:K]
            if not asked.is_pruned:
                np.testing.assert_array_equal(hits.distances[place][: len(wanted)], wanted)
                continue
            known = dict(zip(alone.positions[0].tolist(), alone.distances[0].tolist(), strict=True))
            positions = hits.positions[place][: len(wanted)].tolist()
            assert allowed[positions].all()
            assert hits.distances[place][: len(wanted)].tolist() == [known[position] for position in positions]


@pytest.mark.parametrize("size", [1, 20])
def test_earlier_searches_do_not_change_a_result(asked: Asked, size: int) -> None:
    index = IvfIndex(asked.files)
    for start in range(0, 4 * QUERIES, size):
        batch = np.arange(start, start + size) % QUERIES
        hits = index.search(asked.queries[batch], K, None, NARROW)
        for place, number in enumerate(batch.tolist()):
            np.testing.assert_array_equal(hits.distances[place], asked.alone[number].distances[0])


def test_the_thread_count_does_not_change_an_answer(asked: Asked) -> None:
    with one_thread():
        hits = IvfIndex(asked.files).search(asked.queries, K, None, NARROW)
    np.testing.assert_array_equal(hits.distances, np.vstack([alone.distances for alone in asked.alone]))


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"])
def test_a_graph_row_has_the_same_distance_on_every_path(kind: str, metric: str, tmp_path: Path) -> None:
    """By a walk, or by a comparison of all rows: of many queries, of few allowed rows."""
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((900, 64)).astype(np.float32)
    queries = rng.standard_normal((30, 64)).astype(np.float32)
    store = open_store(str(tmp_path))
    written = segment_of(vectors, kind, metric).write(store)
    index = GraphIndex(VectorFiles(SegmentReader(store, written.directory)))
    every = index.search(queries, 900, None, Probe())
    asked = [(slice(0, 30), None)] + [(slice(i, i + 1), None) for i in range(30)]
    for share in (0.7, 0.01):
        allowed = rng.random(900) < share
        asked += [(slice(0, 30), allowed), (slice(3, 4), allowed)]
    for chosen, allowed in asked:
        for ef in (10, 40):
            hits = index.search(queries[chosen], 5, allowed, Probe(ef=ef))
            for number, distances, positions in zip(range(30)[chosen], hits.distances, hits.positions, strict=True):
                known = dict(zip(every.positions[number].tolist(), every.distances[number].tolist(), strict=True))
                assert distances.tolist() == [known[position] for position in positions.tolist()]
                assert (np.diff(distances) >= 0).all()
