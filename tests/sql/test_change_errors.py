"""What an analyst reads when a change is refused: the statement as it was written, and what to do instead."""

from __future__ import annotations

import duckdb
import pytest

import lance_duck as ld

SINCE_2 = duckdb.__version__ >= "2"
INTERNAL = ("__lance_", "temp.main", "CAST((", "not an table")

REFUSED = [
    ("INSERT INTO trips VALUES ('abc', 'd')", "Could not convert string 'abc'"),
    ("INSERT INTO trips VALUES (nope, 'd')", '"nope"'),
    ("INSERT INTO trips SELECT 'abc', 'd'", "Could not convert string 'abc'"),
    ("INSERT INTO trips SELECT nope, 'd' FROM dim", '"nope" not found'),
    ("INSERT INTO trips VALUES (1, 'a') RETURNING count(*)", "[Aa]ggregate"),
    ("INSERT INTO trips VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET city = nope", '"nope"'),
    ("UPDATE trips SET id = 'q'", "Could not convert string 'q'"),
    ("UPDATE trips SET id = nope", '"nope" not found'),
    ("UPDATE trips SET id = count(*)", "aggregate"),
    ("UPDATE trips SET id = (SELECT nope FROM dim)", '"nope" not found'),
    ("UPDATE trips SET id = sum(id) OVER ()", "window functions are not allowed in UPDATE"),
    ("UPDATE trips SET id = 1 RETURNING sum(id)", "[Aa]ggregate"),
    ("UPDATE trips SET id = error('boo')", "boo"),
    ("DELETE FROM trips WHERE nope = 1", '"nope" not found'),
    ("DELETE FROM trips WHERE city::INT = 1", "Could not convert string"),
    ("DELETE FROM trips USING dim WHERE trips.nope = dim.city", "nope"),
    ("DELETE FROM trips RETURNING count(*)", "[Aa]ggregate"),
    ("MERGE INTO trips USING dim ON trips.city = dim.city WHEN MATCHED THEN UPDATE SET id = nope", '"nope" not found'),
    ("MERGE INTO trips USING dim ON trips.city = dim.city WHEN MATCHED THEN UPDATE SET id = 'abc'", "'abc'"),
    ("CREATE TABLE lance.made AS SELECT nope FROM dim", '"nope" not found'),
    ("COPY (SELECT nope FROM dim) TO 'made.lance'", '"nope" not found'),
]


@pytest.mark.parametrize("begin", ["", "BEGIN"])
@pytest.mark.parametrize(("sql", "words"), REFUSED)
def test_duckdb_errors_quote_the_statement_of_the_user(con: ld.Connection, sql: str, words: str, begin: str) -> None:
    if begin and sql.startswith(("CREATE", "COPY")):
        pytest.skip("refused in a transaction")
    if begin:
        con.execute(begin)
    with pytest.raises(duckdb.Error, match=words) as failed:
        con.execute(sql)
    message = str(failed.value)
    assert not any(word in message for word in INTERNAL), message
    drawing = message.partition("\nLINE 1: ")[2].partition("\n")[0]
    assert drawing.removeprefix("...").removesuffix("...") in sql


@pytest.mark.skipif(not SINCE_2, reason="DuckDB 1 draws nothing here")
def test_a_drawing_points_at_the_value_of_the_user(con: ld.Connection) -> None:
    with pytest.raises(duckdb.ConversionException) as failed:
        con.execute("INSERT INTO trips VALUES (1, 'a'),\n  ('abc', 'd')")
    line, marks = str(failed.value).splitlines()[-2:]
    assert line == "LINE 2:   ('abc', 'd')"
    assert line[len(marks) - len(marks.lstrip()) :].startswith("'abc'")


CHANGES = [
    "INSERT INTO trips VALUES (9, 'd')",
    "UPDATE trips SET id = 1",
    "DELETE FROM trips",
    "TRUNCATE trips",
    "MERGE INTO trips USING dim ON trips.city = dim.city WHEN MATCHED THEN DELETE",
    "ALTER TABLE trips ADD COLUMN q INT",
    "DROP TABLE trips",
    "CREATE TABLE lance.made AS SELECT 1 AS a",
    "CREATE INDEX i ON trips (id)",
    "OPTIMIZE trips",
    "COPY trips FROM 'x.csv'",
    "CALL lance_compact('trips')",
]


@pytest.mark.parametrize("failure", ["SELECT error('x')", "UPDATE trips SET id = error('x')", "SELECT nope FROM trips"])
@pytest.mark.parametrize("method", ["sql", "execute"])
def test_every_change_in_a_failed_transaction_reports_the_failure(
    con: ld.Connection, failure: str, method: str
) -> None:
    con.execute("BEGIN")
    with pytest.raises(duckdb.Error):
        con.execute(failure).fetchall()
    if not SINCE_2 and "nope" in failure:
        return  # DuckDB 1 continues after binder errors
    for sql in CHANGES:
        with pytest.raises(duckdb.TransactionException, match=r"aborted \(please ROLLBACK\)"):
            getattr(con, method)(sql)
    con.execute("ROLLBACK")
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
