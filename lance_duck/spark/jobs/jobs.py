"""Runs each job of a list in a Spark task. The results have the order of the list.

Tasks open Lance files directly, and data does not pass through the JVM. Only DataFrames are used, so classic sessions
and Spark Connect run the same code.

A task returns an exception as its result instead of raising it. The driver can therefore raise the worker's exception.
The driver retries transient errors of the store or the system, regardless of Spark's retry setting. Spark replaces
workers that die.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from lance_duck.errors import JobError, LanceDuckError, StoreError
from lance_duck.retry import RetryPolicy
from lance_duck.spark.costs import SHARED_BYTES
from lance_duck.spark.jobs.failures import error_in
from lance_duck.spark.jobs.progress import described
from lance_duck.spark.jobs.scratch import Scratch, ScratchRef
from lance_duck.spark.workers import map_batches

Job = TypeVar("Job")
Result = TypeVar("Result")
Progress = Callable[[int, int], Any]

_SCHEMA: Final = pa.schema([("number", pa.int64()), ("outcome", pa.int64()), ("said", pa.binary())])
_COLUMNS: Final = "number long, outcome long, said binary"
_RESULT, _FAR, _ERROR, _PASSING, _SKIPPED = range(5)
_ROUNDS: Final = RetryPolicy(2)
_LINES: Final = 12
"""Maximum number of lines shown from a Spark error."""

_PROBES: Final = 1 << 16
"""Number of rows of a DataFrame that is used to count partitions, large enough that no partition is empty."""


def run_jobs(
    spark: SparkSession,
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    *,
    parallelism: int | None = None,
    progress: Progress | None = None,
    scratch: Scratch | None = None,
    note: Callable[[Result], Any] | None = None,
    words: str = "lance_duck",
) -> list[Result]:
    """Run `work` on each job, with one task per job unless `parallelism` allows fewer.

    Args:
        spark: Spark session, classic or Connect.
        work: A module-level function, or a closure that can be pickled. It may run more than once for a job, but each
            job returns one result.
        jobs: Objects that can be pickled. Without `scratch`, all jobs are sent to all tasks and should be small.
        parallelism: Maximum number of tasks.
        progress: Called with (finished jobs, all jobs) when jobs finish. All calls except the last one come from a
            different thread.
        scratch: Storage for large jobs and results. It also stores the marker of a failed job, which prevents other
            jobs from starting.
        note: Called with each result, even if a different job failed. The caller can then delete all written files.
        words: Description of the work for Spark's UI.

    Raises:
        LanceDuckError: The error that a job raised. If several jobs failed, the error of the first one in the list.
        JobError: A job raised an error of another package, or Spark could not run it.
    """
    if not jobs:
        return []
    tasks = _TaskFunction(work, _packed(jobs, scratch), scratch)
    results: list[Any] = [None] * len(jobs)
    remaining = list(range(len(jobs)))

    def run_round(number: int) -> None:
        nonlocal remaining
        report = None if progress is None else _told(progress, len(jobs), len(remaining), parallelism)
        with described(spark, f"{words}: {len(remaining)} jobs", report):
            rows = _run(spark, tasks, remaining, parallelism)
        remaining = _take(rows, results, scratch, note, last=number == _ROUNDS.retries)
        if remaining:
            raise _JobsLeftError

    _ROUNDS.run(run_round, _JobsLeftError)
    if progress is not None:
        progress(len(jobs), len(jobs))
    return results


def slots(spark: SparkSession) -> int:
    """Return the number of tasks that run concurrently: Spark's default parallelism."""
    table = spark.range(_PROBES).select(spark_partition_id().alias("part")).toArrow()
    return int(table.column("part").combine_chunks().to_numpy().max()) + 1


class _JobsLeftError(Exception):
    """Some jobs of a round failed with transient errors."""


@dataclass(frozen=True)
class _TaskFunction:
    """The function and its arguments, as sent to workers.

    Attributes:
        work: Function that runs a job.
        packed: Pickled jobs, or references to them.
        scratch: Storage for large jobs and results.
        uuid: UUID of this list of jobs.
    """

    work: Callable[[Any], Any]
    packed: tuple[bytes, ...] | tuple[ScratchRef, ...]
    scratch: Scratch | None
    uuid: UUID = field(default_factory=uuid4)

    def do(self, number: int) -> tuple[int, bytes]:
        """Run a job and return its outcome."""
        try:
            if self.scratch is not None and self.scratch.is_stopped(self.uuid):
                return _SKIPPED, b""
            packed = self.packed[number]
            if isinstance(packed, ScratchRef):
                assert self.scratch is not None
                packed = self.scratch.get(packed)
            payload = pickle.dumps(self.work(pickle.loads(packed)), pickle.HIGHEST_PROTOCOL)  # noqa: S301  from the driver
            if self.scratch is not None and len(payload) > SHARED_BYTES:
                return _FAR, pickle.dumps(self.scratch.put([payload])[0])
        except Exception as error:
            return self._failed(error)
        return _RESULT, payload

    def _failed(self, error: Exception) -> tuple[int, bytes]:
        passing = isinstance(error, StoreError)
        if not isinstance(error, LanceDuckError):
            passing = isinstance(error, OSError | MemoryError)
            error = _foreign(error)
        if not passing and self.scratch is not None:
            self.scratch.stop(self.uuid)
        return _PASSING if passing else _ERROR, pickle.dumps(error)


def _packed(jobs: Sequence[Any], scratch: Scratch | None) -> tuple[bytes, ...] | tuple[ScratchRef, ...]:
    packed = [pickle.dumps(job, pickle.HIGHEST_PROTOCOL) for job in jobs]
    if scratch is None or sum(map(len, packed)) <= SHARED_BYTES:
        return tuple(packed)
    return tuple(scratch.put(packed))


def _run(spark: SparkSession, tasks: _TaskFunction, numbers: list[int], parallelism: int | None) -> list[Any]:
    """Return a row (number, outcome, payload) for each job."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                outcome, payload = tasks.do(numbers[place])
                row = [[numbers[place]], [outcome], [payload]]
                yield pa.record_batch([pa.array(c, f.type) for c, f in zip(row, _SCHEMA, strict=True)], schema=_SCHEMA)

    count = max(1, min(len(numbers), parallelism or len(numbers)))
    frame = map_batches(spark.range(0, len(numbers), 1, count), run, _COLUMNS)
    try:
        return sorted(frame.collect(), key=lambda row: int(row.number))
    except Exception as error:
        raise of_spark(error) from None


def _take(
    rows: Sequence[Any],
    results: list[Any],
    scratch: Scratch | None,
    note: Callable[[Any], Any] | None,
    *,
    last: bool,
) -> list[int]:
    """Store results by job number and return the jobs to retry. Raises the first permanent error."""
    for row in rows:
        if row.outcome not in (_RESULT, _FAR):
            continue
        payload = row.said
        if row.outcome == _FAR:
            assert scratch is not None
            payload = scratch.get(pickle.loads(payload))  # noqa: S301  from our own worker
        results[row.number] = pickle.loads(payload)  # noqa: S301
        if note is not None:
            note(results[row.number])
    for row in rows:
        if row.outcome == _ERROR or (row.outcome == _PASSING and last):
            raise pickle.loads(row.said)  # noqa: S301
    return [row.number for row in rows if row.outcome in (_PASSING, _SKIPPED)]


def _told(progress: Progress, total: int, remaining: int, parallelism: int | None) -> Callable[[int], Any]:
    """Return a function that converts a number of finished tasks to a number of finished jobs, and reports it."""
    tasks = max(1, min(remaining, parallelism or remaining))
    ends = [0, *accumulate((i + 1) * remaining // tasks - i * remaining // tasks for i in range(tasks))]
    return lambda done: progress(total - remaining + ends[min(done, tasks)], total)


def _foreign(error: Exception) -> JobError:
    """Return a JobError for an error from outside this package, with the worker's traceback."""
    lines = "".join(traceback.format_exception(error)).rstrip()
    return JobError(f"a job raised {type(error).__name__}: {error}", remedy=f"on the worker:\n{lines}")


def of_spark(error: Exception) -> LanceDuckError:
    """Return the error for a worker that died or could not start, with Spark's message but without stack traces."""
    if own_error := error_in(str(error)):
        return own_error
    message, _, _ = str(error).partition("\nDriver stacktrace")
    lines = [line for line in message.splitlines() if not line.lstrip().startswith(("at ", "... ", "Caused by: java."))]
    message = "\n".join(lines[:_LINES]).strip() or type(error).__name__
    return JobError("Spark could not run the jobs", found=message, remedy="see the log of Spark")
