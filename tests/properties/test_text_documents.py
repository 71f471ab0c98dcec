"""Full-text search of list elements, JSON and structs in lists equals a plain model in every storage layout.

The model is a dict from document to its words, in order. A document is a row, or a row and a position in its list.
"""

from __future__ import annotations

import json
import math
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.query import (
    BooleanQuery,
    DocumentGranularity,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    Occur,
    PhraseQuery,
)

OPTIONS = {"fsync": "false"}
WORDS = ("lake", "duck", "swims", "reed")
ANALYSER = {"stem": False, "remove_stop_words": False}
Document = tuple[int, ...]
Documents = dict[Document, list[str]]
Scores = dict[Document, float]
texts = st.one_of(st.none(), st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join))
lists = st.one_of(st.none(), st.lists(texts, max_size=4))
leaves = st.one_of(texts.map(lambda text: text or ""), st.sampled_from([None, True, 7, 2.5]))
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.sampled_from(["a", "b c", "d.e"]), inner, max_size=3)
    ),
    max_leaves=6,
)
words = st.lists(st.sampled_from((*WORDS, "pond")), min_size=1, max_size=3).map(" ".join)
plans = st.tuples(st.integers(0, 2), st.booleans(), st.booleans())
"""Appends after the index, whether rows have stable ids, and whether the index is optimized."""


@dataclass(frozen=True)
class Plan:
    """How a column is written to a table and to the model."""

    column: str
    type: pa.DataType
    document: Callable[[int, Any], Iterator[tuple[Document, list[str]]]]
    arguments: dict[str, Any]


def _words(text: str | None) -> list[str]:
    return text.split() if text else []


def _elements(row: int, value: Any) -> Iterator[tuple[Document, list[str]]]:
    yield from (((row, place), _words(text)) for place, text in enumerate(value or ()))


def _structs(row: int, value: Any) -> Iterator[tuple[Document, list[str]]]:
    yield (row,), [word for each in value or () for word in _words(each and each["t"])]


def _json(row: int, value: Any) -> Iterator[tuple[Document, list[str]]]:
    yield (row,), [] if value is None else list(_tokens("", json.loads(value)))


def _tokens(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _tokens(f"{path}.{key}" if path else key, each)
    elif isinstance(value, list):
        for each in value:
            yield from _tokens(path, each)
    elif isinstance(value, str):
        yield from (f"{path},str,{word}" for word in value.split())
    elif isinstance(value, bool):
        yield f"{path},bool,{str(value).lower()}"
    else:
        yield f"{path},null,null" if value is None else f"{path},number,{value}"


ELEMENTS = Plan(
    "l", pa.list_(pa.string()), _elements, {"document_granularity": DocumentGranularity.LIST_ELEMENT, **ANALYSER}
)
STRUCTS = Plan("l.t", pa.list_(pa.struct({"t": pa.string(), "n": pa.int64()})), _structs, ANALYSER)
JSON = Plan("l", pa.json_(), _json, ANALYSER)


def expected(documents: Documents, asked: list[str], *, every: bool) -> Scores:
    """BM25 of the documents that have one of the words, or each."""
    total, count = sum(map(len, documents.values())), len(documents)
    scores: Scores = {}
    for name, own in documents.items():
        if not (all if every else any)(word in own for word in asked):
            continue
        norm = 1.2 * (0.25 + 0.75 * len(own) * count / total)
        scores[name] = 0.0
        for word in asked:
            df = sum(word in each for each in documents.values())
            idf = math.log((count - df + 0.5) / (df + 0.5) + 1)
            scores[name] += idf * 2.2 * own.count(word) / (own.count(word) + norm)
    return scores


def has_phrase(own: list[str], asked: list[str]) -> bool:
    return any(own[i : i + len(asked)] == asked for i in range(len(own)))


class Life:
    """A table with partly indexed rows, and the model."""

    def __init__(self, plan: Plan, values: list[Any], turns: tuple[int, bool, bool]) -> None:
        appends, stable, optimizes = turns
        self.plan = plan
        self.folder = tempfile.mkdtemp(prefix="text-documents-")
        parts = np.array_split(np.arange(len(values)), appends + 1)
        for number, part in enumerate(parts):
            rows = pa.array([values[i] for i in part], plan.type)
            table = pa.table({"id": pa.array(part, pa.int64()), "l": rows})
            options: dict[str, Any] = {"enable_stable_row_ids": stable, "max_rows_per_file": 4}
            mode = "append" if number else "create"
            uri = f"{self.folder}/t.lance"
            self.dataset = ld.write_dataset(table, uri, mode=mode, storage_options=OPTIONS, **options)
            if number == 0:
                self.dataset.create_scalar_index(plan.column, "INVERTED", with_position=True, **plan.arguments)
        if optimizes:
            self.dataset.optimize.optimize_indices()
        named = [pair for i, value in enumerate(values) for pair in plan.document(i, value)]
        keeps_empty = plan is ELEMENTS
        self.documents = {name: own for name, own in named if own or keeps_empty}

    def scores(self, query: FullTextQuery, **options: Any) -> Scores:
        table = self.dataset.to_table(full_text_query=query, **options)
        places = table["_doc_index"].to_pylist() if "_doc_index" in table.column_names else [[]] * len(table)
        names = [(row, *own) for row, own in zip(table["id"].to_pylist(), places, strict=True)]
        assert len(set(names)) == len(names)
        scores = table["_score"].to_pylist()
        assert scores == sorted(scores, reverse=True)
        return dict(zip(names, scores, strict=True))

    def __enter__(self) -> Life:
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder)


def check_words(life: Life, query: str, asked: list[str]) -> None:
    for every in (False, True):
        operator = FullTextOperator.AND if every else FullTextOperator.OR
        model = expected(life.documents, asked, every=every)
        match = MatchQuery(query, life.plan.column, operator=operator)
        assert life.scores(match) == pytest.approx(model, rel=1e-5)
        best = life.scores(match, limit=2)
        assert sorted(best.values()) == pytest.approx(sorted(model.values())[-2:], rel=1e-5)
        assert best == {name: pytest.approx(model[name], rel=1e-5) for name in best}
        chosen = {name: score for name, score in model.items() if name[0] % 2}
        assert life.scores(match, filter="id % 2 = 1") == pytest.approx(chosen, rel=1e-5)


def check_others(life: Life, query: str, asked: list[str]) -> None:
    phrase = {name for name, own in life.documents.items() if has_phrase(own, asked)}
    assert life.scores(PhraseQuery(query, life.plan.column)).keys() == phrase
    without = BooleanQuery(
        [(Occur.MUST, MatchQuery("lake duck", life.plan.column)), (Occur.MUST_NOT, MatchQuery(query, life.plan.column))]
    )
    model = {n for n, own in life.documents.items() if {"lake", "duck"} & {*own} and not {*asked} & {*own}}
    assert life.scores(without).keys() == model
    fuzzy = {name for name, own in life.documents.items() if "lake" in own}
    assert life.scores(MatchQuery("lace", life.plan.column, fuzziness=1)).keys() == fuzzy


@settings(max_examples=settings.default.max_examples // 4)
@given(st.lists(lists, min_size=1, max_size=14), plans, words)
def test_list_elements_match_the_reference_model(values: list[Any], turns: tuple[int, bool, bool], query: str) -> None:
    with Life(ELEMENTS, values, turns) as life:
        check_words(life, query, query.split())
        check_others(life, query, query.split())


@settings(max_examples=settings.default.max_examples // 4)
@given(st.lists(lists, min_size=1, max_size=14), plans, words)
def test_structs_in_lists_match_the_reference_model(
    values: list[Any], turns: tuple[int, bool, bool], query: str
) -> None:
    rows = [each and [None if i % 3 == 2 else {"t": text, "n": 1} for i, text in enumerate(each)] for each in values]
    with Life(STRUCTS, rows, turns) as life:
        check_words(life, query, query.split())
        check_others(life, query, query.split())


@settings(max_examples=settings.default.max_examples // 4)
@given(
    st.lists(st.one_of(st.none(), trees.map(json.dumps)), min_size=1, max_size=14),
    plans,
    st.lists(st.sampled_from(["", "a", "b c", "a.d.e"]), min_size=1, max_size=2),
    st.sampled_from(["str,duck", "str,lake", "bool,true", "number,7", "number,2.5", "null,null"]),
)
def test_json_leaves_match_the_reference_model(
    values: list[Any], turns: tuple[int, bool, bool], paths: list[str], leaf: str
) -> None:
    asked = [f"{path},{leaf}" for path in paths]
    with Life(JSON, values, turns) as life:
        check_words(life, ";".join(asked), asked)
