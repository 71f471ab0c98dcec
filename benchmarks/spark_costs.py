"""Are the thresholds of the Spark source well chosen?

The clock is processor time of the JVM and its workers. Rows hold an int64, a string and a vector, in two large
fragments or in many small ones. A ratio above 1 means that another value would be faster.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

import lance_duck as ld
import lance_duck.spark as ls
from benchmarks._harness import OURS, Case, chosen, options, race, report
from benchmarks._spark_workers import AheadSource, VariedSource, drain, processor_seconds, session

FACTORS: Final = {OURS: 1.0, "a quarter": 0.25, "a half": 0.5, "twice": 2.0, "four times": 4.0}
SMALL: Final = 1000
"""Rows of a small fragment."""
SMALL_FRAGMENTS: Final = 200
AHEAD: Final = "read by threads"


@dataclass(frozen=True)
class Question:
    """A threshold, and a scan that it affects.

    Attributes:
        threshold: Module below `lance_duck.spark.io` with the threshold, and its name.
        columns: Columns to read.
        small: Whether to read the table of small fragments.
    """

    threshold: str
    columns: str = "id,s,v"
    small: bool = False

    @property
    def label(self) -> str:
        """Name of the case."""
        table = f"{SMALL_FRAGMENTS} small fragments" if self.small else f"columns {self.columns}"
        return f"{self.threshold.rpartition('.')[2]}, {table}"


QUESTIONS: Final = (
    Question("types.BATCH_BYTES"),
    Question("types.BATCH_BYTES", "id"),
    Question("source.BATCH_BYTES", "s"),
    Question("source.PARTITIONS"),
    Question("source.SMALLEST_PARTITION", "id"),
    Question("source.OPENING_BYTES", small=True),
)


def main() -> None:
    """Ask each question."""
    parser = options(__doc__ or "", rows=2_000_000, rounds=9)
    parser.add_argument("--dimension", type=int, default=16, help="of the vectors")
    arguments = parser.parse_args()
    labels = {question.label: question for question in QUESTIONS}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
        large, small = Path(folder) / "large.lance", Path(folder) / "small.lance"
        make(large, arguments.rows, arguments.rows // 2, arguments.dimension)
        make(small, SMALL * SMALL_FRAGMENTS, SMALL, arguments.dimension)
        spark = session("local[2]", "1g", [])
        for source in (VariedSource, AheadSource):
            spark.dataSource.register(source)
        cases = []
        try:
            for label in chosen(labels, arguments.only):
                question = labels[label]
                cases.append(ask(spark, question, small if question.small else large, arguments.rounds))
                print(label, *(f"{cases[-1].ratio(peer):.2f}" for peer in FACTORS if peer != OURS), flush=True)
            if arguments.only in AHEAD:
                cases.append(race(AHEAD, read_ahead(spark, str(large)), arguments.rounds, processor_seconds))
        finally:
            spark.stop()
    report("Thresholds of Spark's source, as they are against others", cases, arguments)


def make(path: Path, rows: int, fragment_rows: int, dimension: int) -> None:
    """Write a table of rows of a number, a text and a vector."""

    def batches() -> Iterator[pa.RecordBatch]:
        random = np.random.default_rng(0)
        for start in range(0, rows, 100_000):
            ids = np.arange(start, min(rows, start + 100_000))
            values = pa.array(random.random(len(ids) * dimension, np.float32))
            vectors = pa.FixedSizeListArray.from_arrays(values, dimension)
            yield pa.record_batch({"id": ids, "s": [f"text of row {i}" for i in ids], "v": vectors})

    kinds = pa.schema({"id": pa.int64(), "s": pa.string(), "v": pa.list_(pa.float32(), dimension)})
    reader = pa.RecordBatchReader.from_batches(kinds, batches())
    ld.write_dataset(reader, path, max_rows_per_file=fragment_rows, storage_options={"fsync": "false"})


def ask(spark: SparkSession, question: Question, path: Path, rounds: int) -> Case:
    """Race the scan with the threshold as it is and with the others."""
    module_name, _, constant = question.threshold.rpartition(".")
    value = getattr(import_module(f"lance_duck.spark.io.{module_name}"), constant)
    works: dict[str, Callable[[], object]] = {
        name: partial(scan, spark, question, path, max(1, int(value * factor))) for name, factor in FACTORS.items()
    }
    return race(question.label, works, rounds, processor_seconds)


def read_ahead(spark: SparkSession, path: str) -> dict[str, Callable[[], object]]:
    """Return the scan of all columns, as it is and read ahead by threads."""
    return {
        OURS: lambda: drain(ls.read(spark, path)),
        "threads": lambda: drain(spark.read.format(AheadSource.name()).option("contains_null", "auto").load(path)),
    }


def scan(spark: SparkSession, question: Question, path: Path, value: int) -> None:
    """Read the table with a value of the threshold."""
    thresholds = json.dumps({question.threshold: value})
    reader = spark.read.format(VariedSource.name()).options(thresholds=thresholds, contains_null="auto")
    drain(reader.option("columns", question.columns).load(str(path)))


if __name__ == "__main__":
    main()
