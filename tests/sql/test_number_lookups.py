"""Lookups of whole numbers give what plain DuckDB gives, and are planned once for all numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck import planner

NUMBERS = [0, 1, 2, 3, 5, 127, 128, 2**31, 10**17]


OTHERS = 60_000
"""Number of other rows: a smaller table would be scanned without its index."""


@pytest.fixture(scope="module")
def table() -> pa.Table:
    def column(values: list[Any], other: Any, type_: pa.DataType) -> pa.Array:
        return pa.array([*[*values, None] * 2, *[other] * OTHERS], type_)

    return pa.table(
        {
            "id": column(NUMBERS, 77, pa.int64()),
            "Small": column([0, 1, 2, 3, 5, 127, -1, -2, 4], 77, pa.int8()),
            "u": column(NUMBERS, 77, pa.uint64()),
            "s": column(["0", "1", " 2", "3.0", "7", "128", "9", "5", "05"], "77", pa.string()),
            "f": column([0.0, 1.5, 2.0, float("nan"), 5.0, 127.0, -0.0, 3.0, 1e17], 77.0, pa.float64()),
            "d": column([Decimal(n) / 2 for n in range(9)], 77, pa.decimal128(9, 1)),
            "b": column([True, False] * 4 + [True], None, pa.bool_()),
        }
    )


@pytest.fixture
def both(table: pa.Table, tmp_path: Path) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    for name in ("id", "Small", "u", "s", "f"):
        dataset.create_scalar_index(name, "BTREE")
    with ld.connect(tmp_path) as ours, duckdb.connect() as plain:
        plain.register("_t", table)
        plain.execute("CREATE TABLE t AS FROM _t")
        yield ours, plain


def _outcome(connection: Any, sql: str) -> object:
    try:
        rows = connection.execute(sql).fetchall()
    except duckdb.Error as error:
        return type(error)
    return [column[:2] for column in connection.description], sorted(map(repr, rows))


def test_random_lookups_equal_those_of_duckdb(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, plain = both
    rng = random.Random(3)
    taken: list[bool] = []
    looked_up = planner.Planner._lookup

    def noted(self: planner.Planner, *arguments: Any) -> Any:
        result = looked_up(self, *arguments)
        taken.append(result is not None)
        return result

    monkeypatch.setattr(planner.Planner, "_lookup", noted)

    def condition() -> str:
        column = rng.choice(["id", "t.id", "ID", "small", "u", "u", "s", "f", "d", "b", "missing"])
        if rng.random() < 0.5:
            return f"{column} = {rng.choice(NUMBERS)}"
        return f"{column} IN ({', '.join(str(rng.choice(NUMBERS)) for _ in range(rng.randint(1, 4)))})"

    for _ in range(90):
        select = rng.choice(["*", "id", "SMALL, s", "id + 1, 7", "count(*)", "max(f), 1 AS one", "DISTINCT u"])
        where = " AND ".join(condition() for _ in range(rng.choice([1, 1, 2])))
        sql = f"SELECT {select} FROM t WHERE {where}"
        assert _outcome(ours, sql) == _outcome(plain, sql), sql
    assert 20 < sum(taken) < len(taken)


def test_statements_that_differ_only_in_numbers_are_planned_once(
    both: tuple[ld.Connection, duckdb.DuckDBPyConnection], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, plain = both
    planned: list[str] = []
    proposals = planner._proposals

    def noted(statement: Any) -> Any:
        planned.append(statement.text)
        return proposals(statement)

    monkeypatch.setattr(planner, "_proposals", noted)

    for number in NUMBERS[:4]:
        sql = f"SELECT id, s, 1 AS one FROM t WHERE id = {number}"
        assert sorted(ours.execute(sql).fetchall()) == sorted(plain.execute(sql).fetchall())
    assert planned == ["SELECT id, s, 1 AS one FROM t WHERE id = ?"]


def test_a_lookup_without_an_index_is_planned_once_per_version(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"k": list(range(100_000))}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        scanned = con._execution.planner._scanned
        assert con.execute("SELECT k FROM t WHERE k = 7").fetchall() == [(7,)]
        assert con.execute("SELECT k FROM t WHERE k = 8").fetchall() == [(8,)]
        assert scanned == {"SELECT k FROM t WHERE k = ?": dataset.version}
        dataset.create_scalar_index("k", "BTREE")
        assert con.execute("SELECT k FROM t WHERE k = 9").fetchall() == [(9,)]
        assert con.execute("SELECT k FROM t WHERE k = 10").fetchall() == [(10,)]
        assert list(scanned.values()) == [dataset.version - 1]
