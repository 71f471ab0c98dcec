"""Frames written to and read from tables: modes, vectors, files, versions, SQL views, and rejected calls."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import lance_duck as ld
import lance_duck.spark as ls
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.spark.jobs.failures import as_ours


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "t")


def numbers(spark: SparkSession, start: int = 0, stop: int = 10, parts: int = 2) -> DataFrame:
    return spark.range(start, stop, 1, parts).selectExpr("id", "if(id < 0, null, concat('name ', id)) s")


def ids(rows: Any) -> list[int]:
    return sorted(row.id for row in rows)


def files(uri: str) -> list[str]:
    return sorted(path.name for path in Path(uri, "data").glob("*"))


def test_save_modes_of_write_are_honoured(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark, 0, 3), uri)
    with pytest.raises(AlreadyExistsError, match="the table already exists"):
        ls.write(numbers(spark, 3, 4), uri)
    ls.write(numbers(spark, 4, 5), uri, "ignore")
    assert lance.dataset(uri).version == 1
    ls.write(numbers(spark, 5, 7), uri, "append", commit_message="more")
    assert lance.dataset(uri).to_table().column("id").to_pylist() == [0, 1, 2, 5, 6]
    assert lance.dataset(uri).read_transaction(2).transaction_properties == {"__lance_commit_message": "more"}
    ls.write(numbers(spark, 7, 9).select("id"), uri, "overwrite")
    assert lance.dataset(uri).to_table().to_pydict() == {"id": [7, 8]}
    with pytest.raises(InvalidInputError, match="unknown mode"):
        ls.write(numbers(spark), uri, "sometimes")


def test_save_modes_of_spark_writers_are_honoured(spark: SparkSession, uri: str) -> None:
    numbers(spark, 0, 3).write.format("lance").mode("append").save(uri)
    numbers(spark, 3, 6).write.format("lance").mode("append").option("max_rows_per_file", 1).save(uri)
    assert spark.read.format("lance").option("columns", "id").load(uri).count() == 6
    assert len(lance.dataset(uri).get_fragments()) == 5
    numbers(spark, 7, 9).write.format("lance").mode("overwrite").save("file://" + uri)
    assert ids(spark.read.format("lance").load(uri).collect()) == [7, 8]


def test_the_default_save_mode_creates_a_missing_table(spark: SparkSession, uri: str) -> None:
    ls.register(spark)  # also as "lance_duck"
    writer = numbers(spark, 0, 3).write.format("lance")
    writer.save(uri)
    with pytest.raises(AlreadyExistsError, match="the table already exists"), as_ours():
        writer.save(uri)
    numbers(spark, 3, 5).write.mode("ignore").format("lance_duck").save(path=uri)
    numbers(spark, 3, 5).write.save(uri, "lance", "ignore")
    assert lance.dataset(uri).version == 1
    writer.mode("append").save(uri)
    writer.mode("overwrite").save(uri)
    assert lance.dataset(uri).version == 3
    assert lance.dataset(uri).count_rows() == 3
    numbers(spark, 3, 5).write.save(f"{uri}2", "lance", "ignore")
    assert lance.dataset(f"{uri}2").count_rows() == 2


def test_other_formats_keep_the_save_behaviour_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "p.parquet")
    numbers(spark).write.format("parquet").save(path)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        numbers(spark).write.format("parquet").save(path)
    numbers(spark).write.format("parquet").mode("ignore").save(path)
    assert spark.read.parquet(path).count() == 10


def test_errors_of_users_are_short(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark), uri)
    read, write = spark.read.format("lance"), numbers(spark).write.format("lance").mode("append")
    lists = spark.createDataFrame([([1.0],)], "v array<float>").write.format("lance")
    wrong: dict[str, Callable[[], Any]] = {
        "Lance table not found": lambda: read.load(f"{uri}/nowhere"),
        "unknown option 'colums'": lambda: spark.read.format("lance").load(uri, colums="id"),
        "no column 'idd'": lambda: spark.read.format("lance").load(uri, columns="idd"),
        "bad filter": lambda: spark.read.format("lance").load(uri, filter="id >"),
        "columns 'x' are not in the table": lambda: (
            numbers(spark).withColumnRenamed("id", "x").write.format("lance").mode("append").save(uri)
        ),
        "option 'max_rows_per_file'": lambda: write.option("max_rows_per_file", "x").save(uri),
        "the vector length cannot be determined": lambda: lists.save(f"{uri}2"),
        "expected 2, found 1": lambda: lists.option("vector_columns", "v:2").save(f"{uri}2"),
        "the path of the table is missing": lambda: numbers(spark).write.format("lance").saveAsTable("named"),
    }
    for text, ask in wrong.items():
        with pytest.raises(PySparkException) as caught:
            ask()
        assert text in str(caught.value)
        assert len(str(caught.value).strip().splitlines()) <= 7, str(caught.value)


def test_names_from_other_libraries_suggest_the_right_call(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark), uri)
    with pytest.raises(WrongTypeError, match="columns: expected a list of names, found 'id'"):
        ls.read(spark, uri, columns="id")
    with pytest.raises(WrongTypeError, match="query: expected words, found list; knn_join"):
        ls.search(spark, uri, [0.5, 1.0])
    with pytest.raises(AttributeError, match="no attribute 'vector_search'; here it is knn_join"):
        ls.vector_search  # noqa: B018


def test_the_length_of_vectors_is_found(spark: SparkSession, uri: str) -> None:
    frame = spark.createDataFrame([(None, None), ([1.0, 2.0], [3.0])], "v array<float>, `w x` array<double>")
    ls.write(frame, uri, vector_columns=["v", "w x"])
    assert lance.dataset(uri).schema.types == [pa.list_(pa.float32(), 2), pa.list_(pa.float64(), 1)]
    with pytest.raises(InvalidInputError, match="'v': the vector length cannot be determined: found only nulls"):
        ls.write(frame.where("v IS NULL"), f"{uri}2", vector_columns=["v"])
    with pytest.raises(InvalidInputError, match="no column 'u'"):
        ls.write(frame, f"{uri}2", vector_columns=["u"])
    with pytest.raises(WrongTypeError, match="vectors must be arrays"):
        ls.write(numbers(spark), f"{uri}2", vector_columns=["id"])


def test_one_frame_can_be_read_twice_and_joined_with_itself(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark), uri)
    df = ls.read(spark, uri)
    assert df.filter("id < 3").count() == 3
    assert df.count() == 10
    few = df.filter("id >= 8")
    assert ids(few.union(df).collect()) == sorted([8, 9, *range(10)])
    assert df.join(few, "id").count() == 2
    df.createOrReplaceTempView("twice")
    assert spark.sql("select (select count(*) from twice where id = 1), (select count(*) from twice)").first() == (
        1,
        10,
    )


def test_a_frame_stays_at_its_version_and_may_replace_its_own_table(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark), uri)
    df = ls.read(spark, uri)
    assert df.count() == 10
    ls.write(df.filter("id % 2 = 0"), uri, "overwrite")
    assert ids(ls.read(spark, uri).collect()) == [0, 2, 4, 6, 8]
    assert ids(ls.read(spark, uri, version=1).collect()) == list(range(10))


def test_empty_frames_and_empty_partitions(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark).filter("id < 0"), uri)
    assert lance.dataset(uri).count_rows() == 0
    assert ls.read(spark, uri).collect() == []
    assert ls.read(spark, uri).schema.simpleString() == "struct<id:bigint,s:string>"
    ls.write(numbers(spark, parts=4).filter("id = 7"), uri, "append")
    assert ids(ls.read(spark, uri).collect()) == [7]
    assert len(files(uri)) == 1
    ls.write(numbers(spark).filter("id < 0"), uri, "overwrite")
    assert ls.read(spark, uri).count() == 0


def test_columns_are_matched_by_name(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark, 0, 1), uri)
    ls.write(spark.sql("select 'x' s, cast(5 as short) id"), uri, "append")
    ls.write(spark.sql("select 6L id"), uri, "append")
    assert lance.dataset(uri).to_table().to_pydict() == {"id": [0, 5, 6], "s": ["name 0", "x", None]}
    before = files(uri)
    for frame, error, said in (
        ("select 1L id, 'a' s, 2 extra", InvalidInputError, "'extra'"),
        ("select 'a' id, 'b' s", InvalidInputError, "column 'id'"),
        ("select 'b' s", InvalidInputError, "'id' are missing"),
        ("select 2.5D id", InvalidInputError, "column 'id'"),
    ):
        with pytest.raises(error, match=said):
            ls.write(spark.sql(frame), uri, "append")
    assert lance.dataset(uri).version == 3
    assert files(uri) == before


def test_arrays_become_vectors(spark: SparkSession, uri: str) -> None:
    df = spark.sql("select id, if(id = 0, null, array(cast(id as float), 0.5f)) v from range(4)").coalesce(1)
    with pytest.raises(
        InvalidInputError, match=r"column 'v': the vector length cannot be determined; pass vector_columns"
    ):
        ls.write(df, uri)
    with pytest.raises(InvalidInputError, match="length"):
        ls.write(df, uri, vector_columns={"v": 3})
    assert not Path(uri, "_versions").exists()
    assert not files(uri)

    ls.write(df, uri, vector_columns={"v": 2})
    assert lance.dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    ls.write(df.selectExpr("id", "cast(v as array<double>) v"), uri, "append")
    assert lance.dataset(uri).to_table().column("v").to_pylist() == [None, [1, 0.5], [2, 0.5], [3, 0.5]] * 2
    with pytest.raises(InvalidInputError, match=r"column 'v'.*row 1"):
        ls.write(spark.sql("select id, sequence(0, id) v from range(1, 3)").coalesce(1), uri, "append")
    with pytest.raises(InvalidInputError, match="do not have the length of the table's column"):
        ls.write(df, uri, "append", vector_columns={"v": 3})

    ls.write(ls.read(spark, uri).withColumnRenamed("v", "w"), uri + "2")
    assert lance.dataset(uri + "2").schema.field("w").type == pa.list_(pa.float32(), 2)
    ls.write(df.selectExpr("v"), uri + "3", vector_columns={"v": "float16[2]"})
    assert lance.dataset(uri + "3").schema.field("v").type == pa.list_(pa.float16(), 2)
    ragged = spark.sql("select cast(sequence(0, id) as array<float>) v from range(3)").coalesce(1)
    ls.write(ragged, uri + "4", vector_columns={"v": 0})
    assert [len(v) for v in lance.dataset(uri + "4").to_table().column("v").to_pylist()] == [1, 2, 3]


def test_files_are_split_by_rows_and_by_bytes(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark, 0, 25, 1), uri, max_rows_per_file=10)
    assert [f.count_rows() for f in lance.dataset(uri).get_fragments()] == [10, 10, 5]
    df = spark.range(0, 40_000, 1, 1).selectExpr("id", "repeat(uuid(), 3) s")
    ls.write(df, uri + "2", max_bytes_per_file=1 << 20, data_storage_version="2.1")
    found = lance.dataset(uri + "2")
    assert len(found.get_fragments()) > 2
    assert found.count_rows() == 40_000
    assert found.data_storage_version == "2.1"


def test_a_frame_reads_a_version_tag_timestamp_or_branch(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark, 0, 1), uri)
    moment = datetime.now(UTC)
    ls.write(numbers(spark, 1, 3), uri, "append")
    table = lance.dataset(uri)
    table.tags.create("first", 1)
    lance.write_dataset(pa.table({"id": [9], "s": ["nine"]}), table.create_branch("side"), mode="append")
    for options in ({"version": 1}, {"version": "first"}, {"tag": "first"}, {"timestamp": moment}):
        assert ids(ls.read(spark, uri, **options).collect()) == [0]
    assert ids(ls.read(spark, uri, branch="side").collect()) == [0, 1, 2, 9]
    assert ids(spark.read.format("lance").option("versionAsOf", "1").load(uri).collect()) == [0]
    for options in ({"version": 7}, {"tag": "none"}, {"branch": "none"}):
        with pytest.raises(NotFoundError):
            ls.read(spark, uri, **options)


def test_columns_filter_limit_and_addresses(spark: SparkSession, uri: str) -> None:
    ls.write(numbers(spark, 0, 100), uri, enable_stable_row_ids=True)
    ld.dataset(uri).delete("id < 10")
    assert ls.read(spark, uri, columns=["s"], filter="id = 42").collect() == [Row(s="name 42")]
    assert ids(ls.read(spark, uri, limit=5).collect()) == [10, 11, 12, 13, 14]
    assert ls.read(spark, uri, limit=45).count() == 45
    assert ids(ls.read(spark, uri, filter="id % 20 = 0", limit=3).collect()) == [20, 40, 60]
    assert ls.read(spark, uri, columns={"n": "id * 2", "s": "s"}, filter="id > 98").collect() == [(198, "name 99")]
    row = ls.read(spark, uri, filter="id = 60", row_id=True, row_address=True).first()
    assert row == (60, "name 60", 60, (1 << 32) + 10)
    ld.dataset(uri).optimize.compact_files()
    row = ls.read(spark, uri, columns=["_rowaddr", "id", "_rowid"], filter="_rowid = 60").first()
    assert (row.id, row._rowid) == (60, 60)
    with pytest.raises(InvalidInputError, match="nothing"):
        ls.read(spark, uri, columns=["nothing"])
    with pytest.raises(InvalidInputError):
        ls.read(spark, uri, filter="id = = 1")


@pytest.mark.slow
def test_blobs_are_written_and_read(spark: SparkSession, uri: str) -> None:
    df = spark.sql("select id, cast(repeat('x', 10 + id) as binary) b from range(3)").coalesce(1)
    ls.write(df, uri, blob_columns=["b"], data_storage_version="2.1")
    assert [len(blob.readall()) for blob in lance.dataset(uri).take_blobs("b", indices=[0, 2])] == [10, 12]
    assert [row.b.size for row in ls.read(spark, uri).collect()] == [10, 11, 12]
    whole = ls.read(spark, uri, blob_handling="all_binary")
    assert [len(row.b) for row in whole.collect()] == [10, 11, 12]
    ls.write(whole, uri, "append")
    assert [len(blob.readall()) for blob in lance.dataset(uri).take_blobs("b", indices=[5])] == [12]


def test_writes_and_reads_from_threads(spark: SparkSession, uri: str) -> None:
    failed: list[BaseException] = []

    def work(start: int) -> None:
        try:
            ls.write(numbers(spark, start, start + 2, 1), uri, "append")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(10 * i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert ids(ls.read(spark, uri).collect()) == [0, 1, 10, 11, 20, 21]


def test_sql_views_read_tables(spark: SparkSession, uri: str) -> None:
    ls.write(spark.sql("select id, cast(id as string) s, array(1f, 2f) v from range(3)"), uri, vector_columns={"v": 2})
    spark.sql(f"CREATE OR REPLACE TEMP VIEW lance_t USING lance OPTIONS (path '{uri}')")
    assert spark.sql("SELECT max(id) m FROM lance_t WHERE s < '2'").first() == (1,)
    spark.sql("INSERT INTO lance_t VALUES (7, 'seven', array(0.5, 1))")
    spark.sql("INSERT INTO lance_t BY NAME SELECT array(3f, 4f) v, 'eight' s, 8L id")
    found = lance.dataset(uri).to_table(filter="id > 2").to_pylist()
    assert found == [{"id": 7, "s": "seven", "v": [0.5, 1]}, {"id": 8, "s": "eight", "v": [3, 4]}]
    spark.sql("INSERT OVERWRITE lance_t SELECT 1L, 'one', array(5f, 6f)")
    assert lance.dataset(uri).to_table().to_pylist() == [{"id": 1, "s": "one", "v": [5, 6]}]
    assert lance.dataset(uri).schema.field("v").type == pa.list_(pa.float32(), 2)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW old USING lance OPTIONS (path '{uri}', version '1', columns 'id')")
    assert ids(spark.table("old").collect()) == [0, 1, 2]


def test_invalid_arguments_raise_short_errors(spark: SparkSession, uri: str, tmp_path: Path) -> None:
    def refused(kind: type[LanceDuckError], said: str) -> Any:
        return pytest.raises(kind, match=said)

    with refused(NotFoundError, "Lance table not found"):
        ls.read(spark, uri)
    with refused(InvalidInputError, "unknown option 'colour'"):
        ls.read(spark, uri, colour="red")
    with refused(UnsupportedError, "mergeschema"):
        ls.write(numbers(spark), uri, mergeSchema=True)
    with refused(WrongTypeError, "vectors must be arrays"):
        ls.write(numbers(spark), uri, vector_columns={"id": 2})
    with refused(StoreError, "http://127.0.0.1:1/t"):
        ls.write(numbers(spark), "http://127.0.0.1:1/t", "append")
    with refused(InvalidInputError, "the path of the table is missing"), as_ours():
        spark.read.format("lance").load()
    with refused(UnsupportedError, "load takes one table"), as_ours():
        spark.read.format("lance").load([uri, uri + "2"])
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(LanceDuckError):
        ls.write(numbers(spark), tmp_path / "file" / "t")
    assert not Path(uri).exists()
