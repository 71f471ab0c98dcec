"""Compaction and index maintenance of a table in one call."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from lance_duck.arguments import checked_call
from lance_duck.spark.jobs.jobs import Progress
from lance_duck.spark.verbs.compact_jobs import CompactionFigures, compact
from lance_duck.spark.verbs.index_jobs import IndexFigures, optimize_indices


@dataclass(frozen=True)
class UpkeepFigures:
    """The result of `optimize`.

    Attributes:
        compaction: Figures of the compaction.
        indexes: Figures of indexes that got new segments.
    """

    compaction: CompactionFigures
    indexes: list[IndexFigures]


@checked_call
def optimize(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    num_indices_to_merge: int | None = None,
    parallelism: int | None = None,
    progress: Progress | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> UpkeepFigures:
    """Compact a table with `compact`, then extend its indexes to new rows with `optimize_indices`.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table. Workers must be able to access it.
        num_indices_to_merge: See `optimize_indices`.
        parallelism: Maximum number of concurrent tasks.
        progress: Called with (jobs done, all jobs) of each step.
        commit_message: Message to store with the transactions.
        transaction_properties: Properties to store with the transactions.
        storage_options: Settings of the object store.
        options: Options of the compaction. See `compact`.

    Raises:
        LanceDuckError: Any error of either step. Earlier commits are kept.
    """
    common: dict[str, Any] = {
        "parallelism": parallelism,
        "progress": progress,
        "commit_message": commit_message,
        "transaction_properties": transaction_properties,
        "storage_options": storage_options,
    }
    compaction = compact(spark, uri, **common, **options)
    return UpkeepFigures(compaction, optimize_indices(spark, uri, num_indices_to_merge=num_indices_to_merge, **common))
