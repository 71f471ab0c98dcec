"""Runs a function on the rows of a DataFrame. Returns one result per partition, and re-raises the errors of workers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lance_duck.errors import LanceDuckError, StoreError
from lance_duck.spark.jobs.jobs import of_spark
from lance_duck.spark.jobs.progress import described
from lance_duck.spark.workers import map_batches

Result = TypeVar("Result")

_COLUMNS: Final = "failed boolean, said binary"
_SCHEMA: Final = pa.schema([("failed", pa.bool_()), ("said", pa.binary())])


def run_frame(
    spark: SparkSession,
    frame: DataFrame,
    work: Callable[[Iterator[pa.RecordBatch]], Result],
    *,
    note: Callable[[Result], Any] | None = None,
    words: str = "lance_duck",
) -> list[Result]:
    """Run `work` on each partition of a DataFrame, which is computed once.

    Args:
        spark: Session of the frame.
        frame: The rows, passed as Arrow batches with Spark's types.
        work: A function that can be pickled. Spark retries transient errors of the store or the system.
        note: Called with each result, even if a different partition failed. The caller then knows all written files.
        words: Description of the work for Spark's UI.

    Returns:
        One result per partition, in arbitrary order.

    Raises:
        LanceDuckError: A partition raised it.
        JobError: A partition raised an error of another package, or the frame cannot be computed.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        failed, payload = False, b""
        try:
            payload = pickle.dumps(work(batches), pickle.HIGHEST_PROTOCOL)
        except StoreError:
            raise
        except LanceDuckError as error:
            failed, payload = True, pickle.dumps(error)
        yield pa.record_batch([pa.array([failed]), pa.array([payload], pa.binary())], schema=_SCHEMA)

    try:
        with described(spark, words, None):
            rows = map_batches(frame, run, _COLUMNS).collect()
    except Exception as error:
        raise of_spark(error) from None
    results: list[Result] = []
    for row in rows:
        if not row.failed:
            results.append(pickle.loads(row.said))  # noqa: S301  from our own worker
            if note is not None:
                note(results[-1])
    for row in rows:
        if row.failed:
            raise pickle.loads(row.said)  # noqa: S301
    return results
