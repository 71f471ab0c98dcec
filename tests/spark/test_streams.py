"""Streams from tables and into them, stopped and started again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from spark.faulty import FaultySource

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.spark.io.stream_source import LIMITS_READS

HASTY = {"fsync": "false"}
Run = Callable[..., list[int]]


def append(path: str, *values: int, each: int = 1 << 20) -> ld.LanceDataset:
    rows = pa.table({"a": list(values)})
    return ld.write_dataset(rows, path, mode="append", max_rows_per_file=each, storage_options=HASTY)


def values(path: str) -> list[int]:
    return sorted(ld.dataset(path).to_table()["a"].to_pylist())


@pytest.fixture
def source(tmp_path: Path) -> str:
    """A table with two versions and three fragments."""
    append(str(tmp_path / "source"), 1, 2)
    append(str(tmp_path / "source"), 3, 4, each=1)
    return str(tmp_path / "source")


@pytest.fixture
def sink(tmp_path: Path) -> str:
    return str(tmp_path / "sink")


@pytest.fixture
def run(spark: SparkSession, source: str, sink: str, tmp_path: Path) -> Run:
    """Return a function that runs a query from its checkpoint to the end and returns row counts per batch."""
    ls.register(spark)
    spark.dataSource.register(FaultySource)

    def go(
        change: Callable[[DataFrame], DataFrame] = lambda frame: frame,
        mode: str = "append",
        fault: str = "none",
        name: str = "query",
        **options: Any,
    ) -> list[int]:
        frame = change(spark.readStream.format("lance_duck").options(**options).load(source))
        writer = frame.writeStream.outputMode(mode).option("checkpointLocation", str(tmp_path / name))
        if fault == "none":
            writer = writer.format("lance_duck")
        else:
            writer = writer.format("faulty").options(fault=fault, marker=str(tmp_path / "marker"))
        query = writer.trigger(availableNow=True).start(sink)
        try:
            query.awaitTermination()
        finally:
            batches = [each.numInputRows for each in query.recentProgress]
        return [rows for rows in batches if rows]

    return go


def files(path: str) -> set[str]:
    return {file.name for file in Path(path, "data").iterdir()}


def named(path: str) -> set[str]:
    """Data files that some version names."""
    found = (ld.dataset(path, each["version"]) for each in ld.dataset(path).versions())
    return {file.path for table in found for fragment in table.get_fragments() for file in fragment.data_files()}


def test_a_stream_resumes_after_its_checkpoint(run: Run, source: str, sink: str) -> None:
    assert run() == [4]
    append(source, 5)
    append(source, 6)
    assert run() == [2]
    assert values(sink) == [1, 2, 3, 4, 5, 6]
    table = ld.dataset(sink)
    assert table.version == 2
    transaction = table.read_transaction(2)
    assert transaction is not None
    said = transaction.transaction_properties
    assert said is not None
    assert said["lance.streaming.epochId"] == "1"
    assert table.config() == {f"lance.streaming.epoch.{said['lance.streaming.queryId']}": "1"}


@pytest.mark.slow
def test_compaction_adds_no_rows_and_deletes_fail_unless_skipped(run: Run, source: str, sink: str) -> None:
    run()
    ld.dataset(source).optimize.compact_files()
    append(source, 5)
    assert run() == [1]
    ld.dataset(source).delete("a = 2")
    append(source, 6)
    with pytest.raises(StreamingQueryException, match=r"version \d+ changed rows \(Delete\).*skipChangeCommits=true"):
        run()
    assert run(skipChangeCommits=True) == [1]
    assert values(sink) == [1, 2, 3, 4, 5, 6]


@pytest.mark.skipif(not LIMITS_READS, reason="this version of Spark knows of no limits")
def test_limits_split_a_stream_into_batches(run: Run, sink: str) -> None:
    assert run(lambda frame: frame, maxFilesPerTrigger=1, startingVersion=1) == [2, 1, 1]
    assert values(sink) == [1, 2, 3, 4]


@pytest.mark.skipif(LIMITS_READS, reason="this version of Spark knows of limits")
def test_trigger_limits_require_a_spark_that_supports_them(run: Run) -> None:
    with pytest.raises(
        StreamingQueryException, match=r"limits per trigger need a newer Spark: expected pyspark 4.2 or newer"
    ):
        run(maxFilesPerTrigger=1)


@pytest.mark.parametrize(
    "fault", [pytest.param("before", marks=pytest.mark.slow), "after", pytest.param("lost", marks=pytest.mark.slow)]
)
def test_a_batch_with_a_failed_commit_is_repeated_and_committed_once(
    run: Run, source: str, sink: str, fault: str
) -> None:
    run()
    append(source, 5, 6)
    if fault == "lost":
        run(fault=fault)
    else:
        with pytest.raises(StreamingQueryException, match="the driver lost its way"):
            run(fault=fault)
        assert values(sink) == ([1, 2, 3, 4, 5, 6] if fault == "after" else [1, 2, 3, 4])
        ld.dataset(sink).cleanup_old_versions(retain_versions=1)
        run(fault=fault)
    append(source, 7)
    run()
    assert values(sink) == [1, 2, 3, 4, 5, 6, 7]
    assert ld.dataset(sink).version == 3
    assert files(sink) == named(sink)


@pytest.mark.slow
def test_complete_mode_replaces_all_rows_with_each_batch(run: Run, source: str, sink: str) -> None:
    def parity(frame: DataFrame) -> DataFrame:
        return frame.groupBy((frame.a % 2).alias("odd")).count().selectExpr("odd * 100 + count AS a")

    run(parity, mode="complete")
    assert values(sink) == [2, 102]
    append(source, 5, 7)
    run(parity, mode="complete")
    assert values(sink) == [2, 104]


@pytest.mark.slow
def test_columns_and_rows_of_a_stream_are_chosen(run: Run, source: str, sink: str) -> None:
    assert run(columns='{"a": "a * 10"}', filter="a > 2") == [2]
    assert values(sink) == [30, 40]
    with pytest.raises(Exception, match=r"a stream does not support limit.*maxRowsPerTrigger"):
        run(name="other", limit=1)
    with pytest.raises(Exception, match=r"a stream does not support contains_null=auto.*which makes nulls an error"):
        run(name="third", contains_null="auto")


def test_stream_options_are_rejected_in_batch_reads(spark: SparkSession, source: str, run: Run) -> None:
    with pytest.raises(Exception, match="option 'startingversion' is not supported; for streams only"):
        spark.read.format("lance_duck").option("startingVersion", 1).load(source).collect()


@pytest.mark.slow
def test_a_stream_reads_rows_as_appended_even_after_columns_were_added(run: Run, source: str, sink: str) -> None:
    ld.dataset(source).add_columns({"b": "a + 1"})
    ld.write_dataset(pa.table({"a": [5], "b": [50]}), source, mode="append")
    assert run(startingVersion=1) == [5]
    found = ld.dataset(sink).to_table().to_pylist()
    assert sorted(found, key=lambda row: row["a"])[-2:] == [{"a": 4, "b": None}, {"a": 5, "b": 50}]


@pytest.mark.slow
def test_a_renamed_column_is_not_read_as_nulls(run: Run, source: str, sink: str) -> None:
    ld.dataset(source).alter_columns({"path": "a", "name": "b"})

    def renamed(frame: DataFrame) -> DataFrame:
        return frame.withColumnRenamed("b", "a")

    assert run(renamed, startingVersion=1) == [4]
    assert values(sink) == [1, 2, 3, 4]
    ld.dataset(source).add_columns({"c": "1"})
    with pytest.raises(StreamingQueryException, match=r"column 'b' of a stream is not in version 1: found 'a'"):
        run(lambda frame: renamed(frame.drop("c")), name="other", startingVersion=1)
