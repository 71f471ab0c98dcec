from __future__ import annotations

import json

import pytest

from lance_duck.errors import LanceDuckError
from lance_duck.query import BooleanQuery, CombinedFieldsQuery, MatchQuery, Occur, PhraseQuery
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.scan.text.request import query_of_json, query_of_text


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("two words", MatchQuery("two words", "body")),
        ('"two words"', PhraseQuery("two words", "body")),
        (' {"match": {"terms": "a", "boost": 2.0}}', MatchQuery("a", "body", boost=2.0)),
        ('{"phrase": {"terms": "a b", "column": "title"}}', PhraseQuery("a b", "title")),
        (
            '{"boolean": {"must": [{"match": {"terms": "a"}}], "should": [{"match": {"terms": "b", "column": "c"}}]}}',
            BooleanQuery([(Occur.MUST, MatchQuery("a", "body")), (Occur.SHOULD, MatchQuery("b", "c"))]),
        ),
    ],
)
def test_a_string_is_parsed_as_words_phrase_or_json_query(text: str, query: FullTextQuery) -> None:
    assert query_of_text(text, "body") == query


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{words}",
        "{}",
        '{"match": "a"}',
        '{"match": {"column": "c"}}',
        '{"match": {"terms": "a", "nope": 1}}',
        '{"match": {"terms": "a"}, "phrase": {"terms": "a"}}',
        '{"a": ' * 100_000,
        json.dumps({"boost": {"positive": {"match": {"terms": "a"}}}}),
    ],
)
def test_text_that_starts_with_a_brace_must_be_a_json_query(text: str) -> None:
    with pytest.raises(LanceDuckError):
        query_of_text(text, "body")


def test_deeply_nested_json_queries_are_rejected() -> None:
    text = '{"boolean": {"must": [' * 300 + '{"match": {"terms": "a"}}' + "]}}" * 300
    with pytest.raises(LanceDuckError, match="the query is nested too deeply"):
        query_of_text(text, "body")


def test_the_search_text_key_may_be_terms_or_query() -> None:
    for name in ("terms", "query"):
        assert query_of_json({"match": {name: "a", "column": "b"}}) == MatchQuery("a", "b")
        assert query_of_json({"combined_fields": {name: "a", "columns": ["b"]}}) == CombinedFieldsQuery("a", ["b"])
