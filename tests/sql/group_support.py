"""The same tables in a folder and in a native database, and transactions that change several of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb

import lance_duck as ld
from lance_duck.groups.log import CommitLog

FIRST: Final = (
    "CREATE TABLE a AS SELECT i AS id, i * 10 AS n FROM range(5) r(i); CREATE TABLE b AS FROM a WHERE id > 1;"
    "CREATE TABLE c AS FROM a WHERE id < 3; CREATE SCHEMA s; CREATE TABLE s.d AS FROM a; CREATE TABLE s.e AS FROM b"
)
CHANGES: Final = {
    "rows": "INSERT INTO a VALUES (7, 70); UPDATE b SET n = n + 1 WHERE id < 4; DELETE FROM s.d WHERE id = 1",
    "rows of other tables": "INSERT INTO a SELECT id + 10, n FROM b; UPDATE b SET n = a.n + 1 FROM a WHERE a.id = b.id;"
    "DELETE FROM c WHERE id IN (SELECT id FROM b); INSERT INTO s.e SELECT count(*), sum(n) FROM a",
    "merge": "MERGE INTO a USING b ON a.id = b.id WHEN MATCHED THEN UPDATE SET n = b.n + 1"
    " WHEN NOT MATCHED THEN INSERT; DELETE FROM b; TRUNCATE c; INSERT INTO c FROM a",
    "one table twice": "UPDATE a SET n = 1; UPDATE a SET n = n + id; INSERT INTO b VALUES (1, 1);"
    "DELETE FROM b WHERE id = 1; DELETE FROM b WHERE id = 2",
    "no row": "DELETE FROM a WHERE false; UPDATE b SET n = 1 WHERE id > 100; INSERT INTO c SELECT * FROM c LIMIT 0",
    "one of two tables": "DELETE FROM a WHERE false; UPDATE b SET n = 1",
    "columns": "ALTER TABLE a ADD COLUMN x INTEGER DEFAULT 5; ALTER TABLE b DROP COLUMN n;"
    "ALTER TABLE s.d RENAME n TO m",
    "columns and rows": "ALTER TABLE a ADD COLUMN x INTEGER DEFAULT 5; UPDATE a SET x = id WHERE id > 2;"
    "ALTER TABLE b DROP COLUMN n; INSERT INTO b VALUES (9); INSERT INTO a SELECT id, id, id FROM b; DELETE FROM c;"
    "ALTER TABLE s.d RENAME n TO m; INSERT INTO s.d VALUES (9, 9)",
    "new tables": "CREATE TABLE f AS FROM a; INSERT INTO f VALUES (9, 9); CREATE TABLE s.f (x BIGINT);"
    "INSERT INTO s.f SELECT id FROM f; DELETE FROM a WHERE id = 0; UPDATE s.d SET n = 0",
    "dropped tables": "DROP TABLE a; DROP TABLE s.d; UPDATE b SET n = 0; CREATE TABLE a AS SELECT 1 AS other",
    "renamed tables": "UPDATE a SET n = 1 WHERE id = 1; ALTER TABLE a RENAME TO f; INSERT INTO f VALUES (9, 9);"
    "ALTER TABLE s.d RENAME TO f; DELETE FROM s.f WHERE id = 2; INSERT INTO b SELECT * FROM s.f",
    "swapped tables": "ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a; ALTER TABLE x RENAME TO b;"
    "DELETE FROM a WHERE id = 2; UPDATE b SET n = -1; ALTER TABLE s.d RENAME TO x; ALTER TABLE s.e RENAME TO d;"
    "ALTER TABLE s.x RENAME TO e",
    "views and macros": "CREATE VIEW v AS SELECT sum(n) AS total FROM a; CREATE MACRO twice(x) AS x * 2;"
    "UPDATE a SET n = twice(n); INSERT INTO b SELECT 8, total FROM v; CREATE VIEW s.w AS SELECT count(*) AS c FROM s.d",
    "schemas": "CREATE SCHEMA z; CREATE TABLE z.a AS FROM a; INSERT INTO z.a FROM b; DELETE FROM b;"
    "DROP SCHEMA s CASCADE",
    "everything": "INSERT INTO a VALUES (8, 8); ALTER TABLE b ADD COLUMN x INTEGER; UPDATE b SET x = 3;"
    "CREATE TABLE f AS FROM b; ALTER TABLE f RENAME TO g; ALTER TABLE c RENAME TO f; DELETE FROM f WHERE id = 1;"
    "DROP TABLE s.e; CREATE TABLE s.e AS SELECT id FROM g; CREATE VIEW v AS FROM s.e; ALTER TABLE s.d DROP COLUMN n;"
    "INSERT INTO s.d VALUES (5)",
}
"""Transactions, by what they change."""


@dataclass
class Pair:
    """The same tables in a folder and in a native database.

    Attributes:
        folder: The folder.
        con: A connection to the folder.
        native: A connection to the native database.
    """

    folder: Path
    con: ld.Connection
    native: duckdb.DuckDBPyConnection

    def run(self, sql: str) -> None:
        """Run statements on both sides. Each statement gives the same rows."""
        for statement in filter(None, map(str.strip, sql.split(";"))):
            ours, native = (sorted(map(repr, con.execute(statement).fetchall())) for con in (self.con, self.native))
            assert ours == native, statement

    def check(self, *others: ld.Connection) -> None:
        """Check that connections of both sides see the same."""
        expected = seen(self.native)
        for con in (self.con, *others):
            found = seen(con)
            assert found == expected, f"{found}, not {expected}"


def rows(con: Any, sql: str) -> list[Any]:
    """Return the sorted rows of a query."""
    return sorted(con.execute(sql).fetchall())


def seen(con: Any) -> dict[str, Any]:
    """Return the columns and rows of all tables and views of the database of a connection."""
    database = "lance" if isinstance(con, ld.Connection) else "memory"
    names = rows(con, f"SELECT schema || '.' || name FROM (SHOW ALL TABLES) WHERE database = '{database}'")
    return {name: _content(con, f"{database}.{name}") for (name,) in names}


def _content(con: Any, name: str) -> tuple[list[tuple[str, str]], list[Any]]:
    cursor = con.execute(f"FROM {name}")
    columns = [(title, str(type_)) for title, type_, *_ in cursor.description]
    return columns, sorted(cursor.fetchall(), key=repr)


def files(folder: Path) -> list[str]:
    """Return the files of a folder."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def outcomes(folder: Path) -> list[str | None]:
    """Return how each group of a folder ended, oldest first. Checks that no staged file is left."""
    assert not list(folder.glob("__lance_duck/staged/*"))
    log = CommitLog(str(folder))
    return [log.outcome(number) for number in reversed(log.numbers())]
