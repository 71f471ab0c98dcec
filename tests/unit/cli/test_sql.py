"""`lance-duck sql`: statements of arguments, files and pipes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pytest
from support.command_line import objects, run

import lance_duck as ld
from lance_duck.cli.sql.runner import interruptible
from lance_duck.errors import InvalidInputError, NotFoundError

ENDLESS = "SELECT sum(a.range * b.range % 7) FROM range(100000000) a, range(100000) b"


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with `t.lance`: ids 1, 2 and 3 in its one version."""
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "data" / "t.lance")
    return str(tmp_path / "data")


def ids(folder: str) -> list[int]:
    return sorted(ld.dataset(f"{folder}/t.lance").to_table()["id"].to_pylist())


def script(tmp_path: Path, name: str, text: str) -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def test_several_statements_in_an_argument_run_in_order(folder: str) -> None:
    done = run("sql", folder, "INSERT INTO t VALUES (4); SELECT max(id) AS m FROM t; DELETE FROM t WHERE id < 3")
    assert done.stdout == "Count\n1\n\nm\n4\n\nCount\n2\n"
    assert ids(folder) == [3, 4]


def test_json_output_has_one_object_per_line(folder: str) -> None:
    assert objects("sql", folder, "UPDATE t SET id = id + 1 RETURNING id; SELECT 1 AS a, 2 AS a") == [
        *({"id": 2}, {"id": 3}, {"id": 4}),
        {"a": 1, "a_1": 2},
    ]


def test_statements_without_rows_print_nothing(folder: str) -> None:
    assert run("sql", folder, "BEGIN; SET threads = 2; CREATE TEMP TABLE x (a INT); ROLLBACK").stdout == ""


def test_a_query_without_rows_writes_its_header(folder: str) -> None:
    assert run("sql", folder, 'SELECT 1 AS "Count" WHERE false').stdout == "Count\n"


def test_files_run_before_the_argument(folder: str, tmp_path: Path) -> None:
    first = script(tmp_path, "a.sql", "-- makes a table\nCREATE TABLE lance.u AS SELECT 7 AS x;\n")
    second = script(tmp_path, "b.sql", "INSERT INTO u\nVALUES (8);")
    done = run("sql", folder, "-f", first, "--file", second, "FROM u ORDER BY x", "--json")
    assert done.stdout.splitlines()[-2:] == ['{"x": 7}', '{"x": 8}']


def test_a_pipe_is_a_script(folder: str) -> None:
    assert run("sql", folder, stdin="DELETE FROM t WHERE id = 1;\nSELECT count(*) AS n FROM t").stdout == (
        "Count\n1\n\nn\n2\n"
    )
    assert run("sql", folder, stdin="").stdout == ""


def test_a_script_may_contain_shell_commands(folder: str, tmp_path: Path) -> None:
    other = script(tmp_path, "a.sql", ".mode json\nSELECT 1 AS a;\n.quit\nSELECT 2 AS a;")
    assert run("sql", folder, stdin=".mode csv\n.tables\n").stdout == (
        'database,schema,name,column_names\nlance,main,t,"[""id""]"\n'
    )
    assert run("sql", folder, ".schema t").stdout.splitlines()[1] == "id,BIGINT,YES,,,"
    assert run("sql", folder, stdin=f".read '{other}'\nSELECT 3 AS a;").stdout == '{"a": 1}\n'
    assert run("sql", folder, "-f", other, "SELECT 3 AS a").stdout == '{"a": 1}\n'


@pytest.mark.parametrize("words", [".quit", "quit", "exit;", r"\q"])
def test_a_script_ends_where_it_leaves(folder: str, words: str) -> None:
    done = run("sql", folder, stdin=f"SELECT 1 AS a;\n{words}\nDELETE FROM t;\n")
    assert (done.exit_code, done.stdout, done.stderr, ids(folder)) == (0, "a\n1\n", "", [1, 2, 3])


def test_a_script_stops_at_a_wrong_command(folder: str, tmp_path: Path) -> None:
    failed = run("sql", folder, stdin="SELECT 1 AS a;\n.table\nDELETE FROM t;\n")
    assert (failed.exit_code, failed.stdout, ids(folder)) == (1, "a\n1\n", [1, 2, 3])
    assert failed.stderr.startswith("lance-duck: <stdin>:2: ")
    wrong = script(tmp_path, "a.sql", "FROM nope;")
    assert run("sql", folder, stdin=f".read '{wrong}'\nDELETE FROM t;").exit_code == 1
    assert ids(folder) == [1, 2, 3]


def test_a_script_stops_at_its_first_error_with_file_and_line(folder: str, tmp_path: Path) -> None:
    file = script(tmp_path, "a.sql", "DELETE FROM t WHERE id = 1;\n\nSELECT\n  nope\nFROM t;\nDELETE FROM t;\n")
    failed = run("sql", folder, "-f", file)
    assert (failed.exit_code, failed.stdout) == (1, "Count\n1\n")
    assert failed.stderr.startswith(f'lance-duck: {file}:4: Binder Error: Referenced column "nope" not found')
    assert "\nLINE 4:   nope\n" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert ids(folder) == [2, 3]


def test_errors_of_lance_tables_name_file_and_line(folder: str) -> None:
    failed = run("sql", folder, stdin="SELECT 1;\nALTER TABLE t\nADD PRIMARY KEY (id)")
    assert failed.stderr.startswith("lance-duck: <stdin>:2: ")
    assert failed.exit_code == 1


def test_keep_going_continues_after_an_error(folder: str, tmp_path: Path) -> None:
    file = script(tmp_path, "a.sql", "FROM nope;\nDELETE FROM t WHERE id = 1;\n")
    failed = run("sql", folder, "-f", file, "FROM nope2", "--keep-going")
    assert (failed.exit_code, failed.stdout) == (1, "Count\n1\n")
    assert [line.partition(" Error")[0] for line in failed.stderr.splitlines() if "Error" in line] == [
        f"lance-duck: {file}:1: Catalog",
        "lance-duck: Catalog",
    ]


def test_no_further_file_runs_after_an_error(folder: str, tmp_path: Path) -> None:
    files = [script(tmp_path, "a.sql", "FROM nope"), script(tmp_path, "b.sql", "DELETE FROM t")]
    assert run("sql", folder, "-f", files[0], "-f", files[1]).exit_code == 1
    assert ids(folder) == [1, 2, 3]


def test_a_transaction_commits_one_version(folder: str) -> None:
    run("sql", folder, "BEGIN; DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (9); COMMIT")
    assert (ids(folder), ld.dataset(f"{folder}/t.lance").version) == ([2, 3, 9], 2)


def test_an_open_transaction_is_rolled_back_and_reported(folder: str) -> None:
    done = run("sql", folder, "BEGIN; DELETE FROM t")
    assert done.stderr == "lance-duck: the open transaction was rolled back, because it ended without COMMIT\n"
    assert ids(folder) == [1, 2, 3]


def test_read_only_rejects_changes(folder: str) -> None:
    refused = run("sql", folder, "DELETE FROM t", "--read-only")
    assert (refused.exit_code, ids(folder)) == (1, [1, 2, 3])
    assert "the connection is read-only" in refused.stderr


def test_a_selected_version_is_read_only(folder: str) -> None:
    table = f"{folder}/t.lance"
    run("sql", folder, "DELETE FROM t WHERE id = 1")
    assert objects("sql", table, "SELECT count(*) AS n FROM t", "--version", "1") == [{"n": 3}]
    assert run("sql", table, "DELETE FROM t", "--version", "1").exit_code == 1
    assert ids(folder) == [2, 3]


def test_several_tables_can_be_connected_at_once(folder: str, tmp_path: Path) -> None:
    ld.write_dataset({"id": [3], "name": ["c"]}, tmp_path / "names.lance")
    places = [f"{folder}/t.lance", str(tmp_path / "names.lance")]
    assert objects("sql", *places, "FROM t JOIN names USING (id)") == [{"id": 3, "name": "c"}]
    with pytest.raises(InvalidInputError, match="expected one folder, or tables"):
        run("sql", folder, str(tmp_path / "names.lance"), "SELECT 1")
    with pytest.raises(InvalidInputError, match="two tables have the same name"):
        run("sql", f"{folder}/t.lance", f"{folder}/t.lance", "SELECT 1")


def test_the_current_folder_may_be_the_table(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ld.write_dataset({"x": [1, 2]}, f"{folder}/inside.lance")
    monkeypatch.chdir(f"{folder}/inside.lance")
    assert objects("sql", ".", "SELECT count(*) AS n FROM inside") == [{"n": 2}]


def test_without_a_path_sql_reads_tables_by_path(folder: str) -> None:
    assert objects("sql", f"SELECT count(*) AS n FROM '{folder}/t.lance'") == [{"n": 3}]


def test_in_transaction_reports_the_transaction_state(folder: str) -> None:
    with ld.connect(folder) as connection:
        states = [connection.in_transaction]
        for statement in ("BEGIN", "DELETE FROM t", "COMMIT", "BEGIN", "ROLLBACK"):
            connection.execute(statement)
            states.append(connection.in_transaction)
    assert states == [False, True, True, False, True, False]


@pytest.mark.usefixtures("_sigint")
@pytest.mark.parametrize("read", ["execute", "sql"])
def test_ctrl_c_interrupts_a_duckdb_query(folder: str, read: str) -> None:
    with ld.connect(folder) as connection:
        pressed = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        pressed.start()
        with pytest.raises(BaseException, match=r"nterrupt|^$") as ended, interruptible(connection) as interruption:
            getattr(connection, read)(ENDLESS).fetchall()
        pressed.join()
        assert interruption.happened
        # DuckDB 1 raises a Python RuntimeError if it notices the signal first.
        assert isinstance(ended.value, KeyboardInterrupt | RuntimeError | duckdb.InterruptException)
        assert connection.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_an_interrupt_raised_by_duckdb_ends_a_script(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB may see the signal before the thread that waits for it."""

    def stopped(*_: object) -> None:
        raise RuntimeError("Query interrupted")

    monkeypatch.setattr(ld.Connection, "sql", stopped)
    assert run("sql", folder, "SELECT 1").exit_code == 130


BEGUN = """
import signal
import sys
import lance_duck
from lance_duck_command import main

sql = lance_duck.Connection.sql

def told(self, *args, **options):
    print("begun", file=sys.stderr, flush=True)
    return sql(self, *args, **options)

lance_duck.Connection.sql = told
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""


def test_ctrl_c_ends_a_script_immediately(folder: str) -> None:
    command = [sys.executable, "-c", BEGUN, "sql", folder, ENDLESS]
    environment = os.environ | {"LANCE_DUCK_QUIET": "1"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as running:
        try:
            assert running.stderr is not None
            assert running.stderr.readline() == b"begun\n"
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == 130
            assert b"Traceback" not in running.stderr.read()
        finally:
            running.kill()


def test_a_missing_folder_is_named_and_created_by_its_first_table(tmp_path: Path) -> None:
    place = str(tmp_path / "new")
    failed = run("sql", place, "FROM t")
    assert failed.exit_code == 1
    assert f"lance-duck: {place}: no such folder yet; a first CREATE TABLE makes it\n" in failed.stderr
    assert f"lance-duck: {place}: no such folder: expected" in failed.stderr
    done = run("sql", place, "CREATE TABLE lance.t AS SELECT 1 AS id; FROM t")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1")
    assert run("sql", place, "FROM t").stderr == ""
    with pytest.raises(NotFoundError, match="no such folder"):
        run("sql", str(tmp_path / "other"), "--read-only", "SELECT 1")
    with pytest.raises(NotFoundError, match=r"no such folder; did you mean 'new'\? Create the folder if it is new"):
        run("sql", str(tmp_path / "news"), "CREATE TABLE lance.t AS SELECT 1 AS id")


@pytest.mark.parametrize(
    ("sql", "line"),
    [
        ("CREATE TABLE memory.q AS FROM t", "table q; CREATE TABLE lance.q AS … keeps a table"),
        ("CREATE OR REPLACE TABLE memory.main.q (x INT)", "table q; CREATE TABLE lance.q AS … keeps a table"),
        ("USE memory; CREATE VIEW v AS FROM lance.t", "view v; CREATE TABLE lance.v AS … keeps its rows"),
        (
            "USE memory; CREATE SCHEMA s; CREATE TABLE s.w (x INT); CREATE VIEW v AS SELECT 1;"
            'CREATE TABLE "a b" (x INT)',
            'table "a b", table s.w, view v; CREATE TABLE lance."a b" AS … keeps a table',
        ),
        (
            "".join(f"CREATE TABLE memory.q{i} (x INT);" for i in range(7)),
            "table q0, table q1, table q2, table q3, table q4 and 2 more; CREATE TABLE lance.q0 AS … keeps a table",
        ),
        (
            'CREATE TABLE memory."a\n\x1b[2J" (x INT)',
            r'table "a\n\x1b[2J"; CREATE TABLE lance."a\n\x1b[2J" AS … keeps a table',
        ),
        (
            "CREATE TABLE memory.q AS FROM t; BEGIN; DROP TABLE memory.q",
            "table q; CREATE TABLE lance.q AS … keeps a table",
        ),
    ],
)
def test_objects_lost_with_the_in_memory_database_are_listed(folder: str, tmp_path: Path, sql: str, line: str) -> None:
    expected = f"lance-duck: in memory only, and gone now: {line}"
    for arguments in ([sql], ["-f", script(tmp_path, "a.sql", sql)]):
        done = run("sql", folder, *arguments)
        assert (done.exit_code, done.stderr.splitlines()[-1]) == (0, expected)
    assert run("sql", folder, sql + "; SELECT nothing").stderr.splitlines()[-1] == expected


def test_the_in_memory_notice_suggests_a_path_without_a_folder(folder: str) -> None:
    line = "lance-duck: in memory only, and gone now: table q; CREATE TABLE 'q.lance' AS … keeps a table\n"
    assert run("sql", "CREATE TABLE q AS SELECT 1").stderr == line
    assert run("sql", f"{folder}/t.lance", "CREATE TABLE q AS FROM t").stderr == line


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE q AS FROM t; CREATE VIEW v AS FROM q",
        "CREATE TABLE lance.q AS FROM t",
        "CREATE TEMP TABLE q AS FROM t; CREATE TEMP VIEW v AS FROM q",
        "CREATE TABLE memory.q AS FROM t; DROP TABLE memory.q",
        "CREATE TABLE memory.q AS FROM t; ALTER TABLE memory.q RENAME TO r; DROP TABLE memory.r",
        "BEGIN; CREATE TABLE memory.q AS FROM t; ROLLBACK",
        "ATTACH ':memory:' AS own; CREATE TABLE own.q AS FROM t",
        "ATTACH '{tmp}/own.duckdb' AS own; USE own; CREATE TABLE q AS SELECT 1",
        "USE lance; CREATE TABLE q AS FROM t",
        "FROM t",
    ],
)
def test_the_in_memory_notice_skips_stored_temporary_and_dropped_objects(folder: str, tmp_path: Path, sql: str) -> None:
    done = run("sql", folder, sql.replace("{tmp}", str(tmp_path)))
    assert (done.exit_code, done.stderr) == (0, "")
