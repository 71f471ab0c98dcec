from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import ExpressionFilter, SqlFilter, TreeFilter, make_filter
from lance_duck.scan.sql.parser import plain_comparison, tree_from_sql
from lance_duck.scan.sql.vet import parse_sql

NAN = math.nan
BATCH = pa.table(
    {
        "i": pa.array([1, -5, None, 2**31 - 1, 0], pa.int32()),
        "u": pa.array([0, 7, None, 255, 1], pa.uint8()),
        "f": pa.array([1.5, NAN, None, -0.0, math.inf], pa.float64()),
        "g": pa.array([1.5, NAN, None, -0.0, 0.1], pa.float32()),
        "s": pa.array(["a", "it's", None, "", "b"]),
        "b": pa.array([True, False, None, True, False]),
        "d": pa.array([dt.date(2024, 2, 29), dt.date(1969, 1, 1), None, dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        "t": pa.array([0, 1_700_000_000_000_000, None, -1, 10**15], pa.timestamp("us")),
        "m": pa.array([0, 1_700_000_000_000, None, -1, 10**12], pa.timestamp("ms")),
        "c": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal("99999999.99"), Decimal("0.00")]),
        "k": pa.array(["x", "y", None, "x", "z"]).dictionary_encode(),
        "weird name": pa.array([1, 2, None, 4, 5]),
        "l": pa.array([[1, 2], [None], None, [], [2, None, 1]], pa.list_(pa.int32())),
        "w": pa.array([["x"], [None], None, [], ["y", "x"]], pa.large_list(pa.string())),
        "st": pa.array([{"a": {"b": 1}}, {"a": None}, None, {"a": {"b": None}}, {"a": {"b": 9}}]),
    }
)
COLUMNS = {name: BATCH[name].combine_chunks() for name in BATCH.column_names}


def by_duckdb(text: str, parameters: Any = None) -> list[bool]:
    found = SqlFilter(parse_sql(text, BATCH.schema, "filter", parameters), parameters)
    return found.mask(COLUMNS, BATCH.num_rows).to_pylist()


def by_tree(text: str, parameters: Any = None) -> list[bool]:
    tree = tree_from_sql(text, BATCH.schema, parameters)
    assert tree is not None
    return TreeFilter(tree).mask(COLUMNS, BATCH.num_rows).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "i > 0 AND s = 'a'",
        "i between -5 and 1 or b",
        "NOT b",
        "not (i = 1 or i is null)",
        "s in ('a', 'it''s', null)",
        "i not in (1, 2)",
        "d >= date '2024-01-01'",
        "d < '2024-02-29'",
        "t <= TIMESTAMP '2023-11-14 22:13:20'",
        "t > '1970-01-01'",
        "m = timestamp '2023-11-14 22:13:20.000'",
        "t >= date '1970-01-01'",
        "f >= 1.5",
        "f = 0",
        "f <> 1.5",
        "g > 1",
        "c = 1.5",
        "c < 0",
        "k = 'x'",
        "`weird name` >= 2",
        '"weird name" = 4',
        "st.a.b = 1",
        "st.a IS NULL",
        "ST.A.B is not null",
        "5 > i",
        "i = null",
        "b = true",
        "u == 255",
        "i != -5",
        "s LIKE 'a%'",
        "s NOT LIKE 'it%%'",
        "s LIKE 'a'",
        "s LIKE ''",
        "s LIKE '%'",
        "s LIKE NULL",
        "k LIKE 'x%'",
        "starts_with(s, 'it''s')",
        "NOT prefix(s, '')",
        "s ^@ 'b'",
        "s ^@ NULL",
        "list_contains(l, 1)",
        "NOT array_has(l, 2)",
        "l && [1, 5]",
        "NOT list_has_any(l, [1, NULL])",
        "array_has_any(l, [])",
        "l @> [1, 2]",
        "NOT list_has_all(l, [1, NULL])",
        "array_has_all(l, []) OR l @> []",
        "list_contains(w, 'x')",
        "i > 1.5",
        "i <= -4.5",
        "i = 1.5",
        "NOT i <> 1.5",
        "i < 5000000000",
        "i >= 5000000000",
        "i <> 5000000000",
        "i > -5000000000",
        "i = -5000000000",
        "u < 256",
        "u > -1",
        "u IN (7, 256, 1.5)",
        "u NOT IN (256, -1)",
        "u BETWEEN -1 AND 7.5",
        "f > 1e0",
        "f = 'nan'::DOUBLE",
        "f < 1.5::DOUBLE",
        "g = 'nan'::FLOAT",
        "g = 0.1::FLOAT",
        "d > '2024-01-01'::DATE",
        "t > '2023-01-01 00:00:00'::TIMESTAMP",
        "i = 1::BIGINT",
        "c = 1.50::DECIMAL(8, 2)",
    ],
)
def test_simple_filters_equal_those_of_duckdb(text: str) -> None:
    assert by_tree(text) == by_duckdb(text)


@pytest.mark.parametrize(
    "text",
    [
        *("i + 1 = 2", "f > '1.5'", "length(s) = 1", "i = u", "b = 1", "c = 1.005", "i > 1.5e0", "g > 0.1::DOUBLE"),
        *("s LIKE 'a_'", "s LIKE '%a'", "s LIKE 'a%' ESCAPE '!'", "s ILIKE 'a%'", "i > -5::INTEGER"),
        *(
            "list_contains(l, 1.5)",
            "NOT list_has(l, NULL)",
            "l && NULL",
            "starts_with(s, s)",
            "i > 1.5::INTEGER",
        ),
    ],
)
def test_other_filters_are_evaluated_by_duckdb(text: str) -> None:
    assert tree_from_sql(text, BATCH.schema) is None
    by_duckdb(text)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("i > ?", [0]),
        ("s = $name and i < $top", {"name": "a", "top": 5}),
        ("f in (?, ?)", [1.5, NAN]),
        ("t >= ?", [dt.datetime(2023, 1, 1)]),
        ("d = ?", [dt.date(2024, 2, 29)]),
        ("i = ?", [None]),
    ],
)
def test_bound_parameters_equal_those_of_duckdb(text: str, parameters: Any) -> None:
    assert by_tree(text, parameters) == by_duckdb(text, parameters)


@pytest.mark.parametrize("parameters", [[], [1, 2], {"x": 1}])
def test_wrong_parameters_are_rejected(parameters: Any) -> None:
    with pytest.raises(InvalidInputError):
        make_filter("i > ?", BATCH.schema, parameters)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "i =",
        "nope = 1",
        "i",
        "i > 1; drop table x",
        "true) union select (true",
        "b) from t where (b",
        "i > 1) AND (i < 3",
        "i > 1, i < 3",
        "(select true)",
        "exists(select 1)",
        "sum(i) > 1",
        "row_number() over () = 1",
        "unnest([b])",
        "*",
        "d + d = 1",
        's = "a"',
        "st.a.zz = 1",
        "i in (select 1)",
        "b limit 1",
        "getenv('HOME') = 'x'",
    ],
)
def test_text_that_is_not_a_row_condition_is_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError):
        make_filter(text, BATCH.schema)


def test_an_unknown_column_error_lists_the_columns() -> None:
    with pytest.raises(InvalidInputError, match=r"no column 'nope'.*expected one of i, u, f"):
        make_filter("nope LIKE 'a'", BATCH.schema)


def test_filter_evaluation_reads_no_files_or_variables() -> None:
    secret = BATCH  # noqa: F841
    for text in ("(FROM secret) IS NULL", "read_text('/etc/hostname') IS NULL"):
        with pytest.raises(InvalidInputError):
            make_filter(text, BATCH.schema)


def test_paths_reach_into_structs() -> None:
    assert parse_sql("st.a.b + i > 3", BATCH.schema, "filter").paths == (("i",), ("st", "a", "b"))


def test_quoted_strings_are_unchanged() -> None:
    assert by_duckdb("s || '`' = 'a`'") == [True, False, False, False, False]


@pytest.mark.parametrize("name", ["binary", "order", "from", "end", "to", "user", "select", "Left", "when", "default"])
def test_columns_that_are_called_like_keywords(name: str) -> None:
    schema = pa.schema([(name, pa.int32()), ("s", pa.string())])
    for text in (f"{name} % 2 = 1", f"abs({name}) > 1 and s <> '{name} {name}'", f'`{name}` = "{name}" + 0'):
        assert (name,) in parse_sql(text, schema, "filter").paths


def test_keywords_used_as_column_names_keep_their_meaning() -> None:
    schema = pa.schema([("end", pa.int32()), ("from", pa.date32()), ("left", pa.string()), ("in", pa.int32())])
    assert parse_sql("case when `end` = 1 then 2 else 3 end = 2", schema, "filter").paths == (("end",),)
    assert parse_sql("extract(year from `from`) = 2020", schema, "filter").paths == (("from",),)
    assert parse_sql("left(left, 2) = 'ab'", schema, "filter").paths == (("left",),)
    assert parse_sql("`in` + 0 in (1, 2)", schema, "filter").paths == (("in",),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("json_get_string(j, 'name') = 'Ann'", [0]),
        ("json_get_int(j, 'age') > 30", [1]),
        ("json_get_float(j, 'score') = 1.5", [0]),
        ("json_get_bool(j, 'ok')", [1]),
        ("json_get(j, 'none') IS NOT NULL", []),
        ("json_get_int(json_get(json_get(j, 'deep'), 'a/b'), '1') = 8", [0]),
        ("json_extract(j, '$.name') = '\"Ann\"'", [0]),
        ("json_exists(j, '$.tags[1]')", [0]),
        ("json_array_contains(j, '$.tags', 'x')", [0, 1]),
        ("json_array_contains(j, '$.deep.\"a/b\"', 8)", [0]),
        ("json_array_length(j, '$.tags') = 2", [0]),
    ],
)
def test_json_functions_are_supported(text: str, expected: list[int]) -> None:
    documents = [
        '{"name": "Ann", "age": 30, "score": 1.5, "tags": ["x", "y"], "deep": {"a/b": [7, 8]}}',
        '{"name": "Bob", "age": 31, "ok": true, "tags": ["x"]}',
        None,
        "[]",
    ]
    column = pa.array(documents)
    found = SqlFilter(parse_sql(text, pa.schema([("j", column.type)]), "filter"), None)
    assert pc.indices_nonzero(found.mask({"j": column}, 4)).to_pylist() == expected


def test_regexp_match_and_string_casts_are_accepted() -> None:
    assert by_duckdb("regexp_match(s, '^a')") == [True, False, False, False, False]
    assert by_duckdb("cast(i as string) = '1'") == [True, False, False, False, False]


@pytest.mark.parametrize(
    "text",
    [
        "t >= to_timestamp('2023-11-14') and t < to_timestamp('2023-11-15T00:00:00Z')",
        "t = to_timestamp(1700000000) and t = to_timestamp_millis(1700000000000)",
        "to_unixtime(t) = 1700000000",
        "date_bin(interval '1 hour', t) = timestamp '2023-11-14 22:00:00'",
        "date_format(t, '%Y-%m') = '2023-11' and to_char(t, '%d') = '14'",
        "d = to_date('1969-01-01') and d < current_date",
        "i = -5 and initcap(s) = 'It''s' and regexp_count(s, '[a-z]') = 3 and btrim(' x ') = 'x'",
        "nanvl(f, 7) = 7 and nvl(i, 0) = -5 and signum(i) = -1 and isnan(g)",
        "array_max([i, 3]) = 3 and array_element([i], 1) = -5 and array_has_any([i], [-5]) and not empty([i])",
        "get_field({'x': u}, 'x') = 7",
    ],
)
def test_functions_of_other_dialects_are_accepted(text: str) -> None:
    assert [answer is True for answer in by_duckdb(text)] == [False, True, False, False, False]


@pytest.mark.parametrize("text", ["regexp_match(s, 'a') is not null", "i = 1 or regexp_match(s, 'a') IS NULL"])
def test_dialect_functions_with_another_meaning_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="regexp_match is true or false"):
        parse_sql(text, BATCH.schema, "filter")


def test_names_that_differ_by_case_are_rejected_only_if_both_are_read() -> None:
    schema = pa.schema([("a", pa.int8()), ("A", pa.int8())])
    assert parse_sql("a + 1 = 2", schema, "filter").paths == (("a",),)
    with pytest.raises(InvalidInputError, match="only by case"):
        parse_sql("a + A = 2", schema, "filter")


def test_pyarrow_expressions_are_evaluated_by_pyarrow() -> None:
    found = make_filter((pc.field("st", "a", "b") == 1) | pc.starts_with(pc.field("s"), "b"), BATCH.schema)
    assert isinstance(found, ExpressionFilter)
    assert found.paths() == (("st", "a", "b"), ("s",))
    assert found.mask(COLUMNS, BATCH.num_rows).to_pylist() == [True, False, False, False, True]


def test_expressions_on_unknown_columns_or_wrong_types_are_rejected() -> None:
    for expression in (pc.field("nope") == 1, pc.field("i"), pc.field("i") == "x"):
        with pytest.raises(InvalidInputError):
            make_filter(expression, BATCH.schema)


def test_positional_expressions_read_all_columns() -> None:
    found = make_filter(pc.field(0) > 0, BATCH.schema)
    assert found is not None
    assert len(found.paths()) == len(BATCH.column_names)
    assert found.mask(COLUMNS, BATCH.num_rows).to_pylist() == [True, False, False, True, False]


def test_values_that_are_not_filters_are_rejected() -> None:
    for wrong in (5, ["i > 1"], b"i > 1"):
        with pytest.raises(InvalidInputError):
            make_filter(wrong, BATCH.schema)  # type: ignore[arg-type]


names = st.sampled_from(["i", "u", "f", "g", "s", "b", "d", "t", "m", "c", "k", "st.a.b", "`weird name`"])
literals = st.sampled_from(
    [
        *("1", "-5", "0", "255", "1.5", "0.1", "-0.0", "100000000000", "1e3", "2147483648", "3.14159", "true", "null"),
        *("'a'", "''", "'2024-02-29'", "date '2024-02-29'"),
        *("timestamp '1970-01-01 00:00:00.000001'", "'1970-01-01 00:00:00'"),
    ]
)
leaves = st.one_of(
    st.builds("{} {} {}".format, names, st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "=="]), literals),
    st.builds("{} {} {}".format, literals, st.sampled_from(["=", "<", ">="]), names),
    st.builds("{} in ({}, {})".format, names, literals, literals),
    st.builds("{} not between {} and {}".format, names, literals, literals),
    st.builds("{} is {}null".format, names, st.sampled_from(["", "not "])),
)
texts = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds("{} and {}".format, inner, inner),
        st.builds("({} or {})".format, inner, inner),
        st.builds("not {}".format, inner),
    ),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None)
@given(texts)
def test_the_expression_tree_always_agrees_with_duckdb(text: str) -> None:
    tree = tree_from_sql(text, BATCH.schema)
    if tree is not None:
        assert TreeFilter(tree).mask(COLUMNS, BATCH.num_rows).to_pylist() == by_duckdb(text)


LITERALS = [
    "0",
    "1",
    "-5",
    "- 5",
    "007",
    "255",
    "256",
    "99999999999999999999",
    "1.5",
    "'a'",
    "'it''s'",
    "'z",
    "''",
    "NULL",
]
SPACES = ["", " ", "\n\t"]


@given(
    parts=st.tuples(
        st.sampled_from([*BATCH.column_names[:-5], "I", "K", "missing", "date", "not", '"i"', "st.a.b", "l"]),
        st.sampled_from(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "@>"]),
        st.sampled_from([*LITERALS, "date '2024-02-29'", "'2024-02-29'", "1::int", "1 + 1", "1 or b"]),
        st.sampled_from(SPACES),
        st.sampled_from(SPACES),
    )
)
def test_the_comparison_shortcut_agrees_with_the_parser(parts: tuple[str, str, str, str, str]) -> None:
    name, op, literal, before, after = parts
    text = f"{before}{name}{after}{op}{before}{literal}{after}"
    tree = plain_comparison(text, BATCH.schema)
    assert tree is None or tree == tree_from_sql(text, BATCH.schema)


@pytest.mark.parametrize("text", ["i = 7", " u>=-0 ", "s <> 'a b'", "I=1", "k = 'x'", "t < '2024-01-01 00:00:00'"])
def test_keys_are_plain_comparisons(text: str) -> None:
    tree = plain_comparison(text, BATCH.schema)
    assert tree is not None
    assert tree == tree_from_sql(text, BATCH.schema)
