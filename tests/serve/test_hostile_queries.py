"""Malformed and hostile bodies of reads get a status below 500, and the server goes on."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server

ROWS = 60
VERBS = ("query", "count_rows", "explain_plan", "analyze_plan", "describe", "version/list", "tags/version", "stats")


@pytest.fixture(scope="module")
def send(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, bytes], int]]:
    """A function that posts a body to a verb of a table, and returns the status of the answer."""
    folder = tmp_path_factory.mktemp("served")
    vectors = np.random.default_rng(0).random(ROWS * 4, dtype=np.float32)
    table = ld.write_dataset(
        pa.table(
            {
                "id": range(ROWS),
                "name": [f"duck lake n{i}" for i in range(ROWS)],
                "vector": pa.FixedSizeListArray.from_arrays(vectors, 4),
                "inner": [{"a": i} for i in range(ROWS)],
            }
        ),
        folder / "t.lance",
    )
    table.create_scalar_index("name", "INVERTED")
    table.delete("id = 3")
    with Server(ServeSettings(str(folder), port=0)) as server:
        connection = http.client.HTTPConnection(urlsplit(server.url).netloc)

        def post(verb: str, body: bytes) -> int:
            connection.request("POST", f"/v1/table/t/{verb}", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            data = answer.read()
            if answer.status >= 400:
                error = json.loads(data)
                assert isinstance(error["error"], str)
                assert isinstance(error["code"], int)
            return answer.status

        yield post
        connection.close()


NUMBERS = st.one_of(
    st.integers(-3, 70),
    st.sampled_from(
        [2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64, 10**40, -(2**63), 1e308, 1e-320, float("nan"), float("inf")]
    ),
    st.floats(),
)
JUNK = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
VECTORS = st.lists(NUMBERS, min_size=3, max_size=5)
COLUMNS = st.sampled_from(
    ["id", "name", "vector", "inner", "inner.a", "_rowid", "_distance", "_score", "nope", "", "a.b.c", "`"]
)
TEXTS = st.sampled_from(
    [
        *("id > 3", "id", "nope = 1", "id = 'x'", "(", "1 = 1", "", ";", "id IN (1, 2)", "name LIKE '%n1%'", "\0"),
        *("id > 3 OR", "random() > 0.5", "read_text('/etc/passwd') IS NULL", "(SELECT 1) = 1", "'" * 999, "(" * 5000),
        *("id = 1 AND " * 400 + "id = 2", "CAST(name AS INT) = 1", "1 / 0 = 1", "_rowid = 1", "_rowoffset < 3"),
    ]
)
WORDS: st.SearchStrategy[Any] = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "match": st.fixed_dictionaries(
                {"terms": st.sampled_from(["duck", "", "duck lake", "\0"])},
                optional={
                    "column": COLUMNS | st.none(),
                    "fuzziness": NUMBERS | st.none(),
                    "operator": st.sampled_from(["Or", "and", "x"]),
                },
            ),
            "phrase": st.fixed_dictionaries(
                {"terms": st.just("duck lake")}, optional={"slop": NUMBERS, "column": COLUMNS}
            ),
            "multi_match": st.fixed_dictionaries(
                {"query": st.just("duck"), "columns": st.lists(COLUMNS, max_size=2)},
                optional={"boost": st.lists(NUMBERS, max_size=2)},
            ),
        },
    ),
    lambda inner: st.one_of(
        st.fixed_dictionaries(
            {"boolean": st.dictionaries(st.sampled_from(["must", "should", "must_not"]), st.lists(inner, max_size=3))}
        ),
        st.fixed_dictionaries(
            {
                "boost": st.fixed_dictionaries(
                    {"positive": inner, "negative": inner}, optional={"negative_boost": NUMBERS}
                )
            }
        ),
    ),
    max_leaves=4,
)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "vector": VECTORS
    | st.lists(VECTORS, max_size=3)
    | st.fixed_dictionaries({}, optional={"single_vector": VECTORS, "multi_vector": st.lists(VECTORS, max_size=2)}),
    "k": NUMBERS,
    "offset": NUMBERS,
    "filter": TEXTS,
    "predicate": TEXTS,
    "columns": st.lists(COLUMNS, max_size=3)
    | st.dictionaries(COLUMNS, TEXTS, max_size=2)
    | st.fixed_dictionaries(
        {}, optional={"column_names": st.lists(COLUMNS), "column_aliases": st.dictionaries(COLUMNS, COLUMNS)}
    ),
    "full_text_query": st.fixed_dictionaries(
        {"query": WORDS | st.sampled_from(["duck", '"duck lake"', ""])},
        optional={"columns": st.lists(COLUMNS, max_size=2)},
    ),
    "prefilter": st.booleans(),
    "with_row_id": st.booleans(),
    "order_by": st.lists(
        st.fixed_dictionaries(
            {"column_name": COLUMNS}, optional={"ascending": st.booleans(), "nulls_first": st.booleans()}
        ),
        max_size=2,
    ),
    "vector_column": COLUMNS,
    "distance_type": st.sampled_from(["l2", "cosine", "dot", "hamming", "L2", "nope", ""]),
    "lower_bound": NUMBERS,
    "upper_bound": NUMBERS,
    "fast_search": st.booleans(),
    "bypass_vector_index": st.booleans(),
    "nprobes": NUMBERS,
    "minimum_nprobes": NUMBERS,
    "maximum_nprobes": NUMBERS,
    "ef": NUMBERS,
    "refine_factor": NUMBERS,
    "version": NUMBERS,
    "tag": st.text(max_size=5),
    "branch": st.text(max_size=5) | st.just("main"),
    "limit": NUMBERS,
    "page_token": st.text(max_size=3),
    "descending": st.booleans(),
    "id": st.just(["t"]) | st.lists(st.text(max_size=3), max_size=2),
}
BODIES = st.dictionaries(st.sampled_from([*FIELDS, "verbose", "nope"]), st.none(), max_size=6).flatmap(
    lambda chosen: st.fixed_dictionaries({name: FIELDS.get(name, JUNK) | JUNK for name in chosen})
)
QUERIES = st.dictionaries(st.sampled_from(list(FIELDS)[:14]), st.none(), max_size=5).flatmap(
    lambda chosen: st.fixed_dictionaries({name: FIELDS[name] for name in chosen})
)
RUNS = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@RUNS
@given(verb=st.sampled_from(VERBS), body=BODIES)
def test_any_body_gets_a_status_below_500(send: Callable[[str, bytes], int], verb: str, body: dict[str, Any]) -> None:
    assert send(verb, json.dumps(body).encode()) < 500


@RUNS
@given(body=QUERIES)
@example(body={"k": 0, "vector": [0.5] * 4})
@example(body={"k": 10**40, "vector": [0.5] * 4})
@example(body={"k": 3, "vector": [float("nan")] * 4})
@example(body={"k": 3, "vector": [1e400] * 4})
@example(body={"k": 2**63 - 1, "offset": 2**63 - 1, "vector": [0.5] * 4})
def test_any_query_gets_a_status_below_500(send: Callable[[str, bytes], int], body: dict[str, Any]) -> None:
    assert send("query", json.dumps(body).encode()) < 500
    assert send("explain_plan", json.dumps({"query": body}).encode()) < 500


@RUNS
@given(
    body=st.binary(max_size=60)
    | st.integers(0, 40).map(lambda cut: json.dumps({"vector": [0.5] * 4, "k": 3})[:cut].encode())
)
def test_any_bytes_get_a_status_below_500(send: Callable[[str, bytes], int], body: bytes) -> None:
    assert send("query", body) < 500


@pytest.mark.parametrize(
    "body",
    [
        *({"k": value} for value in (-1, "3", 1.5, True, 2**63, [])),
        *({"vector": value} for value in ("x", [True] * 4, [None] * 4, ["1"] * 4, [[]], [[1, 2], [1]], {"nope": []})),
        {"vector": {"single_vector": [0.5] * 4, "multi_vector": [[0.5] * 4]}},
        {"vector": {"single_vector": [[0.5] * 4]}},
        *({"columns": value} for value in ("id", [1], {"x": 1}, {"column_names": 1})),
        *({"filter": value} for value in (1, ["id = 1"], {})),
        *({"full_text_query": value} for value in ("duck", {"query": 1}, {"query": "duck", "limit": 1}, {"query": {}})),
        *({"order_by": value} for value in ("id", ["id"], [{}], [{"column_name": "id", "nope": True}])),
        {"nope": 1},
        {"id": ["u"]},
        {"version": -1},
        {"version": 1, "tag": "x"},
        {"lower_bound": "0"},
        {"prefilter": "yes"},
    ],
    ids=str,
)
def test_a_wrong_field_is_refused(send: Callable[[str, bytes], int], body: dict[str, Any]) -> None:
    assert send("query", json.dumps(body).encode()) == 400


def test_deep_nesting_is_refused(send: Callable[[str, bytes], int]) -> None:
    tree: dict[str, Any] = {"match": {"terms": "duck", "column": "name"}}
    for _ in range(150):
        tree = {"boolean": {"must": [tree]}}
    assert send("query", json.dumps({"full_text_query": {"query": tree}}).encode()) == 400
    for depth in (500, 100_000):
        assert send("query", b'{"vector": ' + b"[" * depth + b"]" * depth + b"}") == 400
        assert send("query", b'{"full_text_query": ' + b'{"query":' * depth + b"1" + b"}" * depth + b"}") == 400


def test_a_body_that_is_too_large_is_refused(send: Callable[[str, bytes], int]) -> None:
    assert send("query", b'{"filter": "' + b"x" * (5 << 20) + b'"}') in (400, 413)
