"""Tables as views, and what is known of them beside their rows as frames."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.spark import facts
from lance_duck.spark.frames import read
from lance_duck.spark.jobs import run_jobs
from lance_duck.spark.place import Place, pin
from lance_duck.spark.shares import check_parallelism, shares
from lance_duck.spark.views import forget, refresh_views, show_as

Version = int | str | tuple[str | None, int | str | None]
Storage = Mapping[str, str] | None

_FIXED: Final = ("version", "tag", "timestamp")


def create_view(spark: SparkSession, name: str, uri: str | os.PathLike[str], **options: Any) -> None:
    """Show a table to SQL as a temporary view, in place of one of the same name.

    The view is on the newest version. After each write by a function of `lance_duck.spark` it is made anew; after
    others (INSERT INTO the view, another program) `refresh_view` does so. Until then it shows the version that it was
    made on, in every query.

    Args:
        spark: Classic or Connect.
        name: Of the view.
        uri: The table.
        options: Those of `read`; with `version`, `tag` or `timestamp` the view stays on that version.

    Raises:
        NotFoundError: There is no table.
        InvalidInputError: As for `read`.
    """
    if not isinstance(name, str) or not name:
        raise InvalidInputError("name of a view", where="create_view", expected="text", found=repr(name))
    place = Place.of(uri, options.get("storage_options"))
    follows = all(options.get(option) is None for option in _FIXED)
    show_as(spark, name, place, lambda: read(spark, place.uri, **options), follows=follows)


def refresh_view(spark: SparkSession, uri: str | os.PathLike[str]) -> None:
    """Make the views of a table that `create_view` made anew, on its newest version."""
    refresh_views(spark, Place.of(uri))


def drop_view(spark: SparkSession, name: str) -> bool:
    """Drop a view that `create_view` made; returns whether there was one."""
    forget(spark, name)
    return bool(spark.catalog.dropTempView(name))


def count(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    filter: FilterLike | None = None,  # noqa: A002  as everywhere
    *,
    version: Version | None = None,
    storage_options: Storage = None,
    parallelism: int | None = None,
) -> int:
    """Number of rows of a table; without a filter from its manifest alone, where Spark would read all columns.

    Args:
        spark: Classic or Connect.
        uri: The table.
        filter: SQL text, (SQL text, parameters) or a pyarrow expression: only rows for which it is true.
        version: A number, the name of a tag, or (branch, number or tag); None: the newest.
        storage_options: For the store.
        parallelism: Tasks to aim at; None: as suits the table.

    Raises:
        NotFoundError: There is no such table or version.
        InvalidInputError: A bad filter.
    """
    check_parallelism(parallelism)
    place = Place.of(uri, storage_options)
    table = place.dataset(version)
    if filter is None:
        return table.count_rows()
    table._table.plan(ScanOptions(columns=[], filter=filter))
    jobs, number = shares(table._snapshot, parallelism), pin(table)

    def work(fragments: tuple[int, ...]) -> int:
        return place.pinned(number).count_rows(filter, fragments=list(fragments))

    if len(jobs) == 1:
        return work(jobs[0])
    return sum(run_jobs(spark, work, jobs, words=f"rows of {place.uri} are counted"))


def history(
    spark: SparkSession, uri: str | os.PathLike[str], limit: int | None = None, *, storage_options: Storage = None
) -> DataFrame:
    """What each version of a table changed, newest first.

    Args:
        spark: Classic or Connect.
        uri: The table.
        limit: Versions at most, each of which is read; None: all.
        storage_options: For the store.

    Returns:
        version, timestamp, operation, message, read_version, transaction, properties. Of a version whose transaction
        was not kept only the first two are known.
    """
    return spark.createDataFrame(facts.history(Place.of(uri, storage_options).dataset(), limit))


def versions(spark: SparkSession, uri: str | os.PathLike[str], *, storage_options: Storage = None) -> DataFrame:
    """All versions of a table, newest first: version, timestamp, num_rows, num_fragments, tags."""
    return spark.createDataFrame(facts.versions(Place.of(uri, storage_options).dataset()))


def fragments(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    version: Version | None = None,
    storage_options: Storage = None,
) -> DataFrame:
    """Fragments of a version: fragment, num_rows, num_deleted_rows, num_files, size_bytes, formats, paths."""
    return spark.createDataFrame(facts.fragments(Place.of(uri, storage_options).dataset(version)))


def indices(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    version: Version | None = None,
    storage_options: Storage = None,
) -> DataFrame:
    """Indexes of a version.

    Returns:
        name, type, columns, num_segments, num_indexed_fragments, num_unindexed_fragments, num_indexed_rows.
    """
    return spark.createDataFrame(facts.indices(Place.of(uri, storage_options).dataset(version)))
