"""Builds index segments in Spark tasks. Determines the number of segments, and reads samples of vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.training.lloyd import Sums, sums_of
from lance_duck.index.vector.training.train import of_metric
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import MOST_SEGMENT_ROWS, SEGMENT_ROWS
from lance_duck.spark.jobs.jobs import Progress, run_jobs, slots
from lance_duck.spark.jobs.scratch import Scratch, Shared
from lance_duck.spark.table_ref import TableRef
from lance_duck.verbs.indexes.kinds import IndexSpec
from lance_duck.verbs.indexes.rows import rows_of, runs_of
from lance_duck.verbs.indexes.segment_orders import SegmentOrder, SkippedIndex
from lance_duck.verbs.indexes.training import MEMORY, SampleOrder, SampleVectors, trained
from lance_duck.wire.index import IndexMetadata


@dataclass(frozen=True)
class SegmentSplit:
    """Settings for the number of segments of an index.

    Raises:
        InvalidInputError: A number is below 1, or both `num_segments` and `fragments_per_segment` are given.
    """

    num_segments: int | None = None
    fragments_per_segment: int | None = None
    parallelism: int | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                raise InvalidInputError(name, expected="a whole number from 1 on", found=repr(number))
        if self.num_segments is not None and self.fragments_per_segment is not None:
            raise InvalidInputError(
                "num_segments and fragments_per_segment exclude each other", remedy="give one of them"
            )

    def runs(self, spark: SparkSession, snapshot: Snapshot, fragments: Sequence[int]) -> list[tuple[int, ...]]:
        """Divide the fragments into runs of consecutive fragments."""
        if self.fragments_per_segment is not None:
            step, ids = self.fragments_per_segment, sorted(fragments)
            return [tuple(ids[first : first + step]) for first in range(0, len(ids), step)]
        if self.num_segments is not None:
            return runs_of(snapshot, fragments, self.num_segments)
        rows = rows_of(snapshot, fragments)
        most = min(len(fragments), max(rows // SEGMENT_ROWS, 1))
        count = most if most == 1 else min(most, slots(spark))
        return runs_of(snapshot, fragments, max(count, -(-rows // MOST_SEGMENT_ROWS)))


@dataclass
class SegmentTasks:
    """Tasks that write the segments of one change."""

    spark: SparkSession
    place: TableRef
    scratch: Scratch
    split: SegmentSplit
    memory: int = MEMORY
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self._trained: dict[str, Shared | SkippedIndex] = {}

    def runs(self, now: Snapshot, fragments: Sequence[int]) -> list[tuple[int, ...]]:
        """Divide the fragments into runs of consecutive fragments, one run per segment."""
        return self.split.runs(self.spark, now, fragments) if fragments else []

    def write(
        self, now: Snapshot, orders: Sequence[tuple[SegmentOrder, IndexSpec | None]]
    ) -> list[IndexMetadata | SkippedIndex]:
        """Write the segments."""
        jobs = [(order, None if spec is None else self._parameters(now, spec, order)) for order, spec in orders]
        words = ", ".join(dict.fromkeys(order.name for order, _ in orders))
        return self.run(partial(_write, self.place), jobs, f"index {words}", self.progress)

    def _parameters(self, now: Snapshot, spec: IndexSpec, order: SegmentOrder) -> Shared | SkippedIndex:
        """Return the parameters shared by all segments of an index. A vector index is trained only once."""
        if order.name not in self._trained:
            try:
                self._trained[order.name] = self.scratch.share(self._train(now, spec))
            except InvalidInputError as error:  # too few vectors for training
                if not order.may_skip:
                    raise
                self._trained[order.name] = SkippedIndex(str(error))
        return self._trained[order.name]

    def _train(self, now: Snapshot, spec: IndexSpec) -> Mapping[str, Any]:
        if spec.kind is not VECTOR or not now.count_rows():
            return spec.parameters
        readers = _VectorTasks(self)
        return trained(now, spec, readers, readers.parts, self.memory)

    def run(self, work: Any, jobs: Sequence[Any], words: str, progress: Progress | None = None) -> list[Any]:
        """Run jobs for this change."""
        return run_jobs(
            self.spark,
            work,
            jobs,
            parallelism=self.split.parallelism,
            progress=progress,
            scratch=self.scratch,
            words=words,
        )


class _VectorTasks:
    """Tasks that read the vectors of a sample."""

    def __init__(self, tasks: SegmentTasks) -> None:
        self._tasks = tasks
        self._left: list[Shared] = []
        self.parts = slots(tasks.spark)

    def draw(self, orders: Sequence[SampleOrder]) -> list[SampleVectors]:
        return self._run(_draw, orders, "sample")

    def bounds(self, orders: Sequence[SampleOrder]) -> list[tuple[float, float]]:
        return self._run(_bounds, orders, "bounds")

    def leave(self, orders: Sequence[SampleOrder]) -> None:
        self._left = self._tasks.run(partial(_leave, self._tasks.place, self._tasks.scratch), orders, "sample")

    def sums(self, centroids: NDArray[np.float32], metric: str) -> list[Sums]:
        reference = self._tasks.scratch.share(centroids)
        return self._tasks.run(partial(_sums, reference, metric), self._left, "centroids")

    def _run(self, work: Any, orders: Sequence[SampleOrder], words: str) -> list[Any]:
        return self._tasks.run(partial(work, self._tasks.place), orders, words)


def _write(place: TableRef, job: tuple[SegmentOrder, Shared | SkippedIndex | None]) -> IndexMetadata | SkippedIndex:
    order, parameters = job
    if isinstance(parameters, SkippedIndex):
        return parameters
    return order.write(place.pinned(order.version).handle.snapshot, {} if parameters is None else parameters.value)


def _draw(place: TableRef, order: SampleOrder) -> SampleVectors:
    return order.draw(place.pinned(order.version).handle.snapshot)


def _bounds(place: TableRef, order: SampleOrder) -> tuple[float, float]:
    return order.bounds(place.pinned(order.version).handle.snapshot)


def _leave(place: TableRef, scratch: Scratch, order: SampleOrder) -> Shared:
    sample = _draw(place, order)
    return scratch.share(of_metric(sample.values[sample.usable], order.metric))


def _sums(shared: Shared, metric: str, reference: Shared) -> Sums:
    return sums_of(reference.value, shared.value, metric)
