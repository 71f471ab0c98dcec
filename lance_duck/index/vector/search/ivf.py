"""Searches of inverted lists. For each query, faiss finds the nearest partitions, and the nearest vectors in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import LruCache
from lance_duck.errors import InvalidInputError
from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.vector.costs import BATCH_QUERIES, KEPT_BYTES, SLICE_QUERIES
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.best_hits import BestHits
from lance_duck.index.vector.search.centroids import near_partitions
from lance_duck.index.vector.search.chance import AllowedCounts
from lance_duck.index.vector.search.contract import Hits, Probe, Queries, Shape
from lance_duck.index.vector.search.fast_scan import has_fast_scan
from lance_duck.index.vector.search.figures import figures
from lance_duck.index.vector.search.frontier import Frontier, Spread, faiss_limits, sampled_places
from lance_duck.index.vector.search.list_walk import ListWalk
from lance_duck.index.vector.search.lists import Lists
from lance_duck.index.vector.search.ranks import partition_ranks
from lance_duck.index.vector.threads import in_slices, one_thread, safe_after_fork

_KEPT_WALKS: Final = 16

_Distances = NDArray[np.float32]
Int64s = NDArray[np.int64]


class IvfIndex:
    """An open segment without graphs: a `VectorIndex`.

    Attributes:
        metric: "l2", "cosine" or "dot".
        dim: Number of dimensions.
        num_rows: Number of vectors.
        is_exact: Whether the storage is flat.
        files: Files of the segment.

    Args:
        files: Files of the segment.
        limit: Cache size for lists, in bytes.
    """

    def __init__(self, files: VectorFiles, limit: int = KEPT_BYTES) -> None:
        self.files = files
        self.metric = files.metric
        self.dim = files.dim
        self.num_rows = files.num_rows
        self.is_exact = files.storage == "FLAT"
        self._lists = Lists(files, limit)
        self._last_selector: Selector | None = None
        self._allowed_counts = AllowedCounts(files.partitions)
        self._known_spread: Spread | None = None
        self._walks: LruCache[ListWalk] = LruCache(_KEPT_WALKS)

    def rows(self) -> NDArray[np.uint64]:
        """Return the row id or address of each position: uint64 (num_rows,). Read once and cached; do not modify."""
        return self.files.rows()

    @safe_after_fork
    def search(self, queries: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe) -> Hits:
        """Return the nearest neighbours. See `contract.VectorIndex.search`."""
        vectors = self._checked(queries, k)
        num_results = min(k, self.num_rows)
        if not num_results or not len(vectors):
            return _nothing(len(vectors), k)
        if probe.lower is None:
            distances, positions = self._search(vectors, num_results, allowed, probe)
        else:
            distances, positions = self._search_above(vectors, num_results, allowed, probe)
        if num_results < k:
            empty = _nothing(len(vectors), k - num_results)
            distances = np.hstack([distances, empty.distances])
            positions = np.hstack([positions, empty.positions])
        return Hits(distances, positions)

    def walk(self, k: int, probe: Probe) -> ListWalk | None:
        """Return what searches for single queries. See `contract.VectorIndex.walk`."""
        if probe.lower is not None or probe.upper is not None:
            return None
        width = min(max(probe.nprobes, 1), self._most_partitions(probe))
        return self._walks.get((k, width), lambda: ListWalk(self._lists, k, width, _parameters(width)))

    def _most_partitions(self, probe: Probe) -> int:
        """Return the maximum number of partitions to search."""
        count = self.files.num_partitions
        return count if probe.max_nprobes is None else min(max(probe.max_nprobes, 1), count)

    def is_tied(self, allowed: NDArray[np.bool_]) -> bool:
        """Return whether a filter is tied to the vectors. See `contract.VectorIndex.is_tied`."""
        return self._allowed_counts.are_tied(allowed)

    @safe_after_fork
    def partition_ranks(self, queries: Queries, positions: Int64s) -> Int64s:
        """Return the ranks of partitions. See `contract.VectorIndex.partition_ranks`."""
        count = self.files.num_partitions
        vectors = self._checked(queries, 1)
        return partition_ranks(self.files, vectors, positions, lambda batch: self._nearest_partitions(batch, count)[1])

    @property
    def shape(self) -> Shape:
        """The properties that determine the cost of a search."""
        width = self.files.code_width * (4 if self.is_exact else 1)
        tables, is_fast = self.files.codebook.nbytes, has_fast_scan(self.files)
        is_coarse = is_fast and self.files.rounding is None  # a bit per number loses far more than the tables
        return Shape(self.num_rows, self.files.num_partitions, False, width, tables, is_fast, is_coarse)

    def statistics(self) -> dict[str, Any]:
        """Return the statistics of the segment with the fields of pylance's index_statistics."""
        return figures(self.files)

    @safe_after_fork
    def prewarm(self) -> None:
        """Read all data that searches use, and cache it within the limit."""
        self.rows()
        self._lists.with_lists(np.arange(self.files.num_partitions))

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self.files.nbytes + self._lists.nbytes

    def _checked(self, queries: Queries, k: int) -> Queries:
        if queries.ndim != 2 or queries.shape[1] != self.dim:
            raise InvalidInputError("the query vector has the wrong length", expected=self.dim, found=queries.shape[-1])
        if k < 1:
            raise InvalidInputError("k", expected="at least 1", found=k)
        vectors = np.ascontiguousarray(queries, np.float32)
        vectors = np.ascontiguousarray(normalized(vectors)) if self.metric == "cosine" else vectors
        rounding = self.files.rounding
        return vectors if rounding is None else rounding.rotation.of(vectors)

    def _search_above(
        self, vectors: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> tuple[_Distances, Int64s]:
        """Search with a lower bound. Requests more and more neighbours until each query has k above the bound."""
        results = [self._one_above(vectors[i : i + 1], k, allowed, probe) for i in range(len(vectors))]
        return np.vstack([d for d, _ in results]), np.vstack([p for _, p in results])

    def _one_above(
        self, vector: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> tuple[_Distances, Int64s]:
        candidates = k
        while True:
            candidates = min(4 * candidates, self.num_rows)
            distances, positions = self._search(vector, candidates, allowed, probe)
            good = np.flatnonzero((positions[0] >= 0) & (distances[0] >= np.float32(probe.lower or 0)))[:k]
            if len(good) == k or positions[0, -1] < 0 or candidates == self.num_rows:
                empty = _nothing(1, k)
                empty.distances[0, : len(good)] = distances[0, good]
                empty.positions[0, : len(good)] = positions[0, good]
                return empty.distances, empty.positions

    def _search(
        self, vectors: Queries, k: int, allowed: NDArray[np.bool_] | None, probe: Probe
    ) -> tuple[_Distances, Int64s]:
        if allowed is not None and probe.share is not None and self.is_tied(allowed):
            return self._search_tied(vectors, k, allowed, probe)
        max_partitions = self._most_partitions(probe)
        width = min(max(probe.nprobes, 1), max_partitions)
        selector = None if allowed is None else self._selector(allowed)
        coarse, partitions = self._nearest_partitions(vectors, width)
        if len(vectors) < BATCH_QUERIES:
            distances, positions = self._scan(vectors, k, coarse, partitions, selector, probe)
        else:
            order = np.argsort(partitions[:, 0], kind="stable")
            distances, positions = np.empty((len(vectors), k), np.float32), np.empty((len(vectors), k), np.int64)
            result = self._scan(vectors[order], k, coarse[order], partitions[order], selector, probe)
            distances[order], positions[order] = result
        if width < max_partitions:
            if allowed is not None and probe.share is not None:
                far = np.flatnonzero(self._allowed_counts.are_few(allowed, probe.share, partitions))
                if len(far):
                    result = self._search_tied(np.ascontiguousarray(vectors[far]), k, allowed, probe)
                    distances[far], positions[far] = result
            if is_short(positions):
                again = np.flatnonzero(positions[:, -1] < 0)
                scope = _Scope(allowed, selector, probe, width, max_partitions)
                self._widen(vectors, k, again, scope, distances, positions)
        return distances, positions

    def _search_tied(
        self, vectors: Queries, k: int, allowed: NDArray[np.bool_], probe: Probe
    ) -> tuple[_Distances, Int64s]:
        """Search with a filter that is tied to the vectors, in the partitions that `Frontier` selects."""
        counts, count = self._allowed_counts.of(allowed), self.files.num_partitions
        best, selector = BestHits(len(vectors), k, k), self._selector(allowed)
        step = max(INDEX_BLOCK_ROWS // count, 1)
        for numbers in (np.arange(i, min(i + step, len(vectors))) for i in range(0, len(vectors), step)):
            batch = np.ascontiguousarray(vectors[numbers])
            order = self._nearest_partitions(batch, count)
            lengths = np.linalg.norm(batch, axis=1) if self.metric == "dot" else None
            sign = np.float32(1 if lengths is None else -1)
            coarse = np.full_like(order[0], sign * np.float32(np.inf))  # faiss omits infinite distances
            np.put_along_axis(coarse, order[1], order[0], axis=1)
            frontier = Frontier(sign * coarse, lengths, counts, self._spread(), k, probe)
            partitions = frontier.first()
            while partitions.shape[1]:
                near = np.ascontiguousarray(np.take_along_axis(coarse, partitions, axis=1))
                best.merge(numbers, *self._scan(batch, k, near, partitions, selector, probe))
                partitions = frontier.further(faiss_limits(best.limits[numbers], self.metric, probe))
        hits = best.hits()
        return hits.distances, hits.positions

    def _spread(self) -> Spread:
        """Return the spread of vectors around their centroids, measured on a sample on first use."""
        if self._known_spread is None:
            places = sampled_places(self.files.partitions)
            vectors = self._lists.vectors(places)
            owners = np.array([partition for partition, _ in places])
            self._known_spread = Spread.of(vectors, self._lists.centroids[owners], is_dot=self.metric == "dot")
        return self._known_spread

    def _selector(self, allowed: NDArray[np.bool_]) -> Selector:
        """Return a faiss selector of allowed positions. The selector of the last mask is cached."""
        last = self._last_selector
        if last is not None and last.allowed is allowed and not allowed.flags.writeable:
            return last
        new_selector = self._last_selector = Selector(allowed, self.num_rows)
        return new_selector

    def _widen(
        self,
        vectors: Queries,
        k: int,
        again: Int64s,
        scope: _Scope,
        distances: _Distances,
        positions: Int64s,
    ) -> None:
        """Search more partitions for queries with fewer than k allowed rows. Updates `distances` and `positions`."""
        allowed, width, most = scope.allowed, scope.width, scope.max_partitions
        counts = self.files.partitions.lengths if allowed is None else self._allowed_counts.of(allowed)
        step = max(INDEX_BLOCK_ROWS // most, 1)
        for numbers in (again[i : i + step] for i in range(0, len(again), step)):
            batch = np.ascontiguousarray(vectors[numbers])
            coarse, partitions = self._nearest_partitions(batch, most)
            inside = np.where(partitions >= 0, counts[partitions], 0)
            enough = np.cumsum(inside, axis=1) >= k
            needed = np.where(enough[:, -1], enough.argmax(axis=1) + 1, most)
            if scope.probe.upper is not None:  # allowed rows may lie beyond the bound
                needed[:] = most
            last = max(int(needed.max()), width)
            partitions = np.ascontiguousarray(partitions[:, :last])
            partitions[inside[:, :last] == 0] = -1
            partitions[np.arange(last) >= np.maximum(needed, width)[:, None]] = -1
            coarse = np.ascontiguousarray(coarse[:, :last])
            distances[numbers], positions[numbers] = self._scan(
                batch, k, coarse, partitions, scope.selector, scope.probe
            )

    def _nearest_partitions(self, vectors: Queries, width: int) -> tuple[_Distances, Int64s]:
        return near_partitions(self._lists.quantizer, vectors, width)

    def _scan(
        self,
        vectors: Queries,
        k: int,
        coarse: _Distances,
        partitions: Int64s,
        selector: Selector | None,
        probe: Probe,
    ) -> tuple[_Distances, Int64s]:
        """Return the nearest vectors of each query in the given partitions, with Lance's `_distance`."""
        self._lists.leave_out_empty(partitions)
        loaded = self._lists.with_lists(partitions)
        distances = np.empty((len(vectors), k), np.float32)
        positions = np.empty((len(vectors), k), np.int64)
        parameters = _parameters(partitions.shape[1]) if selector is None else selector.parameters(partitions.shape[1])

        def ask(span: slice) -> None:
            near, found = (partitions[span], coarse[span]), (distances[span], positions[span])
            _search_lists(loaded.index, k, parameters, vectors[span], near, found)

        if len(vectors) <= SLICE_QUERIES:
            with one_thread(self._lists.is_threaded):
                _search_lists(loaded.index, k, parameters, vectors, (partitions, coarse), (distances, positions))
        else:
            in_slices(ask, len(vectors), SLICE_QUERIES)
        if self.metric == "dot":
            np.subtract(1, distances, out=distances)
        elif self.metric == "cosine":
            distances *= np.float32(0.5)
        if probe.upper is not None:
            positions[distances >= np.float32(probe.upper)] = -1
        if is_short(positions):
            distances[positions < 0] = np.inf
        return distances, positions


def _search_lists(
    index: Any,
    k: int,
    parameters: Any,
    vectors: Queries,
    near: tuple[Int64s, _Distances],
    found: tuple[_Distances, Int64s],
) -> None:
    """Search the lists of near partitions with faiss, and write the results to `found`.

    Args:
        index: faiss index with the lists.
        k: Number of neighbours per query.
        parameters: faiss parameters of the search.
        vectors: float32 (queries, dim).
        near: Partitions of each query, int64 (queries, partitions), and the distances of their centroids, float32.
        found: Distances, float32 (queries, k), and positions, int64 (queries, k).
    """
    pointer = faiss.swig_ptr
    given = pointer(vectors), k, pointer(near[0]), pointer(near[1]), pointer(found[0]), pointer(found[1])
    index.search_preassigned_c(len(vectors), *given, False, parameters)


class Selector:
    """A faiss selector of allowed positions. It owns the memory that faiss reads.

    Attributes:
        allowed: bool (num_rows,): whether each position may be found.

    Args:
        allowed: bool (num_rows,): whether each position may be found.
        num_rows: Number of positions.

    Raises:
        InvalidInputError: `allowed` does not have `num_rows` values.
    """

    def __init__(self, allowed: NDArray[np.bool_], num_rows: int) -> None:
        if allowed.shape != (num_rows,):
            raise InvalidInputError(
                "the allowed positions have the wrong shape", expected=num_rows, found=allowed.shape
            )
        self.allowed = allowed
        self._bits = np.packbits(allowed, bitorder="little")
        self._selector = faiss.IDSelectorBitmap(len(self._bits), faiss.swig_ptr(self._bits))

    def parameters(self, nprobe: int) -> Any:
        """Return the faiss parameters of a search in `nprobe` partitions."""
        parameters = faiss.SearchParametersIVF()
        parameters.nprobe = nprobe
        parameters.sel = self._selector
        return parameters


@dataclass(frozen=True, eq=False)
class _Scope:
    """The extent of a search that may continue in more partitions.

    Attributes:
        allowed: bool (num_rows,), whether each position may be found. None if all positions may be found.
        selector: The faiss selector of the allowed positions.
        probe: The caller's distance bounds, and settings for filters.
        width: Number of partitions that are searched first.
        max_partitions: Maximum number of partitions to search.
    """

    allowed: NDArray[np.bool_] | None
    selector: Selector | None
    probe: Probe
    width: int
    max_partitions: int


@lru_cache(256)
def _parameters(nprobe: int) -> Any:
    """Return the cached faiss parameters of an unfiltered search in `nprobe` partitions. Do not modify."""
    parameters = faiss.SearchParametersIVF()
    parameters.nprobe = nprobe
    return parameters


def is_short(positions: Int64s) -> bool:
    """Return whether some query has fewer than k neighbours."""
    return bool(np.minimum.reduce(positions[:, -1]) < 0)


def _nothing(queries: int, k: int) -> Hits:
    return Hits(np.full((queries, k), np.inf, np.float32), np.full((queries, k), -1, np.int64))
