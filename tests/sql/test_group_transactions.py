"""Transactions that change several tables of a folder: rows, columns and names together, as in a native database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Final

import duckdb
import lance
import pyarrow as pa
import pytest
from lance.namespace import RestAdapter
from sql.group_support import CHANGES, FIRST, Pair, files, outcomes, rows, seen
from sql.random_groups import RandomTransactions

import lance_duck as ld
from lance_duck.errors import CommitConflictError, LanceDuckError, UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

FULL: Final = os.environ.get("LANCE_DUCK_PROFILE") == "full"
Connect = Callable[..., ld.Connection]
SCRIPT: Final = """
import sys
import lance_duck as ld
with ld.connect(sys.argv[1]) as con:
    for statement in sys.argv[2].split(";"):
        con.execute(statement)
"""


@pytest.mark.parametrize("changes", CHANGES)
def test_changes_of_several_tables_are_committed_together(pair: Pair, connect: Connect, changes: str) -> None:
    cursor, other = pair.con.cursor(), connect(pair.folder)
    before = seen(pair.con)
    pair.run(f"BEGIN; {CHANGES[changes]}")
    pair.check()
    assert seen(cursor) == seen(other) == before
    pair.run("COMMIT")
    pair.check(cursor, other, connect(pair.folder))
    assert outcomes(pair.folder) == ["published"] * (changes not in ("no row", "one of two tables"))
    assert not ld.DirectoryNamespace(str(pair.folder)).find_problems()


@pytest.mark.parametrize("changes", CHANGES)
def test_a_rollback_leaves_no_file(pair: Pair, connect: Connect, changes: str) -> None:
    before = files(pair.folder)
    pair.run(f"BEGIN; {CHANGES[changes]}; ROLLBACK")
    assert files(pair.folder) == before
    pair.check(pair.con.cursor(), connect(pair.folder))
    con = connect(pair.folder)
    con.execute(f"BEGIN; {CHANGES[changes]}")
    con.close()
    assert files(pair.folder) == before
    pair.run(f"BEGIN; {CHANGES[changes]}; COMMIT")
    pair.check(connect(pair.folder))


@pytest.mark.parametrize(
    "error",
    [
        "INSERT INTO b SELECT 'text'::INTEGER, 1",
        "SELECT error('stop') FROM a",
        "UPDATE c SET n = 'text'::INTEGER",
        "CREATE TABLE f AS SELECT error('stop') AS x",
        "DELETE FROM s.e WHERE error('stop') IS NULL",
        *(
            pytest.param(error, marks=pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1 goes on after it"))
            for error in (
                "FROM nowhere",
                "SELECT nothing FROM a",
                "DROP TABLE nowhere",
                "INSERT INTO b VALUES (1, 2, 3)",
            )
        ),
    ],
)
def test_a_failed_statement_ends_the_transaction_without_a_commit(pair: Pair, connect: Connect, error: str) -> None:
    before, group = files(pair.folder), "INSERT INTO a VALUES (9, 9); DELETE FROM s.d; CREATE TABLE g AS FROM b"
    pair.run(f"BEGIN; {group}")
    for con in (pair.con, pair.native):
        with pytest.raises((duckdb.Error, LanceDuckError)):
            con.execute(error)
        with suppress(duckdb.Error, LanceDuckError):  # DuckDB ends the transaction with ROLLBACK
            con.execute("COMMIT")
    assert files(pair.folder) == before
    pair.check(connect(pair.folder))
    pair.run(f"BEGIN; {group}; COMMIT")
    pair.check(connect(pair.folder))


def test_parameter_sets_belong_to_the_transaction(pair: Pair, connect: Connect) -> None:
    for end in ("ROLLBACK", "COMMIT"):
        for con in (pair.con, pair.native):
            con.execute("BEGIN")
            con.executemany("INSERT INTO a VALUES (?, ?)", [[20, 1], [21, 2]])
            con.executemany("UPDATE b SET n = ? WHERE id = ?", [[5, 2], [6, 3]])
            con.executemany("DELETE FROM s.d WHERE id = $id", [{"id": 1}, {"id": 2}])
            con.executemany("INSERT INTO s.e SELECT id, ? FROM a WHERE id = ?", [[7, 20], [8, 21]])
        pair.check()
        pair.run(end)
        pair.check(connect(pair.folder))
    assert outcomes(pair.folder) == ["published"]


def test_frames_copies_and_prepared_statements_belong_to_the_transaction(pair: Pair, tmp_path: Path) -> None:
    frame = pa.table({"id": [30, 31], "n": [1, 2]})
    pair.run(f"COPY (SELECT 40 AS id, 4 AS n) TO '{tmp_path}/x.csv'; BEGIN; PREPARE p AS INSERT INTO b VALUES ($1, $2)")
    for con in (pair.con, pair.native):
        con.append("a", frame.to_pandas())
        con.register("frame", frame)
        con.execute("INSERT INTO s.d FROM frame")
        con.unregister("frame")
    pair.run(f"EXECUTE p(8, 8); EXECUTE p(9, 9); COPY c FROM '{tmp_path}/x.csv'; DEALLOCATE p; COMMIT")
    pair.check()
    assert outcomes(pair.folder) == ["published"]


CONFLICTS: Final = [
    ("UPDATE a SET n = 1 WHERE id = 1; DELETE FROM b WHERE id = 2", "UPDATE b SET n = 9 WHERE id = 2"),
    ("UPDATE a SET n = 1 WHERE id = 1; DELETE FROM b WHERE id = 2", "DELETE FROM a WHERE id = 1; INSERT INTO c FROM b"),
    ("INSERT INTO a VALUES (9, 9); UPDATE s.d SET n = 1", "BEGIN; UPDATE s.d SET n = 2; UPDATE c SET n = 2; COMMIT"),
    ("INSERT INTO a VALUES (9, 9); ALTER TABLE b ADD COLUMN x INTEGER", "ALTER TABLE b ADD COLUMN x VARCHAR"),
    ("INSERT INTO a VALUES (9, 9); CREATE TABLE f AS FROM b", "CREATE TABLE f AS FROM c"),
    ("INSERT INTO a VALUES (9, 9); DROP TABLE c", "INSERT INTO c VALUES (9, 9)"),
    ("INSERT INTO a VALUES (9, 9); INSERT INTO b VALUES (9, 9)", "DROP TABLE b"),
    ("INSERT INTO a VALUES (9, 9); INSERT INTO b VALUES (9, 9)", "DROP TABLE b; CREATE TABLE b AS FROM a"),
    ("INSERT INTO a VALUES (9, 9); CREATE VIEW v AS FROM a", "CREATE VIEW v AS FROM b"),
    ("CREATE SCHEMA z; CREATE TABLE z.t AS FROM a; DELETE FROM a", "CREATE SCHEMA z"),
    ("CREATE TABLE s.f AS FROM a; DELETE FROM a", "DROP SCHEMA s CASCADE"),
    ("ALTER TABLE a RENAME TO x; ALTER TABLE b RENAME TO a", "ALTER TABLE b RENAME TO y"),
]


@pytest.mark.parametrize(("mine", "theirs"), CONFLICTS)
@pytest.mark.parametrize("is_cursor", [False, True])
def test_a_conflict_commits_nothing(pair: Pair, connect: Connect, mine: str, theirs: str, is_cursor: bool) -> None:
    pair.con.execute(f"BEGIN; INSERT INTO s.e VALUES (9, 9); {mine}")
    other = pair.con.cursor() if is_cursor else connect(pair.folder)
    try:
        other.execute(theirs)
    except duckdb.TransactionException:  # names of one process conflict at the statement, as in a native database
        assert is_cursor
        pair.con.execute("ROLLBACK")
    else:
        pair.native.execute(theirs)
        before = files(pair.folder)
        with pytest.raises(CommitConflictError):
            pair.con.execute("COMMIT")
        assert set(files(pair.folder)) <= set(before)
    pair.check(other, connect(pair.folder))
    pair.run("BEGIN; INSERT INTO a VALUES (10, 1); CREATE TABLE other AS FROM c; COMMIT")
    pair.check(other, connect(pair.folder))


@pytest.mark.parametrize("theirs", ["pylance", "statements", "a group"])
def test_changes_of_other_rows_are_kept(pair: Pair, connect: Connect, theirs: str) -> None:
    pair.run("BEGIN; UPDATE a SET n = 1 WHERE id = 1; DELETE FROM b WHERE id = 2; INSERT INTO c VALUES (9, 9)")
    changes = "INSERT INTO a VALUES (50, 5); INSERT INTO c VALUES (51, 5); DELETE FROM b WHERE id = 3"
    if theirs == "pylance":
        for name, number in (("a", 50), ("c", 51)):
            lance.dataset(pair.folder / f"{name}.lance").insert(pa.table({"id": [number], "n": [5]}))
        lance.dataset(pair.folder / "b.lance").delete("id = 3")
    else:
        connect(pair.folder).execute(changes if theirs == "statements" else f"BEGIN; {changes}; COMMIT")
    with pair.native.cursor() as cursor:
        cursor.execute(changes)
    pair.check()
    pair.run("COMMIT")
    pair.check(connect(pair.folder))
    assert outcomes(pair.folder) == ["published"] * (1 + (theirs == "a group"))


def test_cursors_commit_groups_of_different_tables(pair: Pair, connect: Connect) -> None:
    cursor, native = pair.con.cursor(), pair.native.cursor()
    pair.run("BEGIN; UPDATE a SET n = 1; INSERT INTO s.d VALUES (9, 9); CREATE TABLE f AS FROM a")
    for con in (cursor, native):
        con.execute("BEGIN; UPDATE b SET n = 2; INSERT INTO s.e VALUES (9, 9); CREATE TABLE g AS FROM a; COMMIT")
    pair.check()
    pair.run("COMMIT")
    pair.check(cursor, connect(pair.folder))
    assert rows(cursor, "FROM g") == [(each, each * 10) for each in range(5)]


def in_another_process(folder: Path, sql: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(folder), sql]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_another_process_commits_a_group_meanwhile(pair: Pair, connect: Connect) -> None:
    changes, names = "UPDATE a SET n = -n; DELETE FROM s.d WHERE id = 0", "ALTER TABLE b RENAME TO f; DROP TABLE c"
    pair.run("BEGIN; SELECT sum(n) FROM a; INSERT INTO s.e VALUES (9, 9); INSERT INTO s.d VALUES (9, 9)")
    in_another_process(pair.folder, f"BEGIN; {changes}; {names}; COMMIT")
    with pair.native.cursor() as cursor:
        cursor.execute(changes)
    pair.run("SELECT sum(n) FROM a; SELECT sum(n) FROM s.d; COMMIT")
    pair.native.execute(names)
    pair.check(connect(pair.folder))
    pair.con.execute("BEGIN; UPDATE a SET n = 1 WHERE id = 1; DELETE FROM s.d WHERE id = 3")
    changes = "DELETE FROM a WHERE id = 1; INSERT INTO f VALUES (9, 9)"
    in_another_process(pair.folder, f"BEGIN; {changes}; COMMIT")
    with pytest.raises(CommitConflictError):
        pair.con.execute("COMMIT")
    pair.native.execute(changes)
    pair.check(connect(pair.folder))
    assert outcomes(pair.folder) == ["published"] * 3


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("INSERT INTO a VALUES (9, 9)", "INSERT INTO other.t VALUES (2)"),
        ("INSERT INTO other.t VALUES (2)", "INSERT INTO a VALUES (9, 9)"),
        ("CREATE TABLE f AS FROM a", "INSERT INTO other.t VALUES (2)"),
        ("DROP TABLE a", "DELETE FROM other.s.t"),
        ("ALTER TABLE a ADD COLUMN x INTEGER", "ALTER TABLE other.s.t ADD COLUMN x INTEGER"),
        ("INSERT INTO a VALUES (9, 9)", "CREATE TABLE other.f AS FROM a"),
        ("INSERT INTO other.t VALUES (2)", "DROP TABLE a"),
        ("CREATE VIEW v AS FROM a", "CREATE VIEW other.v AS FROM other.t"),
        ("INSERT INTO a VALUES (9, 9)", "INSERT INTO inside.t VALUES (2)"),
        ("INSERT INTO inside.t VALUES (2)", "INSERT INTO a VALUES (9, 9)"),
        ("INSERT INTO a VALUES (9, 9)", "DELETE FROM '{folder}/inside/t.lance'"),
        ("INSERT INTO a VALUES (9, 9)", "DELETE FROM '{folder}/../unnamed/t.lance'"),
    ],
)
def test_tables_of_another_folder_are_refused(pair: Pair, first: str, second: str) -> None:
    con, folder = pair.con, pair.folder
    for name, place in (("other", "../other"), ("inside", "inside"), ("unnamed", "../unnamed")):
        con.execute(f"ATTACH '{folder}/{place}' AS {name} (TYPE lance); CREATE TABLE {name}.t AS SELECT 1 AS x")
        con.execute(f"CREATE SCHEMA {name}.s; CREATE TABLE {name}.s.t AS SELECT 1 AS x")
    con.execute(f"DETACH unnamed; BEGIN; {first}")
    with pytest.raises((UnsupportedError, duckdb.TransactionException), match=r"tables of one folder|single attached"):
        con.execute(second.format(folder=folder))
    con.execute("ROLLBACK")
    pair.check()
    for name in ("other", "inside"):
        assert rows(con, f"FROM {name}.t") == rows(con, f"FROM {name}.s.t") == [(1,)]
        con.execute(
            f"BEGIN; INSERT INTO {name}.t VALUES (2); DELETE FROM {name}.s.t; CREATE TABLE {name}.u AS FROM {name}.t"
        )
        con.execute("COMMIT")
        assert rows(con, f"FROM {name}.u") == rows(con, f"FROM {name}.t") == [(1,), (2,)]
        assert rows(con, f"FROM {name}.s.t") == []
    con.execute("BEGIN; INSERT INTO a VALUES (9, 9); INSERT INTO b SELECT x, x FROM other.t; COMMIT")
    pair.native.execute("INSERT INTO a VALUES (9, 9); INSERT INTO b VALUES (1, 1), (2, 2)")
    pair.check()


@pytest.mark.parametrize("statement", ["INSERT INTO {0}.m VALUES (1)", "CREATE TABLE {0}.k AS SELECT 1 AS a"])
def test_native_tables_are_refused_as_in_another_database(pair: Pair, statement: str) -> None:
    pair.con.execute("CREATE TABLE memory.main.m (a INTEGER)")
    pair.native.execute("ATTACH ':memory:' AS other; CREATE TABLE other.main.m (a INTEGER)")
    for con, own in ((pair.con, "memory.main"), (pair.native, "other.main")):
        for first, second in (("DELETE FROM s.d", statement), (statement, "DELETE FROM s.d")):
            con.execute(f"BEGIN; {first.format(own)}")
            with pytest.raises(duckdb.TransactionException, match="single attached database"):
                con.execute(f"{second.format(own)}")
            con.execute("ROLLBACK")
    pair.check()


def test_temporary_tables_belong_to_the_transaction(pair: Pair, connect: Connect) -> None:
    changes = (
        "INSERT INTO k FROM a; DELETE FROM a WHERE id IN (FROM range(2)); INSERT INTO s.d FROM k;"
        "CREATE TEMP TABLE k2 AS FROM s.d; UPDATE b SET n = (SELECT sum(n) FROM k2); DELETE FROM k WHERE id = 1"
    )
    pair.run(f"CREATE TEMP TABLE k (id BIGINT, n BIGINT); BEGIN; {changes}; ROLLBACK; FROM k")
    pair.run(f"BEGIN; {changes}; COMMIT; FROM k; FROM k2")
    pair.check(connect(pair.folder))


def test_a_read_only_folder_is_read_in_one_state_but_not_changed(pair: Pair) -> None:
    before = files(pair.folder)
    total = "SELECT sum(a.n), sum(b.n), sum(d.n) FROM r.a FULL JOIN r.b USING (id) FULL JOIN r.s.d USING (id)"
    with ld.connect() as reader:
        reader.execute(f"ATTACH '{pair.folder}' AS r (TYPE lance, READ_ONLY); BEGIN")
        for sql in ("INSERT INTO r.a VALUES (1, 1)", "DROP TABLE r.a", "ALTER TABLE r.a RENAME TO x"):
            with pytest.raises(UnsupportedError, match="READ_ONLY"):
                reader.execute(sql)
        first = rows(reader, total)
        assert files(pair.folder) == before
        pair.con.execute("BEGIN; UPDATE a SET n = 0; UPDATE b SET n = 0; UPDATE s.d SET n = 0; COMMIT")
        assert rows(reader, total) == first
        reader.execute("COMMIT")
        assert rows(reader, total) == [(0, 0, 0)]


def test_tables_given_by_path_are_changed_together(pair: Pair, connect: Connect) -> None:
    a, b = (f"'{pair.folder}/{name}.lance'" for name in "ab")
    pair.native.execute("INSERT INTO a VALUES (9, 9); UPDATE b SET n = 1; DELETE FROM s.d")
    pair.con.execute(f"BEGIN; INSERT INTO {a} VALUES (9, 9); UPDATE {b} SET n = 1; DELETE FROM s.d")
    assert rows(pair.con, "SELECT sum(n) FROM b") == rows(pair.con, f"SELECT sum(n) FROM {b}") == [(3,)]
    pair.con.execute("COMMIT")
    pair.check(connect(pair.folder))
    with ld.connect() as con:
        con.execute(f"BEGIN; DELETE FROM {a}; DELETE FROM {b}; ROLLBACK")
        con.execute(f"BEGIN; INSERT INTO {a} VALUES (10, 10); UPDATE {b} SET n = 2")
        assert rows(con, f"SELECT sum(n) FROM {b}") == [(6,)]
        con.execute("COMMIT")
    pair.native.execute("INSERT INTO a VALUES (10, 10); UPDATE b SET n = 2")
    pair.check(connect(pair.folder))
    assert outcomes(pair.folder) == ["published", "published"]


def test_a_folder_with_a_relative_path_has_groups(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pair.folder.parent)
    group = "BEGIN; INSERT INTO {0}a VALUES (9, 9); UPDATE {0}b SET n = 1; DROP TABLE {0}c; DELETE FROM {0}s.d; COMMIT"
    with ld.connect() as con:
        con.execute(f"ATTACH '{pair.folder.name}' AS f (TYPE lance); {group.format('f.')}")
    pair.native.execute(group.format(""))
    pair.check()


def test_groups_are_committed_on_an_object_store(tmp_path: Path, connect: Connect) -> None:
    place = f"memory://{tmp_path.name}"
    other = connect(place)
    with duckdb.connect() as native:
        pair = Pair(tmp_path, connect(place), native)
        pair.run(FIRST)
        for changes in ("rows", "merge", "columns and rows"):
            pair.run(f"BEGIN; {CHANGES[changes]}; ROLLBACK")
            pair.check(other)
            pair.run(f"BEGIN; {CHANGES[changes]}; COMMIT")
            pair.check(other, connect(place))
        pair.run("BEGIN; ALTER TABLE s.d RENAME TO f; UPDATE s.f SET m = 1; CREATE TABLE s.d AS FROM c; DELETE FROM a")
        pair.run("INSERT INTO b SELECT id FROM s.d; DROP TABLE s.e; CREATE SCHEMA z; CREATE VIEW v AS FROM s.f; COMMIT")
        for names in ("DROP TABLE a", "CREATE TABLE f AS FROM a", "ALTER TABLE a RENAME TO f"):
            pair.con.execute("BEGIN; INSERT INTO c VALUES (90, 90)")
            with pytest.raises(UnsupportedError, match="on an object store cannot be"):
                pair.con.execute(f"{names}; COMMIT")
            with suppress(duckdb.TransactionException):  # COMMIT has ended the transaction
                pair.con.execute("ROLLBACK")
        pair.check(other, connect(place))
    assert rows(other, "SELECT outcome, count(*) FROM lance_commits() GROUP BY ALL") == [("published", 4)]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO r.t VALUES (2); INSERT INTO r.u VALUES (2)",
        "INSERT INTO r.t VALUES (2); CREATE TABLE r.n AS SELECT 1 AS x",
        "INSERT INTO r.t VALUES (2); DROP TABLE r.u",
        "DROP TABLE r.u; INSERT INTO r.t VALUES (2)",
        "DROP TABLE r.t; DROP TABLE r.u",
        "INSERT INTO r.t VALUES (2); CREATE VIEW r.v AS FROM r.u",
    ],
)
def test_rest_services_refuse_groups(tmp_path: Path, sql: str) -> None:
    namespace = ld.DirectoryNamespace(str(tmp_path))
    namespace.create_namespace("n")
    for name in ("n$t", "n$u"):
        namespace.create_table(name, {"x": [1]})
    with RestAdapter("dir", {"root": str(tmp_path)}, port=0) as adapter, ld.connect() as con:
        con.execute(f"ATTACH 'n' AS r (TYPE lance, ENDPOINT 'http://127.0.0.1:{adapter.port}')")
        with pytest.raises(UnsupportedError, match="REST service"):
            con.execute(f"BEGIN; {sql}; COMMIT")
        with suppress(duckdb.TransactionException):  # COMMIT has ended the transaction
            con.execute("ROLLBACK")
        assert rows(con, "FROM r.t") == rows(con, "FROM r.u") == [(1,)]
        con.execute("BEGIN; INSERT INTO r.t VALUES (2); UPDATE r.t SET x = x + 1; COMMIT")
        assert rows(con, "FROM r.t") == [(2,), (3,)]


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 40))])
def test_random_transactions_have_the_same_result_as_in_a_native_database(
    tmp_path: Path, connect: Connect, seed: int
) -> None:
    with duckdb.connect() as native:
        transactions = RandomTransactions(Pair(tmp_path / "folder", connect(tmp_path / "folder"), native), Random(seed))
        try:
            transactions.run(20 if FULL else 8)
        finally:
            print("; ".join(transactions.log), dict(transactions.counts))
