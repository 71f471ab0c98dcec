"""Functions for views, row counts and metadata of tables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lance_duck.arguments import checked_call
from lance_duck.errors import InvalidInputError
from lance_duck.redact import shown
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.spark.frames import read
from lance_duck.spark.jobs.jobs import run_jobs
from lance_duck.spark.jobs.work_splits import check_parallelism, shares
from lance_duck.spark.sql import metadata_tables
from lance_duck.spark.sql.views import forget, refresh_views, show_as
from lance_duck.spark.table_ref import TableRef, pin

Version = int | str | tuple[str | None, int | str | None]
Storage = Mapping[str, str] | None

_FIXED: Final = ("version", "tag", "timestamp")


@checked_call
def create_view(spark: SparkSession, name: str, uri: str | os.PathLike[str], **options: Any) -> None:
    """Create or replace a temporary view of a table.

    The view reads the newest version. Writes by functions of `lance_duck.spark` refresh it. After other writes (by
    INSERT INTO the view, or by other programs), call `refresh_view`. Until then, the view reads an older version.

    Args:
        spark: Spark session, classic or Connect.
        name: Name of the view.
        uri: Path or URI of the table.
        options: Options of `read`. With `version`, `tag` or `timestamp`, the view stays on that version.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: See `read`.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError("invalid view name", where="create_view", expected="a string", found=repr(name))
    place = TableRef.of(uri, options.get("storage_options"))
    follows = all(options.get(option) is None for option in _FIXED)
    kept = {"contains_null": True} | options  # users may insert nulls through the view
    show_as(spark, name, place, lambda: read(spark, place.uri, **kept), follows=follows)


@checked_call
def refresh_view(spark: SparkSession, uri: str | os.PathLike[str]) -> None:
    """Recreate the views that `create_view` created for a table, on its newest version."""
    refresh_views(spark, TableRef.of(uri))


@checked_call
def drop_view(spark: SparkSession, name: str) -> bool:
    """Drop a view that `create_view` created. Returns whether it existed."""
    forget(spark, name)
    return bool(spark.catalog.dropTempView(name))


@checked_call
def count(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    filter: FilterLike | None = None,  # noqa: A002  the name in other methods
    *,
    version: Version | None = None,
    storage_options: Storage = None,
    parallelism: int | None = None,
) -> int:
    """Count the rows of a table. Without a filter, only the manifest is read. Spark's own count would read all columns.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        filter: SQL text, (SQL text, parameters) or a pyarrow expression. Only rows for which it is true are counted.
        version: Version number, tag name, or (branch, number or tag). By default, the newest version.
        storage_options: Settings of the object store.
        parallelism: Target number of tasks. By default, it depends on the table size.

    Raises:
        NotFoundError: The table or the version does not exist.
        InvalidInputError: The filter is invalid.
    """
    check_parallelism(parallelism)
    place = TableRef.of(uri, storage_options)
    table = place.dataset(version)
    if filter is None:
        return table.count_rows()
    table.handle.table.plan(ScanOptions(columns=[], filter=filter))
    jobs, number = shares(table.handle.snapshot, parallelism), pin(table)

    def work(fragments: tuple[int, ...]) -> int:
        return place.pinned(number).count_rows(filter, fragments=list(fragments))

    if len(jobs) == 1:
        return work(jobs[0])
    return sum(run_jobs(spark, work, jobs, words=f"rows of {shown(place.uri)} are counted"))


@checked_call
def history(
    spark: SparkSession, uri: str | os.PathLike[str], limit: int | None = None, *, storage_options: Storage = None
) -> DataFrame:
    """Return the changes of each version of a table, newest first.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        limit: Maximum number of versions. The manifest of each one is read. By default, all versions.
        storage_options: Settings of the object store.

    Returns:
        version, timestamp, operation, message, read_version, transaction, properties. If a version's transaction was
        not stored, only the first two columns have values.
    """
    return spark.createDataFrame(metadata_tables.history(TableRef.of(uri, storage_options).dataset(), limit))


@checked_call
def versions(spark: SparkSession, uri: str | os.PathLike[str], *, storage_options: Storage = None) -> DataFrame:
    """Return all versions of a table, newest first: version, timestamp, num_rows, num_fragments, tags."""
    return spark.createDataFrame(metadata_tables.versions(TableRef.of(uri, storage_options).dataset()))


@checked_call
def fragments(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    version: Version | None = None,
    storage_options: Storage = None,
) -> DataFrame:
    """Return fragments of a version: fragment, num_rows, num_deleted_rows, num_files, size_bytes, formats, paths."""
    return spark.createDataFrame(metadata_tables.fragments(TableRef.of(uri, storage_options).dataset(version)))


@checked_call
def indices(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    version: Version | None = None,
    storage_options: Storage = None,
) -> DataFrame:
    """Return the indexes of a version.

    Returns:
        name, type, columns, num_segments, num_indexed_fragments, num_unindexed_fragments, num_indexed_rows.
    """
    return spark.createDataFrame(metadata_tables.indices(TableRef.of(uri, storage_options).dataset(version)))
