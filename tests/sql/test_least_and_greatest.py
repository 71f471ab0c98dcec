"""`min` and `max` of whole columns are read from an index, and equal those of a scan."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.run import prefetch_rows

COLUMNS = {
    "i": pa.array([5, None, -3, 9, 4], pa.int64()),
    "u": pa.array([2**63, 1, None, 2**64 - 1, 7], pa.uint64()),
    "f": pa.array([0.5, None, -1e300, 2.0, float("inf")], pa.float64()),
    "s": pa.array(["b", "ä", None, "\0z", "Z"], pa.string()),
    "b": pa.array([b"b", b"", None, b"\xff", b"Z"], pa.binary()),
    "d": pa.array([date(2020, 1, 1), None, date(1969, 12, 31), date(2100, 5, 5), date(2000, 1, 1)], pa.date32()),
    "t": pa.array([datetime(2020, 1, 1), None, datetime(1960, 1, 1), datetime(2100, 5, 5), None], pa.timestamp("us")),
    "z": pa.array([datetime(2020, 1, 1, tzinfo=UTC), None, None, None, None], pa.timestamp("us", "UTC")),
    "n": pa.array([Decimal("1.50"), None, Decimal("-7.25"), Decimal("99.99"), Decimal("0")], pa.decimal128(12, 2)),
    "e": pa.nulls(5, pa.int32()),
}


@pytest.fixture
def known(carried_out: Callable[[Callable[..., Any]], list[bool]]) -> list[bool]:
    """Whether each statement was answered without a scan."""
    return carried_out(prefetch_rows.run_aggregates)


def written(path: Path, table: pa.Table, *columns: str, **options: Any) -> ld.LanceDataset:
    dataset = ld.write_dataset(table, path, **options)
    for column in columns:
        dataset.create_scalar_index(column, "BTREE")
    return dataset


@pytest.mark.parametrize("column", COLUMNS)
def test_minimum_and_maximum_equal_those_of_duckdb_for_each_type(
    tmp_path: Path, known: list[bool], column: str
) -> None:
    table = pa.table(COLUMNS)
    dataset = written(tmp_path / "t.lance", table, column)
    sql = f"SELECT min({column}), MAX({column}) AS last, count(*) FROM t"
    ours, theirs = ld.connect({"t": dataset}), duckdb.connect()
    theirs.register("t", table)
    for con in (ours, theirs):
        con.execute(sql)
    assert [column[:2] for column in ours.description] == [column[:2] for column in theirs.description]
    assert ours.fetchall() == theirs.fetchall()
    assert known == [True]


def test_unindexed_rows_are_read_and_deleted_rows_are_ignored(tmp_path: Path, known: list[bool]) -> None:
    dataset = written(tmp_path / "t.lance", pa.table({"x": range(1000)}), "x")
    dataset.delete("x < 3 OR x = 999")
    con = ld.connect({"t": dataset})
    assert con.execute("SELECT min(x), max(x) FROM t").fetchall() == [(3, 998)]
    con.execute("INSERT INTO t VALUES (-5), (NULL), (2000)")
    assert con.execute("SELECT min(x), max(x) FROM  t").fetchall() == [(-5, 2000)]
    con.execute("UPDATE t SET x = 0 WHERE x IN (-5, 500)")
    assert con.execute("SELECT min(x), max(x)  FROM t").fetchall() == [(0, 2000)]
    con.execute("DELETE FROM t")
    assert con.execute("SELECT min(x),  max(x) FROM t").fetchall() == [(None, None)]
    assert known[:3] == [True] * 3


def test_an_unindexed_nan_disables_index_extremes(tmp_path: Path, known: list[bool]) -> None:
    dataset = written(tmp_path / "t.lance", pa.table({"x": [float(i) for i in range(9)]}), "x")
    for value in (-1.5, float("nan"), None, 99.0):
        dataset.insert(pa.table({"x": pa.array([value], pa.float64())}))
    con = ld.connect({"t": dataset})
    assert str(con.execute("SELECT min(x), max(x) FROM t").fetchall()) == "[(-1.5, nan)]"
    dataset.delete("isnan(x)")
    con = ld.connect({"t": dataset})
    assert con.execute("SELECT min(x), max(x) FROM t").fetchall() == [(-1.5, 99.0)]
    assert known == [False, True]


def test_duckdb_computes_extremes_that_an_index_cannot_answer(tmp_path: Path, known: list[bool]) -> None:
    table = pa.table({"x": [1, 2, 3], "y": [3, 4, 5], "f": [1.0, float("nan"), -1.0], "s": ["a", "B", "c"]})
    con = ld.connect({"t": written(tmp_path / "t.lance", table, "x", "f", "s")})
    assert con.execute("SELECT min(y), max(y) FROM t").fetchall() == [(3, 5)]
    assert np.isnan(con.execute("SELECT max(f) FROM t").fetchall()[0][0])
    con.execute("SET default_collation = 'nocase'")
    assert con.execute("SELECT min(s), max(s) FROM t").fetchall() == [("a", "c")]
    con.execute("RESET default_collation")
    assert known == [False, False, False]
    assert con.execute("SELECT min(x), max(y) FROM t").fetchall() == [(1, 5)]
    assert known[3:] == [True]


def test_a_user_macro_named_max_takes_precedence(tmp_path: Path) -> None:
    con = ld.connect({"t": written(tmp_path / "t.lance", pa.table({"x": [1, 2, 3]}), "x")})
    con.execute("CREATE TEMP MACRO max(a) AS sum(a)")
    assert con.execute("SELECT max(x) FROM t").fetchall() == [(6,)]


@pytest.mark.parametrize("stable", [False, True])
def test_extremes_after_random_changes_equal_those_of_a_scan(tmp_path: Path, stable: bool) -> None:
    random = np.random.default_rng(7 + stable)
    table = pa.table({"x": random.integers(-50, 50, 300), "y": range(300)})
    dataset = written(tmp_path / "t.lance", table, "x", enable_stable_row_ids=stable, max_rows_per_file=100)
    con = ld.connect({"t": dataset})
    for step in range(25):
        low = int(random.integers(-60, 50))
        change = (
            f"DELETE FROM t WHERE x BETWEEN {low} AND {low + 5}",
            f"INSERT INTO t VALUES ({low * 3}, {step}), (NULL, {step})",
            f"UPDATE t SET x = {low * 2} WHERE y % 17 = {step % 17}",
            "OPTIMIZE t",
        )[step % 4]
        con.execute(change)
        plain = con.execute("SELECT min(x + 0), max(x + 0) FROM t").fetchall()
        assert con.execute("SELECT min(x), max(x) FROM t").fetchall() == plain, (step, change)
