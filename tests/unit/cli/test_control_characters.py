"""A terminal is never given control characters of names, cells, paths and errors."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import typer
from support.command_line import objects, run

import lance_duck as ld
import lance_duck_command as command
from lance_duck.cli.terminal import printable

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\x7f\r\u202eabc\u2066"
SHOWN = r"\x1b]0;title\x07\x1b[2J\x9b31m\x7f\x0d\u202eabc\u2066"
NAME = f"n{EVIL}"

# Runs commands one after the other, like `main`, on the given terminal.
PROGRAM = """
import json, sys
from lance_duck_command import main
for arguments in json.loads(sys.argv[1]):
    print(">>>", arguments[0], flush=True)
    sys.argv = ["lance-duck", *arguments]
    try:
        main()
    except SystemExit as end:
        print("exit code", end.code, flush=True)
"""


def shown_on_terminal(*commands: list[str]) -> str:
    """Return the terminal output of commands, stdout and stderr together."""
    screen, inside = pty.openpty()
    termios.tcsetwinsize(inside, (40, 400))
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", "COLUMNS": "400"}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        stdin=subprocess.DEVNULL,
        stdout=inside,
        stderr=inside,
        env=environment,
    )
    os.close(inside)
    shown = bytearray()
    try:
        while part := os.read(screen, 65536):
            shown += part
    except OSError:  # the process has ended
        pass
    os.close(screen)
    process.wait()
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of two versions whose path, names and cells are hostile."""
    uri = str(tmp_path_factory.mktemp("data") / f"{NAME}.lance")
    texts = pa.array([f"duck {EVIL}", "duck \x02 \x03"])
    vectors = pa.FixedSizeListArray.from_arrays(np.arange(8, dtype=np.float32), 4)
    nested = pa.array([{EVIL: [EVIL]}] * 2)
    dataset = ld.write_dataset(
        pa.table({NAME: texts, "s": texts, "id": [1, 2], "v": vectors, "nested": nested}),
        uri,
        enable_stable_row_ids=True,
    )
    dataset.create_scalar_index("s", "INVERTED", NAME)
    dataset.insert(dataset.to_table())
    dataset.update_config({NAME: EVIL})
    return uri


def commands_of(table: str, folder: Path) -> dict[str, list[list[str]]]:
    """Return command lines of every command that display hostile strings, including errors."""
    quoted = '"' + NAME + '"'
    source = f"SELECT 1 AS {quoted}"
    other = str(folder / f"o{EVIL}.lance")
    return {
        "info": [["info", table], ["info", other]],
        "tables": [["tables", str(Path(table).parent)], ["tables", other]],
        "schema": [["schema", table]],
        "head": [["head", table], ["head", table, "--columns", EVIL], ["head", table, "--where", f"{quoted} = 1 AND"]],
        "sql": [
            ["sql", table, f"FROM '{table}'"],
            [
                "sql",
                table,
                f"SELECT '{EVIL}' AS {quoted}; EXPLAIN SELECT '{EVIL}' AS {quoted}; DESCRIBE FROM '{table}'",
            ],
            ["sql", table, f"SELECT {quoted}; "],
            ["sql", table, f"SELECT error('{EVIL}')"],
            ["sql", table, f"FROM '{other}'"],
            ["sql", "-f", EVIL],
        ],
        "search": [
            ["search", table, "duck"],
            ["search", table, "--vector", "[0, 1, 2, 3]"],
            ["search", table, "duck", "--column", EVIL],
            ["search", table, "--vector", EVIL],
        ],
        "versions": [["versions", table]],
        "diff": [["diff", table], ["diff", table, "--rows"], ["diff", table, "--from", EVIL]],
        "files": [["files", table]],
        "write": [["write", table, EVIL], ["write", other, source]],
        "import": [["import", table, EVIL], ["import", str(folder / "i.lance"), source]],
        "export": [["export", table, str(folder / f"{EVIL}.csv")], ["export", table, str(folder / f"x.{EVIL}")]],
        "compact": [["compact", table], ["compact", other + EVIL]],
        "cleanup": [["cleanup", table]],
        "validate": [["validate", table], ["validate", str(folder / "damaged.lance")]],
        "repair": [["repair", table, "--dry-run"]],
        "indices": [["indices", table]],
        "index": [
            ["index", table, EVIL],
            ["index", table, "id", "--kind", EVIL],
            ["index", table, "id", "--name", EVIL],
        ],
        "drop-index": [["drop-index", table, EVIL]],
        "optimize": [["optimize", table], ["optimize", table, "--index", EVIL]],
        "serve": [["serve", other]],
        "mcp": [["mcp", other]],
        "cache": [["cache", table], ["cache", str(folder / EVIL)]],
        "doctor": [["doctor", table, other]],
        "bench": [["bench", table, "--runs", "1", "--where", f"s <> '{EVIL}'"]],
        "warm-up": [["warm-up", EVIL]],
        "build-kernels": [["build-kernels", "--level", EVIL]],
    }


def test_commands_never_print_control_characters_to_a_terminal(table: str, tmp_path: Path) -> None:
    ld.write_dataset({NAME: [EVIL]}, tmp_path / "damaged.lance")
    for file in (tmp_path / "damaged.lance" / "data").iterdir():
        file.write_bytes(b"")
    commands = commands_of(table, tmp_path)
    assert sorted(commands) == sorted(typer.main.get_command(command.app).commands)  # type: ignore[attr-defined]
    shown = shown_on_terminal(*(line for lines in commands.values() for line in lines), ["head", table, EVIL])
    own = re.sub(r"\x1b\[([\d;]*m|\?25[lh]|2K|1A)|\r", "", shown)  # colours and the progress bar
    assert [each for each in own if not each.isprintable() and each not in "\n\t"] == []
    assert "Traceback" not in own
    outputs = own.split(">>> ")[1:]
    silent = {output.splitlines()[0] for output in outputs if r"\x1b]0;" not in output}
    quiet = {"write", "import", "export", "compact", "cleanup", "validate", "repair", "drop-index", "optimize"}
    assert silent <= quiet | {"files", "versions", "diff", "bench"}
    assert sum(output.count(SHOWN) for output in outputs) > 40


def test_search_highlights_survive_escaping(table: str) -> None:
    shown = shown_on_terminal(["search", table, "duck"])
    assert f"\x1b[1;33mduck\x1b[0m {SHOWN}" in shown
    assert "\x1b[1;33mduck\x1b[0m \\x02 \\x03" in shown
    assert "\x1b]" not in shown


def test_progress_moves_on_a_terminal(table: str) -> None:
    shown = shown_on_terminal(["compact", table], ["index", table, "id"], ["compact", EVIL])
    assert "\x1b[2K" in shown
    assert r"\x1b[2K" not in shown
    assert f"{SHOWN}: Lance table not found" in shown
    assert "\x1b]" not in shown


def test_json_is_exact_and_without_control_characters(table: str) -> None:
    texts = ld.dataset(table).to_table()[NAME].to_pylist()
    assert [row[NAME] for row in objects("head", table)] == texts
    assert [row[NAME] for row in objects("sql", table, f"FROM '{table}'")] == texts
    (facts,) = objects("info", table)
    assert facts["uri"] == table
    for output in (run("head", table, "--json").stdout, run("info", table, "--json").stdout):
        assert output.replace("\n", "").isprintable()


def test_csv_output_keeps_control_characters(table: str) -> None:
    texts = ld.dataset(table).to_table()[NAME].to_pylist()
    output = run("head", table, "--columns", f'"{NAME}"').stdout
    assert [row[0] for row in csv.reader(io.StringIO(output, newline=""))] == [NAME, *texts]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, SHOWN),
        ("plain, é, 日本, 👩‍👩‍👧", "plain, é, 日本, 👩‍👩‍👧"),
        ("a\nb\tc", "a\nb\tc"),
        ("\x00\x08\x85\u2028\udc80", r"\x00\x08\x85\u2028\udc80"),
        (r"\x1b", r"\x1b"),
    ],
)
def test_control_characters_become_escapes(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_only_two_modules_write_to_a_terminal() -> None:
    folder = Path(command.__file__).parent / "lance_duck" / "cli"
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = ast.unparse(node) if isinstance(node, ast.Import | ast.ImportFrom) else ""
            assert "rich.console" not in names, path
            if isinstance(node, ast.Call) and path.name not in ("terminal.py", "show.py"):
                assert ast.unparse(node.func) not in ("print", "sys.stdout.write", "sys.stderr.write"), path
