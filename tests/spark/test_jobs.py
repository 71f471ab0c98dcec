"""Job lists: ordered results, unchanged worker errors, and scratch files for large data."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession

from lance_duck.errors import CorruptError, InvalidInputError, JobError, StoreError
from lance_duck.spark.jobs.jobs import run_jobs, slots
from lance_duck.spark.jobs.scratch import Scratch
from lance_duck.spark.table_ref import TableRef


def partition(_: Any) -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def test_job_results_keep_the_job_order(spark: SparkSession) -> None:
    assert run_jobs(spark, abs, [-3, 1, -2]) == [3, 1, 2]
    assert run_jobs(spark, partition, "abcd") == [0, 1, 2, 3]
    assert run_jobs(spark, partition, "abcd", parallelism=2) == [0, 0, 1, 1]
    assert run_jobs(spark, abs, []) == []
    assert slots(spark) == 2


def test_a_lance_duck_error_in_a_worker_reaches_the_caller_unchanged(spark: SparkSession) -> None:
    def work(job: int) -> int:
        if job:
            raise InvalidInputError(f"job {job}", where="here", expected=1, found=2, remedy="do not")
        return job

    with pytest.raises(InvalidInputError) as raised:
        run_jobs(spark, work, [0, 1, 2])
    assert str(raised.value) == "here: job 1: expected 1, found 2; do not"
    assert raised.value.__cause__ is None


def test_other_errors_report_the_line_in_the_job(spark: SparkSession) -> None:
    def work(job: int) -> float:
        return 1 / job

    with pytest.raises(JobError, match=r"a job raised ZeroDivisionError: [^$]*return 1 / job") as raised:
        run_jobs(spark, work, [1, 0])
    assert "java" not in str(raised.value)


def test_transient_errors_are_retried_and_results_count_once(spark: SparkSession, tmp_path: Path) -> None:
    def work(job: int) -> int:
        with open(tmp_path / str(job), "a") as file:
            file.write(".")
        if job == 1 and (tmp_path / "1").stat().st_size < 3:
            raise StoreError("busy")
        return job

    noted: list[int] = []
    assert run_jobs(spark, work, [0, 1, 2], note=noted.append) == [0, 1, 2]
    assert sorted(noted) == [0, 1, 2]
    assert [(tmp_path / str(job)).stat().st_size for job in (0, 1, 2)] == [1, 3, 1]


def test_a_persistent_store_error_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    def work(job: int) -> int:
        (tmp_path / f"{len(os.listdir(tmp_path))}").touch()
        raise StoreError("the disk is full")

    with pytest.raises(StoreError, match="the disk is full"):
        run_jobs(spark, work, [0])
    assert len(os.listdir(tmp_path)) == 3


def test_a_worker_that_is_killed_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    def work(job: int) -> int:
        if job and not (tmp_path / "killed").exists():
            (tmp_path / "killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return job

    assert run_jobs(spark, work, [0, 1]) == [0, 1]


@pytest.mark.slow
def test_repeated_worker_deaths_raise_an_error_without_a_jvm_trace(spark: SparkSession) -> None:
    with pytest.raises(JobError, match="worker exited unexpectedly") as raised:
        run_jobs(spark, lambda job: os.kill(os.getpid(), signal.SIGKILL), [0])
    assert "\tat " not in str(raised.value)


def test_large_jobs_and_results_use_scratch_files_next_to_the_table(spark: SparkSession, tmp_path: Path) -> None:
    with Scratch.beside(TableRef.of(tmp_path)) as scratch:
        shared = scratch.share(b"s" * (2 << 20))
        jobs = [bytes([i]) * (1 << 20) for i in range(2)]
        assert run_jobs(spark, lambda job: job + shared.value, jobs, scratch=scratch) == [
            j + shared.value for j in jobs
        ]
        assert [len(files) for _, _, files in os.walk(tmp_path) if files] == [4]
        assert run_jobs(spark, len, [b"small"], scratch=scratch) == [5]
    assert os.listdir(tmp_path) == []


def test_scratch_files_that_another_process_changed_are_rejected(tmp_path: Path) -> None:
    with Scratch.beside(TableRef.of(tmp_path)) as scratch:
        (left,) = scratch.put([b"bytes of a job"])
        (tmp_path / left.path).write_bytes(b"bytes of others")
        with pytest.raises(CorruptError, match="have changed"):
            scratch.get(left)


def test_a_failed_job_stops_jobs_that_have_not_started(spark: SparkSession, tmp_path: Path) -> None:
    def work(job: int) -> None:
        (tmp_path / str(job)).touch()
        raise InvalidInputError(f"job {job}")

    with Scratch.beside(TableRef.of(tmp_path / "table")) as scratch, pytest.raises(InvalidInputError, match="job 0"):
        run_jobs(spark, work, range(5), parallelism=1, scratch=scratch)
    assert [name for name in os.listdir(tmp_path) if name != "table"] == ["0"]


def test_a_failed_job_list_does_not_affect_another_list_on_the_same_table(spark: SparkSession, tmp_path: Path) -> None:
    def work(job: int) -> int:
        if job < 0:
            raise InvalidInputError("negative")
        return job

    with Scratch.beside(TableRef.of(tmp_path)) as scratch:
        with pytest.raises(InvalidInputError):
            run_jobs(spark, work, [-1], scratch=scratch)
        assert run_jobs(spark, work, [1, 2], scratch=scratch) == [1, 2]


def test_progress_is_reported_up_to_the_end(spark: SparkSession) -> None:
    told: list[tuple[int, int]] = []
    tell: Callable[[int, int], None] = lambda done, total: told.append((done, total))  # noqa: E731
    run_jobs(spark, abs, [1, 2, 3], progress=tell)
    assert told == sorted(told)
    assert told[-1] == (3, 3)
