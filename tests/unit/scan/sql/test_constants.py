"""Constants in SQL filters compare like in DuckDB, in every spelling."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import SqlFilter, TreeFilter, make_filter
from lance_duck.scan.predicate.tree import Opaque
from lance_duck.scan.sql.vet import parse_sql
from lance_duck.write_dataset import write_dataset

OF_DUCKDB_2 = pytest.mark.skipif(duckdb.__version__ < "2", reason="X'…' is no literal of bytes before")

MOMENTS = [0, 1_700_000_000_000_000, None, -1_000_000, 1_577_923_200_000_000]
COLUMNS = {
    "i": pa.array([1, -5, None, 0, 7], pa.int32()),
    "u": pa.array([255, 0, None, 5, 1], pa.uint64()),
    "f": pa.array([1.5, 0.1, None, float("nan"), 5.0]),
    "c": pa.array([Decimal("1.50"), Decimal("-0.01"), None, Decimal("99999999.99"), Decimal("0.00")]),
    "b": pa.array([True, False, None, True, False]),
    "s": pa.array(["a", "B", None, "", "b"]),
    "d": pa.array([dt.date(2024, 2, 29), dt.date(1969, 1, 1), None, dt.date(1970, 1, 1), dt.date(2020, 1, 2)]),
    "t": pa.array(MOMENTS, pa.timestamp("us")),
    "z": pa.array(MOMENTS, pa.timestamp("us", "America/New_York")),
    "y": pa.array([m and m // 1000 for m in MOMENTS], pa.timestamp("ms", "UTC")),
    "n": pa.array([m and m * 1000 + 1 for m in MOMENTS], pa.timestamp("ns", "UTC")),
    "h": pa.array([0, 40, None, 86_399, 41], pa.time32("s")),
    "e": pa.array([0, 40_500_000, None, 40_000_000, 1], pa.time64("us")),
    "x": pa.array([b"", b"ab", None, b"\x00\xff", b"abc"], pa.binary()),
    "w": pa.array([b"ab", b"a\x00", None, b"\x00\xff", b"zz"], pa.binary(2)),
    "st": pa.array([{"a": 1}, {"a": None}, None, {"a": 0}, {"a": 9}]),
    "l": pa.array([["a"], [None], None, [], ["b", "a"]], pa.list_(pa.string())),
}
SCHEMA = pa.schema([(name, array.type) for name, array in COLUMNS.items()])


def check(text: str, parameters: Any = None, *, whole: bool = True) -> None:
    """The filter means what DuckDB means; `whole`: without asking DuckDB for rows."""
    found = make_filter(text, SCHEMA, parameters)
    assert found is not None
    if whole:
        assert isinstance(found, TreeFilter)
        assert not any(isinstance(leaf, Opaque) for leaf in found.predicate.leaves())
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter", parameters), parameters)
    assert found.mask(COLUMNS, 5).to_pylist() == plain.mask(COLUMNS, 5).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "z < timestamp '2020-01-02'",
        "z <= '2020-01-02'",
        "z = timestamptz '2020-01-02 00:00:00+00'",
        "z = '2020-01-01 19:00:00-05:00'",
        "y > '1970-01-01 00:00:00Z'",
        "z in ('2020-01-02', date '1970-01-01')",
        "z >= date '2020-01-02'",
        "y = '1969-12-31T23:59:59+00:00'::timestamptz",
        "z < TIMESTAMP WITH TIME ZONE '2020-01-02 00:00:00+00'",
        "h > time '00:00:40'",
        "h = '00:00:40'",
        "e between '00:00:40'::time and time '00:00:40.5'",
        "x = 'ab'",
        "x > 'ab'::BLOB",
        pytest.param("x in (X'00ff', 'abc'::BLOB)", marks=OF_DUCKDB_2),
        "x = '\\x00\\xFF'::BLOB || ''::BLOB",
        "w = 'ab'",
        pytest.param("w >= X'6100'", marks=OF_DUCKDB_2),
        "x = unhex('6162')",
        "d > cast('1970-01-01' as date)",
        "d = to_date('2020-01-02')",
        "d >= timestamp '2020-01-02 00:00:00'",
        "d < date '2020-01-03' - interval '1 day'",
        "d in (date '1970-01-01', cast('2020-01-02' as date))",
        "d = timestamp '2020-01-02 12:00:00'",
        "not (d <> timestamp '2020-01-02 12:00:00')",
        "d > timestamp '2020-01-01 23:59:59' and d <= timestamptz '2020-01-02 01:00:00+00'",
        "t <= timestamptz '2020-01-02 00:00:00+00'",
        "t < now()",
        "t between now() - interval '3 years' and current_timestamp or z > now() - interval 1 day",
        "d >= current_date or y < today() - interval 10000 days",
        "d < now() - interval '7 days'",
        "t = cast('2020-01-02 00:00:00' as timestamp)",
        "t > to_timestamp('2020-01-01')",
        "t between date_trunc('year', timestamp '2020-05-05') and date '2020-01-01' + interval 1 month",
        "i = 5.0 or i = 1.0",
        "i = 12 - 5 or u >= 2+3 - 00 or i < 1 -6+0 or f > 99999999 - 99999999 + 1",
        "u = 5.",
        "i = (1)",
        "i = 3 - 8",
        "i < cast(5 as bigint)",
        "i = +1",
        "2 - 1 <= i",
        "c = cast('1.5' as decimal(8, 3))",
        "f > cast(1 as double) / 8",
        "f = 'nan'::double",
        "s = lower('A')",
        "s in (lower('A'), 'B', cast(null as varchar))",
        "b is true",
        "b is not true",
        "b is false",
        "not (b is not false)",
        "i is distinct from 1",
        "i is not distinct from 1.5",
        "i is not distinct from null",
        "i is distinct from null",
        "not (i is distinct from 7)",
        "i is not distinct from cast(null as int)",
        "st['a'] = 9 and st['a'] is not null",
        "i in [1, 7]",
        "i not in [1, null]",
        "array_has(l, lower('A'))",
        "c = null::decimal(8, 2)",
    ],
)
def test_constants_compare_like_in_duckdb(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "n = timestamptz '2023-11-14 22:13:20+00'",
        "h = '00:00:40.5'",
        "w = 'abc'",
        "i = 1e0",
        "f > 0.1::float",
        "t < 'infinity'::timestamp",
        "d < date '200000-01-01'",
        "i = i",
        "x = encode('é')",
        "b is true is false",
        "i = 1 is true",
        "s = lower(s)",
        "z = t",
    ],
)
def test_other_constants_give_the_same_result(text: str) -> None:
    check(text, whole=False)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("z = ?", [dt.datetime(2020, 1, 2, tzinfo=dt.UTC)]),
        ("z < ?", [dt.datetime(2020, 1, 2, tzinfo=dt.timezone(dt.timedelta(hours=-5)))]),
        ("z >= $at", {"at": dt.datetime(2020, 1, 2)}),
        ("t = ?", [pd.Timestamp("2020-01-02")]),
        ("z = ?", [pd.Timestamp("2020-01-02", tz="UTC")]),
        ("h = ?", [dt.time(0, 0, 40)]),
        ("x = ? or w = ?", [b"ab", b"\x00\xff"]),
        ("c = ?", [Decimal("1.50")]),
        ("i in (?, ?)", [np.int64(7), np.int32(1)]),
        ("f = ?", [np.float64(1.5)]),
        ("b = ? and s <= ?", [np.bool_(True), np.str_("a")]),
        ("f > ?", [np.float32(1.25)]),
        ("t > ?::timestamp", ["2020-01-01"]),
        ("i = ? + 1 and s = lower(?)", [6, "B"]),
        ("i = $a + 1 or i = $b", {"a": 6, "b": 1}),
    ],
)
def test_bound_values_are_constants(text: str, parameters: Any) -> None:
    check(text, parameters)


def test_now_is_evaluated_for_each_filter() -> None:
    assert str(make_filter("t < now()", SCHEMA)) != str(make_filter("t < now()", SCHEMA))


def test_now_is_evaluated_for_each_scan(tmp_path: Path) -> None:
    dataset = write_dataset(pa.table({"t": pa.array([0], pa.timestamp("us"))}), tmp_path / "t")
    plans = [dataset.scanner(filter="t < now()").explain_plan() for _ in range(2)]
    assert plans[0] != plans[1]


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("d = cast(123456789012345678901234567890123 as decimal(38, 0))", 1),
        ("d > 123456789012345678901234567890122", 1),
        ("d in (cast(99999999999999999999999999999999999999 as decimal(38, 0)), 1)", 1),
    ],
)
def test_decimals_of_many_digits_are_compared_exactly(condition: str, rows: int, tmp_path: Path) -> None:
    values = pa.array([Decimal("123456789012345678901234567890123"), Decimal(1)], pa.decimal128(38, 0))
    dataset = write_dataset(pa.table({"d": values}), tmp_path / "t")
    assert dataset.count_rows(condition) == rows


columns = st.sampled_from(sorted(set(COLUMNS) - {"st", "l"}))
constants = st.sampled_from(
    [
        *(
            "1",
            "5.0",
            "1.5",
            "-0.01",
            "1e0",
            "3 - 8",
            "cast(5 as bigint)",
            "cast(1.5 as decimal(6, 2))",
            "null",
            "true",
        ),
        *("'a'", "'ab'", "X'00ff'", "'ab'::blob", "lower('B')", "cast('1.5' as double)", "0.1::float"),
        *("'2020-01-02'", "date '2020-01-02'", "timestamp '2020-01-02 00:00:00'", "'2020-01-01 19:00:00-05'"),
        *(
            "timestamptz '1970-01-01 00:00:00+00'",
            "cast('2024-02-29' as date)",
            "date '1970-01-01' - interval 1 second",
        ),
        *("current_date", "now()", "timestamptz '2020-01-02 12:00:00+00'", "timestamp '1969-01-01 12:00:00'"),
        *("time '00:00:40.5'", "'00:00:40'", "timestamp '1969-12-31 23:59:59'", "1::utinyint", "5::hugeint"),
    ]
)
conditions = st.one_of(
    st.builds("{} {} {}".format, columns, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), constants),
    st.builds("{} {} {}".format, constants, st.sampled_from(["=", "<", ">="]), columns),
    st.builds("{} in ({}, {})".format, columns, constants, constants),
    st.builds("{} not in ({}, {})".format, columns, constants, constants),
    st.builds("{} in [{}, {}]".format, columns, constants, constants),
    st.builds("{} between {} and {}".format, columns, constants, constants),
    st.builds("{} is {}distinct from {}".format, columns, st.sampled_from(["", "not "]), constants),
    st.builds("b is {}{}".format, st.sampled_from(["", "not "]), st.sampled_from(["true", "false"])),
)


@settings(max_examples=300, deadline=None)
@example("y in ['2020-01-01 19:00:00-05', timestamp '1969-01-01 12:00:00']", False)
@given(conditions, st.booleans())
def test_arbitrary_constants_do_not_change_an_answer(condition: str, negated: bool) -> None:
    text = f"NOT ({condition})" if negated else condition
    try:
        parse_sql(text, SCHEMA, "filter")
        check(text, whole=False)
    except InvalidInputError:  # DuckDB cannot compare these values
        return
