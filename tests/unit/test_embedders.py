"""Embedders of the user: searches by text, and writes that fill vector columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_duck as ld
from lance_duck import embedders
from lance_duck.errors import CorruptError, InvalidInputError, WrongTypeError
from lance_duck.rerankers import MMRReranker

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string()), ("vec", pa.list_(pa.float32(), 2))])
CALLS: list[list[str]] = []


def lengths(texts: list[str]) -> list[list[float]]:
    CALLS.append(list(texts))
    return [[float(len(text)), 1.0] for text in texts]


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_REGISTERED", {"lengths": lengths})
    CALLS.clear()


@pytest.fixture
def texts(tmp_path: Path) -> ld.LanceDataset:
    rows = pa.table({"id": [1, 2], "text": ["a", "ccc"], "vec": [[1.0, 1.0], [3.0, 1.0]]}, SCHEMA)
    ds = ld.write_dataset(rows, tmp_path / "texts.lance")
    ds.set_embedding_function("vec", "text", "lengths", {"size": 2})
    return ds


def vectors(ds: ld.LanceDataset) -> list[Any]:
    return ds.to_table(["vec"])["vec"].to_pylist()


def ids(found: Any) -> list[int]:
    return found["id"].to_pylist()


def test_a_text_is_searched_as_a_vector(texts: ld.LanceDataset) -> None:
    assert ids(texts.search("four", 2)) == [2, 1]
    assert ids(texts.search("", 1, "vec")) == [1]
    assert texts.search("xyz").limit(1).select(["id"]).to_list() == [{"id": 2, "_distance": 0.0}]
    assert CALLS == [["four"], [""], ["xyz"]]
    both = texts.search("zz", 2, full_text_query="ccc")
    assert (ids(both), both.column("_distance").to_pylist()) == ([2, 1], [1.0, 1.0])
    assert ids(texts.search("ccc", 5, "text")) == [2]
    assert CALLS[3:] == [["zz"]]


@pytest.mark.parametrize("column", [None, "vec"])
def test_prepared_searches_embed_a_text(texts: ld.LanceDataset, column: str | None) -> None:
    near = texts.prepare_search(column, k=1, columns=["id"])
    assert near("four").equals(texts.search("four", 1, columns=["id"]))
    assert near.ids("ccc")[1].tolist() == [0.0]
    texts.set_embedding_function("vec", "text", "other")
    texts.create_scalar_index("text", "INVERTED", with_position=False)
    with pytest.raises(InvalidInputError, match="embedding function 'other' of column 'vec': not registered"):
        near("ccc")


def test_rerankers_get_the_text(texts: ld.LanceDataset) -> None:
    seen: list[Any] = []

    def rerank(candidates: pa.Table, query: Any) -> list[int]:
        seen.append(query)
        return candidates["id"].to_pylist()

    assert ids(texts.search("a", 1, rerank=rerank)) == [2]
    assert seen == ["a"]
    assert ids(texts.search("a", 1, rerank=MMRReranker(1))) == [1]


SOURCE = "USING (FROM (VALUES (3, 'dddd'), (4, NULL), (5, 'ee')) s(id, text)) AS s"
STATEMENTS = {
    "sql": "INSERT INTO texts (id, text) VALUES (3, 'dddd'), (4, NULL), (5, 'ee')",
    "sql select": "INSERT INTO texts (id, text) FROM rows",
    "copy": "COPY texts (id, text) FROM '{folder}/rows.parquet'",
    "sql merge": f"MERGE INTO texts {SOURCE} USING (id) WHEN NOT MATCHED THEN INSERT (id, text) VALUES (s.id, s.text)",
    "by name": f"MERGE INTO texts {SOURCE} ON texts.id = s.id WHEN NOT MATCHED THEN INSERT BY NAME",
    "returning": f"MERGE INTO texts {SOURCE} USING (id) WHEN MATCHED THEN UPDATE SET vec = [0, 0] "
    "WHEN NOT MATCHED AND s.id > 5 THEN INSERT (id, text) VALUES (s.id, s.text) "
    "WHEN NOT MATCHED THEN INSERT (text, id) VALUES (s.text, s.id) RETURNING *",
}


@pytest.mark.parametrize("how", ["insert", "append", "fragments", "merge", *STATEMENTS])
def test_writes_fill_missing_vectors(texts: ld.LanceDataset, how: str) -> None:
    rows = pa.table({"id": [3, 4, 5], "text": ["dddd", None, "ee"]})
    if how == "insert":
        texts.insert(rows)
    elif how == "append":
        ld.write_dataset(rows, texts.uri, mode="append")
    elif how == "fragments":
        written = ld.fragment.write_fragments(rows, texts.uri, mode="append")
        texts = ld.LanceDataset.commit(texts.uri, ld.LanceOperation.Append(written), read_version=texts.version)
    elif how == "merge":
        texts.merge_insert("id").when_not_matched_insert_all().execute(rows)
    else:
        folder = Path(texts.uri).parent
        parquet.write_table(rows, folder / "rows.parquet")
        con = ld.connect(folder)
        con.execute(f"EXPLAIN {STATEMENTS[how].format(folder=folder)}")
        con.execute(STATEMENTS[how].format(folder=folder))
    texts = ld.dataset(texts.uri)
    assert texts.count_rows() == 5
    found = dict(zip(ids(texts.to_table(["id"])), vectors(texts), strict=True))
    assert found == {1: [1.0, 1.0], 2: [3.0, 1.0], 3: [4.0, 1.0], 4: None, 5: [2.0, 1.0]}
    assert CALLS == [["dddd", "ee"]]
    texts.insert({"id": [6], "text": ["f"], "vec": pa.array([[9, 9]], SCHEMA.field("vec").type)})
    texts.insert({"id": [7]})
    assert vectors(texts)[5:] == [[9.0, 9.0], None]
    assert len(CALLS) == 1


def test_merges_give_changed_texts_new_vectors(texts: ld.LanceDataset) -> None:
    texts.merge_insert("id").when_matched_update_all().execute({"id": [2], "text": ["dddd"]})
    assert dict(zip(ids(texts.to_table()), vectors(texts), strict=True)) == {1: [1.0, 1.0], 2: [4.0, 1.0]}


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO texts VALUES (3, 'ccc', NULL)",
        "INSERT INTO texts BY NAME SELECT 3 AS id, 'ccc' AS text, NULL AS vec",
        "REPLACE texts WHERE id = 3 AS VALUES (3, 'ccc', NULL)",
        f"MERGE INTO texts {SOURCE} USING (id) WHEN NOT MATCHED AND s.id = 3 "
        "THEN INSERT (id, text, vec) VALUES (s.id, s.text, NULL)",
    ],
)
def test_statements_that_set_null_store_null(texts: ld.LanceDataset, statement: str) -> None:
    ld.connect(Path(texts.uri).parent).execute(statement)
    assert vectors(ld.dataset(texts.uri)) == [[1.0, 1.0], [3.0, 1.0], None]
    assert CALLS == []


def test_merges_in_sql_keep_the_vector_of_a_changed_text(texts: ld.LanceDataset) -> None:
    ld.connect(Path(texts.uri).parent).execute(
        "MERGE INTO texts USING (SELECT 2 AS id, 'dddd' AS text) AS s USING (id) "
        "WHEN MATCHED THEN UPDATE SET text = s.text"
    )
    assert sorted(vectors(ld.dataset(texts.uri))) == [[1.0, 1.0], [3.0, 1.0]]


def test_inserts_return_the_vectors(texts: ld.LanceDataset) -> None:
    con = ld.connect(Path(texts.uri).parent)
    assert con.execute("INSERT INTO texts (id, text) VALUES (3, 'ff') RETURNING vec").fetchall() == [((2.0, 1.0),)]
    con.execute("EXPLAIN INSERT INTO texts (id, text) VALUES (4, 'gggg')")
    assert CALLS == [["ff"]]


def test_many_texts_are_embedded_in_parts(texts: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_AT_ONCE", 2)
    texts.insert({"id": range(5), "text": list("abcde")})
    assert CALLS == [["a", "b"], ["c", "d"], ["e"]]


class _Model:
    """An object with the methods of LanceDB's embedding functions."""

    def __init__(self, size: int = 0) -> None:
        self.size = size

    def compute_query_embeddings(self, query: str) -> list[np.ndarray[Any, Any]]:
        return [np.array([len(query), self.size])]

    def compute_source_embeddings(self, texts: list[str]) -> list[Any]:
        return [None if text == "-" else np.array([len(text), -1.0], np.float16) for text in texts]


def test_objects_and_classes_embed_by_their_methods(texts: ld.LanceDataset) -> None:
    assert ld.register_embedder("lengths", _Model) is _Model
    assert texts.search("ccc", 1)["_distance"].to_pylist() == [1.0]  # size 2 is from the metadata
    texts.insert({"text": ["-", "hhh"]})
    assert vectors(texts)[2:] == [None, [3.0, -1.0]]
    ld.register_embedder("lengths", _Model(1))
    assert texts.search("ccc", 1)["_distance"].to_pylist() == [0.0]

    @ld.register_embedder("lengths")
    def other(texts: list[str]) -> np.ndarray[Any, Any]:
        return np.ones((len(texts), 2), np.int8)

    assert callable(other)
    assert ids(texts.search("ccc", 1)) == [1]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([[1.0, 2.0]] * 2, "result of the embedder: expected 1 vectors, found 2"),
        (iter([]), "expected 1 vectors, found list_iterator"),
        ([[1.0]], r"expected vectors of 2 numbers, found an array of shape \(1,\)"),
        ([[[1.0, 2.0]]], r"found an array of shape \(1, 2\)"),
        (["ab"], "expected vectors of 2 numbers, found str"),
        ([[1.0, [2.0]]], "expected vectors of 2 numbers, found list"),
        ([[1.0, float("nan")]], "expected finite numbers, found NaN or infinity"),
        ([[1.0, 1e300]], "expected finite numbers"),
    ],
)
def test_results_that_are_not_vectors_are_rejected(texts: ld.LanceDataset, result: Any, message: str) -> None:
    ld.register_embedder("lengths", lambda _: result)
    where = "embedding function 'lengths' of column 'vec': "
    with pytest.raises(InvalidInputError, match=where + "result.*" + message.removeprefix("result of the embedder: ")):
        texts.search("a", 1)
    with pytest.raises(InvalidInputError, match="result of the embedder"):
        texts.insert({"text": ["a"]})
    assert texts.count_rows() == 2
    assert ld.dataset(texts.uri).version == texts.version


def test_errors_of_an_embedder_reach_the_caller(texts: ld.LanceDataset) -> None:
    ld.register_embedder("lengths", lambda _: 1 / 0)
    for call in (lambda: texts.search("a", 1), lambda: texts.insert({"text": ["a"]})):
        with pytest.raises(ZeroDivisionError):
            call()
    ld.register_embedder("lengths", lambda _: [None])
    with pytest.raises(InvalidInputError, match="no vector for the query"):
        texts.search("a", 1)


def test_a_function_that_is_not_registered_is_named(texts: ld.LanceDataset) -> None:
    texts.set_embedding_function("vec", "text", "openai", {"name": "small"})
    message = r"'openai' of column 'vec': not registered: expected .*\"small\".*register_embedder\('openai', function\)"
    for call in (
        lambda: texts.search("a", 1),
        lambda: texts.search("a", 1, "vec"),
        lambda: texts.search("a", 1, full_text_query="a"),
        lambda: texts.insert({"text": ["a"]}),
        lambda: texts.merge_insert("id").when_not_matched_insert_all().execute({"id": [9], "text": ["a"]}),
    ):
        with pytest.raises(InvalidInputError, match=message):
            call()
    texts.create_scalar_index("text", "INVERTED", with_position=False, remove_stop_words=False)
    assert ids(texts.search("ccc", 5)) == [2]  # a full-text index answers
    texts.insert({"id": [3], "vec": pa.nulls(1, SCHEMA.field("vec").type)})
    texts.set_embedding_function("vec", "text", None)
    assert "embedding_functions" not in (texts.schema.metadata or {})
    texts.insert({"text": ["a"]})


def test_metadata_is_checked(texts: ld.LanceDataset) -> None:
    for damaged in ("{", "[" * 100_000, "3", "[3]", '[{"name": "x"}]', '[{"name": 1}]'):
        texts.update_schema_metadata({"embedding_functions": damaged})
        for call in (lambda: texts.search("a", 1), lambda: texts.insert({"text": ["a"]})):
            with pytest.raises(CorruptError, match="schema metadata 'embedding_functions'"):
                call()
        texts.insert(pa.table({"id": [1], "text": ["x"], "vec": [[0.0, 0.0]]}, SCHEMA))
        assert texts.count_rows() > 2
    entry = {"name": "lengths", "source_column": "gone", "vector_column": "vec"}
    texts.update_schema_metadata({"embedding_functions": json.dumps([entry, {**entry, "vector_column": "gone"}])})
    texts.insert({"text": ["a"]})
    assert vectors(texts)[-1] is None


def test_declarations_are_checked(texts: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="did you mean 'text'"):
        texts.set_embedding_function("vec", "txt", "lengths")
    with pytest.raises(InvalidInputError, match="expected a fixed-size list of floating-point numbers, found string"):
        texts.set_embedding_function("text", "text", "lengths")
    with pytest.raises(WrongTypeError, match="embedder: expected a function"):
        ld.register_embedder("x", 3)
    for call in (lambda: ld.register_embedder(lengths), lambda: ld.register_embedder(5, lengths)):  # type: ignore[call-overload]
        with pytest.raises(WrongTypeError, match=r'name: expected a string, found .*@register_embedder\("name"\)'):
            call()


def test_several_vector_columns_have_their_own_functions(tmp_path: Path) -> None:
    rows = pa.table({"s": ["a"], "v": [[1.0, 1.0]], "a b": [[5.0]]})
    types = [("s", pa.string()), ("v", pa.list_(pa.float64(), 2)), ("a b", pa.list_(pa.float16(), 1))]
    ds = ld.write_dataset(rows.cast(pa.schema(types)), tmp_path / "t.lance")
    ds.set_embedding_function("v", "s", "lengths")
    ds.set_embedding_function("a b", "s", "five")
    ld.register_embedder("five", lambda texts: [[5]] * len(texts))
    ds.insert({"s": ["bb"]})
    assert ds.to_table().to_pylist()[1] == {"s": "bb", "v": [2.0, 1.0], "a b": [5.0]}
    assert ds.search("zz", 1, "a b")["_distance"].to_pylist() == [0.0]
    with pytest.raises(InvalidInputError, match="column: expected one of the vector columns, found v, a b"):
        ds.search("zz", 1)


def test_an_overwrite_with_another_schema_forgets_the_function(texts: ld.LanceDataset) -> None:
    ds = ld.write_dataset({"text": ["a"]}, texts.uri, mode="overwrite")
    assert b"embedding_functions" not in (ds.schema.metadata or {})


def test_nothing_is_imported_by_a_name_in_the_metadata(texts: ld.LanceDataset) -> None:
    texts.set_embedding_function("vec", "text", "os.system")
    with pytest.raises(InvalidInputError, match="not registered"):
        texts.search("true", 1)
