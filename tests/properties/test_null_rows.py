"""Conditions with NaN, infinities and the extremes of types choose the same rows here and in DuckDB's own tables."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld

NAN, INF = math.nan, math.inf
VALUES: dict[str, list[Any]] = {
    "a": [None, NAN, INF, -INF, 0.0, -0.0, 1.5, 1.7976931348623157e308],
    "b": [None, NAN, INF, -INF, 2.0, None],
    "i": [None, -(2**31), 2**31 - 1, 0],
    "u": [None, 0, 2**64 - 1],
    "t": [None, True, False],
    "d": [None, datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "ts": [None, datetime.datetime(1970, 1, 1), datetime.datetime(2200, 1, 1)],
    "m": [None, Decimal("-9999.99"), Decimal("9999.99"), Decimal("0.00")],
    "w": [None, Decimal(10) ** 19, Decimal(0)],
    "s": [None, "", "nan", "b"],
}
TYPES = {
    "a": pa.float64(),
    "b": pa.float32(),
    "i": pa.int32(),
    "u": pa.uint64(),
    "t": pa.bool_(),
    "d": pa.date32(),
    "ts": pa.timestamp("us"),
    "m": pa.decimal128(6, 2),
    "w": pa.decimal128(25, 0),
    "s": pa.string(),
}
FLOATS = ("'nan'", "'nan'::FLOAT", "'inf'", "'-inf'", "0.0", "1.5", "1e308", "NULL", "('inf'::DOUBLE - 'inf'::DOUBLE)")
CONSTANTS = {
    **dict.fromkeys(("a", "b", "st.a", "st.f.b"), FLOATS),
    "i": ("-2147483648", "2147483647", "2147483648", "9223372036854775807", "0", "NULL", "1.5"),
    "u": ("0", "18446744073709551615", "-1", "18446744073709551616", "NULL"),
    "t": ("true", "false", "NULL"),
    "d": ("DATE 'infinity'", "DATE '-infinity'", "DATE '9999-12-31'", "DATE '0001-01-01'", "NULL"),
    "ts": ("TIMESTAMP 'infinity'", "TIMESTAMP '-infinity'", "TIMESTAMP '1970-01-01'", "NULL"),
    "m": ("9999.99", "10000", "-9999.99", "0.001", "NULL", "'nan'::DOUBLE", "'inf'::DOUBLE"),
    "w": ("1e19::DECIMAL(25, 0)", "9999999999999999999999999", "0", "NULL"),
    "s": ("''", "'nan'", "NULL", "chr(0)"),
}
OPS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
ROWS = 60


@st.composite
def leaves(draw: st.DrawFn) -> str:
    column = draw(st.sampled_from([*CONSTANTS, "a", "b", "st.a"]))
    constant = st.sampled_from(CONSTANTS[column])
    form = draw(st.sampled_from(["compare", "compare", "compare", "mirrored", "in", "between", "null", "truth"]))
    if form == "compare":
        return f"{column} {draw(st.sampled_from(OPS))} {draw(constant)}"
    if form == "mirrored":
        return f"{draw(constant)} {draw(st.sampled_from(OPS))} {column}"
    if form == "in":
        listed = ", ".join(draw(st.lists(constant, min_size=1, max_size=4)))
        return f"{column} {draw(st.sampled_from(['IN', 'NOT IN']))} ({listed})"
    if form == "between":
        return f"{column} {draw(st.sampled_from(['', 'NOT ']))}BETWEEN {draw(constant)} AND {draw(constant)}"
    if form == "null":
        return f"{column} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    return draw(st.sampled_from(["t", "NOT t", "true", "false", "NULL", "t IS NOT TRUE", "t <= true"]))


def joined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        lists.map(lambda each: "(" + " AND ".join(each) + ")"),
        lists.map(lambda each: "(" + " OR ".join(each) + ")"),
        parts.map(lambda each: f"NOT ({each})"),
    )


CONDITIONS = st.one_of(leaves(), st.recursive(leaves(), joined, max_leaves=5))


@dataclass(frozen=True)
class Twins:
    """The same rows as a Lance table and as a native DuckDB table."""

    dataset: ld.LanceDataset
    lance: ld.Connection
    own: duckdb.DuckDBPyConnection

    def check(self, *statements: str) -> None:
        """Compare the rows that the last of some statements returns; several are undone."""
        answers = []
        for connection in (self.lance, self.own):
            if statements[1:]:
                connection.execute("BEGIN")
            try:
                for sql in statements:
                    connection.execute(sql)
                answers.append(sorted(map(repr, connection.fetchall())))
            finally:
                if statements[1:]:
                    connection.execute("ROLLBACK")
        assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    random = Random(7)
    columns = {name: pa.array([random.choice(VALUES[name]) for _ in range(ROWS)], TYPES[name]) for name in VALUES}
    inner = pa.StructArray.from_arrays([columns["b"].take(pa.array(range(ROWS - 1, -1, -1)))], ["b"])
    null = pa.array([random.random() < 0.2 for _ in range(ROWS)])
    columns["st"] = pa.StructArray.from_arrays(
        [columns["a"].take(pa.array(range(ROWS - 1, -1, -1))), inner], ["a", "f"], mask=null
    )
    columns["v"] = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(2 * ROWS, dtype=np.float32)), 2)
    rows = pa.table({"n": range(ROWS), **columns})
    dataset = ld.write_dataset(rows, tmp_path_factory.mktemp("null_rows") / "t.lance", max_rows_per_file=25)
    with ld.connect({"t": dataset.uri}) as connection, duckdb.connect() as own:
        own.register("given", rows)
        own.execute("CREATE TABLE t AS FROM given")
        yield Twins(dataset, connection, own)


@given(condition=CONDITIONS, columns=st.sampled_from(["n", "n, a", "b, st, n", "n, a, b, i, t, d, ts, m, w, s, st"]))
def test_select_returns_the_same_rows_as_duckdb(twins: Twins, condition: str, columns: str) -> None:
    twins.check(f"SELECT {columns} FROM t WHERE {condition}")


@given(condition=CONDITIONS)
def test_a_dataset_in_a_plain_connection_returns_the_same_rows_as_duckdb(twins: Twins, condition: str) -> None:
    with duckdb.connect() as plain:
        plain.register("t", twins.dataset)
        found = plain.execute(f"SELECT n, b FROM t WHERE {condition}").fetchall()
    own = twins.own.execute(f"SELECT n, b FROM t WHERE {condition}").fetchall()
    assert sorted(map(repr, found)) == sorted(map(repr, own))


@given(condition=CONDITIONS)
@settings(max_examples=25)
def test_delete_removes_the_rows_that_duckdb_removes(twins: Twins, condition: str) -> None:
    twins.check(f"DELETE FROM t WHERE {condition}", "SELECT n FROM t")


@given(condition=CONDITIONS, value=st.sampled_from(["s = 'new'", "a = b", "b = 1, i = 0"]))
@settings(max_examples=25)
def test_update_changes_the_rows_that_duckdb_changes(twins: Twins, condition: str, value: str) -> None:
    twins.check(f"UPDATE t SET {value} WHERE {condition}", "SELECT n, s, a, b, i FROM t")


@given(condition=CONDITIONS)
@settings(max_examples=15)
def test_merge_changes_the_rows_that_duckdb_changes(twins: Twins, condition: str) -> None:
    source = "(SELECT unnest(range(60)) AS key) AS q ON t.n = q.key"
    twins.check(f"MERGE INTO t USING {source} AND ({condition}) WHEN MATCHED THEN DELETE", "SELECT n FROM t")


@given(condition=CONDITIONS)
def test_a_nearest_neighbour_search_keeps_the_same_rows_as_duckdb(twins: Twins, condition: str) -> None:
    twins.check(f"SELECT n FROM t WHERE {condition} ORDER BY array_distance(v, [31, 31]::FLOAT[2]), n LIMIT 4")


@given(condition=CONDITIONS)
def test_a_join_keeps_the_same_rows_as_duckdb(twins: Twins, condition: str) -> None:
    twins.check(
        f"SELECT t.n, x.n FROM t JOIN (SELECT n, a, b FROM t WHERE {condition}) AS x ON t.a = x.a AND t.b <= x.b"
    )


@pytest.mark.parametrize("column", ["a", "b", "st.a", "st.f.b"])
def test_null_is_not_less_than_or_equal_to_nan(twins: Twins, column: str) -> None:
    found = twins.lance.execute(f"SELECT count(*) FROM t WHERE {column} <= 'nan'").fetchall()
    assert found == twins.own.execute(f"SELECT count({column}) FROM t").fetchall()
    assert found[0][0] < ROWS


@given(condition=CONDITIONS)
def test_table_changes_return_the_same_rows_as_duckdb(twins: Twins, condition: str) -> None:
    changes = "SELECT n, a, b, i, u, t, d, ts, m, w, s, st FROM lance_table_changes('t', 1)"
    found = twins.lance.execute(f"SELECT n FROM ({changes}) WHERE {condition}").fetchall()
    assert sorted(found) == sorted(twins.own.execute(f"SELECT n FROM t WHERE {condition}").fetchall())


@pytest.mark.parametrize("type_", ["DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"])
@pytest.mark.parametrize(
    "listed", [("infinity", "2020-01-01"), ("-infinity", "2021-01-01"), ("2020-01-01", "infinity")]
)
def test_lists_with_infinity_find_the_rows_that_duckdb_finds(
    tmp_path: Path, type_: str, listed: tuple[str, str]
) -> None:
    values = ", ".join(f"'{value}'::{type_}" for value in listed)
    stored = "(1, 'infinity'), (2, '-infinity'), (3, '2020-01-01'), (4, NULL)"
    rows = f"SELECT n, v::{type_} AS v FROM (VALUES {stored}) q(n, v)"
    answers = []
    with ld.connect(tmp_path) as lance, duckdb.connect() as own:
        for connection, name in ((lance, "lance.t"), (own, "t")):
            connection.execute("SET TimeZone = 'America/New_York'")
            connection.execute(f"CREATE TABLE {name} AS {rows}")
            found = connection.execute(f"SELECT n FROM t WHERE v IN ({values}) ORDER BY n").fetchall()
            connection.execute(f"DELETE FROM t WHERE v IN ({values})")
            answers.append((found, connection.execute("SELECT n FROM t ORDER BY n").fetchall()))
    assert answers[0] == answers[1]
