"""The code of `docs/guides/spark.md` runs, and the functions that the page describes behave as it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from support.pages import run_page

import lance_duck as ld
import lance_duck.spark as ls

PAGE = Path(__file__).parents[2] / "docs/guides/spark.md"

CODE = {
    "read": """
frame = spark.read.format("lance").option("columns", "id").option("filter", "id > 1").load(uri)
assert sorted(frame.collect()) == [(2,), (3,)]
assert ls.read(spark, uri, columns=["id"], filter="id > 2", version=1).collect() == [(3,)]
""",
    "contains_null": """
def may_hold_nulls(frame):
    return frame.schema["v"].dataType.containsNull
assert not may_hold_nulls(ls.read(spark, uri, columns=["v"]))
assert not may_hold_nulls(ls.read(spark, uri, columns=["v"], contains_null=False))
assert may_hold_nulls(ls.read(spark, uri, columns=["v"], contains_null=True))
assert may_hold_nulls(spark.read.format("lance").load(uri))
ld.dataset(uri).insert([{"id": 4, "body": "a null item", "v": [None, 1.0]}])
assert may_hold_nulls(ls.read(spark, uri))
assert not may_hold_nulls(ls.read(spark, uri, version=1))
""",
    "write": """
frame = spark.createDataFrame([(4, "duck lake", [4.0, 0.0])], "id long, body string, v array<double>")
frame.write.format("lance").mode("append").save(uri)
ls.write(frame.selectExpr("id + 1 AS id", "v", "body"), uri, mode="append")
assert ld.dataset(uri).to_table(filter="id >= 4")["v"].to_pylist() == [[4.0, 0.0]] * 2
ls.write(frame, uri, mode="ignore")
with pytest.raises(Exception, match="exists"):
    ls.write(frame.select("id"), uri, mode="error")
with pytest.raises(Exception, match="exists"):
    frame.write.format("lance").save(uri)
frame.write.format("lance").mode("ignore").save(uri)
assert ld.dataset(uri).count_rows() == 6
""",
    "vector_columns": """
frame = spark.createDataFrame([(1, None), (2, [0.5] * 128)], "id long, v array<float>")
uri = str(folder / "new.lance")
ls.write(frame, uri, vector_columns={"v": 128})
assert ld.dataset(uri).schema.field("v").type.list_size == 128
frame.write.format("lance").mode("overwrite").option("vector_columns", "v:128").save(uri)
ls.write(frame, str(folder / "found.lance"), vector_columns=["v"])
assert ld.dataset(folder / "found.lance").search([0.5] * 128, k=1)["id"].to_pylist() == [2]
ls.write(frame, uri, "overwrite", vector_columns={"v": 0})
assert ld.dataset(uri).to_table()["v"].to_pylist() == [None, [0.5] * 128]
""",
    "streams": """
stream = spark.readStream.format("lance").load(uri).writeStream.format("lance")
for _ in range(2):
    writer = stream.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    query = writer.start(str(folder / "streamed.lance"))
    query.awaitTermination(60)
    assert ld.dataset(folder / "streamed.lance").count_rows() == 4
""",
    "maintenance": """
ls.create_index(spark, uri, "id", "BTREE")
ls.create_index(spark, uri, "v", "IVF_FLAT", num_partitions=1)
ls.create_index(spark, uri, "body", "INVERTED")
ld.dataset(uri).insert(rows)
ls.optimize_indices(spark, uri)
assert ld.dataset(uri).index_statistics("id_idx")["num_unindexed_rows"] == 0
ls.compact(spark, uri)
assert len(ld.dataset(uri).get_fragments()) == 1
ls.optimize(spark, uri)
ls.cleanup(spark, uri)
""",
    "changes": """
news = spark.createDataFrame([(3, "new", [3.0, 3.0]), (9, "more", [9.0, 0.0])], "id long, body string, v array<float>")
ls.merge_insert(spark, news, uri, "id").when_matched_update_all().when_not_matched_insert_all().execute()
ls.delete(spark, uri, "id = 0")
ls.update(spark, uri, {"body": "'rain'"}, "id = 9")
doubled = ls.read(spark, uri, columns=["id"], with_row_address=True).selectExpr("_rowaddr", "id * 2 AS twice")
ls.add_columns(spark, uri, doubled, on="_rowaddr")
result = ld.dataset(uri).to_table(columns=["id", "body", "twice"]).sort_by("id").to_pylist()
assert [tuple(row.values()) for row in result] == [(1, "goose", 2), (2, "duck", 4), (3, "new", 6), (9, "rain", 18)]
""",
    "search": """
expected = ld.dataset(uri).search("duck lake", k=2).select(["id", "_score"]).to_pylist()
assert [{"id": row.id, "_score": row._score} for row in ls.search(spark, uri, "duck lake", k=2).collect()] == expected
""",
    "knn_join": """
queries = spark.createDataFrame([("a", [3.0, 0.0])], "name string, q array<float>")
nearest = ls.knn_join(spark, queries, uri, column="v", query_column="q", k=1).collect()
assert [(row.name, row.id, row._distance) for row in nearest] == [("a", 3, 0.0)]
""",
    "views and facts": """
ls.create_view(spark, "page", uri)
ls.delete(spark, uri, "id = 0")
assert (spark.table("page").count(), ls.count(spark, uri), ls.versions(spark, uri).count()) == (3, 3, 2)
assert ls.history(spark, uri).count() == 2
assert (ls.fragments(spark, uri).count(), ls.indices(spark, uri).count()) == (1, 0)
ls.drop_view(spark, "page")
""",
    "sql": """
ls.register(spark)
def rows_of(query):
    return [tuple(row) for row in spark.sql(query).collect()]
assert rows_of(f"SELECT max(id) FROM lance_table('{uri}', filter => 'id < 3')") == [(2,)]
assert rows_of(f"SELECT count(*) FROM lance_history('{uri}')") == [(1,)]
assert rows_of(f"SELECT id FROM lance_search('{uri}', 'goose', column => 'body', k => 1)") == [(1,)]
queries = "VALUES (array(2.0f, 0.0f)) AS q(v)"
assert rows_of(f"SELECT n.id FROM {queries}, LATERAL lance_vector_search('{uri}', 'v', q.v, k => 1) n") == [(2,)]
spark.sql(f"CREATE OR REPLACE TEMP VIEW paged USING lance OPTIONS (path '{uri}')")
spark.sql("INSERT INTO paged SELECT 7L, 'rain', array(7.0f, 0.0f)")
assert ld.dataset(uri).count_rows() == 5
spark.sql("INSERT OVERWRITE paged SELECT 8L, 'rain', array(8.0f, 0.0f)")
assert ld.dataset(uri).to_table()["id"].to_pylist() == [8]
spark.catalog.dropTempView("paged")
""",
}


@pytest.mark.parametrize("topic", CODE)
def test_the_functions_of_a_section_behave_as_the_page_says(spark: SparkSession, tmp_path: Path, topic: str) -> None:
    vectors = pa.array([[float(number), 0.0] for number in range(4)], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": range(4), "body": ["duck lake", "goose", "duck", "rain"], "v": vectors})
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(rows, uri)
    ls.register(spark)
    scope: dict[str, Any] = {"spark": spark, "ls": ls, "ld": ld, "pytest": pytest}
    exec(CODE[topic], scope | {"uri": uri, "rows": rows, "folder": tmp_path})


def test_the_code_of_the_page_runs_and_gives_the_output_that_it_shows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        for block, output in run_page(PAGE, spark=spark):
            if block.output is not None:
                assert output == block.output, f"line {block.line}"
    finally:
        ls.drop_view(spark, "notes")
        spark.catalog.dropTempView("inbox")
