"""Spark's workers read an object store through a cache."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from support.servers import BUCKET, s3_server

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.store.disk_cache import usage


def test_workers_read_through_a_cache(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with s3_server() as options:
        uri = f"s3://{BUCKET}/t.lance"
        ld.write_dataset({"id": list(range(100))}, uri, max_rows_per_file=25, storage_options=options)
        reader = spark.read.format("lance").option("cache", str(folder)).option("cacheSize", "1GB")
        for name, value in options.items():
            reader = reader.option(f"storage.{name}", value)
        for _ in range(2):
            assert sorted(row.id for row in reader.load(uri).collect()) == list(range(100))
            assert usage(str(folder)).objects == 4
        cached = options | {"cache": str(folder), "cache_size": "1GB"}
        assert ls.read(spark, uri, filter="id >= 90", storage_options=cached).count() == 10
