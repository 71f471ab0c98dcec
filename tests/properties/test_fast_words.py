"""The fast way of searches for words finds what the ordinary way finds, with the same ids and scores, bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.index.inverted import build
from lance_duck.query import FullTextOperator, MatchQuery, PhraseQuery
from lance_duck.scan.text import lone
from lance_duck.scan.text.indexed import segment_rows
from lance_duck.scan.text.route import text_route
from lance_duck.scan.text.search import TextSearch
from lance_duck.snapshot import open_snapshot
from lance_duck.store.request import watched

ROWS = 600
VOCABULARY = [f"w{number}" for number in range(60)]
words = st.lists(st.sampled_from([*VOCABULARY[:12], *VOCABULARY[::7], "missing"]), min_size=1, max_size=4).map(" ".join)
queries = st.one_of(
    words,
    words.map(lambda text: MatchQuery(text, "s", operator=FullTextOperator.AND)),
    st.builds(lambda text, slop: PhraseQuery(text, "s", slop=slop), words, st.integers(0, 2)),
)
asked = st.fixed_dictionaries(
    {"k": st.integers(1, 40), "columns": st.sampled_from([["id"], ["_rowid", "_score"], ["id", "_rowaddr"]])},
    optional={
        "filter": st.sampled_from(["n < 5", "n = 3", "id >= 450", "id < 0", "odd", "n < 5 AND odd"]),
        "fast_search": st.booleans(),
        "offset": st.integers(0, 3),
    },
)
Tables = Mapping[str, ld.LanceDataset]
OPTIONS = {"fsync": "false"}
NAMES = ["parts", "plain", "stable", "open", "open stable"]


def texts(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    ranks = np.minimum(rng.exponential(9, (count, 12)), len(VOCABULARY) - 1).astype(int)
    lengths = rng.integers(0, 13, count)
    rows = [" ".join(VOCABULARY[rank] for rank in row[:length]) for row, length in zip(ranks, lengths, strict=True)]
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "n": rng.integers(0, 9, count), "odd": ids % 2 == 1, "s": rows})


def segments(folder: Any, *, stable: bool) -> ld.LanceDataset:
    """Return a table with three segments and deleted rows. Without stable ids, a fourth segment covers updated rows."""
    dataset = ld.write_dataset(
        texts(0, 300), folder, enable_stable_row_ids=stable, max_rows_per_file=150, storage_options=OPTIONS
    )
    dataset.create_scalar_index("s", "INVERTED", with_position=True, stem=False)
    for first, count in ((300, 200), (500, 100)):
        dataset.insert(texts(first, count))
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.delete("id % 11 = 3")
    if not stable:  # else, the segments would be merged
        dataset.update({"s": "'w1 w2 w3 w1'"}, where="id % 50 = 7")
        dataset.optimize.optimize_indices(num_indices_to_merge=0)
    dataset.create_scalar_index("n", "BTREE")
    return dataset


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Return tables by the layout of their index."""
    folder = tmp_path_factory.mktemp("words")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "LEAST_PIECE", 8 << 10)
        parts = ld.write_dataset(texts(0, ROWS), folder / "parts.lance", storage_options=OPTIONS)
        parts.create_scalar_index("s", "INVERTED", with_position=True, stem=False, memory_limit="1B")
    parts.create_scalar_index("n", "BTREE")
    parts.delete("id % 13 = 5")
    opened = {name: segments(folder / f"{name}.lance", stable=name == "stable") for name in ("plain", "stable")}
    uncovered = {name: appended(folder / f"{name}.lance", stable=name != "open") for name in ("open", "open stable")}
    return {"parts": parts, **opened, **uncovered}


def appended(folder: Any, *, stable: bool) -> ld.LanceDataset:
    """Return a table whose newest rows no index covers. Some old and some new rows are deleted or updated."""
    dataset = ld.write_dataset(texts(0, ROWS), folder, enable_stable_row_ids=stable, storage_options=OPTIONS)
    dataset.create_scalar_index("s", "INVERTED", with_position=True, stem=False)
    dataset.create_scalar_index("n", "BTREE")
    for first in (ROWS, ROWS + 90):
        dataset.insert(texts(first, 90))
    dataset.delete("id % 17 = 4")
    dataset.update({"s": "'w1 w2 w3 w1 w59'"}, where="id % 40 = 7")
    return dataset


def ordinary(dataset: ld.LanceDataset, q: Any, arguments: dict[str, Any]) -> pa.Table:
    with watched():  # the fast way leaves searches that count their reads to the ordinary way
        return dataset.search(q, column="s" if isinstance(q, str) else None, **arguments)


@settings(max_examples=settings.default.max_examples // 10)
@given(st.sampled_from(NAMES), asked, st.lists(queries, min_size=1, max_size=2))
def test_fast_and_ordinary_searches_are_equal(tables: Tables, name: str, arguments: dict[str, Any], q: Any) -> None:
    dataset = tables[name]
    near = dataset.prepare_search("s", **arguments)
    for each in q:
        expected = ordinary(dataset, each, arguments)
        assert near(each).equals(expected)
        assert near(each).equals(expected)
        assert dataset.search(each, column="s" if isinstance(each, str) else None, **arguments).equals(expected)
        ids = ordinary(dataset, each, {**arguments, "columns": ["_rowid", "_score"]})
        assert [found.tolist() for found in near.ids(each)] == [column.to_pylist() for column in ids.columns]


@settings(max_examples=settings.default.max_examples // 10)
@given(st.sampled_from(NAMES), asked, st.lists(queries, min_size=1, max_size=4))
def test_new_and_repeated_words_are_equal(tables: Tables, name: str, arguments: dict[str, Any], q: Any) -> None:
    dataset = ld.dataset(tables[name].uri)  # its searches have not seen any words
    near = dataset.prepare_search("s", **arguments)
    near("w1 w2")
    for each in q:
        expected = ordinary(dataset, each, arguments)
        for _ in range(3):
            assert near(each).equals(expected)


@pytest.mark.parametrize("name", NAMES)
def test_new_words_are_searched_directly(tables: Tables, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ld.dataset(tables[name].uri)
    near = dataset.prepare_search("s", columns=["_rowid", "_score"])
    for q in ("w1 w2", '"w1 w2"'):
        near(q)  # reads the columns of the index
    ask = ["w3", "w4 w5", MatchQuery("w3 w5", "s", operator=FullTextOperator.AND), '"w3 w4"', PhraseQuery("w5 w1", "s")]
    expected = [ordinary(dataset, q, {"columns": ["_rowid", "_score"], "k": 10}) for q in ask]

    def fail(*_: Any) -> Any:
        raise AssertionError("a prepared search")

    with monkeypatch.context() as patch:
        patch.setattr(lone, "prepared_terms", fail)
        patch.setattr(lone, "prepared_phrase", fail)
        patch.setattr(TextSearch, "run", fail)
        assert all(near(q).equals(rows) for q, rows in zip(ask, expected, strict=True))
    assert all(near(q).equals(rows) for q, rows in zip(ask, expected, strict=True))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("condition", [None, "n < 5 AND odd"])
def test_partitions_segments_and_filters_go_the_fast_way(
    tables: Tables, name: str, condition: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = tables[name]
    near = dataset.prepare_search("s", filter=condition, columns=["id"])
    ask = ["w1", "w2 w40", MatchQuery("w1 w2", "s", operator=FullTextOperator.AND), '"w1 w2"', "missing", ""]
    expected = [ordinary(dataset, q, {"filter": condition, "columns": ["id"], "k": 10}) for q in ask]
    near("w3")
    dataset.search("w3", column="s", filter=condition, columns=["id"]).to_arrow()  # repeated

    def fail(*_: Any) -> Any:
        raise AssertionError("the ordinary way")

    monkeypatch.setattr(TextSearch, "run", fail)
    for q, rows in zip(ask, expected, strict=True):
        assert near(q).equals(rows)
        assert dataset.search(q, column="s" if q.__class__ is str else None, filter=condition, columns=["id"]).equals(
            rows
        )


@pytest.mark.parametrize(("name", "parts"), [("parts", 1), ("plain", 4), ("stable", 3)])
def test_tables_have_several_partitions_or_segments(tables: Tables, name: str, parts: int) -> None:
    snapshot = open_snapshot(tables[name].uri)
    places = [segment_rows(snapshot, segment) for segment in text_route(snapshot, "s", None).segments]
    assert len(places) == parts
    assert sum(map(len, places)) > 2
