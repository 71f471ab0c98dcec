"""Run a script as a user whose `python3` on PATH lacks lance-duck; needs that PATH and a folder. Prints JSON."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

import lance_duck.spark as ls
from lance_duck.errors import JobError


def session() -> SparkSession:
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        builder = builder.config(name, "127.0.0.1")
    return builder.config("spark.driver.memory", "1g").getOrCreate()


def refusals(python: str, folder: str) -> list[str]:
    """Return the error of every entry point if the configured Python lacks the package."""
    os.environ["PYSPARK_PYTHON"] = python
    spark = session()
    said = []
    for way in (
        lambda: ls.register(spark),
        lambda: ls.write(spark.range(3), f"{folder}/no.lance"),
        lambda: ls.read(spark, f"{folder}/no.lance"),
        lambda: ls.create_index(spark, f"{folder}/t.lance", "id", "BTREE", name="other"),
    ):
        try:
            way()
        except JobError as error:
            said.append(str(error))
    spark.stop()
    del os.environ["PYSPARK_PYTHON"]
    return said


def uses(folder: str) -> dict[str, Any]:
    """Writes, reads, SQL, a job and a stream, in workers of Spark's own choice."""
    spark = session()
    found: dict[str, Any] = {"spark's": spark.sparkContext.pythonExec}
    first = f"{folder}/first.lance"
    spark.range(2).write.format("lance").save(first)
    found["before it is registered"] = spark.read.format("lance").load(first).count()
    ls.register(spark)
    table, copy = f"{folder}/t.lance", f"{folder}/copy.lance"
    spark.range(20).write.format("lance").mode("append").save(table)
    ls.write(spark.range(20, 25), table, "append")
    found["read"] = spark.read.format("lance").load(table).count()
    found["sql"] = spark.sql(f"SELECT count(*) FROM lance_table('{table}')").collect()[0][0]
    found["index"] = ls.create_index(spark, table, "id", "BTREE").rows
    stream = spark.readStream.format("lance").load(table).writeStream.format("lance")
    stream = stream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    stream.start(copy).awaitTermination()
    found["stream"] = ls.read(SparkSession.getActiveSession() or spark, copy).count()
    ls.register(spark)
    spark.stop()
    return found


if __name__ == "__main__":
    folder, python = sys.argv[1:]
    ls.ensure_java()
    found = uses(folder)
    print(json.dumps({**found, "refusals": refusals(python, folder)}))
