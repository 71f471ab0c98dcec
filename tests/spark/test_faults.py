"""Writes that fail at every point: the right rows once, and no file that no version names."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from spark.faulty import FaultySource

import lance_duck as ld
import lance_duck.spark as ls

ROWS = 60
Write = Callable[[str], None]


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """A table with ten rows."""
    spark.dataSource.register(FaultySource)
    ls.write(spark.range(-10, 0), str(tmp_path / "t"))
    return str(tmp_path / "t")


@pytest.fixture
def write(spark: SparkSession, path: str, tmp_path: Path) -> Write:
    """Append rows in three tasks, with a fault."""

    def append(fault: str) -> None:
        frame = spark.range(0, ROWS, 1, 3)
        frame.write.format("faulty").options(fault=fault, marker=str(tmp_path / "marker")).mode("append").save(path)

    return append


def ids(path: str) -> list[int]:
    return sorted(ld.dataset(path).to_table()["id"].to_pylist())


def orphans(path: str) -> set[str]:
    """Data files that no version names."""
    versions = [ld.dataset(path, each["version"]) for each in ld.dataset(path).versions()]
    named = {file.path for table in versions for fragment in table.get_fragments() for file in fragment.data_files()}
    return {file.name for file in Path(path, "data").iterdir()} - named


def check_all_rows(path: str) -> None:
    assert ids(path) == list(range(-10, ROWS))
    assert (ld.dataset(path).version, orphans(path)) == (2, set())


@pytest.mark.parametrize("fault", ["none", "late", "kill", "lost"])
def test_retried_tasks_commit_once(write: Write, path: str, fault: str) -> None:
    write(fault)
    check_all_rows(path)


@pytest.mark.parametrize("fault", ["always", "before", "unknown"])
def test_a_permanent_failure_leaves_nothing(write: Write, path: str, fault: str) -> None:
    with pytest.raises(PySparkException, match=r"the disk of this task|lost its way before|does not answer"):
        write(fault)
    assert ids(path) == list(range(-10, 0))
    assert (ld.dataset(path).version, orphans(path)) == (1, set())


def test_a_commit_stays_if_its_driver_fails_afterwards(write: Write, path: str) -> None:
    with pytest.raises(PySparkException, match="lost its way after"):
        write("after")
    check_all_rows(path)


def test_eight_concurrent_writers_commit_all_rows(spark: SparkSession, path: str) -> None:
    def append(number: int) -> None:
        ls.write(spark.range(number * 10, number * 10 + 10, 1, 1), path, mode="append")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(8)))
    assert ids(path) == list(range(-10, 80))
    assert (ld.dataset(path).version, orphans(path)) == (9, set())
