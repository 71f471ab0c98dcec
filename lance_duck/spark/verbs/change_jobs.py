"""Deletes and updates in Spark tasks. Each task processes some fragments, and the driver commits once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from pyspark.sql import SparkSession

from lance_duck.arguments import checked_call
from lance_duck.commit import run_again
from lance_duck.redact import shown
from lance_duck.scan.filters import FilterLike, make_filter
from lance_duck.scan.projection import readable_schema
from lance_duck.scan.subquery import has_subquery
from lance_duck.snapshot import Snapshot
from lance_duck.spark.jobs.jobs import run_jobs
from lance_duck.spark.jobs.work_splits import shares
from lance_duck.spark.sql.views import refresh_views
from lance_duck.spark.table_ref import TableRef
from lance_duck.verbs.change import check_patience
from lance_duck.verbs.change import transaction_properties as properties_of
from lance_duck.verbs.row_methods import RETRIES, TIMEOUT, DeleteResult, UpdateResult
from lance_duck.verbs.rows.assignments import Assignments
from lance_duck.verbs.rows.delete import commit_delete, write_delete
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.rows_moved import RowDeletion
from lance_duck.verbs.rows.update import WrittenUpdate, commit_update, write_update
from lance_duck.wire.fragment import Fragment
from lance_duck.write.options import WriteOptions

Progress = Callable[[int, int], None]


@checked_call
def delete(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    where: FilterLike,
    *,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
    conflict_retries: int = RETRIES,
    retry_timeout: timedelta = TIMEOUT,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> DeleteResult:
    """Delete rows like `LanceDataset.delete`, in Spark tasks.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        where: SQL text, (SQL text, parameters) or a pyarrow expression. SQL is in DuckDB's dialect. Rows for which the
            condition is true are deleted. A condition with a subquery runs in one task.
        storage_options: Settings of the object store.
        parallelism: Target number of tasks. By default, it depends on the table size.
        conflict_retries: Maximum number of retries on the newest version after a conflicting commit.
        retry_timeout: Time after which the change is not retried.
        commit_message: Message to store with the transaction.
        transaction_properties: Properties to store with the transaction.
        progress: Called with (tasks done, all tasks).

    Returns:
        {"num_deleted_rows": n}. Each call commits a new version, even if no row matches.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: The condition is invalid.
        CommitConflictError: At each retry, other writers committed first, or a conflicting change was committed.
    """
    check_patience(conflict_retries, retry_timeout)
    place = TableRef.of(uri, storage_options)
    properties = properties_of(commit_message, transaction_properties)

    def attempt(snapshot: Snapshot) -> tuple[Snapshot, int]:
        if not _is_whole(where):
            make_filter(where, readable_schema(snapshot.schema))
        jobs = [_FragmentShare(place, snapshot.version, ids) for ids in _shares(snapshot, parallelism, where)]
        with UncommittedFiles(snapshot) as draft:
            parts = run_jobs(
                spark,
                lambda job: _delete(job, where),
                jobs,
                progress=progress,
                note=lambda part: _note(draft, part),
                words=f"rows of {shown(place.uri)} are deleted",
            )
            return commit_delete(draft, RowDeletion.joined(parts), where, properties)

    _, count = run_again(place.dataset().handle.base, attempt, conflict_retries, retry_timeout.total_seconds())
    refresh_views(spark, place)
    return {"num_deleted_rows": count}


@checked_call
def update(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    updates: Mapping[str, str],
    where: FilterLike | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
    conflict_retries: int = RETRIES,
    retry_timeout: timedelta = TIMEOUT,
    data_storage_version: str | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> UpdateResult:
    """Update rows like `LanceDataset.update`, in Spark tasks.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        updates: Expressions by column, in DuckDB's SQL. They are evaluated on the old values of the row. If an
            expression or `where` contains a subquery, a single task processes all rows.
        where: Condition on the rows to update, as for `delete`. By default, all rows.
        storage_options: Settings of the object store.
        parallelism: Target number of tasks. By default, it depends on the table size.
        conflict_retries: See `delete`.
        retry_timeout: See `delete`.
        data_storage_version: File format version of the new files. Defaults to the version of the table's files.
        commit_message: Message to store with the transaction.
        transaction_properties: Properties to store with the transaction.
        progress: Called with (tasks done, all tasks).

    Returns:
        {"num_rows_updated": n}.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: A condition or expression is invalid, or values cannot be cast to the column type.
        CommitConflictError: See `delete`.
    """
    check_patience(conflict_retries, retry_timeout)
    place = TableRef.of(uri, storage_options)
    properties = properties_of(commit_message, transaction_properties)
    options = WriteOptions(data_storage_version=data_storage_version)

    def attempt(snapshot: Snapshot) -> tuple[Snapshot, int]:
        Assignments(snapshot.schema, updates)
        if where is not None and not _is_whole(where):
            make_filter(where, readable_schema(snapshot.schema))
        jobs = [
            _FragmentShare(place, snapshot.version, ids)
            for ids in _shares(snapshot, parallelism, where, *updates.values())
        ]
        expressions = dict(updates)
        with UncommittedFiles(snapshot, transaction=uuid4()) as draft:
            job_options = replace(options, transaction=draft.transaction)
            parts = run_jobs(
                spark,
                lambda job: _update(job, expressions, where, job_options),
                jobs,
                progress=progress,
                note=lambda part: _note(draft, part.deleted, part.fragments),
                words=f"rows of {shown(place.uri)} are updated",
            )
            return commit_update(snapshot, updates, WrittenUpdate.joined(parts), draft, properties)

    _, count = run_again(place.dataset().handle.base, attempt, conflict_retries, retry_timeout.total_seconds())
    refresh_views(spark, place)
    return {"num_rows_updated": count}


@dataclass(frozen=True)
class _FragmentShare:
    """The fragments of one task, at a version."""

    place: TableRef
    version: int
    fragments: tuple[int, ...]


def _shares(snapshot: Snapshot, parallelism: int | None, *texts: Any) -> list[tuple[int, ...]]:
    """Return the fragments of each task. If the texts contain a subquery, one task gets all fragments."""
    return shares(snapshot, 1 if any(_is_whole(text) for text in texts) else parallelism)


def _is_whole(text: Any) -> bool:
    """Return whether a condition or expression must be evaluated on the whole table."""
    text = text[0] if isinstance(text, tuple) and len(text) == 2 else text
    return isinstance(text, str) and has_subquery(text)


def _delete(job: _FragmentShare, where: FilterLike) -> RowDeletion:
    snapshot = job.place.pinned(job.version).handle.snapshot
    with UncommittedFiles(snapshot) as draft:
        deletion = write_delete(snapshot, where, draft, job.fragments)
        snapshot.store.sync()
    return deletion.packed


def _update(
    job: _FragmentShare, updates: Mapping[str, str], where: FilterLike | None, options: WriteOptions
) -> WrittenUpdate:
    snapshot = job.place.pinned(job.version).handle.snapshot
    with UncommittedFiles(snapshot) as draft:
        result = write_update(snapshot, updates, where, options, draft, job.fragments)
        snapshot.store.sync()
    return WrittenUpdate(result.fragments, result.deleted.packed)


def _note(draft: UncommittedFiles, deletion: RowDeletion, fragments: Iterable[Fragment] = ()) -> None:
    """Record the files that a task wrote."""
    draft.note_fragments(list(fragments))
    for fragment in deletion.updated:
        assert fragment.deletion_file is not None
        draft.note(fragment.deletion_file.path(fragment.id))
