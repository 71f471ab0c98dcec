"""Lance tables in Spark without a jar. This package contains the functions for PySpark users.

You hold: a session, frames, URIs. You get: DataFrames, and table changes with one commit each. Tasks open Lance files
directly. The driver plans and commits. The code uses DataFrames only, so Spark Connect works. Only two modules use
`sparkContext`: `jobs/progress` reads task progress in a classic session, and `workers` sets the Python of the workers.
A new Spark job is a module in `verbs` on top of `jobs`.
Never here: the file format. Every change is a verb of `lance_duck.verbs` or `maintenance`, split into jobs.
"""

from typing import TYPE_CHECKING, Final

from lance_duck import lazy
from lance_duck.spark import workers

if TYPE_CHECKING:
    from lance_duck.spark.frames import read, register, write
    from lance_duck.spark.java import ensure_java
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
    from lance_duck.spark.verbs.change_jobs import delete, update
    from lance_duck.spark.verbs.cleanup_jobs import cleanup
    from lance_duck.spark.verbs.column_jobs import ColumnFigures, add_columns
    from lance_duck.spark.verbs.compact_jobs import CompactionFigures, compact
    from lance_duck.spark.verbs.index_jobs import IndexFigures, create_index, optimize_indices
    from lance_duck.spark.verbs.knn_join import knn_join
    from lance_duck.spark.verbs.merge_jobs import SparkMerge, merge_insert
    from lance_duck.spark.verbs.text_search import search
    from lance_duck.spark.verbs.upkeep import UpkeepFigures, optimize

_VECTORS: Final = "knn_join(spark, queries, uri), or lance_vector_search(…) in SQL after register(spark)"

lazy.package(
    __name__,
    {
        "frames": ("read", "register", "write"),
        "java": ("ensure_java",),
        "tables": (
            "count",
            "create_view",
            "drop_view",
            "fragments",
            "history",
            "indices",
            "refresh_view",
            "versions",
        ),
        "verbs.change_jobs": ("delete", "update"),
        "verbs.cleanup_jobs": ("cleanup",),
        "verbs.column_jobs": ("ColumnFigures", "add_columns"),
        "verbs.compact_jobs": ("CompactionFigures", "compact"),
        "verbs.index_jobs": ("IndexFigures", "create_index", "optimize_indices"),
        "verbs.knn_join": ("knn_join",),
        "verbs.merge_jobs": ("SparkMerge", "merge_insert"),
        "verbs.text_search": ("search",),
        "verbs.upkeep": ("UpkeepFigures", "optimize"),
    },
    dict.fromkeys(("knn", "nearest", "vector_search"), _VECTORS),
)

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
    "search",
    "update",
    "versions",
    "write",
]

workers.prepare_driver()
workers.load_in_worker("lance_duck.spark.io.datasource")
