"""Tables with a write-ahead log in Spark."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

import lance_duck.spark as ls
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.stream_options import StreamOptions
from lance_duck.spark.io.stream_source import LanceStreamReader
from lance_duck.spark.table_ref import TableRef

LOG = str(Path(__file__).parents[1] / "golden" / "tables" / "lancedb_log.lance")


def test_frames_have_the_rows_of_the_log(spark: SparkSession) -> None:
    main = {0: "a", 1: "b", 2: "c", 3: "d", 4: "e", 5: "f"}
    assert dict(ls.read(spark, LOG).collect()) == main
    flushed = {**main, 1: "p", 2: "s", 7: "r"}
    assert dict(ls.read(spark, LOG, log="flushed").collect()) == flushed
    frame = spark.read.format("lance").option("log", "fresh").option("minPartitions", 3).load(LOG)
    assert dict(frame.collect()) == {**flushed, 3: "t", 8: "u"}
    assert frame.where("id > 5").count() == 2
    assert [row.v for row in ls.read(spark, LOG, log="fresh", filter="id = 7").collect()] == ["r"]


def test_other_versions_and_streams_of_a_log_are_rejected(spark: SparkSession) -> None:
    with pytest.raises(InvalidInputError, match="expected 'flushed' or 'fresh'"):
        ls.read(spark, LOG, log="x")
    with pytest.raises(UnsupportedError, match="only its newest version"):
        ls.read(spark, LOG, version=1, log="fresh")
    options = ReadOptions(TableRef.of(LOG), log="fresh")
    with pytest.raises(UnsupportedError, match="a stream cannot read a write-ahead log; leave out log"):
        LanceStreamReader(options, StreamOptions.of({}), StructType())
