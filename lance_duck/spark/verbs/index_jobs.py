"""Builds indexes in Spark tasks. Each task builds a segment over consecutive fragments, and the driver commits once."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lance_duck.arguments import checked_call
from lance_duck.snapshot import Snapshot
from lance_duck.spark.jobs.index_tasks import SegmentSplit, SegmentTasks
from lance_duck.spark.jobs.jobs import Progress
from lance_duck.spark.jobs.scratch import Scratch
from lance_duck.spark.table_ref import TableRef
from lance_duck.verbs.change import transaction_properties as properties_of
from lance_duck.verbs.indexes.create import create_index as write_index
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.verbs.indexes.optimize import OptimizeOptions
from lance_duck.verbs.indexes.optimize import optimize_indices as write_indices
from lance_duck.verbs.indexes.rows import rows_of
from lance_duck.verbs.indexes.training import MEMORY
from lance_duck.verbs.indexes.vector import spec_of
from lance_duck.wire.index import IndexMetadata


@dataclass(frozen=True)
class IndexFigures:
    """The result of building an index.

    Attributes:
        name: Name of the index.
        version: The table version that contains the index.
        rows: Number of rows that the new segments cover, without deleted rows.
        segments: Number of new segments.
        bytes: Size of the new segments' files.
        seconds: Time from the call to the commit.
    """

    name: str
    version: int
    rows: int
    segments: int
    bytes: int
    seconds: float


@checked_call
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
    """Build an index in Spark tasks, and commit it as one change.

    The driver trains a vector index once, on a sample that tasks read. If the sample does not fit in memory, tasks
    train it in rounds over sample files in the table's directory. All segments share centroids, codebook and bounds. As
    in `LanceDataset.create_scalar_index`, the index does not cover rows that other writers add during the build. A
    failed build does not leave files behind.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table. Workers must be able to access it.
        column: Dotted path of the column.
        kind: "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "NGRAM", "JSON", "RTREE", "INVERTED" (or
            "FTS"), "IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ" or "IVF_HNSW_PQ".
            Case-insensitive.
        name: Name of the index. By default "{column}_idx".
        replace: Replace an existing index with this name on this column.
        train: Build the index from all rows. If False, the index does not cover any rows until `optimize_indices` runs.
        num_segments: Maximum number of segments. Each task builds one. Defaults to the number of concurrent tasks, or
            fewer for small tables.
        fragments_per_segment: Alternative to `num_segments`.
        parallelism: Maximum number of concurrent tasks.
        memory_limit: Maximum bytes of vectors for training on the driver.
        progress: Called with (jobs done, all jobs) while segments are built.
        commit_message: Message to store with the transaction.
        transaction_properties: Properties to store with the transaction.
        storage_options: Settings of the object store.
        parameters: Parameters of the kind, as for `LanceDataset.create_scalar_index` and `create_index`: `metric`,
            `num_partitions`, `num_sub_vectors`, `rows_per_zone`, …

    Raises:
        NotFoundError: The table does not exist.
        UnknownColumnError, NotIndexableError, IndexExistsError, InvalidInputError, UnsupportedError: See
            `LanceDataset.create_scalar_index` and `create_index`.
        CommitConflictError: At each retry, other writers committed first, or a conflicting change was committed.
        JobError: Spark could not run the tasks.
    """
    began = time.monotonic()
    split = SegmentSplit(num_segments, fragments_per_segment, parallelism)
    properties = properties_of(commit_message, transaction_properties)
    place = TableRef.of(uri, storage_options)
    snapshot = place.dataset().handle.base
    spec = spec_of(snapshot, column, kind, parameters, name=name, replace=replace, train=train)
    with Scratch.beside(place) as scratch:
        tasks = SegmentTasks(spark, place, scratch, split, memory_limit, progress)
        after, segments = write_index(snapshot, spec, properties, tasks)
    return figures(segments[0].name, after, segments, began)


@checked_call
def optimize_indices(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    num_indices_to_merge: int | None = None,
    index_names: Sequence[str] | None = None,
    retrain: bool = False,
    num_segments: int | None = None,
    fragments_per_segment: int | None = None,
    parallelism: int | None = None,
    memory_limit: int = MEMORY,
    progress: Progress | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> list[IndexFigures]:
    """Extend indexes to rows that they do not cover, in Spark tasks and with one commit.

    Merges the same segments as `LanceDataset.optimize.optimize_indices`. If there are many new rows, they get several
    segments.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table. Workers must be able to access it.
        num_indices_to_merge: Number of newest segments to merge. With 0, segments are not merged. By default, segments
            are merged if they are small, or not much larger than the new rows.
        index_names: Names of the indexes. By default, all indexes.
        retrain: Rebuild the indexes from all rows.
        num_segments: Maximum number of segments for the new rows of an index. See `create_index` for the default.
        fragments_per_segment: Alternative to num_segments.
        parallelism: Maximum number of concurrent tasks.
        memory_limit: Maximum bytes of vectors for training on the driver.
        progress: Called with (jobs done, all jobs).
        commit_message: Message to store with the transaction.
        transaction_properties: Properties to store with the transaction.
        storage_options: Settings of the object store.

    Returns:
        Figures of each index that got new segments.

    Warns:
        IndexWarning: An index is left unchanged, because it is corrupt or of an unsupported kind.

    Raises:
        NotFoundError: The table does not exist.
        IndexNotFoundError: A named index does not exist.
        CommitConflictError: At each retry, other writers committed first, or a conflicting change was committed.
        JobError: Spark could not run the tasks.
    """
    began = time.monotonic()
    split = SegmentSplit(num_segments, fragments_per_segment, parallelism)
    properties = properties_of(commit_message, transaction_properties)
    place = TableRef.of(uri, storage_options)
    options = OptimizeOptions(num_indices_to_merge, index_names, retrain)
    with Scratch.beside(place) as scratch:
        tasks = SegmentTasks(spark, place, scratch, split, memory_limit, progress)
        after, segments = write_indices(place.dataset().handle.base, options, properties, tasks)
    names = dict.fromkeys(segment.name for segment in segments)
    return [figures(name, after, [s for s in segments if s.name == name], began) for name in names]


def figures(name: str, after: Snapshot, segments: Sequence[IndexMetadata], began: float) -> IndexFigures:
    """Return the figures of new segments. `began` is the value of the monotonic clock at the start of the call."""
    fragments = set().union(*map(fragment_ids, segments))
    size = sum(size for segment in segments for _, size in segment.files)
    seconds = time.monotonic() - began
    return IndexFigures(name, after.version, rows_of(after, fragments), len(segments), size, seconds)
