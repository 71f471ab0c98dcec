"""What `benchmarks/spark.py` needs of Spark's workers: a source of batches in memory, their time and memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import ArrayType, FloatType, LongType, StringType, StructField, StructType

FLOOR_ROWS = 1 << 14
PARTITIONS = 8
TICKS = os.sysconf("SC_CLK_TCK")
TIMES, OF_CHILDREN = (11, 12), (13, 14)


class MemorySource(DataSource):
    """Rows of (int64, string, vector of float32) or some of these, the same batch of `FLOOR_ROWS` again and again."""

    @classmethod
    def name(cls) -> str:
        return "memory_batches"

    def schema(self) -> StructType:
        kinds = {"id": LongType(), "s": StringType(), "v": ArrayType(FloatType(), containsNull=False)}
        return StructType([StructField(name, kinds[name]) for name in self.options.get("columns", "id,s,v").split(",")])

    def reader(self, schema: StructType) -> MemoryReader:
        return MemoryReader(int(self.options["rows"]) // FLOOR_ROWS, int(self.options["dimension"]), schema.names)


class MemoryReader(DataSourceReader):
    """Yields a number of batches from each partition."""

    def __init__(self, batches: int, dimension: int, columns: list[str]) -> None:
        self.batches, self.dimension, self.columns = batches, dimension, columns

    def partitions(self) -> list[InputPartition]:
        shares = [self.batches * part // PARTITIONS for part in range(PARTITIONS + 1)]
        return [InputPartition(stop - start) for start, stop in pairwise(shares)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for _ in range(partition.value):
            yield batch_of(self.dimension).select(self.columns)


@cache
def batch_of(dimension: int) -> pa.RecordBatch:
    """Return a batch, in the types that Spark demands."""
    values = pa.array(np.random.default_rng(0).random(FLOOR_ROWS * dimension, np.float32))
    kind = pa.list_(pa.field("element", pa.float32(), nullable=False))
    offsets = pa.array(np.arange(0, FLOOR_ROWS * dimension + 1, dimension, np.int32))
    vectors = pa.ListArray.from_arrays(offsets, values, type=kind)
    numbers = pa.array(np.arange(FLOOR_ROWS))
    texts = pa.array([f"text of row {number}" for number in range(FLOOR_ROWS)])
    return pa.RecordBatch.from_arrays([numbers, texts, vectors], names=["id", "s", "v"])


def processor_seconds() -> float:
    """Return the processor time of this process and of all below it, among them the JVM and its workers."""
    fields = processes()
    own = sum(int(stat[field]) for process, stat in fields.items() for field in TIMES if process != os.getpid())
    gone = sum(int(stat[field]) for stat in fields.values() for field in OF_CHILDREN)
    return time.process_time() + (own + gone) / TICKS


def worker_peak() -> int:
    """Return the most memory that one of the workers held at a time, in bytes."""
    peaks = [0]
    for process in processes():
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if b"pyspark.daemon" in command:
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
            peaks.append(int(status["VmHWM"].split()[0]) << 10)
    return max(peaks)


def processes() -> Mapping[int, list[str]]:
    """Return the fields of /proc/…/stat, from the state on, of this process and of all below it."""
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
