"""What benchmarks need of Spark: sessions, scans with other thresholds, and the time and memory of workers."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

import lance_duck.spark as ls
from benchmarks._spark_memory import MemorySource
from lance_duck.spark.io.datasource import LanceDataSource
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.source import LanceReader

TICKS = os.sysconf("SC_CLK_TCK")
TIMES, OF_CHILDREN = (11, 12), (13, 14)


def session(master: str, memory: str, settings: Sequence[str]) -> SparkSession:
    """A session as users have it, with settings of their own."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("benchmark").config("spark.driver.memory", memory)
    for key in ("spark.ui.enabled", "spark.ui.showConsoleProgress"):
        builder = builder.config(key, "false")
    for key in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(key, "127.0.0.1")
    for setting in settings:
        key, _, value = setting.partition("=")
        builder = builder.config(key, value)
    made: SparkSession = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    ls.register(made)
    made.dataSource.register(MemorySource)
    return made


def drain(frame: DataFrame) -> None:
    """Compute a frame and discard its rows."""
    frame.write.format("noop").mode("overwrite").save()


class VariedSource(LanceDataSource):
    """Lance tables, read with other thresholds: the option `thresholds` is JSON, values by module and name."""

    @classmethod
    def name(cls) -> str:
        return "varied_thresholds"

    def __init__(self, options: dict[str, str]) -> None:
        self.thresholds = json.loads(options["thresholds"])
        super().__init__({name: value for name, value in options.items() if name.lower() != "thresholds"})

    def reader(self, schema: StructType) -> VariedReader:
        return VariedReader(ReadOptions.of(self.options), schema, self._version, self.thresholds)


class VariedReader(LanceReader):
    """A reader of a version, on the driver and in workers, with other thresholds."""

    def __init__(
        self,
        options: ReadOptions,
        schema: StructType,
        version: int | tuple[str, int] | None,
        thresholds: Mapping[str, int],
    ) -> None:
        super().__init__(options, schema, version)
        self._thresholds = thresholds

    def partitions(self) -> Sequence[InputPartition]:
        with thresholds_set(self._thresholds):
            return super().partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with thresholds_set(self._thresholds):
            yield from super().read(partition)


@contextmanager
def thresholds_set(values: Mapping[str, Any]) -> Iterator[None]:
    """Let thresholds, named with their modules below `lance_duck.spark.io`, have other values."""
    before = []
    for name, value in values.items():
        module_name, _, constant = name.rpartition(".")
        module = import_module(f"lance_duck.spark.io.{module_name}")
        before.append((module, constant, getattr(module, constant)))
        setattr(module, constant, value)
    try:
        yield
    finally:
        for module, constant, value in before:
            setattr(module, constant, value)


class AheadSource(LanceDataSource):
    """Lance tables with threaded read-ahead, as on object stores, in every location."""

    @classmethod
    def name(cls) -> str:
        return "read_ahead"

    def reader(self, schema: StructType) -> AheadReader:
        return AheadReader(ReadOptions.of(self.options), schema, self._version)


class AheadReader(LanceReader):
    """A reader that treats local tables as remote ones."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with thresholds_set({"source.local_path": lambda _: None}):
            yield from super().read(partition)


def processor_seconds() -> float:
    """Return the processor time of this process and its descendants: the JVM and its workers."""
    fields = processes()
    own = sum(int(stat[field]) for process, stat in fields.items() for field in TIMES if process != os.getpid())
    gone = sum(int(stat[field]) for stat in fields.values() for field in OF_CHILDREN)
    return time.process_time() + (own + gone) / TICKS


def worker_peak() -> int:
    """Return the highest peak memory of a worker, in bytes."""
    peaks = [0]
    for process in processes():
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if b"pyspark.daemon" in command:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
            peaks.append(int(status["VmHWM"].split()[0]) << 10)
    return max(peaks)


def processes() -> Mapping[int, list[str]]:
    """Return fields of /proc/…/stat, beginning with the state, for this process and its descendants."""
    stats: dict[int, list[str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            stats[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
    found, below = {}, [os.getpid()]
    while below:
        process = below.pop()
        found[process] = stats[process]
        below += [child for child, stat in stats.items() if int(stat[1]) == process]
    return found
