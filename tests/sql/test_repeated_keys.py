"""INSERT … ON CONFLICT, OR REPLACE and OR IGNORE on tables that hold a key repeatedly."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

Connect = Callable[..., ld.Connection]
KEYS = {
    "BIGINT": (1, 2, 3),
    "VARCHAR": ("it's", "", "é"),
    "DOUBLE": (0.5, float("inf"), -1.0),
    "BOOLEAN": (True, False, None),
    "DATE": (datetime.date(2024, 1, 1), datetime.date(1969, 1, 1), datetime.date(2000, 2, 29)),
    "TIMESTAMP": tuple(datetime.datetime(2024, 1, 1, hour) for hour in (1, 2, 3)),
    "DECIMAL(12, 3)": (decimal.Decimal("1.500"), decimal.Decimal("-2.000"), decimal.Decimal("0.001")),
    "BLOB": (b"\x00", b"", b"ab"),
}
if duckdb.__version__ >= "2":  # 1.5 cannot push UUIDs of a join into a scan of Arrow
    KEYS["UUID"] = tuple(uuid.UUID(int=number) for number in (1, 2, 3))


@pytest.fixture
def con(tmp_path: Path, connect: Connect) -> ld.Connection:
    """A table `t` that holds the key 1 twice."""
    con = connect(tmp_path)
    con.execute("CREATE TABLE lance.t (id INTEGER, n INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 10), (2, 20), (1, 11), (NULL, 5), (NULL, 6)")
    return con


def rows(con: ld.Connection) -> list[tuple[Any, ...]]:
    return con.execute("FROM t ORDER BY ALL").fetchall()


BEFORE = [(1, 10), (1, 11), (2, 20), (None, 5), (None, 6)]


@pytest.mark.parametrize("statement", ["INSERT INTO t {} ON CONFLICT (id) DO NOTHING", "INSERT OR IGNORE INTO t {}"])
def test_rows_whose_key_is_there_repeatedly_are_left_out(tmp_path: Path, connect: Connect, statement: str) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE lance.t (id INTEGER PRIMARY KEY, n INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 10), (1, 11), (2, 20)")
    insert = statement.format("VALUES (1, 99), (3, 30), (2, 99), (3, 31), (1, 98)")
    assert con.execute(insert).fetchall() == [(1,)]
    assert rows(con) == [(1, 10), (1, 11), (2, 20), (3, 30)]
    assert con.execute(statement.format("VALUES (1, 0), (4, 40)") + " RETURNING id, n").fetchall() == [(4, 40)]
    assert con.execute(statement.format("SELECT id, 7 FROM t")).fetchall() == [(0,)]
    assert rows(con) == [(1, 10), (1, 11), (2, 20), (3, 30), (4, 40)]


def test_null_keys_never_conflict(con: ld.Connection) -> None:
    assert con.execute("INSERT INTO t VALUES (NULL, 7), (1, 0) ON CONFLICT (id) DO NOTHING").fetchall() == [(1,)]
    assert rows(con) == [*BEFORE, (None, 7)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (3, 30), (1, 99) ON CONFLICT (id) DO UPDATE SET n = excluded.n",
        "INSERT INTO t VALUES (1, 99) ON CONFLICT (id) DO UPDATE SET n = 0 RETURNING *",
        "INSERT INTO t BY NAME SELECT 1 AS id, 2 AS n ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
    ],
)
def test_updates_of_a_repeated_key_are_refused_with_a_query_that_finds_it(con: ld.Connection, statement: str) -> None:
    with pytest.raises(InvalidInputError, match=r"table t.*2 rows with id = 1; SELECT") as raised:
        con.execute(statement)
    assert rows(con) == BEFORE
    query = str(raised.value.remedy).removesuffix(" finds such keys")
    assert con.execute(query.replace("HAVING", "HAVING id IS NOT NULL AND")).fetchall() == [(1, 2)]
    assert con.execute("SELECT 1").fetchall() == [(1,)]


def test_or_replace_of_a_repeated_primary_key_is_refused(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute('CREATE TABLE lance."t t" ("k k" VARCHAR PRIMARY KEY, n INTEGER)')
    con.execute("""INSERT INTO "t t" VALUES ('a', 1), ('a', 2), ('b', 3)""")
    with pytest.raises(InvalidInputError, match="2 rows with k k = 'a'") as raised:
        con.execute("""INSERT OR REPLACE INTO "t t" VALUES ('a', 4)""")
    assert con.execute(str(raised.value.remedy).removesuffix(" finds such keys")).fetchall() == [("a", 2)]
    con.execute("""INSERT OR REPLACE INTO "t t" VALUES ('b', 5), ('c', 6)""")
    assert con.execute('FROM "t t" ORDER BY ALL').fetchall() == [("a", 1), ("a", 2), ("b", 5), ("c", 6)]


def test_other_keys_are_updated_beside_a_repeated_one(con: ld.Connection) -> None:
    insert = "INSERT INTO t VALUES (2, 99), (3, 30) ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n"
    assert con.execute(insert).fetchall() == [(2,)]
    assert rows(con) == [(1, 10), (1, 11), (2, 119), (3, 30), (None, 5), (None, 6)]


def test_composite_keys_repeat_as_a_whole(tmp_path: Path, connect: Connect) -> None:
    con = connect(tmp_path)
    con.execute("CREATE TABLE lance.t (a INTEGER, b VARCHAR, n INTEGER)")
    con.execute("INSERT INTO t VALUES (1, 'x', 1), (1, 'y', 2), (2, 'x', 3), (2, 'x', 4), (2, NULL, 5), (2, NULL, 6)")
    do_nothing = (
        "INSERT INTO t VALUES (1, 'x', 0), (2, 'x', 0), (2, NULL, 0), (3, 'x', 0) ON CONFLICT (a, b) DO NOTHING"
    )
    assert con.execute(do_nothing).fetchall() == [(2,)]
    con.execute("INSERT INTO t VALUES (1, 'y', 7), (2, NULL, 8) ON CONFLICT (b, a) DO UPDATE SET n = excluded.n")
    after = [(1, "x", 1), (1, "y", 7), (2, "x", 3), (2, "x", 4), *[(2, None, n) for n in (0, 5, 6, 8)], (3, "x", 0)]
    assert rows(con) == after
    with pytest.raises(InvalidInputError, match="2 rows with a = 2, b = 'x'"):
        con.execute("INSERT INTO t VALUES (2, 'x', 9) ON CONFLICT (a, b) DO UPDATE SET n = excluded.n")
    assert rows(con) == after


@pytest.mark.parametrize("type_", KEYS)
def test_keys_of_every_type(tmp_path: Path, connect: Connect, type_: str) -> None:
    con, (repeated, single, new) = connect(tmp_path), KEYS[type_]
    con.execute(f"CREATE TABLE lance.t (k {type_}, n INTEGER)")
    for number, key in enumerate((repeated, single, repeated, repeated)):
        con.execute("INSERT INTO t VALUES (?, ?)", [key, number])
    con.execute(f"CREATE TEMP TABLE source (k {type_}, n INTEGER)")
    con.executemany("INSERT INTO source VALUES (?, ?)", [[repeated, 9], [single, 9], [new, 9]])
    con.execute("INSERT INTO t FROM source ON CONFLICT (k) DO NOTHING")
    assert sorted(con.execute("SELECT n FROM t").fetchall()) == [(0,), (1,), (2,), (3,), (9,)]
    with pytest.raises(InvalidInputError, match="3 rows with k"):
        con.execute("INSERT INTO t FROM source ON CONFLICT (k) DO UPDATE SET n = excluded.n")


def test_transactions_go_on(con: ld.Connection) -> None:
    con.execute("BEGIN")
    assert con.execute("INSERT INTO t VALUES (1, 0), (3, 30) ON CONFLICT (id) DO NOTHING").fetchall() == [(1,)]
    con.execute("COMMIT")
    assert rows(con) == [(1, 10), (1, 11), (2, 20), (3, 30), (None, 5), (None, 6)]
