"""Thresholds by which jobs, sources and sinks of Spark divide their work, each with its unit and reason.

A threshold changes speed and memory, never a result; `benchmarks/spark.py` measures their combined effect.
"""

from __future__ import annotations

from typing import Final

# Jobs

FEWEST_ROWS: Final = 1 << 16
"""Rows of a task, at least, and rows that an index finds up to which one task reads them: to start one takes longer."""

MOST_ROWS: Final = 1 << 22
"""Rows of a task, at most, unless `parallelism` says otherwise: what fails is not much work to do again."""

SPLITS: Final = 64
"""Tasks that a table is cut into between these two."""

SEGMENT_ROWS: Final = 1 << 17
"""Rows of an index segment, at least: each segment costs every search a little."""

MOST_SEGMENT_ROWS: Final = 1 << 25
"""Rows of an index segment, at most: one task builds it."""

COMMITS: Final = 8
"""Commits of a compaction: what is committed is not lost when the job is stopped."""

COMMITS_WITH_INDEXES: Final = 2
"""The same where indexes name rows by address: each commit rewrites segments whose rows it moves."""

DELETED_FILES: Final = 2000
"""Files that one task of a cleanup deletes: a few requests of an object store."""

DRIVER_DELETIONS: Final = 64
"""Fragments whose deletion files the driver writes itself, and those of a task."""

# Values shared with all tasks

SHARED_BYTES: Final = 1 << 20
"""Bytes of a message from which on it is left beside the table, and not sent with each task."""

CACHED_SHARED: Final = 2
"""Shared values that a worker keeps: that of the job that runs, and of the one before."""

SOURCE_KEYS: Final = 20_000
"""Rows of a source whose keys are looked for while the table is read, so that only its rows with them are joined."""

QUERIES: Final = 1024
"""Queries that every task may have."""

QUERY_BYTES: Final = 4 << 20
"""Bytes of these queries, at most."""

SEARCHED_BYTES: Final = 512 << 20
"""Bytes of vectors that a task searches without an index, at least."""

JOINED_ROWS: Final = 1 << 14
"""Rows of a batch of a join with nearest rows."""

# Sources

SMALLEST_PARTITION: Final = 8 << 20
LARGEST_PARTITION: Final = 128 << 20
"""Bytes of a partition, between which a table is cut into `PARTITIONS`, and of a task of a stream: Spark's own files
have 128 MiB at most."""

PARTITIONS: Final = 8
"""Partitions that a table is cut into between these two."""

MOST_PARTITIONS: Final = 20_000
"""Partitions at most: what a driver starts in ten minutes, about."""

OPENING_BYTES: Final = 1 << 18
"""Bytes that a task could read while it opens a fragment."""

BATCH_BYTES: Final = 2 << 20
"""Bytes that a task decodes, and passes to Spark, at a time: all columns of 2 million rows take 1.3 times the processor
time with 512 KiB (`benchmarks/spark_costs.py`)."""

LOOKED_INTO: Final = 64
"""Fragments at most whose files are looked into for null items of vectors before a table is declared to Spark: 10 ms on
a local disk."""

CUT_ROWS: Final = 8192
"""Rows at whose multiples fragments are cut."""

STREAM_PARTITION_ROWS: Final = 1 << 20
"""Rows of new fragments that one task of a stream reads, of `LARGEST_PARTITION` bytes at most."""
