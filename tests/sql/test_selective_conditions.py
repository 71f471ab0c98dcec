"""A statement whose conditions leave few rows gives what DuckDB gives for the same rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.restrictions import tables as restrictions
from lance_duck.duck.tables.scan_observer import watching
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

ROWS = 3_000
DIGITS = (1, 4, 9, 10, 18, 19, 38)
pytestmark = pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1 passes all conditions together")


def scaled(number: int, digits: int) -> Decimal:
    return Decimal(f"{number}E-{digits // 2}")


def rows(rng: Random) -> pa.Table:
    def some(value: object) -> object:
        return None if rng.random() < 0.1 else value

    def number(digits: int) -> Decimal:
        low, high = -(10**digits) + 1, 10**digits - 1
        return scaled(rng.choice([low, high, rng.randint(low, high), rng.randint(-9, 9)]), digits)

    columns = {f"d{n}": pa.array([some(number(n)) for _ in range(ROWS)], pa.decimal128(n, n // 2)) for n in DIGITS}
    columns["f"] = pa.array([some(rng.choice([float("nan"), -0.0, 0.5, rng.gauss(0, 1)])) for _ in range(ROWS)])
    columns["day"] = pa.array([some(rng.randrange(3_000)) for _ in range(ROWS)], pa.int32()).cast(pa.date32())
    columns["word"] = pa.array([some(rng.choice(["ab", "cd", "ef", ""])) for _ in range(ROWS)])
    return pa.table({"id": range(ROWS), **columns})


@pytest.fixture(scope="module")
def connections(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    folder = tmp_path_factory.mktemp("selective")
    memory = rows(Random(5))
    ours = ld.write_dataset(memory, str(folder / "t.lance"), max_rows_per_file=1_100)
    ours.delete("id % 7 = 3")
    with ld.connect(folder) as connection, duckdb.connect() as plain:
        plain.execute("CREATE TABLE t AS FROM memory WHERE id % 7 <> 3")
        yield connection, plain


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restrictions, "LARGE", 1)


def condition(rng: Random) -> str:
    n = rng.choice(DIGITS)
    most = 10**n - 1
    first, second = (f"{scaled(rng.choice([rng.randint(-most, most), rng.randint(-9, 9)]), n):f}" for _ in "ab")
    return rng.choice(
        [
            f"d{n} BETWEEN {first} AND {second}",
            f"d{n} > {first} AND d{n} <= {second}",
            f"d{n} {rng.choice(['<', '>=', '=', '<>'])} {first}",
            f"(d{n} < {first} OR d{n} = {second})",
            f"NOT d{n} >= {first}",
            f"f {rng.choice(['<', '>', '<=', '=', '>='])} {rng.choice(['0.0', '0.5', chr(39) + 'nan' + chr(39)])}",
            f"day >= DATE '1970-01-01' + INTERVAL {rng.randrange(3_000)} DAY",
            f"day < DATE '1975-03-01' - INTERVAL {rng.randrange(90)} MONTH",
            "word IN ('ab', 'cd')",
            "word <> 'ab'",
            f"id < {rng.randrange(ROWS)}",
        ]
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_conditions_give_what_duckdb_gives(
    connections: tuple[ld.Connection, duckdb.DuckDBPyConnection], seed: int
) -> None:
    rng = Random(seed)
    where = " AND ".join(condition(rng) for _ in range(rng.randint(1, 4)))
    column = f"d{rng.choice(DIGITS)}"
    sql = f"SELECT id, {column}, f, word FROM t WHERE {where} ORDER BY id"

    ours, plain = (str(each.execute(sql).fetchall()) for each in connections)

    assert ours == plain, sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM t WHERE {}",
        "SELECT a.id, b.id FROM t a JOIN t b ON a.id = b.id + 7 WHERE a.d4 > 9 AND b.id < 400 ORDER BY ALL",
        "SELECT a.id, b.id FROM t a LEFT JOIN t b ON a.id = b.id AND b.d4 > 9 AND b.id < 400 ORDER BY ALL",
        "WITH c AS (FROM t WHERE {}) SELECT x.id, y.f FROM c x, c y WHERE x.id = y.id AND y.id < 200 ORDER BY ALL",
        "SELECT id FROM t WHERE id < 300 AND d4 > 9 UNION ALL SELECT id FROM t WHERE id >= 300 AND id < 320 ORDER BY 1",
        "SELECT id, (SELECT max(id) FROM t u WHERE u.id < t.id AND u.id < 100) FROM t WHERE {} ORDER BY id",
    ],
)
def test_each_mention_of_a_table_is_restricted_by_its_own_conditions(
    connections: tuple[ld.Connection, duckdb.DuckDBPyConnection], sql: str
) -> None:
    text = sql.format("d9 < 0 AND id BETWEEN 100 AND 400")

    ours, plain = (str(each.execute(text).fetchall()) for each in connections)

    assert ours == plain


def test_conditions_that_together_leave_few_rows_are_applied_by_the_scan(
    connections: tuple[ld.Connection, duckdb.DuckDBPyConnection],
) -> None:
    with watching() as watch:
        connections[0].execute("SELECT sum(d18) FROM t WHERE id < 900 AND day < DATE '1970-12-31' AND word = 'ab'")

    (scan,) = watch.scans
    assert scan.predicate is not None
    assert scan.predicate.columns() == ("id", "day", "word")


def test_conditions_that_most_rows_satisfy_are_left_to_duckdb(
    connections: tuple[ld.Connection, duckdb.DuckDBPyConnection],
) -> None:
    with watching() as watch:
        connections[0].execute("SELECT sum(d18) FROM t WHERE id < 2000 AND word <> 'ab'")

    (scan,) = watch.scans
    assert scan.predicate is None


def test_a_macro_for_an_operator_keeps_its_meaning(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": range(ROWS)}), str(tmp_path / "t.lance"))
    with ld.connect(tmp_path) as connection:
        connection.execute('CREATE MACRO "+"(a, b) AS a - b')
        expected = connection.execute("SELECT 20 + 10").fetchall()[0][0]
        assert connection.execute("SELECT count(*) FROM t WHERE id < 20 + 10").fetchall() == [(expected,)]
