"""The shell for SQL, with keys out of a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import lance_duck as ld
from lance_duck.cli.show import Form
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.shell import Shell, file_history
from lance_duck.errors import LanceDuckError

ENTER, CTRL_C, CTRL_D = "\r", "\x03", "\x04"

Typed = Callable[..., tuple[list[str], list[str]]]


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[StatementRunner]:
    ld.write_dataset({"id": [1, 2, 3], "name": ["a", "b", "c"]}, tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        yield StatementRunner(connection, Results(Form.csv))


@pytest.fixture
def typed(runner: StatementRunner, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Type keys into a shell; return its lines after the greeting, and its stderr lines."""

    def type_keys(*keys: str) -> tuple[list[str], list[str]]:
        with create_pipe_input() as pipe:
            pipe.send_text("".join(keys))
            Shell(runner, input=pipe, output=DummyOutput(), history=InMemoryHistory()).run()
        written = capsys.readouterr()
        return written.out.splitlines()[1:], written.err.splitlines()

    return type_keys


def test_a_statement_runs_at_its_semicolon(typed: Typed) -> None:
    assert typed("SELECT count(*)", ENTER, "AS n", ENTER, "FROM t;", ENTER, CTRL_D) == (["n", "3"], [])


def test_several_statements_on_one_line_run_in_order(typed: Typed) -> None:
    done = typed("INSERT INTO t VALUES (4, 'd'); SELECT max(id) AS m FROM t;", ENTER, ".quit", ENTER)
    assert done == (["Count", "1", "", "m", "4"], [])


def test_the_shell_shows_an_error_and_continues(typed: Typed) -> None:
    written, wrong = typed("SELECT", ENTER, "  nope", ENTER, "FROM t;", ENTER, "SELECT 1 AS a;", ENTER, CTRL_D)
    assert written == ["a", "1"]
    assert wrong[0].startswith("lance-duck: Binder Error")
    assert "LINE 2:   nope" in wrong


def test_ctrl_c_discards_the_current_input(typed: Typed) -> None:
    assert typed("SELECT 1 AS", CTRL_C, "SELECT 2 AS b;", ENTER, CTRL_D) == (["b", "2"], ["lance-duck: interrupted"])


def test_tables_and_their_columns_are_listed(typed: Typed) -> None:
    assert typed(".tables", ENTER, ".schema t", ENTER, CTRL_D)[0] == [
        *("database,schema,name,column_names", 'lance,main,t,"[""id"", ""name""]"', ""),
        *("column_name,column_type,null,key,default,extra", "id,BIGINT,YES,,,", "name,VARCHAR,YES,,,"),
    ]


def test_tables_are_listed_by_name_in_a_terminal(typed: Typed, runner: StatementRunner) -> None:
    runner.results.form = Form.table
    native = "CREATE TABLE native AS SELECT 1 AS a; CREATE VIEW v AS FROM lance.t;"
    written = typed(
        f"USE memory; {native} CREATE SCHEMA s; CREATE TABLE s.t (a INT);", ENTER, ".tables", ENTER, CTRL_D
    )[0]
    assert written[-4:] == ["lance.main.t", "native", "v", "memory.s.t"]


def test_the_columns_of_all_tables_are_listed(typed: Typed) -> None:
    (head, *columns), _ = typed("CREATE VIEW v AS SELECT 1 AS a;", ENTER, ".schema", ENTER, CTRL_D)
    assert head == "column_name,column_type,null,key,default,extra"
    assert [line.partition(",")[0] for line in columns] == ["id", "name", "", "column_name", "a"]


@pytest.mark.parametrize(
    "words",
    ["quit", "exit", "QUIT;", "exit ;", "quit()", r"\q", ".quit", ".exit", ".q", ".EXIT", ".quit;", " quit "],
)
def test_the_words_of_other_shells_leave(typed: Typed, words: str) -> None:
    assert typed(words, ENTER, "SELECT 1 AS a;", ENTER, CTRL_D) == ([], [])


@pytest.mark.parametrize("words", [".quit", ".exit;", r"\q", CTRL_D])
def test_an_unfinished_statement_does_not_keep_the_user(typed: Typed, words: str) -> None:
    assert typed("SELECT 1", ENTER, words, *([] if words == CTRL_D else [ENTER]), "SELECT 2;", ENTER) == ([], [])


def test_columns_may_be_named_like_commands(typed: Typed) -> None:
    done = typed("SELECT 1 AS", ENTER, "exit", ENTER, ";", ENTER, "SELECT 2 AS quit;", ENTER, CTRL_D)
    assert done == (["exit", "1", "", "quit", "2"], [])


@pytest.mark.parametrize("words", ["help", "HELP;", r"\?", ".help"])
def test_help_is_found_by_its_usual_words(typed: Typed, words: str) -> None:
    assert typed(words, ENTER, CTRL_D)[0][0].startswith(".help")


def test_a_file_is_read(typed: Typed, tmp_path: Path) -> None:
    file = tmp_path / "a file.sql"
    file.write_text("SELECT 1 AS a;\nSELECT nope;\nSELECT 2 AS b;")
    written, wrong = typed(f".read '{file}'", ENTER, ".read nowhere.sql", ENTER, CTRL_D)
    assert written == ["a", "1"]
    assert wrong[0].startswith(f"lance-duck: {file}:2: ")
    assert wrong[-1] == "lance-duck: nowhere.sql: no such SQL file"


def test_mode_changes_the_output_format(typed: Typed) -> None:
    done = typed(".mode json", ENTER, "SELECT 1 AS a;", ENTER, ".mode", ENTER, CTRL_D)
    assert done == (["mode: json", '{"a": 1}', "mode: json"], [])


def test_the_timer_reports_the_duration_of_a_statement(typed: Typed) -> None:
    _, told = typed(".timer on", ENTER, "SELECT 1;", ENTER, ".timer off", ENTER, "SELECT 2;", ENTER, CTRL_D)
    (line,) = told
    assert line.startswith("Run time: ")


def test_help_lists_the_commands(typed: Typed) -> None:
    assert [line.split()[0] for line in typed(".help", ENTER, CTRL_D)[0]] == [
        *(".help", ".tables", ".schema", ".read", ".mode", ".timer", ".quit", ".exit")
    ]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (".tabels", "did you mean '.tables'?"),
        (".read", "expected .read FILE"),
        (".help me", "expected .help"),
        (".mode xml", "expected 'table' or 'csv' or 'json'"),
        (".timer", "expected .timer on|off"),
        (".read 'a", "No closing quotation"),
    ],
)
def test_invalid_shell_commands_are_explained(typed: Typed, command: str, told: str) -> None:
    written, (wrong,) = typed(command, ENTER, CTRL_D)
    assert written == []
    assert told in wrong


def test_a_transaction_spans_several_statements(typed: Typed, runner: StatementRunner) -> None:
    typed("BEGIN;", ENTER, "DELETE FROM t;", ENTER, CTRL_D)
    assert runner.connection.in_transaction
    runner.leave()
    assert runner.connection.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


@pytest.mark.parametrize(
    "wrong",
    [
        *("FROM t WHERE nope", "FROM missing", "SELEC", "SELECT CAST('a' AS INTEGER)", "UPDATE t SET nope = 1"),
        *("DESCRIBE missing", "WITH c AS (FROM missing) FROM c", "SELECT error('x') FROM t"),
    ],
)
def test_an_error_aborts_the_transaction_as_execute_does(
    typed: Typed, runner: StatementRunner, wrong: str, tmp_path: Path
) -> None:
    typed("BEGIN;", ENTER, "DELETE FROM t WHERE id = 1;", ENTER, f"{wrong};", ENTER, "COMMIT;", ENTER, CTRL_D)
    runner.leave()
    left = runner.connection.execute("SELECT list(id ORDER BY id) FROM t").fetchall()
    ld.write_dataset({"id": [1, 2, 3]}, tmp_path / "other" / "t.lance")
    with ld.connect(tmp_path / "other") as con:
        con.execute("BEGIN; DELETE FROM t WHERE id = 1")
        with pytest.raises((duckdb.Error, LanceDuckError)):
            con.execute(wrong)
        with suppress(duckdb.Error, LanceDuckError):
            con.execute("COMMIT")
        if con.in_transaction:
            con.rollback()
        assert con.execute("SELECT list(id ORDER BY id) FROM t").fetchall() == left


def test_history_is_stored_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.sql"
    history = file_history(path)
    history.append_string("SELECT 1;\nSELECT 2;")
    history.append_string("CREATE SECRET s (TYPE s3, KEY_ID 'abc')")
    assert list(file_history(path).load_history_strings()) == ["SELECT 1;\nSELECT 2;"]
    assert path.stat().st_mode & 0o077 == 0
