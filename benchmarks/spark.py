"""How fast are Spark jobs on Lance tables, compared with Spark's Parquet and Spark's own join?

Rows hold an int64, a string and a vector. A write includes reading them from a Parquet file. Scans end in Spark's
`noop` sink, and nothing is flushed. `nearestByJoin` compares all pairs, and runs once.

One more contestant is a Python source that yields batches from memory: no Python source can be faster.
`--processor` counts the JVM and all workers, in steps of 10 ms.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everywhere

import lance_duck as ld
import lance_duck.spark as ls
from benchmarks._harness import OURS, Case, add_clock, chosen, options, race, report
from benchmarks._spark_first_job import FLOOR, PARQUET, first_jobs
from benchmarks._spark_memory import FLOOR_ROWS, MemorySource
from benchmarks._spark_workers import drain, processor_seconds, session, worker_peak

BRUTE = "nearestByJoin"
HASTY = {"fsync": "false"}
GROUP = 100_000
FIRST, FIRST_ROWS = "first job of a session", 10_000
Action = Callable[[], object]
NOTE = "No Python source can be faster than the one that yields batches from memory."


def main() -> None:
    """Write the data, then run the cases."""
    parser = options(__doc__ or "", rows=500_000, rounds=3)
    add_clock(parser)
    parser.add_argument("--dimension", type=int, default=128, help="of the vectors")
    parser.add_argument("--queries", type=int, default=100, help="of a join")
    parser.add_argument("--near-rows", type=int, default=100_000, help="rows that queries are joined with")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--memory", default="1g", help="heap of the driver")
    parser.add_argument("--conf", action="append", default=[], help="key=value of the session, as often as needed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
        spark = session(arguments.master, arguments.memory, arguments.conf)
        try:
            cases = run(spark, Path(folder), arguments)
        finally:
            spark.stop()
    report(
        f"Spark jobs on {arguments.rows:,} rows with vectors of {arguments.dimension} dimensions",
        cases,
        arguments,
        NOTE,
    )


def run(spark: SparkSession, folder: Path, arguments: Namespace) -> list[Case]:
    """Run the selected cases, each after its preparation."""
    make(folder / "raw", arguments.rows, arguments.dimension)
    raw = spark.read.parquet(str(folder / "raw"))
    tables = Tables(spark, folder, raw, arguments.rows, arguments.dimension)
    tables.write()
    tables.write_parquet()
    clock = processor_seconds if arguments.processor else time.perf_counter
    cases = [
        race(name, tables.cases()[name], arguments.rounds, clock) for name in chosen(tables.cases(), arguments.only)
    ]
    print(f"peak memory of a worker: {worker_peak() >> 20} MiB")
    if arguments.only in FIRST:
        cases += first(spark, folder, raw, arguments)
    if arguments.only in "knn_join":
        cases += near(spark, folder, raw, arguments)
    return cases


def make(folder: Path, rows: int, dimension: int) -> None:
    """Write the raw rows as Parquet files."""
    random = np.random.default_rng(0)
    folder.mkdir()
    for number, start in enumerate(range(0, rows, GROUP)):
        count = min(GROUP, rows - start)
        values = pa.array(random.random((count, dimension), np.float32).ravel())
        vectors = pa.ListArray.from_arrays(pa.array(np.arange(0, count * dimension + 1, dimension, np.int32)), values)
        ids = np.arange(start, start + count)
        columns = {"id": ids, "s": [f"text of row {i}" for i in ids], "v": vectors}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet", compression="none", use_dictionary=False)


class Tables:
    """The same rows as a Lance table and as Parquet."""

    def __init__(self, spark: SparkSession, folder: Path, raw: DataFrame, rows: int, dimension: int) -> None:
        self.spark, self.raw, self.rows, self.dimension = spark, raw, rows, dimension
        self.lance, self.parquet = str(folder / "t.lance"), str(folder / "t.parquet")
        self.small = str(folder / "small.lance")

    def cases(self) -> Mapping[str, Mapping[str, Action]]:
        """Return the actions of each contestant by case."""
        return {
            "write": {OURS: self.write, PARQUET: self.write_parquet},
            "full scan": {
                OURS: lambda: drain(self.read()),
                PARQUET: lambda: drain(self.read_parquet()),
                FLOOR: lambda: drain(self.read_memory()),
            },
            "full scan, contains_null=True": {
                OURS: lambda: drain(self.read(contains_null=True)),
                PARQUET: lambda: drain(self.read_parquet()),
            },
            "count": {
                OURS: lambda: ls.count(self.spark, self.lance),
                PARQUET: lambda: self.read_parquet().count(),
            },
            "GROUP BY of one column": {
                OURS: lambda: grouped(self.read(columns=["id"])).collect(),
                PARQUET: lambda: grouped(self.read_parquet()).collect(),
                FLOOR: lambda: grouped(self.read_memory("id")).collect(),
            },
            "scan of one column": {
                OURS: lambda: drain(self.read(columns=["id"])),
                PARQUET: lambda: drain(self.read_parquet().select("id")),
                FLOOR: lambda: drain(self.read_memory("id")),
            },
            "filter that keeps 1 %": {
                OURS: lambda: drain(self.read(filter="id % 100 = 7")),
                PARQUET: lambda: drain(self.read_parquet().filter("id % 100 = 7")),
            },
            "build a B-tree": {OURS: self.index},
            "filter that keeps 100 rows, through a B-tree": {
                OURS: lambda: drain(self.read(filter="id BETWEEN 5000 AND 5099")),
                PARQUET: lambda: drain(self.read_parquet().filter("id BETWEEN 5000 AND 5099")),
            },
            "build an IVF_PQ index": {OURS: self.index_vectors},
            "write 20 small files and compact them": {OURS: self.compact},
        }

    def write(self) -> None:
        """Write the Lance table."""
        vectors = {"v": self.dimension}
        ls.write(self.raw, self.lance, "overwrite", vector_columns=vectors, storage_options=HASTY)

    def write_parquet(self) -> None:
        """Write the same rows as Parquet."""
        self.raw.write.mode("overwrite").parquet(self.parquet)

    def read(self, **asked: object) -> DataFrame:
        """Read the Lance table."""
        return ls.read(self.spark, self.lance, **asked)  # type: ignore[arg-type]

    def read_parquet(self) -> DataFrame:
        """Read the same rows from Parquet."""
        return self.spark.read.parquet(self.parquet)

    def read_memory(self, columns: str = "id,s,v") -> DataFrame:
        """Read the same number of rows from the memory of the workers."""
        rows = -(-self.rows // FLOOR_ROWS) * FLOOR_ROWS
        asked: dict[str, int | str] = {"rows": rows, "dimension": self.dimension, "columns": columns}
        return self.spark.read.format(MemorySource.name()).options(**asked).load()

    def index(self) -> None:
        """Index the numbers."""
        ls.create_index(self.spark, self.lance, "id", "BTREE", replace=True, storage_options=HASTY)

    def index_vectors(self) -> None:
        """Index the vectors."""
        ls.create_index(
            self.spark,
            self.lance,
            "v",
            "IVF_PQ",
            num_partitions=256,
            num_sub_vectors=self.dimension // 8,
            replace=True,
            storage_options=HASTY,
        )

    def compact(self) -> None:
        """Write the table as small files, and compact them. Writing takes most of the time."""
        rows = -(-ld.dataset(self.lance).count_rows() // 20)
        shutil.rmtree(self.small, ignore_errors=True)
        ld.write_dataset(ld.dataset(self.lance), self.small, max_rows_per_file=rows, storage_options=HASTY)
        ls.compact(self.spark, self.small, storage_options=HASTY)


def grouped(frame: DataFrame) -> DataFrame:
    """Sum the numbers by their last two digits."""
    return frame.groupBy((F.col("id") % 100).alias("digits")).agg(F.sum("id"), F.count("id"))


def first(spark: SparkSession, folder: Path, raw: DataFrame, arguments: Namespace) -> list[Case]:
    """Run the first job of new sessions on few rows."""
    rows = raw.filter(F.col("id") < FIRST_ROWS)
    ls.write(rows, str(folder / "first.lance"), vector_columns={"v": arguments.dimension}, storage_options=HASTY)
    rows.write.parquet(str(folder / "first.parquet"))
    sources = {OURS: "first.lance", PARQUET: "first.parquet", FLOOR: ""}
    return first_jobs(folder, sources, arguments.conf, arguments.rounds)


def near(spark: SparkSession, folder: Path, raw: DataFrame, arguments: Namespace) -> list[Case]:
    """Join queries with their nearest rows: exact, through an index, and with Spark's own join."""
    path, k = str(folder / "near.lance"), 10
    rows = raw.filter(F.col("id") < arguments.near_rows)
    ls.write(rows, path, vector_columns={"v": arguments.dimension}, storage_options=HASTY)
    frame = spark.read.parquet(str(folder / "raw")).filter(F.col("id") < arguments.near_rows)
    queries = raw.filter(F.col("id") < arguments.queries).selectExpr("id AS number", "v AS q")
    queries.persist().count()

    def ours(**asked: object) -> DataFrame:
        return ls.knn_join(spark, queries, path, "v", "q", k, columns=["id"], **asked)  # type: ignore[arg-type]

    distance = F.expr("vector_l2_distance(q, v)")
    joined = queries.nearestByJoin(frame.select("id", "v"), distance, k, "exact", "distance")
    begin = time.perf_counter()
    expected = found(joined)
    seconds = [time.perf_counter() - begin]
    exact = race("", {OURS: lambda: found(ours(use_index=False))}, arguments.rounds)
    name = f"knn_join, {arguments.queries} queries by {arguments.near_rows:,} rows"
    cases = [beside(f"{name}, exact (recall {recall(found(ours(use_index=False)), expected):.3f})", exact, seconds)]
    ls.create_index(spark, path, "v", "IVF_PQ", num_partitions=64, num_sub_vectors=16, storage_options=HASTY)
    asked = {"nprobes": 64, "refine_factor": 5}
    through = race("", {OURS: lambda: found(ours(**asked))}, arguments.rounds)
    cases.append(beside(f"{name}, IVF_PQ (recall {recall(found(ours(**asked)), expected):.3f})", through, seconds))
    return cases


def beside(name: str, ours: Case, theirs: list[float]) -> Case:
    """Return a case whose peer ran once."""
    mine = ours.seconds[OURS]
    return Case(name, {OURS: mine, BRUTE: theirs * len(mine)})


def found(frame: DataFrame) -> dict[int, set[int]]:
    """Return the rows found for each query."""
    answers: dict[int, set[int]] = {}
    for row in frame.select("number", "id").collect():
        answers.setdefault(row.number, set()).add(row.id)
    return answers


def recall(answers: Mapping[int, set[int]], expected: Mapping[int, set[int]]) -> float:
    return float(np.mean([len(answers[query] & rows) / len(rows) for query, rows in expected.items()]))


if __name__ == "__main__":
    main()
