"""A table in shares for tasks, and what becomes of what tasks write when their job fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pyspark.sql import SparkSession

from lance_duck.errors import InvalidInputError, LanceDuckError, StoreError
from lance_duck.snapshot import Snapshot
from lance_duck.spark.jobs import run_jobs

Job = TypeVar("Job")
Result = TypeVar("Result")

FEWEST_ROWS: Final = 1 << 16
MOST_ROWS: Final = 1 << 22
_SHARES: Final = 64


def shares(
    snapshot: Snapshot, parallelism: int | None = None, fragments: Iterable[int] | None = None
) -> list[tuple[int, ...]]:
    """Cut the fragments of a version into runs of about as many rows each; no fragment is cut.

    Args:
        snapshot: The version.
        parallelism: Runs to aim at; None: as many as suit the size of the table.
        fragments: Ids of those to take; None: all.

    Returns:
        Ids of fragments, run by run, in the order of the table; none where there are no fragments.
    """
    chosen = None if fragments is None else frozenset(fragments)
    rows = [(f.id, snapshot.num_rows(f)) for f in snapshot.fragments if chosen is None or f.id in chosen]
    total = sum(count for _, count in rows)
    if parallelism is None:
        most = min(max(total // _SHARES, FEWEST_ROWS), MOST_ROWS)
    else:
        most = -(-total // check_parallelism(parallelism))
    found: list[list[int]] = []
    held = 0
    for fragment_id, count in rows:
        if not found or (held and held + count > most):
            found.append([])
            held = 0
        found[-1].append(fragment_id)
        held += count
    return [tuple(each) for each in found]


def check_parallelism(parallelism: int | None) -> int:
    """The number of tasks that a user asked for; 1 for None.

    Raises:
        InvalidInputError: It is no number, or below 1.
    """
    if parallelism is None:
        return 1
    if isinstance(parallelism, bool) or not isinstance(parallelism, int) or parallelism < 1:
        raise InvalidInputError("parallelism", expected="a number of tasks", found=repr(parallelism))
    return parallelism


@dataclass(frozen=True)
class Failed:
    """A task that failed for good: it is a result, so that what the other tasks wrote is known, too."""

    error: LanceDuckError


def run_all(
    spark: SparkSession,
    work: Callable[[Job], Result],
    jobs: Sequence[Job],
    note: Callable[[Result], None],
    progress: Callable[[int, int], None] | None = None,
) -> list[Result]:
    """Run `work` on each job, each a task; see `run_jobs`.

    Args:
        spark: The session.
        work: What a task does. Errors but those of the disk or the service are not tried again.
        jobs: For each task.
        note: Told every result, also when others failed: where what was written is remembered, to be deleted.
        progress: Told (jobs done, all jobs).

    Raises:
        LanceDuckError: The first of a task.
    """

    def run(job: Job) -> Any:
        return attempted(work, job)

    return settled(run_jobs(spark, run, jobs, progress=progress), note)


def attempted(work: Callable[[Job], Result], job: Job) -> Result | Failed:
    """What work gives, or that it failed; failures of the disk or the service are raised, and tried again by Spark."""
    try:
        return work(job)
    except StoreError:
        raise
    except LanceDuckError as error:
        return Failed(error)


def settled(results: Iterable[Any], note: Callable[[Any], None]) -> list[Any]:
    """The results, told to `note`; the first failure among them is raised."""
    failed: Failed | None = None
    done = []
    for result in results:
        if isinstance(result, Failed):
            failed = failed or result
        else:
            note(result)
            done.append(result)
    if failed is not None:
        raise failed.error
    return done
