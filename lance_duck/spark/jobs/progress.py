"""Task progress of a query, from Spark's status tracker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final
from uuid import uuid4

from pyspark.sql import SparkSession

_SECONDS: Final = 0.1
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"

Told = Callable[[int], Any]


@contextmanager
def described(spark: SparkSession, words: str, report: Told | None) -> Iterator[None]:
    """Describe the tasks of a `with` block in Spark's UI, and report the number of finished tasks.

    Args:
        spark: Spark session. Connect does not show descriptions.
        words: Description of the work.
        report: Called from time to time with the number of finished tasks, from a different thread. Its errors are
            ignored. If None, tasks are not counted.
    """
    context = _context(spark)
    if context is None:
        with _handled(spark, report):
            yield
        return
    group = f"lance_duck {uuid4()}"
    # Without a report, an existing job group is kept, because notebooks use it to cancel jobs.
    mine = {_DESCRIPTION: words} if report is None else {_DESCRIPTION: words, _GROUP: group}
    before = {key: context.getLocalProperty(key) for key in mine}
    for key, value in mine.items():
        context.setLocalProperty(key, value)
    try:
        with _polled(context, group, report):
            yield
    finally:
        for key, value in before.items():
            context.setLocalProperty(key, value)


def _context(spark: SparkSession) -> Any:
    """Return the SparkContext of a classic session, which can count tasks. Returns None for Connect."""
    with suppress(Exception):
        return spark.sparkContext
    return None


@contextmanager
def _handled(spark: SparkSession, report: Told | None) -> Iterator[None]:
    if report is None:
        yield
        return

    def handle(stages: Any, **_: Any) -> None:
        with suppress(Exception):
            report(sum(stage.num_completed_tasks for stage in stages or ()))

    handler: Any = handle
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _polled(context: Any, group: str, report: Told | None) -> Iterator[None]:
    if report is None:
        yield
        return
    ended = threading.Event()

    def poll() -> None:
        tracker, last = context.statusTracker(), 0
        while not ended.wait(_SECONDS):
            with suppress(Exception):
                count = _done(tracker, group)
                if count != last:
                    last = count
                    report(count)

    thread = threading.Thread(target=poll, name="lance_duck-stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _done(tracker: Any, group: str) -> int:
    """Return the number of finished tasks of a group."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = {stage for job in jobs if job is not None for stage in job.stageIds}
    infos = [tracker.getStageInfo(stage) for stage in stages]
    return sum(info.numCompletedTasks for info in infos if info is not None)
