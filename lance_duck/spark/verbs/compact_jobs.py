"""Compaction in Spark tasks. Tasks rewrite groups of fragments, and the driver commits the groups in batches."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from pyspark.sql import SparkSession

from lance_duck.arguments import checked_call
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.compact import CompactionOutcome, compact_in_parts
from lance_duck.maintenance.index_remap import RemapOrder, RemapOutcome
from lance_duck.maintenance.options import CompactionArguments, compaction_options
from lance_duck.maintenance.rewrite import RewriteOrder, RewrittenGroup
from lance_duck.optimize import CompactionMetrics
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import COMMITS, COMMITS_WITH_INDEXES
from lance_duck.spark.jobs.jobs import Progress, run_jobs, slots
from lance_duck.spark.jobs.scratch import Scratch
from lance_duck.spark.sql.views import refresh_views
from lance_duck.spark.table_ref import TableRef
from lance_duck.verbs.change import transaction_properties as properties_of


@dataclass(frozen=True)
class CompactionFigures(CompactionMetrics):
    """The result and the cost of a compaction.

    Attributes:
        version: The table version after the compaction.
        commits: Number of commits.
        planned_again: Number of groups that were planned again, because another writer changed a fragment.
        bytes_written: Bytes of new data files.
        seconds: Duration of the call.
    """

    version: int = 0
    commits: int = 0
    planned_again: int = 0
    bytes_written: int = 0
    seconds: float = 0.0


@checked_call
def compact(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    groups_per_commit: int | None = None,
    parallelism: int | None = None,
    progress: Progress | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Unpack[CompactionArguments],
) -> CompactionFigures:
    """Merge small fragments with their neighbours, and drop deleted rows and columns, in Spark tasks.

    Groups are committed in batches. While a batch is committed, tasks already write the next one. A later failure does
    not undo committed batches, and does not leave files behind. If another writer changes a fragment, only its group is
    planned and written again.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table. Workers must be able to access it.
        groups_per_commit: Number of fragment groups per commit. By default, a compaction has a few commits. If indexes
            refer to rows by address, there are even fewer commits, because each one rewrites index segments.
        parallelism: Maximum number of concurrent tasks for one batch.
        progress: Called with (groups written, all known groups).
        commit_message: Message to store with the transactions.
        transaction_properties: Properties to store with the transactions.
        storage_options: Settings of the object store.
        options: See `lance_duck.optimize.DatasetOptimizer.compact_files`: `target_rows_per_fragment`, and the limits
            `max_source_fragments`, `max_source_rows` and `max_source_bytes`.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: An option is unknown or invalid.
        RetryableError: Other writers changed a group at each retry.
        JobError: Spark could not run the tasks.
    """
    began = time.monotonic()
    if groups_per_commit is not None and (not isinstance(groups_per_commit, int) or groups_per_commit < 1):
        raise InvalidInputError("groups_per_commit", expected="a whole number from 1 on", found=repr(groups_per_commit))
    place = TableRef.of(uri, storage_options)
    snapshot = place.dataset().handle.base
    settings = compaction_options(options, snapshot.config)
    properties = properties_of(commit_message, transaction_properties)
    with Scratch.beside(place) as scratch:
        tasks = _CompactionTasks(spark, place, scratch, parallelism, progress)
        result = compact_in_parts(
            snapshot,
            settings,
            tasks.write,
            batch=lambda groups: groups_per_commit or _batch(spark, snapshot, groups),
            follow=tasks.follow,
            properties=properties,
        )
    if result.commits:
        refresh_views(spark, place)
    return _figures(result, time.monotonic() - began)


class _CompactionTasks:
    """Tasks that write groups and index segments."""

    def __init__(
        self, spark: SparkSession, place: TableRef, scratch: Scratch, parallelism: int | None, progress: Progress | None
    ) -> None:
        self._spark = spark
        self._place = place
        self._scratch = scratch
        self._parallelism = parallelism
        self._progress = progress
        self._written = self._known = 0

    def write(self, _: Snapshot, orders: Sequence[RewriteOrder]) -> list[RewrittenGroup]:
        self._known += len(orders)
        groups: list[RewrittenGroup] = self._run(orders, "compaction")
        self._written += len(orders)
        if self._progress is not None:
            self._progress(self._written, self._known)
        return groups

    def follow(self, orders: Sequence[RemapOrder]) -> list[RemapOutcome]:
        return self._run(orders, "indexes of moved rows")

    def _run(self, orders: Sequence[Any], words: str) -> list[Any]:
        return run_jobs(
            self._spark,
            partial(_write, self._place),
            orders,
            parallelism=self._parallelism,
            scratch=self._scratch,
            words=words,
        )


def _batch(spark: SparkSession, snapshot: Snapshot, groups: int) -> int:
    """Return the number of groups per commit. It is large enough to use all tasks, and to commit only a few times."""
    moves_rows = any(index.fields for index in snapshot.indices) and not snapshot.has_stable_row_ids
    commits = COMMITS_WITH_INDEXES if moves_rows else COMMITS
    return max(-(-groups // commits), 2 * slots(spark)) if groups else 1


def _figures(result: CompactionOutcome, seconds: float) -> CompactionFigures:
    groups = result.committed
    return CompactionFigures(
        sum(len(r.old) for r in groups),
        sum(len(r.new) for r in groups),
        sum(r.files_removed for r in groups),
        sum(r.files_added for r in groups),
        result.snapshot.version,
        result.commits,
        result.replanned,
        sum(file.file_size or 0 for r in groups for fragment in r.new for file in fragment.files),
        seconds,
    )


def _write(place: TableRef, order: RewriteOrder | RemapOrder) -> RewrittenGroup | RemapOutcome:
    return order.write(place.pinned(order.version).handle.snapshot)
