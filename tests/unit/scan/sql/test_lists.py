from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lance_duck.scan.filters import SqlFilter, TreeFilter, make_filter
from lance_duck.scan.predicate.tree import Compare, In, Or
from lance_duck.scan.sql.compare import membership
from lance_duck.scan.sql.lists import bound_values, constants_end, listed_values, written_values
from lance_duck.scan.sql.literals import Literal, NotSimpleError, numeric
from lance_duck.scan.sql.parser import tree_from_sql
from lance_duck.scan.sql.tokens import tokens
from lance_duck.scan.sql.vet import parse_sql

OF_DUCKDB_2 = pytest.mark.skipif(duckdb.__version__ < "2", reason="-0.0 is not in [0] before")

TYPES = [
    *(pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.decimal128(10, 2), pa.decimal128(38, 0), pa.string(), pa.large_string(), pa.string_view()),
    *(pa.bool_(), pa.date32(), pa.binary(), pa.timestamp("us"), pa.float16()),
]
LONG = " " * 256
SCHEMA = pa.schema([("i", pa.int32()), ("s", pa.string()), ("f", pa.float64()), ("g", pa.float32())])
NUMBERS = st.one_of(
    st.integers(-300, 300).map(str),
    st.sampled_from(["0", "-0", "007", "1.0", "1.", ".5", "-.5", "0.10", "1.005", "1e3", "1E-2", "1e400", "-0.0"]),
    st.sampled_from([str(2**n + d) for n in (24, 31, 53, 63, 64) for d in (-1, 0, 1)]),
    st.sampled_from(["-9223372036854775808", "0.1234567890123456", "16777216.00000001", "1e39", "0.1e0", "9" * 38]),
    st.decimals(-1000, 1000, places=2, allow_nan=False).map(lambda d: format(d, "f")),
)
TEXTS = st.one_of(
    st.sampled_from(["", "'", "''", "null", "a,b", "x)", "2024-01-01", "\0", "é", "\ud800", " "]), st.text(max_size=4)
).map(lambda text: "'" + text.replace("'", "''") + "'")
NULLS = st.sampled_from(["NULL", "null", "Null"])


def one_by_one(literals: list[Literal], type_: pa.DataType) -> Any:
    found = membership(("x",), literals, type_)
    assert isinstance(found, In)
    return found.values


def answer(make: Any) -> Any:
    """An array, or the kind of error."""
    try:
        array = make()
    except (NotSimpleError, ValueError) as error:
        return type(error)
    array.validate(full=True)
    return array.type, [math.copysign(1, v) if v == 0 and isinstance(v, float) else repr(v) for v in array.to_pylist()]


def literal_of(item: str) -> Literal:
    if item[0] == "'":
        return Literal("text", item[1:-1].replace("''", "'"))
    return Literal("value", None) if item.lower() == "null" else numeric(item)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([NUMBERS, TEXTS]).flatmap(lambda one: st.lists(one | NULLS, min_size=1, max_size=4)),
    st.sampled_from([",", " ,\n", ", "]),
)
@example(["1.5", "2"], ",")
def test_a_list_literal_equals_its_constants_one_by_one(items: list[str], comma: str) -> None:
    run = comma.join(items)
    assert constants_end(f"{run} )", 0) == len(run)
    for type_ in TYPES:
        expected = answer(lambda t=type_: one_by_one([literal_of(item) for item in items], t))
        assert answer(lambda t=type_: written_values(run, t)) == expected


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.integers(-(2**64), 2**64) | st.integers(-200, 300) | st.floats() | st.floats(width=32) | st.none()
        | st.booleans() | st.text(max_size=3) | st.decimals(allow_nan=True, places=2),
        min_size=1,
        max_size=4,
    ) | st.lists(st.floats(width=32), min_size=1) | st.lists(st.integers(0, 99), min_size=1) | st.lists(st.text())
)  # fmt: skip
@example([Decimal("NaN"), Decimal("1.5")])
@example([-(2**63)])
def test_bound_values_equal_values_bound_one_by_one(values: list[Any]) -> None:
    for type_ in TYPES if values else ():
        expected = answer(lambda t=type_: one_by_one([Literal("value", value) for value in values], t))
        assert answer(lambda t=type_: bound_values(values, t)) == expected


def test_long_lists_keep_order_and_unrepresentable_values_become_null() -> None:
    run = ", ".join([*map(str, range(5000)), "1.5", "NULL", "3000000000", "7"])
    assert written_values(run, pa.int32()).to_pylist() == [*range(5000), None, 7]


@pytest.mark.parametrize(
    "run", ["1, 'a'", "1, 2::int", "1, x", "1 2", "(1), 2", "1,", ",1", "'a' 'b'", "1, --2\n3", ""]
)
def test_other_lists_are_parsed_token_by_token(run: str) -> None:
    assert constants_end(f"{run})", 0) == -1


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("i IN (1, -5, NULL)", None),
        ("i NOT IN (1, NULL)", None),
        ("NOT (i IN [1, NULL])", None),
        ("i IN (1, 2.5, 99999999999) OR s IN ('it''s', '')", None),
        ("i IN (?, ?) AND s NOT IN (?)", [1, -5, "a"]),
        ("i IN (SELECT 1)", None),
        ("i IN ?", [[1, None, 300]]),
        ("NOT (i IN $k)", {"k": [1, None]}),
        pytest.param("f IN ?", [[math.nan, 0.0]], marks=OF_DUCKDB_2),
        pytest.param("f IN ?", [[1, 0]], marks=OF_DUCKDB_2),
        ("g IN ?", [[0.1, 0.5]]),
        ("s NOT IN ?", [("a", "b")]),
        ("i IN ? OR length(s) = 1", [[1]]),
        ("i IN (1, -5) AND length(s) + ? > 1", [1]),
        ("i IN ?", [[]]),
        ("i IN ?", [[1, 2.5]]),
        (" OR ".join(f"i = {i}" for i in range(100)) + " OR s = '' OR i = -5 OR i = NULL", None),
        ("NOT (" + " OR ".join(f"f = {i}" for i in range(100)) + ")", None),
    ],
)
def test_long_filters_equal_those_of_duckdb(text: str, parameters: Any) -> None:
    batch = {
        "i": pa.array([1, -5, None, 300, 0], pa.int32()),
        "s": pa.array(["a", "it's", None, "", "b"]),
        "f": pa.array([1.0, math.nan, None, -0.0, 0.5]),
        "g": pa.array([0.1, math.nan, None, -0.0, 0.5], pa.float32()),
    }
    if "SELECT" in text:
        assert tree_from_sql(text + LONG + "-- x", SCHEMA) is None
        return
    padded = text.replace("(", "(" + LONG, 1)
    found = make_filter(text.replace(" IN", LONG + " IN"), SCHEMA, parameters)
    expected = SqlFilter(parse_sql(text, SCHEMA, "filter", parameters), parameters).mask(batch, 5)
    assert found is not None
    assert found.mask(batch, 5).to_pylist() == expected.to_pylist()
    assert make_filter(padded, SCHEMA, parameters).mask(batch, 5).to_pylist() == expected.to_pylist()  # type: ignore[union-attr]


def test_only_long_lists_become_one_token() -> None:
    assert [token.kind for token in tokens("i IN (1, 2)")] == ["word", "keyword", "mark", *["number", "mark"] * 2]
    assert [token.kind for token in tokens("i IN (1, 2" + LONG + ") OR b")][3:5] == ["constants", "mark"]


def test_a_long_list_with_missing_parameters_is_evaluated_by_duckdb() -> None:
    assert tree_from_sql("i IN (?, ?" + LONG + ")", SCHEMA, [1]) is None
    assert tree_from_sql("i IN (?, ?" + LONG + ")", SCHEMA, [1, 2, 3]) is None


@pytest.mark.parametrize("value", [1, "ab", None, [], [None], [1, 2.0], [True], [[1]], {1: 2}])
def test_lists_of_mixed_types_are_not_simple(value: Any) -> None:
    with pytest.raises(NotSimpleError):
        listed_values(value, pa.int64())


def test_long_or_chains_become_one_list() -> None:
    found = tree_from_sql(" OR ".join(f"i = {i}" for i in range(10_000)) + " OR s = 'x' OR i > 3", SCHEMA)
    assert isinstance(found, Or)
    assert found.operands[0] == In(("i",), pa.array(range(10_000), pa.int32()))
    assert [type(part) for part in found.operands[1:]] == [Compare, Compare]


def test_a_hundred_thousand_constants_are_parsed() -> None:
    found = make_filter(f"i IN ({', '.join(map(str, range(100_000)))})", SCHEMA)
    assert isinstance(found, TreeFilter)
    assert found.predicate == In(("i",), pa.array(range(100_000), pa.int32()))
