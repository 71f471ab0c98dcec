"""DuckDB 1.x reads dictionaries, and evaluates conditions that keep most rows itself. Answers equal native tables."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.restrictions import tables as restricted_tables
from lance_duck.duck.tables import table as duck_table
from lance_duck.duck.tables.scan_observer import watching
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

pytestmark = pytest.mark.skipif(SPEAKS_SOURCE, reason="DuckDB 2 asks the scan about each condition")

ROWS = 3000
WORDS = ["", "a", "ab", "b", "é", "long enough for no inline string", None]
CONDITIONS = (
    "s = 'ab'",
    "s <> 'a'",
    "s >= 'b'",
    "s IN ('a', 'é', 'none')",
    "s IS NULL",
    "s IS NOT NULL",
    "s LIKE 'a%'",
    "n > -900",
    "n BETWEEN 5 AND 40",
    "d >= 1.50",
    "u = 'u17'",
    "t > 'b' OR n < 0",
    "day >= DATE '1970-02-01' AND day < DATE '1970-02-01' + INTERVAL 7 DAY",
    "true",
)
RESULTS = (
    "s, count(*), min(t), sum(n) FROM v WHERE {} GROUP BY s",
    "s, t, count(*), sum(d) FROM v WHERE {} GROUP BY s, t",
    "s, t, u, n, d FROM v WHERE {}",
    "a.s, b.t, count(*) FROM (FROM v WHERE {}) AS a JOIN v AS b ON a.s = b.s AND a.n = b.n GROUP BY a.s, b.t",
    "none, s, count(*) FROM v WHERE {} GROUP BY none, s",
    "DISTINCT t, s || t, upper(s) FROM v WHERE {}",
    "count(*) FROM v WHERE {}",
    "s, u FROM v WHERE {} ORDER BY s NULLS LAST, u LIMIT 7",
)


def table(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    words = pa.array(WORDS)
    return pa.table(
        {
            "s": words.take(pa.array(random.integers(0, len(WORDS), ROWS))),
            "t": words.take(pa.array(random.integers(0, 3, ROWS))),
            "u": [f"u{i}" for i in range(ROWS)],
            "n": random.integers(-1000, 1000, ROWS),
            "d": pa.array(random.integers(0, 999, ROWS)).cast(pa.decimal128(21, 2)).cast(pa.decimal128(12, 2)),
            "day": pa.array(random.integers(0, 1000, ROWS).astype("int32")).cast(pa.date32()),
            "none": pa.nulls(ROWS, pa.string()),
        }
    )


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    """The table `v`. Small tables are treated like large ones."""
    folder = tmp_path_factory.mktemp("conditions")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duck_table, "_REPEATED_FROM", 0)
        patch.setattr(restricted_tables, "LARGE", 0)
        for seed, mode in ((1, "create"), (2, "append")):
            ld.write_dataset(table(seed), folder / "v.lance", mode=mode)
        with ld.connect(folder) as connection:
            yield connection


@pytest.fixture(scope="module")
def native() -> Iterator[duckdb.DuckDBPyConnection]:
    """A native table with the same rows."""
    with duckdb.connect() as connection:
        rows = pa.concat_tables([table(1), table(2)])
        connection.register("rows", rows)
        connection.execute("CREATE TABLE v AS FROM rows")
        yield connection


@pytest.mark.parametrize("result", RESULTS)
def test_answers_equal_those_of_a_native_table(
    con: ld.Connection, native: duckdb.DuckDBPyConnection, result: str
) -> None:
    for condition in CONDITIONS:
        sql = f"SELECT {result.format(condition)}"
        assert sorted(con.execute(sql).fetchall(), key=repr) == sorted(native.execute(sql).fetchall(), key=repr), sql


def test_strings_that_repeat_are_dictionaries_in_the_source_alone(con: ld.Connection) -> None:
    with watching() as watch:
        rows = con.execute("DESCRIBE v").fetchall()
        con.execute("SELECT s, u FROM v").fetchall()
    types = {name: type_ for name, type_, *_ in rows}
    announced = {field.name: pa.types.is_dictionary(field.type) for field in watch.bound[-1].schema}
    assert (types["s"], types["u"]) == ("VARCHAR", "VARCHAR")
    assert (announced["s"], announced["t"], announced["u"]) == (True, True, False)


@pytest.mark.parametrize(
    ("condition", "passed"),
    [
        ("n > -900", None),
        ("n > 995", "n > 995"),
        ("n > -900 AND n > 995", "n > 995"),
        ("d >= 0 AND n > 995", "n > 995"),
        ("d >= 9999 AND n > -900", None),
        ("day >= DATE '1972-09-01'", "day >= 1972-09-01"),
        ("day >= DATE '1970-02-01' AND day < DATE '1970-02-01' + INTERVAL 7 DAY", None),
    ],
)
def test_conditions_that_keep_most_rows_are_not_passed_to_the_scan(
    con: ld.Connection, condition: str, passed: str | None
) -> None:
    with watching() as watch:
        con.execute(f"SELECT sum(n) FROM v WHERE {condition}").fetchall()
    assert [None if scan.predicate is None else str(scan.predicate) for scan in watch.scans] == [passed]


@pytest.mark.parametrize("sql", ["SELECT count(*) FROM v WHERE n > -2000", "FROM v SELECT 1 WHERE n > -2000"])
def test_a_table_read_whole_can_be_counted(con: ld.Connection, sql: str) -> None:
    rows = con.execute(sql).fetchall()
    assert rows in ([(2 * ROWS,)], [(1,)] * (2 * ROWS))


def test_a_relation_evaluates_conditions_at_each_read(con: ld.Connection) -> None:
    relation = con.sql("SELECT u FROM v WHERE n > -900")
    assert len(relation.fetchall()) == len(relation.fetchall()) > ROWS


def test_a_relation_reads_the_newest_version(con: ld.Connection) -> None:
    con.execute("CREATE TABLE changed AS FROM v")
    relation = con.sql("SELECT count(*), min(n) FROM changed WHERE n > -900")
    assert relation.fetchall() == con.execute("SELECT count(*), min(n) FROM v WHERE n > -900").fetchall()
    con.execute("DELETE FROM changed WHERE n < 0")
    assert relation.fetchall() == con.execute("SELECT count(*), min(n) FROM v WHERE n >= 0").fetchall()
    con.execute("DROP TABLE changed")
