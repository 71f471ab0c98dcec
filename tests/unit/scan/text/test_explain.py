"""The plan of a full-text search says if the analyser removes all words of a query."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lance_duck as ld
from lance_duck.query import BooleanQuery, BoostQuery, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

THE, FOX = MatchQuery("the", "s"), MatchQuery("fox", "s")
REMOVED = "the analyser removes all of its words, so {} matches no row"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    rows = {"id": [1, 2], "s": ["the red fox", "a whale of the sea"]}
    path: Path = tmp_path_factory.mktemp("tables") / "t.lance"
    table = ld.write_dataset(rows, path)
    table.create_scalar_index("s", "INVERTED", remove_stop_words=True)
    return table


@pytest.mark.parametrize(
    ("query", "subject", "found"),
    [
        ("the of", "it", []),
        ('"the of"', "it", []),
        ("!!!", "it", []),
        (MatchQuery("the of", "s", operator="AND"), "it", []),
        (PhraseQuery("of the", "s"), "it", []),
        (MultiMatchQuery("the", ["s"]), "it", []),
        (BooleanQuery([(Occur.MUST, THE), (Occur.SHOULD, FOX)]), "the BooleanQuery", []),
        (THE & FOX, "the BooleanQuery", []),
        (BooleanQuery([(Occur.MUST, FOX), (Occur.MUST_NOT, THE)]), "it", [1]),
        (THE | FOX, "it", [1]),
        (BoostQuery(FOX, THE), "it", [1]),
    ],
)
def test_a_query_of_stop_words_is_explained(table: ld.LanceDataset, query: Any, subject: str, found: list[int]) -> None:
    scanner = table.scanner(full_text_query=query)
    assert REMOVED.format(subject) in scanner.explain_plan()
    assert REMOVED.format(subject) in scanner.analyze_plan()
    assert scanner.to_table()["id"].to_pylist() == found


def test_sql_explains_a_query_of_stop_words(table: ld.LanceDataset) -> None:
    with ld.connect({"t": table}) as con:
        for sql in ("FROM lance_fts('t', 's', 'the')", "FROM t WHERE match(s, 'the')"):
            plan = str(con.execute(f"EXPLAIN {sql}").fetchall())
            assert REMOVED.format("it") in plan


@pytest.mark.parametrize("query", ["fox", "the fox", '"the fox"', FOX & MatchQuery("the red", "s")])
def test_other_queries_are_not(table: ld.LanceDataset, query: Any) -> None:
    assert "removes all" not in table.scanner(full_text_query=query).explain_plan()
