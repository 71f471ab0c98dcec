"""Indexes that tasks of Spark build, each a segment over a run of neighbouring fragments; the driver commits once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import SparkSession

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.lloyd import Sums, sums_of
from lance_duck.index.vector.train import of_metric
from lance_duck.snapshot import Snapshot
from lance_duck.spark.jobs import Progress, run_jobs, slots
from lance_duck.spark.place import Place
from lance_duck.spark.scratch import Scratch, Shared
from lance_duck.verbs.change import transaction_properties as properties_of
from lance_duck.verbs.index_create import IndexWish, rows_of
from lance_duck.verbs.index_describe import fragment_ids
from lance_duck.verbs.index_parts import PartOrder, create_in_parts, index_wish, runs_of
from lance_duck.verbs.index_training import MEMORY, Drawn, SampleOrder, trained
from lance_duck.wire.index import IndexMetadata

_LEAST_ROWS: Final = 1 << 17  # of a segment: each costs every search a little
_MOST_ROWS: Final = 1 << 25


@dataclass(frozen=True)
class IndexFigures:
    """What the building of an index came to.

    Attributes:
        name: Of the index.
        version: Of the table that has it.
        rows: Living rows that its new segments cover.
        segments: Number of these.
        bytes: Of their files.
        seconds: From the call to the commit.
    """

    name: str
    version: int
    rows: int
    segments: int
    bytes: int
    seconds: float


def create_index(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    column: str,
    kind: str,
    *,
    name: str | None = None,
    replace: bool = False,
    train: bool = True,
    num_segments: int | None = None,
    fragments_per_segment: int | None = None,
    parallelism: int | None = None,
    memory_limit: int = MEMORY,
    progress: Progress | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    **parameters: Any,
) -> IndexFigures:
    """Build an index by tasks of Spark, and commit it as one change.

    A vector index is trained once, by the driver, on a sample that tasks read; where the sample does not fit, by rounds
    of tasks over a sample that stays in files beside the table. All its segments have the same centroids, codebook and
    bounds. What other writers do meanwhile is as for `LanceDataset.create_scalar_index`: rows that they add are not
    covered. A failure leaves nothing.

    Args:
        spark: Classic or Connect.
        uri: The table, as tasks reach it, too.
        column: Its dotted path.
        kind: "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "IVF_FLAT", "IVF_SQ", "IVF_PQ",
            "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or "IVF_HNSW_PQ", in any case.
        name: None: "{column}_idx".
        replace: Take the place of an index of this name over this column.
        train: Build it of all rows; False: it covers nothing until `optimize_indices`.
        num_segments: At most, one for each task; None: as many as tasks run at once, fewer for few rows.
        fragments_per_segment: In place of num_segments.
        parallelism: Tasks at most that run at once.
        memory_limit: Bytes of vectors that the driver may train with.
        progress: Told (jobs done, all jobs) while segments are built.
        commit_message: Kept with the transaction.
        transaction_properties: Likewise.
        storage_options: Of the table.
        parameters: Of the kind, as `LanceDataset.create_scalar_index` and `create_index` take them: metric,
            num_partitions, num_sub_vectors, rows_per_zone, …

    Raises:
        NotFoundError: There is no table.
        UnknownColumnError, NotIndexableError, IndexExistsError, InvalidInputError, UnsupportedError: As there.
        CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
        JobError: Spark could not run the tasks.
    """
    began = time.monotonic()
    cut = Cut(num_segments, fragments_per_segment, parallelism)
    said = properties_of(commit_message, transaction_properties)
    place = Place.of(uri, storage_options)
    snapshot = place.dataset()._to_change
    wish = index_wish(snapshot, column, kind, parameters, name, replace=replace, train=train)
    with Scratch.beside(place) as scratch:
        builder = Builder(spark, place, scratch, cut, memory_limit, progress)
        after, segments = create_in_parts(snapshot, wish, builder.build, said)
    return figures(segments[0].name, after, segments, began)


def figures(name: str, after: Snapshot, segments: Sequence[IndexMetadata], began: float) -> IndexFigures:
    """What segments came to, since a moment of the monotonic clock."""
    covered = set().union(*map(fragment_ids, segments))
    size = sum(size for segment in segments for _, size in segment.files)
    seconds = time.monotonic() - began
    return IndexFigures(name, after.version, rows_of(after, covered), len(segments), size, seconds)


@dataclass(frozen=True)
class Cut:
    """Into how many segments fragments are cut.

    Raises:
        InvalidInputError: A number below 1, or both ways.
    """

    num_segments: int | None = None
    fragments_per_segment: int | None = None
    parallelism: int | None = None

    def __post_init__(self) -> None:
        for name, number in vars(self).items():
            if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 1):
                raise InvalidInputError(name, expected="a whole number from 1 on", found=repr(number))
        if self.num_segments is not None and self.fragments_per_segment is not None:
            raise InvalidInputError("num_segments and fragments_per_segment", remedy="give one of them")

    def runs(self, spark: SparkSession, snapshot: Snapshot, fragments: Sequence[int]) -> list[tuple[int, ...]]:
        """Runs of neighbouring fragments."""
        if self.fragments_per_segment is not None:
            step, ids = self.fragments_per_segment, sorted(fragments)
            return [tuple(ids[first : first + step]) for first in range(0, len(ids), step)]
        if self.num_segments is not None:
            return runs_of(snapshot, fragments, self.num_segments)
        rows = rows_of(snapshot, fragments)
        most = min(len(fragments), max(rows // _LEAST_ROWS, 1))
        count = most if most == 1 else min(most, slots(spark))
        return runs_of(snapshot, fragments, max(count, -(-rows // _MOST_ROWS)))


@dataclass
class Builder:
    """Builds the parts of one change by tasks."""

    spark: SparkSession
    place: Place
    scratch: Scratch
    cut: Cut
    memory: int = MEMORY
    progress: Progress | None = None

    def __post_init__(self) -> None:
        self._trained: dict[str, Shared] = {}

    def build(self, now: Snapshot, wish: IndexWish, order: PartOrder) -> list[IndexMetadata]:
        """Build an order over fragments as segments over runs of them."""
        shared = self.parameters(now, wish, order.name)
        orders = [replace(order, fragments=run) for run in self.cut.runs(self.spark, now, order.fragments)]
        return self.run(partial(_build, self.place, shared), orders, f"index {order.name}", self.progress)

    def parameters(self, now: Snapshot, wish: IndexWish, name: str) -> Shared:
        """Parameters of all segments of an index, trained once where it is one of vectors."""
        if name not in self._trained:
            found = wish.parameters
            if wish.kind is VECTOR and now.count_rows():
                places = _Workers(self)
                found = trained(now, wish, places, places.parts, self.memory)
            self._trained[name] = self.scratch.share(found)
        return self._trained[name]

    def run(self, work: Any, jobs: Sequence[Any], words: str, progress: Progress | None = None) -> list[Any]:
        """Run jobs for this change."""
        return run_jobs(
            self.spark,
            work,
            jobs,
            parallelism=self.cut.parallelism,
            progress=progress,
            scratch=self.scratch,
            words=words,
        )


class _Workers:
    """Where the vectors of a sample are read: tasks of Spark."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._left: list[Shared] = []
        self.parts = slots(builder.spark)

    def draw(self, orders: Sequence[SampleOrder]) -> list[Drawn]:
        return self._run(_draw, orders, "sample")

    def bounds(self, orders: Sequence[SampleOrder]) -> list[tuple[float, float]]:
        return self._run(_bounds, orders, "bounds")

    def leave(self, orders: Sequence[SampleOrder]) -> None:
        self._left = self._builder.run(partial(_leave, self._builder.place, self._builder.scratch), orders, "sample")

    def sums(self, centroids: NDArray[np.float32], metric: str) -> list[Sums]:
        shared = self._builder.scratch.share(centroids)
        return self._builder.run(partial(_sums, shared, metric), self._left, "centroids")

    def _run(self, work: Any, orders: Sequence[SampleOrder], words: str) -> list[Any]:
        return self._builder.run(partial(work, self._builder.place), orders, words)


def _build(place: Place, shared: Shared, order: PartOrder) -> IndexMetadata:
    return order.build(place.pinned(order.version)._snapshot, shared.value)


def _draw(place: Place, order: SampleOrder) -> Drawn:
    return order.draw(place.pinned(order.version)._snapshot)


def _bounds(place: Place, order: SampleOrder) -> tuple[float, float]:
    return order.bounds(place.pinned(order.version)._snapshot)


def _leave(place: Place, scratch: Scratch, order: SampleOrder) -> Shared:
    drawn = _draw(place, order)
    return scratch.share(of_metric(drawn.values[drawn.usable], order.metric))


def _sums(shared: Shared, metric: str, left: Shared) -> Sums:
    return sums_of(left.value, shared.value, metric)
