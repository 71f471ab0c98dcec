"""Thresholds for dividing the work of Spark jobs, sources and sinks, each with its unit and reason.

A threshold changes speed and memory, never a result; `benchmarks/spark.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

# Jobs

FEWEST_ROWS: Final = 1 << 16
"""Minimum rows per task, and maximum rows found by an index that a single task reads; starting a task takes longer."""

MOST_ROWS: Final = 1 << 22
"""Maximum rows per task, unless `parallelism` is set; limits the work that a failed task repeats."""

SPLITS: Final = 64
"""Number of tasks for a table, within these two bounds."""

SEGMENT_ROWS: Final = 1 << 17
"""Minimum rows per index segment: each segment adds a small cost to every search."""

MOST_SEGMENT_ROWS: Final = 1 << 25
"""Maximum rows per index segment, which one task builds."""

COMMITS: Final = 8
"""Number of commits of a compaction; committed groups survive if the job is stopped."""

COMMITS_WITH_INDEXES: Final = 2
"""Number of commits if indexes refer to rows by address: each commit rewrites segments whose rows it moves."""

DELETED_FILES: Final = 2000
"""Number of files that one cleanup task deletes: a few requests to an object store."""

DRIVER_DELETIONS: Final = 64
"""Maximum number of fragments whose deletion files the driver writes itself; also the number of fragments per task."""

# Values shared with all tasks

SHARED_BYTES: Final = 1 << 20
"""Maximum size of a message that is sent with each task, in bytes; larger ones are stored in the table's directory."""

CACHED_SHARED: Final = 2
"""Number of shared values that a worker caches: one for the current job, one for the previous job."""

SOURCE_KEYS: Final = 20_000
"""Maximum rows of a source whose keys are pushed into the table scan, so that only matching rows are joined."""

QUERIES: Final = 1024
"""Maximum number of queries that are sent to every task."""

QUERY_BYTES: Final = 4 << 20
"""Maximum size of these queries, in bytes."""

SEARCHED_BYTES: Final = 512 << 20
"""Minimum size of the vectors that a task searches without an index, in bytes."""

JOINED_ROWS: Final = 1 << 14
"""Number of rows in a batch of a nearest-neighbour join."""

# Sources

SMALLEST_PARTITION: Final = 8 << 20
LARGEST_PARTITION: Final = 128 << 20
"""Bounds of the partition size, in bytes. The upper limit also applies to streaming tasks. Spark's file partitions have
at most 128 MiB."""

PARTITIONS: Final = 8
"""Minimum and maximum number of partitions of a table."""

MOST_PARTITIONS: Final = 20_000
"""Maximum number of partitions; a driver needs about ten minutes to start this many."""

OPENING_BYTES: Final = 1 << 18
"""Cost of opening a fragment, expressed as bytes that a task could read meanwhile."""

BATCH_BYTES: Final = 2 << 20
"""Size of the batches that a task decodes and passes to Spark, in bytes. With 512 KiB, reading all columns of 2 million
rows takes 1.3 times the processor time (`benchmarks/spark_costs.py`)."""

LOOKED_INTO: Final = 64
"""Maximum number of fragments whose files are checked for null vector items before the schema is declared to Spark:
10 ms on a local disk."""

CUT_ROWS: Final = 8192
"""Fragments are split at multiples of this number of rows."""

STREAM_PARTITION_ROWS: Final = 1 << 20
"""Maximum rows of new fragments that one streaming task reads; `LARGEST_PARTITION` limits its bytes."""
