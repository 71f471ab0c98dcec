"""INSERT of constants, which is read without tokens, beside the same statement in a native table."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

import lance_duck as ld

TYPES = "a BIGINT, b TINYINT, c DOUBLE, d VARCHAR, e BOOLEAN, f DATE, g DECIMAL(9, 2), h FLOAT"
NAMES = "abcdefgh"
CONSTANTS = {
    "a": ["1", "-7", "9223372036854775807", "1.5", "'12'", "true"],
    "b": ["1", "-128", "128", "'x'"],
    "c": ["1", "0.1", "-0.0", "9007199254740993", "0.12345678901234567", "'2.5'"],
    "d": ["'text'", "''", "'it''s'", "'(1, 2), (3'", "'-- no comment'", "'größe 😀'", "7", "1.50", "true", "'a\nb'"],
    "e": ["true", "FALSE", "1", "'no'"],
    "f": ["'2026-01-31'", "'31.1.2026'"],
    "g": ["1", "1.005", "12345678.9"],
    "h": ["0.1", "16777217"],
}


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    with ld.connect(tmp_path_factory.mktemp("constants")) as con:
        con.execute(f"CREATE TABLE t ({TYPES})")
        con.execute(f"CREATE TABLE memory.n ({TYPES})")
        con.execute('CREATE TABLE "a b" (x INTEGER NOT NULL, "y, (z" VARCHAR DEFAULT \'none\')')
        con.execute('CREATE TABLE memory."n b" (x INTEGER NOT NULL, "y, (z" VARCHAR DEFAULT \'none\')')
        yield con


def outcome(con: ld.Connection, sql: str, table: str) -> object:
    """Return the rows that a statement adds to an empty table, or the class of its error."""
    con.execute(f"DELETE FROM {table}")
    try:
        counted = con.execute(sql).fetchall()
    except duckdb.Error as error:
        return type(error)
    except ld.LanceDuckError:
        return ld.LanceDuckError
    return counted, con.execute(f"FROM {table} ORDER BY ALL").fetchall()


@pytest.mark.parametrize("seed", range(60))
def test_constants_become_the_values_that_a_native_table_stores(con: ld.Connection, seed: int) -> None:
    some = random.Random(seed)
    names = some.sample(NAMES, some.randint(1, 4))
    choices = {name: [*some.choices(CONSTANTS[name], k=2), "NULL"] for name in names}
    rows = [", ".join(some.choice(choices[name]) for name in names) for _ in range(some.randint(1, 5))]
    sql = f"({', '.join(names)}) VALUES ({'), ('.join(rows)})"
    assert outcome(con, f"INSERT INTO t {sql}", "t") == outcome(con, f"INSERT INTO memory.n {sql}", "memory.n")


@pytest.mark.parametrize(
    "sql",
    [
        "VALUES (1, 'a'), (2, 'b');",
        "VALUES (1)",
        "(x) VALUES (1), (2)",
        '("y, (z", x) VALUES (NULL, 3)',
        "(x, x) VALUES (1, 2)",
        "(X) VALUES (NULL)",
        "(nothing) VALUES (1)",
        "VALUES (1, 'a', 2)",
        "VALUES (1, 'a'), (2)",
        "() VALUES (1)",
        "(select) VALUES (1)",
    ],
)
def test_names_and_defaults_have_their_meaning(con: ld.Connection, sql: str) -> None:
    ours, native = (
        outcome(con, f'INSERT INTO "a b" {sql}', '"a b"'),
        outcome(con, f'INSERT INTO memory."n b" {sql}', 'memory."n b"'),
    )
    is_error = isinstance(native, type)
    assert isinstance(ours, type) if is_error else ours == native


def test_a_reserved_word_is_no_table_name(con: ld.Connection) -> None:
    with pytest.raises(duckdb.ParserException, match="syntax error"):
        con.execute("INSERT INTO t (table) VALUES (1)")


def test_a_statement_of_the_same_shape_is_checked_again_after_the_table_changed(con: ld.Connection) -> None:
    con.execute("CREATE TABLE changed (x INTEGER)")
    con.execute("INSERT INTO changed VALUES (1)")
    con.execute("ALTER TABLE changed ADD COLUMN y INTEGER DEFAULT 5")
    con.execute("INSERT INTO changed (x) VALUES (2)")
    with pytest.raises(ld.InvalidInputError, match="number of values"):
        con.execute("INSERT INTO changed VALUES (1)")
    assert con.execute("FROM changed ORDER BY x").fetchall() == [(1, 5), (2, 5)]
    con.execute("DROP TABLE changed")
    with pytest.raises(duckdb.CatalogException):
        con.execute("INSERT INTO changed VALUES (1)")


def test_constants_are_appended_in_a_transaction(con: ld.Connection) -> None:
    con.execute("CREATE TABLE pending (x INTEGER)")
    con.execute("BEGIN")
    con.execute("INSERT INTO pending VALUES (1)")
    con.execute("INSERT INTO pending VALUES (2)")
    assert con.execute("SELECT count(*) FROM pending").fetchall() == [(2,)]
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*) FROM pending").fetchall() == [(0,)]


def test_a_lone_surrogate_is_refused_as_in_duckdb(con: ld.Connection) -> None:
    con.execute("DELETE FROM t")
    with pytest.raises(Exception, match="surrogate") as native:
        con.native.execute("SELECT '\ud800'")
    with pytest.raises(native.type, match="surrogate"):
        con.execute("INSERT INTO t (d) VALUES ('\ud800')")
    assert con.execute("SELECT count(*) FROM t").fetchall() == [(0,)]
