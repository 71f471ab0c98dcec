"""An in-memory batch source with the minimal cost of a Python source in Spark. It does not import this package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import ArrayType, FloatType, LongType, StringType, StructField, StructType

FLOOR_ROWS = 1 << 14
PARTITIONS = 8


class MemorySource(DataSource):
    """A source that repeats one batch with an int64, a string and a vector column, or with some of them."""

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
