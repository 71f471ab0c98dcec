"""Lance tables in Spark, without a jar: what PySpark users call."""

from lance_duck.spark.change_jobs import delete, update
from lance_duck.spark.cleanup_jobs import cleanup
from lance_duck.spark.column_jobs import ColumnFigures, add_columns
from lance_duck.spark.compact_jobs import CompactionFigures, compact
from lance_duck.spark.frames import read, register, write
from lance_duck.spark.index_jobs import IndexFigures, create_index, optimize_indices
from lance_duck.spark.java import ensure_java
from lance_duck.spark.knn_join import knn_join
from lance_duck.spark.merge_jobs import SparkMerge, merge_insert
from lance_duck.spark.tables import (
    count,
    create_view,
    drop_view,
    fragments,
    history,
    indices,
    refresh_view,
    versions,
)
from lance_duck.spark.upkeep import UpkeepFigures, optimize

__all__ = [
    "ColumnFigures",
    "CompactionFigures",
    "IndexFigures",
    "SparkMerge",
    "UpkeepFigures",
    "add_columns",
    "cleanup",
    "compact",
    "count",
    "create_index",
    "create_view",
    "delete",
    "drop_view",
    "ensure_java",
    "fragments",
    "history",
    "indices",
    "knn_join",
    "merge_insert",
    "optimize",
    "optimize_indices",
    "read",
    "refresh_view",
    "register",
    "update",
    "versions",
    "write",
]
