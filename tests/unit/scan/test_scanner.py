"""What a scanner says of its search."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.query import BooleanQuery, MatchQuery, MultiMatchQuery, Occur, PrefixQuery

TEXTS = ["Ducks swim", None, "the lake of a duck"]


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset(pa.table({"a": TEXTS, "b": ["duck", "Lakes", "swimming lakes"]}), tmp_path / "t.lance")


def test_words_of_the_query_are_marked_as_the_column_analyses_them(dataset: ld.LanceDataset) -> None:
    query = BooleanQuery([(Occur.SHOULD, MatchQuery("duck", "a")), (Occur.SHOULD, PrefixQuery("sw", "b"))])
    scanner = dataset.scanner(full_text_query=query)
    assert scanner.searched_texts == ("a", "b")
    assert scanner.highlight(pa.array(TEXTS), "a").to_pylist() == [
        "<b>Ducks</b> swim",
        None,
        "the lake of a <b>duck</b>",
    ]
    found = scanner.to_table()
    assert scanner.highlight(found.column("b"), "B", "*", "*").to_pylist() == ["*swimming* lakes", "duck"]


def test_words_of_fuzzy_queries_and_parts_of_texts(dataset: ld.LanceDataset) -> None:
    scanner = dataset.scanner(full_text_query=MatchQuery("dusk", "a", fuzziness=1))
    parts = scanner.highlight(pa.array(TEXTS), "a", "[", "]", words=2)
    assert parts.to_pylist() == ["[Ducks] swim", None, "…a [duck]"]
    both = dataset.scanner(full_text_query=MultiMatchQuery("lake", ["a", "b"]))
    assert both.highlight(pa.array(["Lakes"]), "b").to_pylist() == ["<b>Lakes</b>"]


def test_what_was_not_searched_is_not_marked(dataset: ld.LanceDataset) -> None:
    with pytest.raises(ld.LanceDuckError, match="highlight: no full-text query"):
        dataset.scanner().highlight(pa.array(TEXTS), "a")
    with pytest.raises(ld.LanceDuckError, match="column: expected one of a, found b"):
        dataset.scanner(full_text_query=MatchQuery("duck", "a")).highlight(pa.array(TEXTS), "b")
