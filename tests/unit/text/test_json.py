from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.text.analyser import Analyser
from lance_duck.text.json import json_tokens, json_tokens_reference, query_tokens, read_json_leaves
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


def test_each_json_leaf_is_a_term_with_its_path_and_type() -> None:
    assert list(json_tokens_reference(DOCUMENT, JSON)) == TERMS
    assert [token.text for token in ld.tokenize(DOCUMENT, lance_tokenizer="json")] == TERMS
    assert list(json_tokens_reference('["x",1,[true]]', JSON)) == [",str,x", ",number,1", ",bool,true"]
    assert list(json_tokens_reference('{"":"x"}', JSON)) == [",str,x"]


@given(st.lists(values, max_size=5), st.sampled_from(["simple", "raw", "whitespace", "ngram"]))
def test_tokens_of_many_documents_equal_those_of_each(documents, base) -> None:
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


def plain_terms(texts: list[str], parameters: AnalyserParameters) -> list[list[str]]:
    tokens = json_tokens(pa.array(texts, pa.large_string()), parameters)
    terms = tokens.terms.to_pylist()
    pairs = zip(tokens.bounds[:-1], tokens.bounds[1:], strict=True)
    return [[terms[i].decode() for i in tokens.term_ids[start:stop]] for start, stop in pairs]


@pytest.mark.parametrize(
    "document",
    [
        '{"a": 1, "b": {"a": 2}, "a": 3}',
        '{"a.b": 1, "a": {"b": 2}, "a.b": 3}',
        '[{"a": 1}, {"a": 2}]',
        '{"a,str": 1, "a": "number 1", "": {"": "x"}}',
        r'{"a": "\u00e9\ud83d\ude00 \n \"q\"", "\u0061": "b"}',
        "[NaN, Infinity, -Infinity, 1e5, -0.0, 123456789012345678901234567890]",
        "[" * 600 + "1" + "]" * 600,
        '{"a": [], "b": {}, "c": [[], [{}]]}',
        '  "text alone"  ',
    ],
)
def test_kernel_and_reference_produce_the_same_terms(document) -> None:
    parameters = AnalyserParameters.from_arguments({"base_tokenizer": "whitespace", "lance_tokenizer": "json"})
    texts = ['{"k": "v"}', document, document]
    assert plain_terms(texts, parameters) == [list(json_tokens_reference(text, parameters)) for text in texts]


def test_documents_with_many_leaves_paths_and_terms_fit() -> None:
    wide = json.dumps({f"key{i}": [f"word{i}", i, "x" * i] for i in range(3000)})
    deep = json.dumps([list(range(5000)), "é" * 5000])
    texts = [wide, deep, wide]
    assert read_json_leaves(pa.array(texts, pa.large_string())) is not None
    assert plain_terms(texts, JSON) == [list(json_tokens_reference(text, JSON)) for text in texts]


@pytest.mark.parametrize("text", ["", "{", '{"a" 1}', "[1,]", "01", '"\\x"', "nul", "1 2", '{"a": 1}}'])
def test_documents_that_are_not_json_are_rejected(text) -> None:
    with pytest.raises(InvalidInputError, match="bad document: expected JSON"):
        json_tokens(pa.array(['{"a": 1}', text], pa.large_string()), JSON)


def test_null_and_listed_documents_are_analysed() -> None:
    analyser = Analyser(JSON)
    tokens = analyser.analyse(pa.array(['{"a":1}', None, "[2,3]"]))
    assert np.diff(tokens.bounds).tolist() == [1, 0, 2]
    lists = analyser.analyse(pa.array([['{"a":1}', "[2]"], None, [None]]))
    assert np.diff(lists.bounds).tolist() == [2, 0, 0]
    assert lists.positions.tolist() == [0, 1]


def test_json_queries_are_triplets_with_analysed_strings() -> None:
    assert query_tokens("a.city,str,San the Foxes;n,number,30;t,str,a,b", JSON) == [
        *("a.city,str,san", "a.city,str,fox", "n,number,30", "t,str,b"),
    ]
    with pytest.raises(InvalidInputError, match="invalid JSON query: expected path,type,value"):
        query_tokens("San", JSON)
    with pytest.raises(InvalidInputError, match="type in a JSON query: expected str or number or bool or null"):
        query_tokens("a,text,San", JSON)


def test_invalid_and_deeply_nested_json_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="bad document: expected JSON"):
        list(json_tokens_reference("San", JSON))
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        list(json_tokens_reference("[" * 100_000, JSON))


def test_memory_use_follows_document_size() -> None:
    listed = [{"n": number, "t": f"{'duck ' * 20}{number}"} for number in range(20_000)]
    documents = pa.array(map(json.dumps, listed), pa.large_string())
    json_tokens(documents.slice(0, 10), JSON)  # kernels are compiled
    tracemalloc.start()
    try:
        tokens = json_tokens(documents, JSON)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(tokens.terms) == 40_001
    assert most < 20 * documents.nbytes
