"""Work in many places: a list of jobs, each a task of Spark, their results in the order of the list.

Tasks open Lance files themselves; data does not pass through the JVM. DataFrames alone are used, so that classic
sessions and Spark Connect run the same code.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

Job = TypeVar("Job")
Result = TypeVar("Result")

_SCHEMA = pa.schema([("number", pa.int64()), ("result", pa.binary())])


def run_jobs(
    spark: SparkSession,
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    parallelism: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run `work` on each job, one task a job unless `parallelism` gives fewer tasks.

    Args:
        spark: Classic or Connect.
        work: A function of a module, or a closure that pickles; it may run more than once for one job, and its
            results count once.
        jobs: What pickles, small: all of them go to all tasks.
        parallelism: Tasks at most.
        progress: Told (jobs done, all jobs) as they end.

    Raises:
        LanceDuckError: A job raised it, the first such error as the worker raised it.
    """
    if not jobs:
        return []
    listed = list(jobs)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                result = pickle.dumps(work(listed[number]))
                yield pa.record_batch([pa.array([number], pa.int64()), pa.array([result], pa.binary())], schema=_SCHEMA)

    tasks = min(len(listed), parallelism or len(listed))
    frame = spark.range(0, len(listed), 1, tasks).mapInArrow(run, "number long, result binary")
    results: list[Any] = [None] * len(listed)
    for row in frame.collect():
        results[row.number] = pickle.loads(row.result)  # noqa: S301
    return results
