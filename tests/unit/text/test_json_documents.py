from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.text.analyser import Analyser
from lance_duck.text.json_documents import json_tokens, json_tokens_reference, query_tokens
from lance_duck.text.parameters import AnalyserParameters

JSON = AnalyserParameters(lance_tokenizer="json")
DOCUMENT = '{"a":{"city":"San Francisco","n":30},"l":[{"x":"the foxes"},[{"x":"Dog"}]],"ok":true,"z":null,"e":-1.50}'
TERMS = [
    *("a.city,str,san", "a.city,str,francisco", "a.n,number,30", "l.x,str,fox", "l.x,str,dog"),
    *("ok,bool,true", "z,null,null", "e,number,-1.50"),
]

values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text("ab ,;é", max_size=8),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("xy.,", max_size=3), below, max_size=3),
    max_leaves=8,
)


def test_each_leaf_is_a_term_with_its_path_and_its_type() -> None:
    assert list(json_tokens_reference(DOCUMENT, JSON)) == TERMS
    assert [token.text for token in ld.tokenize(DOCUMENT, lance_tokenizer="json")] == TERMS
    assert list(json_tokens_reference('["x",1,[true]]', JSON)) == [",str,x", ",number,1", ",bool,true"]
    assert list(json_tokens_reference('{"":"x"}', JSON)) == [",str,x"]


@given(st.lists(values, max_size=5), st.sampled_from(["simple", "raw", "whitespace", "ngram"]))
def test_tokens_of_documents_are_those_of_each(documents, base) -> None:
    parameters = AnalyserParameters.from_arguments({"base_tokenizer": base, "lance_tokenizer": "json"})
    texts = [json.dumps(document) for document in documents]
    tokens = json_tokens(pa.array(texts, pa.large_string()), parameters)
    terms = tokens.terms.to_pylist()
    assert len(set(terms)) == len(terms)
    found = [
        [terms[i].decode() for i in tokens.term_ids[start:stop]]
        for start, stop in zip(tokens.bounds[:-1], tokens.bounds[1:], strict=True)
    ]
    assert found == [list(json_tokens_reference(text, parameters)) for text in texts]
    lengths = np.diff(tokens.bounds)
    assert tokens.positions.tolist() == [place for length in lengths for place in range(length)]


def test_nulls_and_lists_of_documents_have_the_tokens_of_what_is_there() -> None:
    analyser = Analyser(JSON)
    tokens = analyser.analyse(pa.array(['{"a":1}', None, "[2,3]"]))
    assert np.diff(tokens.bounds).tolist() == [1, 0, 2]
    lists = analyser.analyse(pa.array([['{"a":1}', "[2]"], None, [None]]))
    assert np.diff(lists.bounds).tolist() == [2, 0, 0]
    assert lists.positions.tolist() == [0, 1]


def test_queries_are_triplets_whose_texts_are_analysed() -> None:
    assert query_tokens("a.city,str,San the Foxes;n,number,30;t,str,a,b", JSON) == [
        *("a.city,str,san", "a.city,str,fox", "n,number,30", "t,str,b"),
    ]
    with pytest.raises(InvalidInputError, match="query of JSON: expected path,type,value"):
        query_tokens("San", JSON)
    with pytest.raises(InvalidInputError, match="type in a query of JSON: expected str or number or bool or null"):
        query_tokens("a,text,San", JSON)


def test_what_is_no_json_or_too_deep_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="bad document: expected JSON"):
        list(json_tokens_reference("San", JSON))
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        list(json_tokens_reference("[" * 100_000, JSON))
