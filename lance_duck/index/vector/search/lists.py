"""Inverted lists in memory. A list is loaded when it is probed for the first time, together with others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct, intersection_of
from lance_duck.forks import Lock
from lance_duck.index.vector.codecs.rq import rabit_bytes, rabit_lists
from lance_duck.index.vector.costs import KEPT_BYTES, LOAD_BYTES
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import has_residual
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.fast_scan import (
    BLOCK,
    block_lists,
    fast_lists,
    has_fast_scan,
    packed_blocks,
    rounded_blocks,
)

_ID_BYTES: Final = 8


def _flat_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists, for vectors.

    Args:
        files: Files of a segment with flat storage.
        quantizer: faiss index of the centroids. It must outlive the result.
        metric: faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    """
    return faiss.IndexIVFFlat(quantizer, files.dim, files.num_partitions, metric)


def _flat_bytes(codes: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return vectors (n, dim) in the byte layout of faiss, (n, code size), C-contiguous."""
    raw: NDArray[np.uint8] = np.ascontiguousarray(codes, np.float32).view(np.uint8)
    return raw


def _scalar_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists, for SQ codes. The arguments are the same as for `_flat_lists`."""
    kind = faiss.ScalarQuantizer.QT_8bit_uniform
    index = faiss.IndexIVFScalarQuantizer(quantizer, files.dim, files.num_partitions, kind, metric, False)
    faiss.copy_array_to_vector(faiss_bounds(*files.bounds), index.sq.trained)
    return index


def faiss_bounds(start: float, end: float) -> Any:
    """Return the trained state of faiss's QT_8bit_uniform for Lance's bounds: float32 [vmin, vdiff].

    faiss encodes numbers like Lance. It decodes a code c to the middle of its interval, vmin + (c + 1/2) / 255 vdiff.
    """
    return np.array([start, end - start], np.float32)


def _product_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists, for PQ codes. The arguments are the same as for `_flat_lists`.

    faiss can precompute tables of distances between centroids and codes. These tables are disabled, because they make
    distances less precise, and do not make searches faster (`benchmarks/partition_costs.py`).
    """
    parts = len(files.codebook)
    index = faiss.IndexIVFPQ(quantizer, files.dim, files.num_partitions, parts, files.bits, metric)
    index.by_residual = has_residual(files.metric)
    faiss.copy_array_to_vector(files.codebook.reshape(-1), index.pq.centroids)
    index.use_precomputed_table = -1
    return index


_MAKERS: Final = {"FLAT": _flat_lists, "SQ": _scalar_lists, "PQ": _product_lists}


class LoadedLists:
    """A faiss index with some lists of a segment. The ids in the lists are positions. Lists are never removed.

    Attributes:
        index: faiss's IndexIVF. Search it only with `search_preassigned`.
        present: bool (partitions + 1,): mask of loaded lists. The last item, for -1, is always true.
        used: int64 (partitions + 1,): time at which each list was last probed.
        nbytes: Size of the lists, in bytes.
    """

    def __init__(self, index: Any, files: VectorFiles) -> None:
        self.index = index
        self.present = np.zeros(files.num_partitions + 1, np.bool_)
        self.present[:-1] = files.partitions.lengths == 0
        self.present[-1] = True
        self.used = np.zeros(files.num_partitions + 1, np.int64)
        self.nbytes = 0
        count = files.num_partitions
        is_fast = has_fast_scan(files)
        self.lists: Any = block_lists(index) if is_fast else faiss.ArrayInvertedLists(count, index.code_size)
        index.replace_invlists(self.lists, False)

    def add(self, partition: int, codes: NDArray[np.uint8], positions: range) -> None:
        """Add the list of a partition: the codes of the given positions, in the byte layout of faiss."""
        ids = np.arange(positions.start, positions.stop, dtype=np.int64)
        self.lists.add_entries(partition, len(ids), faiss.swig_ptr(ids), faiss.swig_ptr(codes))
        self.nbytes += codes.nbytes + ids.nbytes
        self.present[partition] = True


class Lists:
    """The lists of a segment. Safe to use from several threads.

    Probed lists are cached up to the limit. Beyond it, the least recently used lists are dropped.

    Attributes:
        centroids: float32 (partitions, dim), for comparison with queries. They are rotated if queries are rotated.
        is_threaded: Whether faiss starts threads for each query, which takes longer than the query.

    Args:
        files: Files of the segment.
        limit: Cache size for lists, in bytes. A search may need more.
    """

    def __init__(self, files: VectorFiles, limit: int = KEPT_BYTES) -> None:
        self.files = files
        self.metric = faiss.METRIC_INNER_PRODUCT if files.metric == "dot" else faiss.METRIC_L2
        self.quantizer: Any = faiss.IndexFlat(files.dim, self.metric)
        self.centroids = np.ascontiguousarray(files.centroids)
        if files.rounding is not None:
            self.centroids = files.rounding.rotation.of(self.centroids)
        self.quantizer.add(self.centroids)
        self._is_fast = has_fast_scan(files)
        self.is_threaded = self._is_fast and files.rounding is not None
        empty = files.partitions.lengths == 0
        self._empty = empty if self._is_fast and empty.any() else None
        self._limit = limit
        self._lock = Lock()
        self._ticks = 0
        self._loaded = LoadedLists(self._index(), files)
        lengths, block = files.partitions.lengths, BLOCK if self._is_fast else 1
        self._sizes = -(-lengths // block) * block * self._loaded.index.code_size + lengths * _ID_BYTES
        self._may_overflow = int(self._sizes.sum()) > limit

    @property
    def nbytes(self) -> int:
        """Size of the loaded lists and the centroids, in bytes."""
        return int(self._loaded.nbytes + self.files.centroids.nbytes)

    def leave_out_empty(self, partitions: NDArray[np.int64]) -> None:
        """Replace empty partitions by -1. Their distant centroids would make faiss's fast scan less precise."""
        if self._empty is not None:
            partitions[self._empty[partitions]] = -1

    def with_lists(self, partitions: NDArray[np.int64]) -> LoadedLists:
        """Load the lists of the given partitions if necessary, and return all loaded lists. -1 is ignored.

        Raises:
            CorruptError: The file is corrupt.
        """
        loaded = self._loaded
        if self._may_overflow:
            self._ticks += 1
            loaded.used[partitions] = self._ticks
        if loaded.present[partitions].all():
            return loaded
        with self._lock:
            if self._lock.was_held:  # a thread that was lost in the fork may have left the lists incomplete
                self._loaded = LoadedLists(self._index(), self.files)
                self._lock.was_held = False
            loaded = self._loaded
            new_partitions = distinct(partitions[~loaded.present[partitions]])
            if self._may_overflow and loaded.nbytes + int(self._sizes[new_partitions].sum()) > self._limit:
                needed = distinct(partitions[partitions >= 0])
                loaded = self._renewed(loaded, needed)
                new_partitions = needed[~loaded.present[needed]]
            self._fill(loaded, new_partitions.tolist())
            self._loaded = loaded
            return loaded

    def vectors(self, places: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
        """Decode codes: float32 (places, dim). The vectors are rotated if queries are rotated.

        Args:
            places: Pairs of a partition and a position in its list.
        """
        loaded = self.with_lists(distinct(np.array([partition for partition, _ in places], np.int64)))
        vectors = np.empty((len(places), self.quantizer.d), np.float32)
        for vector, (partition, place) in zip(vectors, places, strict=True):
            loaded.index.reconstruct_from_offset(partition, place, faiss.swig_ptr(vector))
        return vectors

    def _fill(self, loaded: LoadedLists, partitions: Sequence[int]) -> None:
        """Read the lists of some partitions and add them to `loaded`."""
        offsets = self.files.partitions.offsets
        for group in self._groups(partitions):
            for partition, codes in zip(group, self.files.codes(group), strict=True):
                first = int(offsets[partition])
                loaded.add(partition, self._stored(partition, codes), range(first, first + len(codes)))

    def _stored(self, partition: int, codes: NDArray[Any]) -> NDArray[np.uint8]:
        """Convert the codes of a partition to the byte layout of faiss."""
        rounding = self.files.rounding
        if rounding is not None:
            rows = rabit_bytes(rounding, codes, self.centroids[partition], self.files.metric)
            return rounded_blocks(rows, rounding.dim // 8) if self._is_fast else rows
        if self._is_fast:
            return packed_blocks(codes)
        return _flat_bytes(codes) if self.files.storage == "FLAT" else codes

    def _groups(self, partitions: Sequence[int]) -> list[list[int]]:
        """Split partitions into groups that are read together."""
        groups: list[list[int]] = []
        size = LOAD_BYTES
        for partition in partitions:
            if size >= LOAD_BYTES:
                groups.append([])
                size = 0
            groups[-1].append(partition)
            size += int(self._sizes[partition])
        return groups

    def _renewed(self, old: LoadedLists, needed: NDArray[np.int64]) -> LoadedLists:
        """Copy the needed lists and the most recently used lists from `old`, up to half of the limit."""
        new = LoadedLists(self._index(), self.files)
        new.used[:] = old.used
        present = np.flatnonzero(old.present[:-1] & (self._sizes > 0))
        retained = difference_of(present, needed)
        retained = retained[np.argsort(-old.used[retained], kind="stable")]
        retained = retained[np.cumsum(self._sizes[retained]) <= self._limit // 2 - int(self._sizes[needed].sum())]
        for partition in np.concatenate([intersection_of(present, needed), retained]).tolist():
            size = int(self.files.partitions.lengths[partition])
            new.lists.add_entries(partition, size, old.lists.get_ids(partition), old.lists.get_codes(partition))
            new.present[partition] = True
            new.nbytes += int(self._sizes[partition])
        return new

    def _index(self) -> Any:
        """Return a faiss index with empty lists."""
        rounding = self.files.rounding
        if self._is_fast:
            index = fast_lists(self.files, self.quantizer, self.metric)
        elif rounding is not None:
            index = rabit_lists(rounding, self.files.num_partitions, self.quantizer, self.metric)
        else:
            index = _MAKERS[self.files.storage](self.files, self.quantizer, self.metric)
        index.own_fields = False
        index.ntotal = self.files.num_rows
        index.is_trained = True
        return index
