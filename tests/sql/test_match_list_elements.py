"""SQL on columns whose full-text index has list elements as documents."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.query import DocumentGranularity, MatchQuery

LISTS = [["the duck swims", "a lake"], None, ["duck lake", None, ""], [], ["goose duck", "lakes"]]


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    vectors = pa.array([[float(i), 0.0] for i in range(5)], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": range(5), "l": pa.array(LISTS, pa.list_(pa.string())), "v": vectors})
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", storage_options={"fsync": "false"})
    with ld.connect({"t": dataset}) as con:
        con.execute("CREATE INDEX words ON t USING INVERTED (l) WITH (document_granularity = 'list_element')")
    return ld.dataset(dataset.uri)


def test_a_row_matches_if_one_list_element_matches(table) -> None:
    with ld.connect({"t": table}) as con:
        where = "match(l, 'duck lake', operator := 'AND')"
        assert con.sql(f"SELECT id FROM t WHERE {where}").fetchall() == [(2,)]
        assert con.sql(f"SELECT id FROM t WHERE {where} OR id = 0 ORDER BY id").fetchall() == [(0,), (2,)]
        by_index = con.sql(
            "SELECT id, score(t) FROM t WHERE match(l, 'duck lake') ORDER BY score(t) DESC, id"
        ).fetchall()
        by_text = con.sql(
            "SELECT id, score(t) FROM t WHERE match(l, 'duck lake') OR id < 0 ORDER BY score(t) DESC, id"
        ).fetchall()
        assert by_index == by_text
        best = table.to_table(full_text_query=MatchQuery("duck lake", "l"), columns=["id", "_score"]).group_by("id")
        expected = best.aggregate([("_score", "max")]).to_pydict()
        assert dict(by_index) == dict(zip(expected["id"], expected["_score_max"], strict=True))


def test_a_search_returns_each_list_element_with_its_position(table) -> None:
    with ld.connect({"t": table}) as con:
        found = con.sql("SELECT id, _doc_index, _score FROM lance_fts('t', 'l', 'duck', k := 10)").to_arrow_table()
        places = dict(zip(found["id"].to_pylist(), found["_doc_index"].to_pylist(), strict=True))
        assert places == {0: [0], 2: [0], 4: [0]}
        asked = MatchQuery("duck", "l")
        assert found.equals(table.to_table(full_text_query=asked, columns=found.column_names).cast(found.schema))
        rows = '{"match": {"terms": "duck lake", "operator": "AND", "document_granularity": "row"}}'
        names = con.sql(f"SELECT * FROM lance_fts('t', 'l', '{rows}')").columns
        assert names == ["id", "l", "v", "_score"]
        ids = con.sql(f"SELECT id FROM lance_fts('t', 'l', '{rows}') ORDER BY id").fetchall()
        assert ids == [(0,), (2,), (4,)]


def test_a_query_is_a_filter_of_rows(table) -> None:
    query = MatchQuery("lake", "l", document_granularity=DocumentGranularity.LIST_ELEMENT)
    assert table.to_table(filter=query, columns=["id"])["id"].to_pylist() == [0, 2, 4]


@pytest.mark.parametrize(("condition", "ids"), [(None, [0, 2, 4]), ("id > 0", [2, 4])])
def test_a_hybrid_search_scores_each_row_by_its_best_element(table, condition, ids) -> None:
    query = MatchQuery("duck lake", "l", document_granularity=DocumentGranularity.LIST_ELEMENT)
    elements = table.to_table(full_text_query=query, columns=["id", "_score"], filter=condition)
    best = elements.group_by("id").aggregate([("_score", "max")])
    scores = dict(zip(best["id"].to_pylist(), best["_score_max"].to_pylist(), strict=True))
    assert len(elements) > len(best)
    assert sorted(scores) == ids
    found = table.search([4.0, 0.0], column="v", full_text_query=query, k=5, filter=condition)
    assert found.schema.names == ["id", "l", "v", "_distance", "_score", "_hybrid_score"]
    rows = found["id"].to_pylist()
    assert sorted(rows) == [i for i in range(5) if condition is None or i > 0]
    assert found["_score"].to_pylist() == [scores.get(row) for row in rows]
    words_alone = table.search([4.0, 0.0], column="v", full_text_query=query, k=1, filter=condition, alpha=0.0)
    assert words_alone["id"].to_pylist() == [max(scores, key=lambda row: (scores[row], -row))]
    with ld.connect({"t": table}) as con:
        asked = '{"match": {"terms": "duck lake", "document_granularity": "list_element"}}'
        where = "" if condition is None else f", filter := '{condition}'"
        sql = f"FROM lance_hybrid_search('t', 'v', [4, 0]::FLOAT[], 'l', '{asked}', k := 5{where})"
        assert con.sql(sql).to_arrow_table()["_score"].to_pylist() == found["_score"].to_pylist()


def test_a_filter_after_the_search_keeps_some_of_the_best_rows(table) -> None:
    query = MatchQuery("duck lake", "l", document_granularity=DocumentGranularity.LIST_ELEMENT)
    asked = {"column": "v", "full_text_query": query, "k": 1, "alpha": 0.0, "oversample_factor": 1}
    (best,) = table.search([9.0, 0.0], **asked)["id"].to_pylist()
    assert table.search([9.0, 0.0], filter=f"id = {best}", prefilter=False, **asked)["id"].to_pylist() == [best]
    assert table.search([9.0, 0.0], filter="id = 1", prefilter=False, **asked)["id"].to_pylist() == []
