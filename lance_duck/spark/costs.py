"""Thresholds for the division of work in Spark jobs, sources and sinks, each with a unit and a reason.

A threshold changes speed and memory, never a result. `benchmarks/spark.py` measures the combined effect.
"""

from __future__ import annotations

from typing import Final

# Jobs

FEWEST_ROWS: Final = 1 << 16
"""Minimum rows per task, because starting a task takes longer than reading fewer rows. If an index finds at most this
many rows, a single task reads them."""

MOST_ROWS: Final = 1 << 22
"""Maximum rows per task, unless `parallelism` is set. It limits the work that a failed task repeats."""

SPLITS: Final = 64
"""Number of tasks for a table, within the bounds `FEWEST_ROWS` and `MOST_ROWS`."""

SEGMENT_ROWS: Final = 1 << 17
"""Minimum rows per index segment, because each segment adds a small cost to every search."""

MOST_SEGMENT_ROWS: Final = 1 << 25
"""Maximum rows per index segment, because one task builds the whole segment."""

COMMITS: Final = 8
"""Number of commits of a compaction. Committed groups are kept if the job is stopped."""

COMMITS_WITH_INDEXES: Final = 2
"""Number of commits of a compaction if indexes refer to rows by address. Each commit then rewrites segments."""

DELETED_FILES: Final = 2000
"""Number of files that one cleanup task deletes. An object store needs only a few requests for them."""

DRIVER_DELETIONS: Final = 64
"""Maximum number of fragments whose deletion files the driver writes itself. Also the number of fragments per task."""

# Values shared with all tasks

SHARED_BYTES: Final = 1 << 20
"""Maximum size of a message that is sent with each task, in bytes. Larger messages are stored in the table's
directory."""

CACHED_SHARED: Final = 2
"""Number of shared values that a worker caches, for the current and the previous job."""

SOURCE_KEYS: Final = 20_000
"""Maximum rows of a source whose keys are pushed into the table scan. Only matching rows are then joined."""

QUERIES: Final = 1024
"""Maximum number of queries that are sent to every task."""

QUERY_BYTES: Final = 4 << 20
"""Maximum total size of the queries that are sent to every task, in bytes."""

SEARCHED_BYTES: Final = 512 << 20
"""Minimum size of the vectors that a task searches without an index, in bytes."""

JOINED_ROWS: Final = 1 << 14
"""Number of rows in a batch of a nearest-neighbour join."""

# Sources

SMALLEST_PARTITION: Final = 8 << 20
LARGEST_PARTITION: Final = 128 << 20
"""Bounds of the partition size, in bytes. The upper bound also applies to streaming tasks. It equals the default for
Spark's file partitions."""

PARTITIONS: Final = 8
"""Target number of partitions of a table. The bounds of the partition size take precedence."""

MOST_PARTITIONS: Final = 20_000
"""Maximum number of partitions. A driver needs about ten minutes to start this number of tasks."""

OPENING_BYTES: Final = 1 << 18
"""Cost of opening a fragment, expressed as the number of bytes that a task could read in the same time."""

BATCH_BYTES: Final = 2 << 20
"""Size of the batches that a task decodes and passes to Spark, in bytes. With 512 KiB, reading all columns of 2 million
rows takes 1.3 times the processor time (`benchmarks/spark_costs.py`)."""

LOOKED_INTO: Final = 64
"""Maximum number of fragments whose files are checked for null vector items before the schema is declared to Spark. The
check takes 10 ms on a local disk."""

CUT_ROWS: Final = 8192
"""Fragments are split at multiples of this number of rows."""

STREAM_PARTITION_ROWS: Final = 1 << 20
"""Maximum rows of new fragments that one streaming task reads. `LARGEST_PARTITION` limits their bytes."""
