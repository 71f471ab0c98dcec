"""Training of a vector index with vectors that several processes read.

A single process trains with `index.vector.build`, which reads all vectors first and does not need a separate sample.
Both train the model with `index.vector.training.train`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import union_of
from lance_duck.errors import InternalError, UnsupportedError
from lance_duck.index.files import INDEX_BLOCK_BYTES
from lance_duck.index.kind import VALUE
from lance_duck.index.vector.build import number_type
from lance_duck.index.vector.costs import TRAINING_ROUNDS
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.multivectors import is_multivector
from lance_duck.index.vector.spill import Rows, Spill, VectorSpill
from lance_duck.index.vector.training.index_spec import VectorSpec
from lance_duck.index.vector.training.lloyd import Sums, is_settled, moved, some_of
from lance_duck.index.vector.training.model import Model
from lance_duck.index.vector.training.train import SEED, apart, numbers_between, of_metric, train
from lance_duck.index.vector.vectors import vectors_of
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.costs import SAMPLE_GROWTH, WHOLE_SAMPLE_BYTES
from lance_duck.verbs.indexes.kinds import IndexSpec
from lance_duck.verbs.indexes.rows import index_rows, rows_of, runs_of

MEMORY: Final = 2 << 30
"""Memory limit for training vectors in one process, in bytes."""


@dataclass(frozen=True)
class SampleVectors:
    """Vectors of a sample. Can be pickled.

    Attributes:
        values: float32 or uint8, shape (n, dim).
        usable: bool, shape (n,): see `index.vector.vectors`.
    """

    values: NDArray[Any]
    usable: NDArray[np.bool_]


@dataclass(frozen=True)
class SampleOrder:
    """Vectors to read. Can be pickled.

    Attributes:
        version: Table version.
        path: Dotted path of the column.
        metric: Distance metric of the index.
        fragments: Ids of the fragments.
        positions: Ascending positions among all live rows of the table, or None for all rows of the fragments.
    """

    version: int
    path: str
    metric: str
    fragments: tuple[int, ...]
    positions: NDArray[np.int64] | None = None

    def draw(self, snapshot: Snapshot) -> SampleVectors:
        """Read the vectors."""
        values, usable = zip(*self._pieces(snapshot), strict=True)
        return SampleVectors(np.concatenate(values), np.concatenate(usable))

    def bounds(self, snapshot: Snapshot) -> tuple[float, float]:
        """Return the minimum and maximum value in usable vectors. Infinite without usable vectors."""
        return numbers_between(of_metric(values[usable], self.metric) for values, usable in self._pieces(snapshot))

    def _pieces(self, snapshot: Snapshot) -> Iterator[tuple[NDArray[Any], NDArray[np.bool_]]]:
        type_ = snapshot.schema.by_path(self.path).storage_type
        none = vectors_of(pa.array([], type_), metric=self.metric)
        yield none.values, none.usable
        if self.positions is None:
            with index_rows(snapshot, self.path, VECTOR, self.fragments) as rows:
                for batch in rows:
                    vectors = vectors_of(batch.column(VALUE), metric=self.metric)
                    yield vectors.values, vectors.usable
            return
        table = TableScan(snapshot)
        projection = table.projection([self.path])
        step = max(1, INDEX_BLOCK_BYTES // (4 * type_.list_size))
        for first in range(0, len(self.positions), step):
            batch = table.taker.by_position(self.positions[first : first + step], projection)
            vectors = vectors_of(batch.column(0), metric=self.metric)
            yield vectors.values, vectors.usable


class VectorReaders(Protocol):
    """Processes that read vectors. Each needs access to the table."""

    def draw(self, orders: Sequence[SampleOrder]) -> list[SampleVectors]:
        """Read and return vectors."""

    def bounds(self, orders: Sequence[SampleOrder]) -> list[tuple[float, float]]:
        """Return the minimum and maximum value of the vectors."""

    def leave(self, orders: Sequence[SampleOrder]) -> None:
        """Read vectors, and keep the usable ones in the reading processes."""

    def sums(self, centroids: NDArray[np.float32], metric: str) -> list[Sums]:
        """Assign the kept vectors to centroids, and return the sums of each process."""


def trained(
    snapshot: Snapshot, spec: IndexSpec, places: VectorReaders, parts: int, memory: int = MEMORY
) -> Mapping[str, Any]:
    """Train the model of a vector index, with vectors that other processes read.

    If all vectors are usable, the result equals `index.vector.training.train` on the whole table. If the sample does
    not fit in memory, it stays in the other processes, and centroids are trained in rounds over it.

    Args:
        snapshot: The version.
        spec: The index.
        places: Processes that read vectors.
        parts: Number of orders per call.
        memory: Memory limit for training vectors in this process, in bytes.

    Returns:
        The index parameters, with centroids, bounds and codebook for all segments.

    Raises:
        InvalidInputError: The table has too few vectors.
    """
    type_ = snapshot.schema.by_path(spec.column).storage_type
    if is_multivector(type_):
        raise UnsupportedError(
            "an index on several vectors per row cannot be built from segments",
            where=f"column {spec.column}",
            remedy="call create_index",
        )
    vector_spec = VectorSpec.of(spec.parameters, type_)
    if vector_spec.is_trained:
        return spec.parameters
    training = _Training(snapshot, spec.column, vector_spec, number_type(type_.value_type), places, parts, memory)
    model = training.run()
    parameters = {**spec.parameters, "num_partitions": len(model.centroids), "ivf_centroids": model.centroids}
    if vector_spec.centroids is None:
        parameters |= {"asked_partitions": vector_spec.asked_partitions, "trained_rows": snapshot.count_rows()}
    if model.storage == "PQ":
        parameters["pq_codebook"] = model.codebook
    elif model.storage == "SQ":
        parameters["sq_bounds"] = model.bounds
    return parameters


class _SampledVectors:
    """Represents all vectors during training: holds their count and the samples that training draws."""

    def __init__(self, count: int, samples: Mapping[int, NDArray[Any]]) -> None:
        self._count = count
        self._samples = samples

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Rows, NDArray[Any]]]:
        raise InternalError("a sample is not all vectors", expected="bounds that are known")

    def sample(self, count: int, seed: int) -> NDArray[Any]:
        vectors = self._samples[seed]
        return vectors if len(vectors) <= count else some_of(vectors, count, seed)


@dataclass(frozen=True)
class _Training:
    snapshot: Snapshot
    path: str
    spec: VectorSpec
    item: np.dtype[Any]
    places: VectorReaders
    parts: int
    memory: int

    def run(self) -> Model:
        total, width = self.snapshot.count_rows(), self.spec.dim * (1 if self.spec.metric == "hamming" else 4)
        if total * width <= min(WHOLE_SAMPLE_BYTES, self.memory):
            return self._of_all()
        spec = self.spec
        if spec.storage == "SQ" and spec.bounds is None:
            bounds = self.places.bounds(self._orders(None))
            low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
            if low <= high:
                spec = replace(spec, bounds=apart(low, high))
        count = spec.partitions_for(total)
        if spec.centroids is None and spec.metric != "hamming" and spec.sample_rate * count * width > self.memory:
            spec = replace(spec, centroids=self._in_rounds(total, count))
        rate = 1
        while rate * self._needed(spec, total) < total:
            sampled = self._sampled(spec, total, rate)
            if sampled is not None:
                return train(spec, sampled, self.item)
            rate *= SAMPLE_GROWTH
        return self._of_all()

    def _needed(self, spec: VectorSpec, total: int) -> int:
        """Return the number of vectors in the larger sample."""
        centroids = spec.sample_rate * spec.partitions_for(total) if spec.centroids is None else 0
        codebook = spec.sample_rate << spec.bits if spec.storage == "PQ" and spec.codebook is None else 0
        return max(centroids, codebook)

    def _of_all(self) -> Model:
        with Spill() as spill:
            vectors = VectorSpill(self.memory, spill)
            for sample in self.places.draw(self._orders(None)):
                vectors.add(np.zeros(int(sample.usable.sum()), np.uint64), sample.values[sample.usable])
            return train(self.spec, vectors, self.item)

    def _sampled(self, spec: VectorSpec, total: int, rate: int) -> _SampledVectors | None:
        """Read both samples at `rate` times the needed size. Returns None if too few vectors are usable."""
        centroids = spec.sample_rate * spec.partitions_for(total) if spec.centroids is None else 0
        codebook = spec.sample_rate << spec.bits if spec.storage == "PQ" and spec.codebook is None else 0
        places = {SEED: _chosen(total, rate * centroids, SEED), SEED + 1: _chosen(total, rate * codebook, SEED + 1)}
        positions = union_of(places[SEED], places[SEED + 1])
        sample = self.places.draw(self._orders(positions)) if len(positions) else []
        values = np.concatenate([d.values for d in sample]) if sample else np.empty((0, spec.dim), np.float32)
        usable = np.concatenate([d.usable for d in sample]) if sample else np.empty(0, np.bool_)
        samples = {}
        for seed, mine in places.items():
            rows = np.searchsorted(positions, mine)
            samples[seed] = values[rows[usable[rows]]]
        share = float(usable.mean()) if len(usable) else 1.0
        least = {SEED: spec.partitions_for(round(total * share)) if centroids else 0}
        least[SEED + 1] = 1 << spec.bits if codebook else 0
        if any(len(samples[seed]) < least[seed] for seed in samples):
            return None
        return _SampledVectors(round(total * share), samples)

    def _in_rounds(self, total: int, count: int) -> NDArray[np.float32]:
        """Train centroids on a sample that stays in the reading processes."""
        size = min(self.spec.sample_rate * count, total)
        positions = _chosen(total, size, SEED)
        self.places.leave(self._orders(positions))
        begin = _chosen(len(positions), min(2 * count, size), SEED + 2)
        sample = self.places.draw(self._orders(positions[begin]))
        usable = of_metric(np.concatenate([d.values[d.usable] for d in sample]), self.spec.metric)
        centroids = some_of(usable, min(count, len(usable)), SEED) if len(usable) else usable
        before: float | None = None
        for _ in range(min(self.spec.max_iters, TRAINING_ROUNDS) if len(centroids) else 0):
            centroids, loss = moved(self.places.sums(centroids, self.spec.metric), centroids)
            if is_settled(before, loss):
                break
            before = loss
        return centroids

    def _orders(self, positions: NDArray[np.int64] | None) -> list[SampleOrder]:
        """Return one order per run of neighbouring fragments, for these positions or for all rows."""
        about = (self.snapshot.version, self.path, self.spec.metric)
        runs = runs_of(self.snapshot, self.snapshot.fragments.ids(), self.parts)
        if positions is None:
            return [SampleOrder(*about, run) for run in runs]
        ends = np.cumsum([rows_of(self.snapshot, run) for run in runs])
        pieces = np.split(positions, np.searchsorted(positions, ends))[:-1]
        return [SampleOrder(*about, run, piece) for run, piece in zip(runs, pieces, strict=True) if len(piece)]


def _chosen(total: int, count: int, seed: int) -> NDArray[np.int64]:
    """Return the ascending positions of a sample. `VectorSpill.sample` chooses the same positions."""
    if count >= total:
        return np.arange(total)
    return np.sort(np.random.default_rng(seed).choice(total, count, replace=False)).astype(np.int64)
