"""Prepared searches for words return what ordinary searches return."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, WrongTypeError
from lance_duck.query import BooleanQuery, FullTextOperator, MatchQuery, Occur, PhraseQuery, PrefixQuery
from lance_duck.scan.text.search import TextSearch
from lance_duck.store.request import watched

ROWS = 400
WORDS = ["duck", "lake", "boat", "oar", "reed", "fish", "sky"]
AND = FullTextOperator.AND
PLAIN = [
    "duck",
    "lake boat oar",
    "duck duck lake",
    "DUCK missing",
    '"duck lake"',
    '"boat"',
    MatchQuery("duck lake", "text", operator=AND),
    PhraseQuery("duck boat", "text", slop=2),
    {"query": "reed sky", "columns": ["text"]},
    {"match": {"terms": "fish", "column": "text"}},
]
UNUSUAL = [
    "",
    "missing",
    '"duck missing"',
    MatchQuery("duk", "text", fuzziness=1),
    MatchQuery("duck", "text", boost=2.0),
    MatchQuery("duck", "text", analyzer={"stem": False}),
    PrefixQuery("du", "text"),
    MatchQuery("duck", "text") & MatchQuery("lake", "text"),
    BooleanQuery([(Occur.MUST, MatchQuery("duck", "text")), (Occur.MUST_NOT, MatchQuery("boat", "text"))]),
]


def rows(first: int, count: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(first)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) for _ in range(count)]
    return pa.table({"id": np.arange(first, first + count), "text": texts})


def table(folder: Path, stable: bool = False) -> ld.LanceDataset:
    dataset = ld.write_dataset(rows(0), folder / "t.lance", enable_stable_row_ids=stable)
    dataset.create_scalar_index("text", "INVERTED", with_position=True)
    return dataset


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Return a table that no test changes."""
    return table(tmp_path_factory.mktemp("prepared"))


def ordinary(dataset: ld.LanceDataset, q: Any, **options: Any) -> pa.Table:
    """Search the ordinary way, which counts its reads."""
    with watched():
        return dataset.search(q, options.pop("k", 10), "text" if isinstance(q, str) else None, **options)


def check(
    near: Any, dataset: ld.LanceDataset, queries: Any = ("oar", "duck lake boat", '"duck lake"'), **options: Any
) -> None:
    for q in queries:
        expected = ordinary(dataset, q, **options)
        assert near(q).equals(expected), q
        assert dataset.search(q, options.get("k", 10), **{n: v for n, v in options.items() if n != "k"}).equals(
            expected
        )
        ids = ordinary(dataset, q, **{**options, "columns": ["_rowid", "_score"]})
        row_ids, scores = near.ids(q)
        assert (row_ids.dtype, scores.dtype) == (np.uint64, np.float32)
        assert (row_ids.tolist(), scores.tolist()) == (ids["_rowid"].to_pylist(), ids["_score"].to_pylist())


@pytest.mark.parametrize("stable", [False, True])
def test_calls_read_the_version_of_the_dataset(tmp_path: Path, stable: bool) -> None:
    dataset = table(tmp_path, stable)
    near = dataset.prepare_search("text", columns=["id", "_rowid"])
    check(near, dataset, columns=["id", "_rowid"])
    dataset.delete("id % 7 = 3")
    check(near, dataset, columns=["id", "_rowid"])
    dataset.insert(rows(ROWS, 30))
    check(near, dataset, columns=["id", "_rowid"])
    dataset.update({"text": "'duck lake sky'"}, where="id % 50 = 0")
    check(near, dataset, columns=["id", "_rowid"])
    dataset.optimize.optimize_indices()
    dataset.optimize.compact_files()
    check(near, dataset, columns=["id", "_rowid"])
    dataset.create_scalar_index("text", "INVERTED", replace=True)  # without positions
    check(near, dataset, columns=["id", "_rowid"])


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 4, "offset": 2},
        {"filter": "id % 3 = 1"},
        {"filter": "id % 3 = 1", "prefilter": False},
        {"filter": "_score > 1"},
        {"fast_search": True},
        {"with_row_id": True, "with_row_address": True},
        {"columns": {"twice": "id * 2", "s": "_score"}},
        {"columns": []},
        {"k": 1, "columns": ["text"]},
        {"k": ROWS + 9},
        {"use_threads": False},
        {"order_by": ["id"]},
        {"disable_scoring_autoprojection": True, "columns": ["id"]},
    ],
    ids=str,
)
def test_prepared_searches_take_the_options_of_ordinary_ones(indexed: ld.LanceDataset, options: dict[str, Any]) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("text", **options)
    for _ in range(2):
        check(near, dataset, **options)


def test_plain_queries_do_not_go_the_ordinary_way(indexed: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("text", columns=["id"])
    expected = [ordinary(dataset, q, columns=["id"]) for q in PLAIN]
    ordinary(dataset, "duck")

    def fail(*_: Any) -> Any:
        raise AssertionError("the ordinary way")

    monkeypatch.setattr(TextSearch, "run", fail)
    for q, found in zip(PLAIN, expected, strict=True):
        assert near(q).equals(found)
        assert dataset.search(q, 10, columns=["id"]).equals(found)
        assert dataset.to_table(columns=["id"], full_text_query=q, limit=10).equals(found)


def test_columns_are_equal_after_they_are_decoded(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("text", columns=["_score", "id", "_rowid"])
    for _ in range(30):
        near("duck")
    check(near, dataset, [*PLAIN, *UNUSUAL], columns=["_score", "id", "_rowid"])


def test_several_queries_return_a_table_with_their_numbers(indexed: ld.LanceDataset) -> None:
    near = ld.dataset(indexed.uri).prepare_search("text", k=3)
    found = near.many(["duck", "missing", "lake"])
    assert found.column_names == ["query_index", "id", "text", "_score"]
    assert found["query_index"].to_pylist() == [0, 0, 0, 2, 2, 2]
    assert found.drop_columns("query_index").slice(3).equals(near("lake"))
    for wrong in ("duck", 3, []):
        with pytest.raises(LanceDuckError, match="queries"):
            near.many(wrong)


@pytest.mark.parametrize(
    "q", [3, [0.5, 1.0], {"query": "x", "colums": []}, {"match": {}}, "\ud800", MatchQuery("duck", "id")], ids=str
)
def test_a_wrong_query_raises_the_error_of_an_ordinary_search(indexed: ld.LanceDataset, q: Any) -> None:
    dataset = ld.dataset(indexed.uri)
    near = dataset.prepare_search("text")
    with pytest.raises(LanceDuckError) as expected:
        dataset.scanner(full_text_query={"query": q, "columns": ["text"]} if isinstance(q, str) else q).to_table()
    for call in (near, near.ids):
        with pytest.raises(type(expected.value)) as error:
            call(q)
        assert str(error.value) == str(expected.value)
        with pytest.raises(WrongTypeError, match="full_text_query"):
            call(None)


def test_threads_find_the_same(indexed: ld.LanceDataset) -> None:
    near = ld.dataset(indexed.uri).prepare_search("text", columns=["id"])
    expected = [ordinary(indexed, q, columns=["id"]) for q in PLAIN]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda i: near(PLAIN[i % len(PLAIN)]), range(100)))
    assert all(each.equals(expected[i % len(PLAIN)]) for i, each in enumerate(found))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_finds_the_same(indexed: ld.LanceDataset) -> None:
    near = ld.dataset(indexed.uri).prepare_search("text", columns=["id"])
    expected = [near(q).to_pydict() for q in PLAIN]
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=lambda: answers.put([near(q).to_pydict() for q in PLAIN]))
    child.start()
    found = answers.get()
    child.join()
    assert found == expected


def test_a_closed_search_raises_and_releases_its_memory(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    with dataset.prepare_search("text") as near:
        near("duck")
        assert dataset.cache_stats()["prepared_searches"] == near.nbytes > 0
        assert "of text, k 10 in" in repr(near)
    assert dataset.cache_stats()["prepared_searches"] == near.nbytes == 0
    for call in (near, near.ids):
        with pytest.raises(InvalidInputError, match="closed"):
            call("duck")


def test_wrong_arguments_are_refused(indexed: ld.LanceDataset) -> None:
    for wrong in ({"hybrid": {"method": "rrf"}}, {"full_text_query": "x"}, {"ef": 3}, {"colums": []}, {"k": 0}):
        with pytest.raises(LanceDuckError, match=next(iter(wrong))):
            indexed.prepare_search("text", **wrong)
    with pytest.raises(LanceDuckError, match="nothing"):
        indexed.prepare_search("text", columns=["nothing"])


def test_a_column_without_an_index_is_searched(tmp_path: Path) -> None:
    dataset = ld.write_dataset(rows(0, 40), tmp_path / "t.lance")
    check(dataset.prepare_search("text", k=5), dataset, ["duck", '"duck lake"'], k=5)
