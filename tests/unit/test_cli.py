"""The command line, on the golden tables."""

from __future__ import annotations

import datetime
import inspect
import io
import json
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from importlib import import_module
from keyword import iskeyword
from pathlib import Path

import pyarrow as pa
import pytest
from rich.console import Console
from support.command_line import objects, rows, run

import lance_duck as ld
import lance_duck_command as command
from lance_duck import cli
from lance_duck.cli.message import message_of
from lance_duck.cli.sql import command as sql_command
from lance_duck.errors import AlreadyExistsError, LanceDuckError

GOLDEN = Path(__file__).parents[1] / "golden"
HISTORY = str(GOLDEN / "tables" / "history.lance")
SHOP = str(GOLDEN / "tpch" / "tables")


COMMANDS = (
    *(
        "info",
        "tables",
        "schema",
        "head",
        "sql",
        "search",
        "versions",
        "diff",
        "files",
        "write",
        "import",
        "export",
        "compact",
        "cleanup",
        "validate",
    ),
    *(
        "repair",
        "indices",
        "index",
        "drop-index",
        "optimize",
        "serve",
        "mcp",
        "cache",
        "doctor",
        "bench",
        "warm-up",
        "build-kernels",
    ),
)


def test_help_lists_every_command_with_a_summary() -> None:
    listed = run("--help").stdout.partition("Commands:")[2].splitlines()
    assert tuple(line.split()[0] for line in listed if line.startswith("  ") and line[2] != " ") == COMMANDS
    assert all(len(line.split()) > 2 for line in listed if line.strip())
    assert not [line for line in listed if line.endswith("...")]


def test_command_names_of_other_tools_suggest_the_right_command() -> None:
    words = [(word, meant) for meant, others in command.OTHER_WORDS.items() for word in others.split()]
    assert len(words) == len(dict(words)) > 40
    assert {meant for _, meant in words} <= set(COMMANDS)
    assert not {word for word, _ in words} & set(COMMANDS)
    for word, meant in words:
        result = run(word, HISTORY)
        assert result.exit_code == 2
        assert f"No such command '{word}'. Did you mean 'lance-duck {meant}'?" in result.stderr


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("SELECT 1", 'A command and a folder or table come before SQL: lance-duck sql data "SELECT …"'),
        (HISTORY, f"A command comes first: lance-duck info {HISTORY}, or lance-duck sql {HISTORY}"),
        (__file__, f"A command comes first: lance-duck import TABLE {__file__}"),
        ("haed", "No such command 'haed'. Did you mean 'head'"),
        ("frobnicate", "No such command 'frobnicate'"),
    ],
)
def test_unknown_commands_suggest_the_right_call(first: str, message: str) -> None:
    result = run(first)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_is_rejected_as_table_with_the_import_command(tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("id,name,city\n1,Ada,London\n")
    for arguments, message in (
        (("head", str(file)), "this is a file: lance-duck import TABLE FILE loads CSV, Parquet or JSON into a table"),
        (("sql", str(file), "SELECT 1"), f"SQL reads files by their paths: FROM '{file}'"),
    ):
        with pytest.raises(LanceDuckError) as raised:
            run(*arguments)
        assert message in message_of(raised.value)
    table = str(tmp_path / "people.lance")
    run("import", table, str(file))
    with pytest.raises(LanceDuckError) as raised:
        run("search", table, "ada")
    assert message_of(raised.value).endswith(
        "name one with --column, or create an index: lance-duck index TABLE COLUMN --kind INVERTED"
    )


DOING = (
    *(
        cli.bench,
        cli.cache,
        cli.look,
        cli.change,
        cli.diff,
        cli.doctor,
        cli.indexes,
        cli.search,
        cli.serve,
        cli.transfer,
    ),
)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_function_accepts_its_arguments(name: str) -> None:
    declared = getattr(command, name.replace("-", "_") + "_" * iskeyword(name))
    (done,) = [
        getattr(module, declared.__name__)
        for module in (*DOING, sql_command)
        if inspect.isfunction(getattr(module, declared.__name__, None))
    ]
    assert list(inspect.signature(declared).parameters) == list(inspect.signature(done).parameters)
    assert declared.__doc__ == done.__doc__


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("sql", "--help"), ("index", "--help"), ("info",)])
def test_help_and_usage_errors_do_not_load_heavy_libraries(arguments: tuple[str, ...]) -> None:
    code = (
        "import sys; from lance_duck_command import main\n"
        "try: main()\n"
        "finally: print([m for m in ('lance_duck', 'pyarrow', 'duckdb', 'numpy', 'numba') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert found.stdout.splitlines()[-1] == "[]"


def test_version_is_shown() -> None:
    assert run("--version").stdout.startswith("lance-duck ")


def test_info_counts_rows_and_files() -> None:
    (found,) = objects("info", HISTORY)
    assert (found["version"], found["rows"], found["tags"]) == (6, 1, {"first": 1, "stable": 4})
    (old,) = objects("info", HISTORY, "--tag", "stable")
    assert (old["version"], old["latest_version"], old["rows"], old["deleted_rows"]) == (4, 6, 14, 4)
    assert old["formats"] == ["2.2"]


def test_info_in_a_pipe_is_csv() -> None:
    found = {row["field"]: row["value"] for row in rows("info", HISTORY)}
    assert found["version"] == "6"
    assert (found["tags.first"], found["tags.stable"]) == ("1", "4")
    assert (found["formats"], found["branches"]) == ("2.2", "")
    assert not any(mark in value for value in found.values() for mark in '{["')


def test_schema_lists_columns() -> None:
    assert rows("schema", HISTORY, "--version", "1") == [
        {"column": "id", "type": "int64", "nullable": "true"},
        {"column": "word", "type": "string", "nullable": "true"},
    ]


def test_head_shows_the_first_rows_of_a_version() -> None:
    assert rows("head", HISTORY, "-n", "2", "--tag", "first") == [{"id": "0", "word": "w0"}, {"id": "1", "word": "w1"}]
    assert objects("head", HISTORY, "--version", "1", "-n", "1") == [{"id": 0, "word": "w0"}]


def test_versions_list_their_tags() -> None:
    found = objects("versions", HISTORY)
    assert [entry["version"] for entry in found] == [1, 2, 3, 4, 5, 6]
    assert [entry["tags"] for entry in found] == ["first", "", "", "stable", "", ""]


def test_files_lists_data_and_deletion_files() -> None:
    found = objects("files", str(GOLDEN / "tables" / "deletions.lance"))
    assert [entry["deleted"] for entry in found] == [4, 7500, 14998, 0]
    assert [str(entry["deletion_file"]).rsplit(".")[-1] for entry in found] == ["arrow", "bin", "bin", "None"]
    assert all(entry["format"] == "2.2" and str(entry["path"]).endswith(".lance") for entry in found)


def test_sql_over_a_folder_reads_every_table() -> None:
    query = (
        "SELECT n_name FROM nation JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA' ORDER BY 1 LIMIT 2"
    )
    assert rows("sql", SHOP, query) == [{"n_name": "CHINA"}, {"n_name": "INDIA"}]


def test_sql_over_one_table_accepts_a_version() -> None:
    assert objects("sql", HISTORY, "SELECT count(*) AS n FROM history", "--version", "1") == [{"n": 10}]


def test_sql_is_read_from_standard_input() -> None:
    assert run("sql", HISTORY, "-", stdin="SELECT id FROM history").stdout == "id\n100\n"


def test_two_version_options_are_rejected() -> None:
    with pytest.raises(ValueError, match="several options choose a version"):
        run("info", HISTORY, "--version", "1", "--tag", "first")


def test_wrong_usage_exits_with_code_2() -> None:
    assert run("info").exit_code == 2
    assert run("nonsense").exit_code == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "nowhere.lance"),
        ("head", HISTORY, "--version", "99"),
        ("tables", "nowhere"),
    ],
)
def test_an_error_is_printed_on_one_line_with_exit_code_1(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = failed(arguments, monkeypatch, capsys)
    assert error.startswith("lance-duck: ")
    assert error.count("\n") == 1


def failed(arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Run a failing command and return its error output."""
    monkeypatch.setattr(sys, "argv", ["lance-duck", *arguments])
    with pytest.raises(SystemExit) as leaving:
        command.main()
    assert leaving.value.code == 1
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT wrd FROM history", ['\nCandidate bindings: "word"\n']),
        ("SELECT lenght(word) FROM history", ['\nDid you mean "length"?']),
        ("FROM histroy", ['\nDid you mean "history']),
        ("SELEC", ["\nLINE 1: SELEC\n", "\n        ^"]),
    ],
)
def test_duckdb_hints_stay_on_separate_lines(
    query: str, told: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = failed(("sql", HISTORY, query, "--version", "1"), monkeypatch, capsys)
    assert error.startswith("lance-duck: ")
    assert [line for line in told if line not in error] == []
    assert "\n\n" not in error


@pytest.mark.parametrize("source", ["(SELECT 1 AS id)", "rows.parquet", "rows.CSV", "some where/rows.json.gz"])
def test_swapped_write_arguments_are_detected(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = failed(("write", source, str(tmp_path / "t.lance")), monkeypatch, capsys)
    assert "expected the table first: lance-duck write TABLE SOURCE" in error
    assert f"; lance-duck write {tmp_path / 't.lance'} {shlex.quote(source)}" in error
    assert list(tmp_path.iterdir()) == []


def test_a_closed_pipe_ends_a_command_without_a_word() -> None:
    code = "from lance_duck_command import main; main()"
    query = "SELECT range FROM range(200000)"
    running = subprocess.Popen(
        [sys.executable, "-c", code, "sql", HISTORY, query], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline() == b"range\n"
    running.stdout.close()
    assert running.stderr.read() == b""
    running.stderr.close()
    assert running.wait() == 1


def test_a_missing_cli_dependency_suggests_the_install_command() -> None:
    code = "import sys; sys.modules['typer'] = None; from lance_duck_command import main; main()"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    needed = "typer, rich, prompt_toolkit, pygments, platformdirs"
    assert found.stderr == f"lance-duck: the command line needs {needed}; install the extra `cli`\n"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        (float("nan"), "nan"),
        ("a,b", "a,b"),
        (b"\x00\xff", "00ff"),
        (Decimal("12.30"), "12.30"),
        (datetime.date(2024, 2, 29), "2024-02-29"),
        ([1, None, "x"], '[1, null, "x"]'),
        ({"a": b"\x01"}, '{"a": "01"}'),
    ],
)
def test_csv_output_quotes_values(value: object, shown: str) -> None:
    assert cli.text(value) == shown


def test_a_terminal_gets_a_table_cut_to_size() -> None:
    screen = io.StringIO()
    found = [{"id": i, "word": "[red]w"} for i in range(5)]
    cli.show_table(found, ["id", "word"], 3, Console(file=screen, width=60))
    assert screen.getvalue().count("[red]w") == 3
    assert "first 3 rows" in screen.getvalue()


def test_write_compact_cleanup_and_validate_work_on_one_table(tmp_path: Path) -> None:
    source = tmp_path / "rows.csv"
    source.write_text("id,word\n1,a\n2,b\n3,c\n")
    table = str(tmp_path / "t.lance")
    assert run("write", table, str(source), "--json").stdout == '{"version": 1, "rows": 3}\n'
    assert run("write", table, "(SELECT 4::BIGINT AS id, 'd' AS word)", "--mode", "append").exit_code == 0
    assert json.loads(run("compact", table, "--json").stdout)["fragments_added"] == 1
    dry = json.loads(run("cleanup", table, "--older-than", "0", "--dry-run", "--json").stdout)
    assert dry["old_versions"] == 3
    assert json.loads(run("cleanup", table, "--older-than", "0", "--json").stdout) == dry
    sound = run("validate", table)
    assert (sound.exit_code, sound.stdout) == (0, "where,problem\n")
    assert sound.stderr == "lance-duck: no problem in version 4 (rows: 4, fragments: 1, indices: 0)\n"
    assert run("validate", table, "--json").stdout == ""
    (data,) = (tmp_path / "t.lance" / "data").iterdir()
    data.unlink()
    found = run("validate", table, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["where"] == f"fragment 2: {data.name}"


def test_repair_renames_items_of_lists(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"tags": [["a"]]}), table).alter_columns({"path": "tags.item", "name": "l"})
    found = run("validate", table)
    assert (found.exit_code, "column 'tags'" in found.stdout, "repair()" in found.stdout) == (0, True, True)
    assert found.stderr == "lance-duck: no damage in version 2 (rows: 1, fragments: 1, indices: 0)\n"
    repaired = run("repair", table)
    assert repaired.stdout == "what,rows,columns\nnames of list items,,tags\n"
    assert repaired.stderr == "lance-duck: nothing is lost; version 3\n"
    assert run("validate", table).stdout == "where,problem\n"


def test_repair_lists_its_losses(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    assert run("write", table, "(SELECT unnest(range(5)) AS id)").exit_code == 0
    assert run("write", table, "(SELECT 7::BIGINT AS id)", "--mode", "append").exit_code == 0
    sound = run("repair", table)
    assert (sound.stdout, sound.stderr) == ("what,rows,columns\n", "lance-duck: nothing is lost; version 2\n")
    file = max((tmp_path / "t.lance" / "data").iterdir(), key=lambda path: path.stat().st_mtime_ns)
    file.write_bytes(bytes(file.stat().st_size))
    dry = run("repair", table, "--dry-run", "--json")
    assert json.loads(dry.stdout) == {"what": "fragment 1", "rows": 1, "columns": "id"}
    assert dry.stderr == "lance-duck: rows lost: 1; version 2\n"
    assert run("repair", table).stderr == "lance-duck: rows lost: 1; version 3\n"
    assert [row["id"] for row in rows("head", table)] == ["0", "1", "2", "3", "4"]


def test_write_replaces_a_table_only_on_request(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    assert run("write", table, "(SELECT 1 AS id)").exit_code == 0
    with pytest.raises(AlreadyExistsError):
        run("write", table, "(SELECT 2 AS id)")
    assert run("write", table, "(SELECT 3 AS id)", "--mode", "overwrite").exit_code == 0
    assert rows("head", table) == [{"id": "3"}]


@pytest.mark.parametrize("source", ["SELECT 7 AS id", " from (SELECT 7 AS id)", "(SELECT 7 AS id)", "VALUES (7)"])
def test_write_accepts_sql_with_and_without_parentheses(source: str, tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    assert run("write", table, source).exit_code == 0
    assert list(rows("head", table)[0].values()) == ["7"]


def test_indexes_are_created_listed_optimized_and_dropped(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    run("write", table, "(SELECT range AS id, range % 3 AS kind FROM range(10))")
    assert objects("index", table, "kind", "--kind", "zonemap", "--name", "k") == [
        {"version": 2, "name": "k", "indexed_rows": 10}
    ]
    run("write", table, "(SELECT range AS id, range % 3 AS kind FROM range(5))", "--mode", "append")
    (found,) = objects("indices", table)
    shown = ("name", "kind", "columns", "segments", "indexed_rows", "unindexed_rows")
    assert [found[name] for name in shown] == ["k", "ZoneMap", "kind", 1, 10, 5]
    assert objects("optimize", table, "--memory-limit", "8MB") == [{"version": 4, "indices": 1, "unindexed_rows": 0}]
    assert objects("optimize", table, "--memory-limit", "8000000")[0]["version"] == 4
    assert objects("optimize", table, "--index", "k") == [{"version": 4, "indices": 1, "unindexed_rows": 0}]
    assert objects("indices", table, "--version", "1") == []
    assert objects("drop-index", table, "k") == [{"version": 5}]
    assert objects("indices", table) == []


def test_vectors_are_indexed(tmp_path: Path) -> None:
    table = str(tmp_path / "t.lance")
    run("write", table, "(SELECT range AS id, [range, 1, range % 5]::FLOAT[3] AS v FROM range(20))")
    assert objects("index", table, "v", "--kind", "ivf_flat", "--metric", "cosine", "--partitions", "2") == [
        {"version": 2, "name": "v_idx", "indexed_rows": 20}
    ]
    assert objects("indices", table)[0]["kind"] == "IVF_FLAT"


@pytest.fixture(scope="module")
def pets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Four rows with texts, at distances 0, 2, 8, 18 from the origin."""
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i // 2) for i in range(8)], pa.float32()), 2)
    texts = ["a puppy", "the [bold]dogs[/bold] ran", "puppy dog", None]
    uri = tmp_path_factory.mktemp("pets") / "t.lance"
    ld.write_dataset(pa.table({"id": [1, 2, 3, 4], "vec": vectors, "text": texts}), uri)
    return str(uri)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("dog running",), [3, 2]),
        (("dog", "-k", "1"), [3]),
        (('"puppy dog"', "--column", "TEXT"), [3]),
        (('{"prefix": {"terms": "pup"}}', "-c", "text", "--filter", "id > 1"), [3]),
        (("--vector", "[0, 0.1]", "-k", "2"), [1, 2]),
        (("--like", "1", "-k", "2", "--where", "id < 4"), [1, 3]),
        (("dog", "--vector", "[0, 0]", "--vector-column", "vec", "-k", "2"), [3, 1]),
        (("nothing",), []),
    ],
)
def test_search_finds_rows_by_text_vector_or_both(pets: str, arguments: tuple[str, ...], expected: list[int]) -> None:
    assert [row["id"] for row in objects("search", pets, *arguments)] == expected


def test_search_shows_scores_and_row_ids_but_no_vectors_by_default(pets: str) -> None:
    (found,) = rows("search", pets, "puppy", "-k", "1")
    assert list(found) == ["id", "text", "_score", "_rowid"]
    (found,) = rows("search", pets, "--vector", "[0, 0]", "-k", "1", "--select", "id", "--select", "vec")
    assert found == {"id": "1", "vec": "[0.0, 0.0]", "_distance": "0.0", "_rowid": "0"}


def test_search_highlights_words_on_a_terminal(pets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard", no_color=False)
    module = import_module("lance_duck.cli.show")
    monkeypatch.setattr(module, "Console", lambda: console)
    monkeypatch.setattr(cli.search, "usual_form", lambda _: module.Form.table)
    cli.search.search(pets, "dog puppies", select=["text"])
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert "the [bold]\x1b[1;33mdogs\x1b[0m[/bold] ran" in drawn
    assert "\x1b[1;33mpuppy\x1b[0m \x1b[1;33mdog\x1b[0m" in drawn


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the search does not have a query"),
        (("dog", "--vector", "[0"), "--vector: expected numbers in JSON"),
        (("--vector", "[0, 0]", "--like", "1"), "--vector and --like exclude each other"),
        (("--like", "99"), "--like: expected the _rowid of a row"),
        (("dog", "--column", "id"), "must contain strings"),
        (("dog", "--filter", "no_column = 1"), "no column 'no_column'"),
    ],
)
def test_invalid_searches_raise_clear_errors(pets: str, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(LanceDuckError, match=re.escape(message)):
        run("search", pets, *arguments)
