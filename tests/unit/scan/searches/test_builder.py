"""Searches that are built step by step."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnknownColumnError, WrongTypeError
from lance_duck.scan.searches.builder import LanceQueryBuilder

ORIGIN = [0.0, 0.0]
TEXTS = ["duck", "duck lake", "goose", "lake duck duck", "a goose on a lake", "none"]


@pytest.fixture(scope="module")
def ponds(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i) for i in range(40)], pa.float32()), 2)
    rows = {
        "id": range(20),
        "vec": vectors,
        "text": [TEXTS[i % 6] for i in range(20)],
        "price": [i % 5 for i in range(20)],
    }
    return ld.write_dataset(rows, tmp_path_factory.mktemp("tables") / "ponds.lance")


def ids(found: object) -> list[int]:
    return pa.table(found)["id"].to_pylist()  # type: ignore[no-any-return]


def test_with_k_the_result_is_a_table(ponds: ld.LanceDataset) -> None:
    assert type(ponds.search(ORIGIN, 3)) is pa.Table
    assert type(ponds.search("duck", k=3)) is pa.Table
    assert type(ponds.search(ORIGIN, full_text_query="duck", k=3)) is pa.Table


def test_without_k_it_is_built_and_read_in_the_end(ponds: ld.LanceDataset) -> None:
    query = ponds.search(ORIGIN).where("price < 2").select(["id"]).limit(3)
    assert type(query) is LanceQueryBuilder
    expected = ponds.search(ORIGIN, 3, filter="price < 2", columns=["id"])
    assert query.to_arrow().equals(expected)
    assert query.to_list() == expected.to_pylist()
    assert query.to_pandas().equals(expected.to_pandas())
    assert query.to_polars().equals(pl.DataFrame(expected))
    assert isinstance(query.to_pandas(), pd.DataFrame)


def test_text_and_hybrid_queries_are_built_like_vector_queries(ponds: ld.LanceDataset) -> None:
    words = ponds.search("duck").where("price > 0").limit(4).to_arrow()
    assert words.equals(ponds.search("duck", 4, filter="price > 0"))
    both = ponds.search("duck", 4, nearest={"column": "vec", "q": ORIGIN}, method="linear", alpha=0.2)  # type: ignore[call-overload]
    for query in (
        ponds.search(ORIGIN).text("duck"),
        ponds.search("duck").vector(ORIGIN),
        ponds.search().vector(ORIGIN, "vec").text("duck", "text"),
        ponds.search().text("duck", "text").vector(ORIGIN),
    ):
        assert query.rerank("linear", alpha=0.2, oversample_factor=4).limit(4).to_arrow().equals(both)
    ranked = ponds.search(ORIGIN, full_text_query="duck").rerank().limit(2)
    assert ranked.equals(ponds.search(ORIGIN, 2, full_text_query="duck", method="rrf"))


def test_without_a_query_it_is_a_scan(ponds: ld.LanceDataset) -> None:
    assert ids(ponds.search().where("price = 1")) == [1, 6, 11, 16]
    assert ids(ponds.search().where("price = 1").offset(1).limit(2)) == [6, 11]
    assert len(ponds.search()) == 20
    assert ponds.search().select({"twice": "2 * id"}).limit(2).to_list() == [{"twice": 0}, {"twice": 2}]


@pytest.mark.parametrize("text", ["true) OR (true", "true) OR (true --", "true /*", "", "(true"])
def test_a_condition_with_unbalanced_parentheses_cannot_escape(ponds: ld.LanceDataset, text: str) -> None:
    with pytest.raises(InvalidInputError):
        ponds.search().where(text).where("id = 1").to_arrow()
    with pytest.raises(InvalidInputError):
        ponds.search().where("id = 1").where(text).to_arrow()


def test_all_conditions_are_combined(ponds: ld.LanceDataset) -> None:
    assert ids(ponds.search().where("price = 1 OR id = 3 -- few").where("id > 2")) == [3, 6, 11, 16]
    assert ids(ponds.search().where(pc.field("price") == 1).where(pc.field("id") > 2)) == [6, 11, 16]
    assert ids(ponds.search(filter="price = 1").where("id > 2")) == [6, 11, 16]
    with pytest.raises(InvalidInputError, match="combine the conditions into one"):
        ponds.search().where("id > 2").where(pc.field("price") == 1)


def test_a_filter_after_the_search_leaves_fewer_rows(ponds: ld.LanceDataset) -> None:
    assert ids(ponds.search(ORIGIN).limit(5).where("price = 1")) == [1, 6, 11, 16]
    assert ids(ponds.search(ORIGIN).limit(5).where("price = 1", prefilter=False)) == [1]


def test_search_settings_are_applied(ponds: ld.LanceDataset) -> None:
    query = ponds.search(ORIGIN).nprobes(3).refine_factor(2).distance_type("cosine").ef(9).bypass_vector_index()
    expected = ponds.search(ORIGIN, 10, nprobes=3, refine_factor=2, metric="cosine", ef=9, use_index=False)
    assert query.to_arrow().equals(expected)
    assert "metric cosine" in query.explain_plan()
    assert "rows" in ponds.search(ORIGIN).minimum_nprobes(1).maximum_nprobes(4).analyze_plan()
    assert ids(ponds.search(ORIGIN).distance_range(1.5, 30.0).with_row_id()) == [1]
    assert ponds.search(ORIGIN).fast_search().num_rows == 0
    with pytest.raises(InvalidInputError, match="recall"):
        ponds.search(ORIGIN).metric("dot").recall(1.8).to_list()


def test_an_unread_query_behaves_like_its_table(ponds: ld.LanceDataset) -> None:
    found, expected = ponds.search(ORIGIN), ponds.search(ORIGIN, 10)
    assert (found.num_rows, len(found), found.column_names) == (10, 10, expected.column_names)
    assert found["id"] == expected["id"] == found.column("id")
    assert found.to_pylist() == expected.to_pylist()
    assert found == expected
    assert found == ponds.search(ORIGIN)
    assert found != expected.slice(1)
    assert found != 3
    assert repr(found) == repr(expected)
    assert pa.table(found).equals(expected)
    assert found.slice(2, 1).equals(expected.slice(2, 1))
    assert duckdb.sql("SELECT count(*) FROM found").fetchall() == [(10,)]
    assert pa.RecordBatchReader.from_stream(found).read_all().equals(expected)
    assert {"num_rows", "where", "to_pylist"} <= set(dir(found))


def test_a_misspelled_method_does_not_run_the_search(ponds: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    query = ponds.search(ORIGIN)
    monkeypatch.setattr("lance_duck.scan.searches.builder.read_table", lambda *_: pytest.fail("it was run"))
    with pytest.raises(AttributeError, match="has no attribute 'wher'; did you mean 'where'"):
        query.wher("id > 2")
    with pytest.raises(AttributeError):
        _ = query._repr_html_


def test_results_are_cached_until_the_query_changes(ponds: ld.LanceDataset) -> None:
    query = ponds.search(ORIGIN)
    assert query.to_arrow() is query.to_arrow()
    assert query.limit(2).num_rows == 2
    assert query.num_rows == 2


def test_a_query_stays_on_its_version(tmp_path: Path) -> None:
    dataset = ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "t.lance")
    query = dataset.search().where("id > 1")
    dataset.delete("id = 2")
    assert ids(query) == [2, 3]
    assert ids(dataset.search().where("id > 1")) == [3]


def test_copies_and_pickles_are_independent(ponds: ld.LanceDataset) -> None:
    query = ponds.search(ORIGIN).select(["id"])
    other = copy.deepcopy(query).limit(1)
    assert (ids(other), len(ids(query))) == ([0], 10)
    assert ids(pickle.loads(pickle.dumps(query))) == ids(query)


def test_invalid_queries_are_rejected_at_once(ponds: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError):
        ponds.search([1.0])
    with pytest.raises(UnknownColumnError):
        ponds.search(ORIGIN, column="nope")
    with pytest.raises(WrongTypeError, match="did you mean 'metric'"):
        ponds.search(ORIGIN, metrik="l2")  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="column needs a query"):
        ponds.search(column="vec")
    with pytest.raises(WrongTypeError, match="names its columns"):
        ponds.search(ORIGIN).text({"match": {"terms": "duck", "column": "text"}}, "text")
    with pytest.raises(InvalidInputError, match="a whole number"):
        ponds.search(ORIGIN).limit("many").to_list()  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        ponds.search(ORIGIN, 0)
    with pytest.raises(UnknownColumnError):
        ponds.search(ORIGIN).select(["nope"]).to_list()
    with pytest.raises(InvalidInputError, match="method"):
        ponds.search(ORIGIN).text("duck").rerank("best").to_list()
