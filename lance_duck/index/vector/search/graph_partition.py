"""An in-memory partition of a segment with graphs. A graph walk or a comparison of all vectors searches it.

A walk keeps `ef` candidates. With a filter it keeps more, so that about `ef` of them are allowed. If only a few vectors
are allowed, comparing all of these is faster, and exact. A walk finds the nearest vectors, whether they are allowed or
not. Other allowed vectors that it encounters may not be the nearest allowed vectors. If too few of the nearest vectors
are allowed, the walk is repeated with twice the candidates. If fewer of them are allowed than chance explains, all
allowed vectors are compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache
from lance_duck.forks import Lock
from lance_duck.index.vector.costs import (
    ALLOWED_OF_EXPECTED,
    DECODED_ALONE,
    DEVIATIONS,
    LEAST_EF,
    LOAD_BYTES,
    MANY_QUERIES,
    WALK,
    WALK_TOGETHER,
)
from lance_duck.index.vector.graph.hnsw import Graph, index_of
from lance_duck.index.vector.library import faiss, queries_without_products
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.lists import faiss_bounds
from lance_duck.index.vector.search.walk import GraphWalk, Measure
from lance_duck.index.vector.threads import one_thread
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.measure import measure_flat, measure_product, measure_scalar

Distances = NDArray[np.float32]
Int64s = NDArray[np.int64]

_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete
_KEPT_WALKS: Final = 16


class GraphPartition:
    """A partition with its graph. Safe to use from several threads.

    Attributes:
        storage: faiss index of the codes.
        num_vectors: Number of vectors.

    Args:
        files: Files of the segment.
        codes: Codes of the partition, from `VectorFiles.codes`.
        graph: Function that reads the graph. Called on first use.
    """

    def __init__(self, files: VectorFiles, codes: NDArray[Any], graph: Callable[[], Graph]) -> None:
        self.num_vectors = len(codes)
        self.storage = _storage_of(files, codes)
        self._codes = readonly(_codes_in(self.storage))
        self._metric = files.metric
        self._is_dot = files.metric == "dot"
        self._measure = _measure_of(files, self._codes)
        self._is_flat = files.storage == "FLAT"
        self._read_graph = graph
        self._lock = Lock()
        self._walker: Any = None
        self._walks: LruCache[GraphWalk] = LruCache(_KEPT_WALKS)
        self._nbytes = codes.nbytes + 1024

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self._nbytes

    def walker(self) -> Any:
        """Return the faiss index that searches the graph.

        Raises:
            CorruptError: The graph is corrupt.
        """
        if self._walker is None:
            with self._lock:
                if self._walker is None:
                    graph = self._read_graph()
                    self._nbytes += graph.nbytes
                    self._walker = index_of(self.storage, graph)
        return self._walker

    def walk(self, k: int, ef: int) -> GraphWalk | None:
        """Return a walk that finds what `search` finds for a single query without a filter.

        The partition caches its walks. Returns None if `search` would compare all vectors.

        Raises:
            CorruptError: The graph is corrupt.
        """
        width = max(ef, k)
        if k > self.num_vectors or _is_costly(width, self.num_vectors, 1):
            return None

        def make() -> GraphWalk:
            return GraphWalk(self.walker(), self.storage, _parameters(width), self._measure, self._metric, k)

        return self._walks.get((k, width), make)

    def search(
        self,
        queries: NDArray[np.float32],
        k: int,
        allowed: NDArray[np.bool_] | None,
        ef: int,
        *,
        is_alone: bool = False,
    ) -> tuple[Distances, Int64s]:
        """Return the nearest vectors by faiss's distance: the squared Euclidean distance, or for dot the inner product.

        Args:
            queries: float32 (queries, dim), C-contiguous.
            k: Number of neighbours per query.
            allowed: bool (num_vectors,), whether each vector may be found. None if all vectors may be found.
            ef: Number of candidates of a walk without a filter.
            is_alone: Whether each query is searched like a single query.

        Returns:
            Distances, float32 (queries, n), and vectors, int64 (queries, n), nearest first. n is k, or the number of
            allowed vectors if that is smaller.
        """
        count = self.num_vectors if allowed is None else int(np.count_nonzero(allowed))
        k = min(k, count)
        if not k:
            return np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        if allowed is None or count == self.num_vectors:
            distances, places = self._nearest_of_all(queries, k, ef, is_alone)
        else:
            candidates = max(ef, LEAST_EF, k + DEVIATIONS * math.isqrt(k))
            width = candidates * self.num_vectors // count
            distances, places = self._nearest_allowed(queries, k, allowed, count, width, is_alone)
        return self._measured(queries, distances, places)

    def _nearest_of_all(
        self, queries: NDArray[np.float32], k: int, ef: int, is_alone: bool
    ) -> tuple[Distances, Int64s]:
        width = max(ef, k)
        if _is_costly(width, self.num_vectors, 1 if is_alone else len(queries)):
            return self._look_at_all(queries, k, None)
        distances, places = self._walk(queries, k, width)
        short = np.flatnonzero(places[:, -1] < 0)
        if len(short):
            distances[short], places[short] = self._look_at_all(np.ascontiguousarray(queries[short]), k, None)
        return distances, places

    def _nearest_allowed(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_], count: int, width: int, is_alone: bool
    ) -> tuple[Distances, Int64s]:
        """Return the nearest of `count` allowed vectors. Uses walks with `width` candidates if these find enough."""
        if _is_costly(width, count, 1 if is_alone else len(queries)):
            return self._look_at_all(queries, k, allowed)
        far, near = self._walk(queries, width, width)
        passing = allowed[near] & (near >= 0)
        counts = np.count_nonzero(passing, axis=1)
        first = np.argsort(~passing, axis=1, kind="stable")[:, :k]
        distances, places = np.take_along_axis(far, first, axis=1), np.take_along_axis(near, first, axis=1)
        is_short = counts < k
        if is_short.any():
            least = ALLOWED_OF_EXPECTED * width * count / self.num_vectors
            few = is_short & ((counts < least) | (width >= self.num_vectors))
            for again, is_tied in ((is_short & ~few, False), (few, True)):
                if again.any():
                    batch = np.ascontiguousarray(queries[again])
                    result = (
                        self._look_at_all(batch, k, allowed)
                        if is_tied
                        else self._nearest_allowed(batch, k, allowed, count, 2 * width, is_alone)
                    )
                    distances[again], places[again] = result
        return distances, places

    def _measured(self, queries: NDArray[np.float32], distances: Distances, places: Int64s) -> tuple[Distances, Int64s]:
        """Recompute distances so that they do not depend on the search method. Sorts the results, nearest first."""
        distances = np.ascontiguousarray(distances)
        self._measure(readonly(queries), readonly(places), distances)
        far = -distances if self._is_dot else distances
        if (far[:, 1:] >= far[:, :-1]).all():
            return distances, places
        order = np.argsort(far, axis=1, kind="stable")
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(places, order, axis=1)

    def _walk(self, queries: NDArray[np.float32], k: int, width: int) -> tuple[Distances, Int64s]:
        """Return the k nearest vectors that a walk with `width` candidates finds, padded with -1."""
        distances = np.empty((len(queries), k), np.float32)
        places = np.empty((len(queries), k), np.int64)
        pointers = faiss.swig_ptr(queries), k, faiss.swig_ptr(distances), faiss.swig_ptr(places)
        self.walker().search_c(len(queries), *pointers, _parameters(width))
        return distances, places

    def _look_at_all(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[Distances, Int64s]:
        """Compare all allowed vectors, and return the nearest. The result is exact with respect to the codes."""
        ids = np.arange(self.num_vectors) if allowed is None else np.flatnonzero(allowed)
        step = max(LOAD_BYTES // (4 * self.storage.d), 1)
        best: list[tuple[Distances, Int64s]] = []
        for first in range(0, len(ids), step):
            block = ids[first : first + step]
            best.append(self._nearest(queries, self.decode(block), block, min(k, len(block))))
            if len(best) > 1:
                best = [self._merged(best, k)]
        return best[0]

    def decode(self, ids: Int64s) -> NDArray[np.float32]:
        """Decode the codes of the given vectors, which ascend: float32 (vectors, dim)."""
        stored_codes = self._codes
        codes = (
            stored_codes[int(ids[0]) : int(ids[-1]) + 1]
            if int(ids[-1]) - int(ids[0]) + 1 == len(ids)
            else stored_codes[ids]
        )
        if self._is_flat:
            return codes.view(np.float32)
        with one_thread(len(codes) * self.storage.d <= DECODED_ALONE):
            vectors: NDArray[np.float32] = self.storage.sa_decode(codes)
        return vectors

    def _nearest(
        self, queries: NDArray[np.float32], vectors: NDArray[np.float32], ids: Int64s, k: int
    ) -> tuple[Distances, Int64s]:
        metric = faiss.METRIC_INNER_PRODUCT if self._is_dot else faiss.METRIC_L2
        distances, places = faiss.knn(queries, vectors, k, metric=metric)
        if not self._is_dot and len(queries) > queries_without_products(vectors.shape[1]):
            _FAISS.fvec_L2sqr_by_idx(
                faiss.swig_ptr(distances),
                faiss.swig_ptr(queries),
                faiss.swig_ptr(vectors),
                faiss.swig_ptr(places),
                vectors.shape[1],
                len(queries),
                k,
            )
            order = np.argsort(distances, axis=1, kind="stable")
            distances = np.take_along_axis(distances, order, axis=1)
            places = np.take_along_axis(places, order, axis=1)
        return distances, np.where(places < 0, -1, ids[places])

    def _merged(self, results: list[tuple[Distances, Int64s]], k: int) -> tuple[Distances, Int64s]:
        distances = np.hstack([d for d, _ in results])
        order = np.argsort(-distances if self._is_dot else distances, axis=1, kind="stable")[:, :k]
        places = np.hstack([p for _, p in results])
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(places, order, axis=1)


def _measure_of(files: VectorFiles, codes: NDArray[np.uint8]) -> Measure:
    """Return the function that computes distances from queries to codes."""
    is_dot = files.metric == "dot"
    if files.storage == "FLAT":
        numbers = codes.view(np.float32)
        return lambda queries, places, distances: measure_flat(queries, numbers, places, is_dot, distances)
    if files.storage == "PQ":
        book = readonly(np.asarray(files.codebook, np.float32))
        return lambda queries, places, distances: measure_product(queries, codes, book, places, is_dot, distances)
    start, extent = (float(bound) for bound in faiss_bounds(*files.bounds))
    first, step = start + extent / 510, extent / 255  # code 0 decodes to the middle of its interval
    return lambda queries, places, distances: measure_scalar(queries, codes, first, step, places, is_dot, distances)


def _is_costly(width: int, count: int, num_queries: int) -> bool:
    """Return whether walks with `width` candidates per query take longer than comparing `count` vectors."""
    return count <= width * (WALK if num_queries < MANY_QUERIES else WALK_TOGETHER)


@lru_cache(256)
def _parameters(ef: int) -> Any:
    """Return the cached faiss parameters of a walk without a filter. Do not modify."""
    return _FAISS.SearchParametersHNSW(efSearch=ef)


def _storage_of(files: VectorFiles, codes: NDArray[Any]) -> Any:
    """Return a faiss index of codes, without a graph."""
    metric = faiss.METRIC_INNER_PRODUCT if files.metric == "dot" else faiss.METRIC_L2
    storage: Any
    if files.storage == "FLAT":
        storage = faiss.IndexFlat(files.dim, metric)
    elif files.storage == "SQ":
        storage = faiss.IndexScalarQuantizer(files.dim, faiss.ScalarQuantizer.QT_8bit_uniform, metric)
        faiss.copy_array_to_vector(faiss_bounds(*files.bounds), storage.sq.trained)
    else:
        storage = faiss.IndexPQ(files.dim, len(files.codebook), files.bits, metric)
        faiss.copy_array_to_vector(np.ascontiguousarray(files.codebook).reshape(-1), storage.pq.centroids)
    storage.is_trained = True
    if files.storage == "FLAT":
        storage.add(np.ascontiguousarray(codes, np.float32))
    else:
        storage.add_sa_codes(np.ascontiguousarray(codes, np.uint8))
    return storage


def _codes_in(storage: Any) -> NDArray[np.uint8]:
    """Return a view of the codes (n, code size) of an index. It is valid while the index exists."""
    size = storage.ntotal * storage.code_size
    if not size:
        return np.empty((0, storage.code_size), np.uint8)
    codes: NDArray[np.uint8] = _FAISS.rev_swig_ptr(storage.codes.data(), size)
    return codes.reshape(storage.ntotal, storage.code_size)
