"""Cleanup in Spark. The driver plans it and deletes manifests. Tasks delete other files if there are many."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial

from pyspark.sql import SparkSession

from lance_duck.arguments import checked_call
from lance_duck.maintenance.cleanup import CleanupStats, delete_files, explain_cleanup
from lance_duck.maintenance.cleanup import cleanup as _cleanup
from lance_duck.maintenance.cleanup_plan import CleanupPolicy
from lance_duck.spark.costs import DELETED_FILES
from lance_duck.spark.jobs.jobs import Progress, run_jobs
from lance_duck.spark.table_ref import TableRef
from lance_duck.store import open_store


@checked_call
def cleanup(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    older_than: timedelta | None = None,
    retain_versions: int | None = None,
    *,
    delete_unverified: bool = False,
    error_if_tagged_old_versions: bool = True,
    versions: Sequence[int] | None = None,
    parallelism: int | None = None,
    progress: Progress | None = None,
    storage_options: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> CleanupStats:
    """Remove old versions and the files that only these versions use. Tasks delete the files if there are many.

    `LanceDataset.cleanup_old_versions` describes the result.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table. Workers must be able to access it.
        older_than: Remove only versions older than this. Defaults to 14 days, unless another limit is given.
        retain_versions: Number of newest versions to keep.
        delete_unverified: Also remove unreferenced files less than a week old. This is only safe while other processes
            do not change the table.
        error_if_tagged_old_versions: Whether to raise an error if a tagged version would be removed. If False, tagged
            versions are kept.
        versions: Remove only these versions.
        parallelism: Maximum number of concurrent tasks.
        progress: Called with (batches of files done, all batches).
        storage_options: Settings of the object store.
        dry_run: Report the files to remove, without removing them.

    Raises:
        NotFoundError: The table does not exist.
        ReferencedError: A tagged version would be removed.
    """
    policy = CleanupPolicy(
        older_than=older_than,
        retain_versions=retain_versions,
        versions=versions,
        delete_unverified=delete_unverified,
        error_if_tagged_old_versions=error_if_tagged_old_versions,
    )
    place = TableRef.of(uri, storage_options)
    snapshot = place.dataset().handle.snapshot
    if dry_run:
        return explain_cleanup(snapshot, policy, None).stats

    def remove(names: Sequence[str]) -> int:
        if len(names) <= DELETED_FILES:
            return delete_files(snapshot.store, names)
        batches = [tuple(names[first : first + DELETED_FILES]) for first in range(0, len(names), DELETED_FILES)]
        work = partial(_delete, place)
        return sum(run_jobs(spark, work, batches, parallelism=parallelism, progress=progress, words="cleanup"))

    return _cleanup(snapshot, policy, remove=remove)


def _delete(place: TableRef, names: Sequence[str]) -> int:
    return delete_files(open_store(place.uri, dict(place.storage_options)), names)
