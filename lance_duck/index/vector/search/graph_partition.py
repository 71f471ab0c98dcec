"""A partition of a segment with graphs: codes and graph in memory, searched by a walk or by comparing all vectors.

A walk keeps `ef` candidates. With a filter it keeps more, so that about `ef` of them are allowed; where few vectors are
allowed, comparing all of these is faster, and exact. All are compared, too, where the walk meets far fewer allowed
vectors than chance explains: those that it meets are not the nearest ones then.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.forks import Lock
from lance_duck.index.vector.costs import (
    ALLOWED_OF_EXPECTED,
    BLAS_QUERIES,
    DECODE_BYTES,
    FILTERED_EF,
    WALK,
    WALK_TOGETHER,
)
from lance_duck.index.vector.graph.hnsw import Graph, index_of
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.storage.files import VectorFiles
from lance_duck.index.vector.storage.sq import faiss_bounds

Distances = NDArray[np.float32]
Places = NDArray[np.int64]

_FAISS: Final[Any] = faiss  # its stubs do not have all of it


class GraphPartition:
    """A partition with its graph. Safe to use from several threads.

    Attributes:
        storage: faiss index of the codes.
        num_vectors: Number of vectors.

    Args:
        files: Files of the segment.
        codes: Codes of the partition, as `VectorFiles.codes` returns them.
        graph: Function that reads the graph; called when the graph is first needed.
    """

    def __init__(self, files: VectorFiles, codes: NDArray[Any], graph: Callable[[], Graph]) -> None:
        self.num_vectors = len(codes)
        self.storage = _storage_of(files, codes)
        self._codes = _codes_in(self.storage)
        self._is_dot = files.metric == "dot"
        self._is_flat = files.storage == "FLAT"
        self._read_graph = graph
        self._lock = Lock()
        self._walker: Any = None
        self._nbytes = codes.nbytes + 1024

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self._nbytes

    def walker(self) -> Any:
        """Return the faiss index that searches the graph.

        Raises:
            CorruptError: The graph is broken.
        """
        if self._walker is None:
            with self._lock:
                if self._walker is None:
                    graph = self._read_graph()
                    self._nbytes += graph.nbytes
                    self._walker = index_of(self.storage, graph)
        return self._walker

    def search(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None, ef: int
    ) -> tuple[Distances, Places]:
        """Return the nearest vectors by faiss's distance: squared Euclidean, or inner product for dot.

        Args:
            queries: float32 (queries, dim), C-contiguous.
            k: Neighbours of each query.
            allowed: bool (num_vectors,): whether each vector may be found; None if all may.
            ef: Candidates of a walk without a filter.

        Returns:
            Distances, float32 (queries, n), and vectors, int64 (queries, n), nearest first; n is k, or less if fewer
            may be found.
        """
        count = self.num_vectors if allowed is None else int(np.count_nonzero(allowed))
        k = min(k, count)
        if not k:
            return np.empty((len(queries), 0), np.float32), np.empty((len(queries), 0), np.int64)
        if count == self.num_vectors:
            allowed = None
        width = max(ef, k, 0 if allowed is None else FILTERED_EF) * self.num_vectors // count
        if count <= width * (WALK if len(queries) < BLAS_QUERIES else WALK_TOGETHER):
            return self._look_at_all(queries, k, allowed)
        num_expected = width * count // self.num_vectors
        least = k if allowed is None else min(max(k, int(ALLOWED_OF_EXPECTED * num_expected)), count)
        distances, places = self._walk(queries, least, allowed, width)
        short = np.flatnonzero(places[:, -1] < 0)
        distances, places = distances[:, :k], places[:, :k]
        if len(short):
            distances[short], places[short] = self._look_at_all(np.ascontiguousarray(queries[short]), k, allowed)
        return distances, places

    def _walk(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None, width: int
    ) -> tuple[Distances, Places]:
        distances = np.empty((len(queries), k), np.float32)
        places = np.empty((len(queries), k), np.int64)
        if allowed is None:
            parameters = _parameters(width)
        else:
            bits = np.packbits(allowed, bitorder="little")
            selector = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
            parameters = _FAISS.SearchParametersHNSW(efSearch=width, sel=selector)
        pointers = faiss.swig_ptr(queries), k, faiss.swig_ptr(distances), faiss.swig_ptr(places)
        self.walker().search_c(len(queries), *pointers, parameters)
        return distances, places

    def _look_at_all(
        self, queries: NDArray[np.float32], k: int, allowed: NDArray[np.bool_] | None
    ) -> tuple[Distances, Places]:
        """Return the nearest of all allowed vectors; the result is exact as to the codes."""
        ids = np.arange(self.num_vectors) if allowed is None else np.flatnonzero(allowed)
        step = max(DECODE_BYTES // (4 * self.storage.d), 1)
        best: list[tuple[Distances, Places]] = []
        for first in range(0, len(ids), step):
            block = ids[first : first + step]
            best.append(self._nearest(queries, self._decode(block), block, min(k, len(block))))
            if len(best) > 1:
                best = [self._merged(best, k)]
        return best[0]

    def _decode(self, ids: Places) -> NDArray[np.float32]:
        stored_codes = self._codes
        codes = (
            stored_codes[int(ids[0]) : int(ids[-1]) + 1]
            if int(ids[-1]) - int(ids[0]) + 1 == len(ids)
            else stored_codes[ids]
        )
        if self._is_flat:
            return codes.view(np.float32)
        vectors: NDArray[np.float32] = self.storage.sa_decode(codes)
        return vectors

    def _nearest(
        self, queries: NDArray[np.float32], vectors: NDArray[np.float32], ids: Places, k: int
    ) -> tuple[Distances, Places]:
        metric = faiss.METRIC_INNER_PRODUCT if self._is_dot else faiss.METRIC_L2
        distances, places = faiss.knn(queries, vectors, k, metric=metric)
        if not self._is_dot and len(queries) >= BLAS_QUERIES:
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

    def _merged(self, results: list[tuple[Distances, Places]], k: int) -> tuple[Distances, Places]:
        distances = np.hstack([d for d, _ in results])
        order = np.argsort(-distances if self._is_dot else distances, axis=1, kind="stable")[:, :k]
        places = np.hstack([p for _, p in results])
        return np.take_along_axis(distances, order, axis=1), np.take_along_axis(places, order, axis=1)


@lru_cache(256)
def _parameters(ef: int) -> Any:
    """Return the faiss parameters of a walk without a filter; made once, not to be changed."""
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
    """Return a view of the codes (n, code size) of an index; valid as long as the index is."""
    size = storage.ntotal * storage.code_size
    if not size:
        return np.empty((0, storage.code_size), np.uint8)
    codes: NDArray[np.uint8] = _FAISS.rev_swig_ptr(storage.codes.data(), size)
    return codes.reshape(storage.ntotal, storage.code_size)
