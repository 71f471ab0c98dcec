"""A tour through the API for sessions in separate processes: python journey.py {connect | cluster} folder [URL].

Prints the results as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import lance_duck as ld
import lance_duck.spark as ls

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.driver.memory": "700m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
CLUSTER = {
    "spark.executor.memory": "500m",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.2",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.minTaskRuntime": "100ms",
}
ROWS, DIM, K = 4000, 4, 3


def main(what: str, folder: str, *rest: str) -> None:
    """Open the session, go the way."""
    spark = connected() if what == "connect" else on_cluster(*rest)
    try:
        begin = time.monotonic()
        found = way(spark, str(Path(folder) / "t"))
        found |= streamed(spark, Path(folder)) if what == "connect" else overtaken(spark, str(Path(folder) / "slow"))
        print(json.dumps({**found, "seconds": time.monotonic() - begin}))
    finally:
        spark.stop()


def connected() -> SparkSession:
    """Start a Spark Connect session with a separate server."""
    builder: Any = SparkSession.builder
    for key, value in SETTINGS.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.remote("local[2]").getOrCreate()
    return session


def on_cluster(url: str) -> SparkSession:
    """A session on a cluster."""
    builder = SparkSession.builder.master(url).appName("lance_duck")
    for key, value in {**SETTINGS, **CLUSTER}.items():
        builder = builder.config(key, value)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def way(spark: SparkSession, path: str) -> dict[str, Any]:
    """Write, index, compact, search."""
    ls.write(vectors(spark, 0, ROWS), path, vector_columns={"v": DIM}, max_rows_per_file=ROWS // 4)
    ls.write(vectors(spark, ROWS, ROWS + 10), path, mode="append")
    ls.create_index(spark, path, "id", "BTREE")
    ls.compact(spark, path)
    queries = vectors(spark, 0, 5).selectExpr("id AS number", "v AS q")
    near = ls.knn_join(spark, queries, path, column="v", query_column="q", k=K).collect()
    table = ld.dataset(path)
    return {
        "rows": table.count_rows(),
        "read": ls.read(spark, path, columns=["id"], filter="id >= 10").count(),
        "fragments": len(table.get_fragments()),
        "indexed": table.stats.index_stats("id_idx")["num_indexed_rows"],
        "near": len(near),
        "own": sorted(row["number"] for row in near if row["number"] == row["id"] and row["_distance"] == 0),
        "hosts": sorted(set(hosts(spark))),
    }


def vectors(spark: SparkSession, start: int, stop: int) -> DataFrame:
    """Rows with a number and a vector."""
    items = [F.cos(F.col("id") * (i + 1)).cast("float") for i in range(DIM)]
    return spark.range(start, stop, 1, 2).withColumn("v", F.array(*items))


def hosts(spark: SparkSession) -> Iterator[str]:
    """Where tasks run."""

    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        import time

        for batch in batches:
            time.sleep(0.3)
            yield pa.record_batch({"host": [os.environ.get("SPARK_LOCAL_HOSTNAME", os.getcwd())] * batch.num_rows})

    yield from (row.host for row in spark.range(0, 4, 1, 4).mapInArrow(where, "host string").collect())


def streamed(spark: SparkSession, folder: Path) -> dict[str, Any]:
    """Copy the table into another one with a stream."""
    stream = spark.readStream.format("lance").load(str(folder / "t")).select("id")
    writer = stream.writeStream.format("lance").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start(str(folder / "copy"))
    query.awaitTermination()
    return {"streamed": ld.dataset(folder / "copy").count_rows()}


def overtaken(spark: SparkSession, path: str) -> dict[str, Any]:
    """Run a task with a slow attempt that another attempt overtakes; its rows are written once."""
    frame = spark.range(0, 40, 1, 4).mapInArrow(slow_once(path + ".marker"), "id long")
    begin = time.monotonic()
    ls.write(frame, path)
    table = ld.dataset(path)
    named = {file.path for fragment in table.get_fragments() for file in fragment.data_files()}
    return {
        "overtaken": sorted(table.to_table()["id"].to_pylist()) == list(range(40)),
        "attempts": len(list(Path(path).parent.glob("slow.marker*"))),
        "left": len({file.name for file in Path(path, "data").iterdir()} - named),
        "waited": time.monotonic() - begin,
    }


def slow_once(marker: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The first attempt of one task sleeps."""

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time
        from pathlib import Path

        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.partitionId() == 2:
            attempt = context.attemptNumber()
            Path(f"{marker}{attempt}").touch()
            time.sleep(30 if attempt == 0 else 0)
        yield from batches

    return pass_on


if __name__ == "__main__":
    main(*sys.argv[1:])
