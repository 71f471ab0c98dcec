"""The first job of a Spark session, in a new process for each session.

python -m benchmarks._spark_first_job SOURCE PATH CONF…     prints its figures as JSON
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

import lance_duck.spark as ls
from benchmarks._harness import OURS, Case
from benchmarks._spark_memory import FLOOR_ROWS, MemorySource
from benchmarks._spark_workers import (
    TICKS,
    TIMES,
    drain,
    processes,
    processor_seconds,
    session,
)

PARQUET: Final = "Spark's Parquet"
FLOOR: Final = "Python source in memory"
FIGURES: Final = ("clock", "processor", "workers")
_PAUSE: Final = 0.02
"""Seconds between two samples of the processes; processor time of processes that end in between is counted too low."""


class Workers:
    """Processor time of Python child processes, including ended ones.

    Attributes:
        own_seconds: Processor time of the watch itself.
    """

    def __init__(self) -> None:
        self.own_seconds = 0.0
        self._ticks: dict[int, int] = {}
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def seconds(self) -> float:
        """End the watch, and return the time so far."""
        self._ends.set()
        self._thread.join()
        return sum(self._ticks.values()) / TICKS

    def _watch(self) -> None:
        while not self._ends.wait(_PAUSE):
            for process, stat in processes().items():
                if b"pyspark.daemon" in _command(process):
                    self._ticks[process] = sum(int(stat[field]) for field in TIMES)
        self.own_seconds = time.thread_time()


def first_jobs(folder: Path, sources: Mapping[str, str], settings: Sequence[str], rounds: int) -> list[Case]:
    """Run the first job of new sessions, and measure wall time, processor time, and the workers' processor time.

    Args:
        folder: Folder of the tables.
        sources: Table names by contestant. Empty for batches in memory.
        settings: Settings for the sessions, as `key=value`.
        rounds: Number of sessions for each contestant.
    """
    figures: dict[str, dict[str, list[float]]] = {figure: {name: [] for name in sources} for figure in FIGURES}
    for turn in range(rounds + 1):
        for name, table in sources.items():
            command = [sys.executable, "-m", "benchmarks._spark_first_job", name, str(folder / table), *settings]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            for figure, value in json.loads(run.stdout.splitlines()[-1]).items():
                figures[figure][name] += [value] if turn else []
    workers = figures["workers"]
    return [
        Case("first job of a session, wall time", figures["clock"]),
        Case("first job of a session, processor time", figures["processor"]),
        Case("first job of a session, Python workers alone", {name: workers[name] for name in (OURS, FLOOR)}),
    ]


def main() -> None:
    """Start a session, and time its first job."""
    source, path, *settings = sys.argv[1:]
    spark = session("local[2]", "1g", settings)
    workers, processor, clock = Workers(), processor_seconds(), time.perf_counter()
    drain(_frame(spark, source, path))
    elapsed, used = time.perf_counter() - clock, processor_seconds() - processor
    in_workers = workers.seconds()
    seconds = (elapsed, used - workers.own_seconds, in_workers)
    spark.stop()
    print(json.dumps(dict(zip(FIGURES, seconds, strict=True))))


def _frame(spark: SparkSession, source: str, path: str) -> DataFrame:
    if source == OURS:
        return ls.read(spark, path)
    if source == PARQUET:
        return spark.read.parquet(path)
    assert source == FLOOR
    asked: dict[str, str | int] = {"rows": FLOOR_ROWS, "dimension": 16}
    return spark.read.format(MemorySource.name()).options(**asked).load()


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


if __name__ == "__main__":
    main()
