"""The code of the README and of the documentation's pages runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command_line import run

import lance_duck as ld
import lance_duck_command as command
from lance_duck import examples
from lance_duck.cli.sql.dot_commands import DOT_COMMANDS
from lance_duck.index.registry import scalar_kinds

ROOT = Path(__file__).parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_lines_of_the_readme_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *others = blocks("README.md", "python")
    assert [block.splitlines()[0].split("#")[0].strip() for block in others] == ["import lance_duck.spark as ls"]
    scope: dict[str, Any] = {}
    exec(first, scope)
    assert "Kyoto" in capsys.readouterr().out
    trips = ld.dataset("data/trips.lance")
    assert trips.index_statistics("by_id")["num_unindexed_rows"] == 0
    assert trips.count_rows("note = 'heavy rain' AND tip > 0") == 0
    assert (scope["near"].num_rows, scope["words"].num_rows) == (3, 3)


def test_the_commands_of_the_readme_run(folder: Path) -> None:
    examples.write("data", rows=100)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [shlex.split(line)[1:] for line in re.findall(r"^\$ (lance-duck .*)$", text, re.MULTILINE)]
    assert [words[0] for words in lines] == ["info", "sql"]
    assert all(run(*words).exit_code == 0 for words in lines)


def test_the_first_page_of_the_site_runs(folder: Path) -> None:
    (block,) = blocks("docs/index.md", "python")
    scope: dict[str, Any] = {}
    exec(block, scope)
    assert scope["ds"].search("full moon", k=10).num_rows == 10


def test_the_page_on_indexes_names_every_kind_that_can_be_built(folder: Path) -> None:
    text = (ROOT / "docs/guides/choose-an-index.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", text))
    vectors = {f"IVF_{kind}" for kind in ("FLAT", "SQ", "PQ", "RQ", "HNSW_FLAT", "HNSW_SQ", "HNSW_PQ")}
    assert named >= {entry.sql_name for entry in scalar_kinds()} | vectors
    ds = ld.write_dataset(examples.docs(300), "data/t.lance")
    for kind in sorted({kind for kind in named if kind.startswith("IVF_")}):
        ds.create_index("v", kind, train=False, replace=True)
    ds.create_index("v", "IVF_PQ", num_partitions=1, replace=True)
    assert ld.recall_report(ds, "v", sample=3).choose(recall=0.9) is not None


@pytest.mark.parametrize(
    "file", ["lance_duck/verbs/indexes/methods.py", "lance_duck/spark/verbs/index_jobs.py", "lance_duck_command.py"]
)
def test_lists_of_index_kinds_in_the_code_are_complete(file: str) -> None:
    words = set(re.findall(r"\w+", (ROOT / file).read_text(encoding="utf-8").upper()))
    assert not {entry.sql_name for entry in scalar_kinds()} - words - {"INVERTED"}
    assert words & {"INVERTED", "FTS"}


COMMAND_LINE = (ROOT / "docs/reference/command-line.md").read_text(encoding="utf-8").split("\n## Every command")[0]


def test_the_page_on_the_command_line_lists_every_command_and_only_options_that_exist() -> None:
    listed = re.findall(r"^\| `([a-z-]+)` \|", COMMAND_LINE.split("## Commands")[1].split("\n## ")[0], re.MULTILINE)
    commands = {line.split()[0] for line in run("--help").stdout.partition("Commands:")[2].splitlines() if line.strip()}
    assert set(listed) == {name for name in commands if run(name, "--help").exit_code == 0}
    helps = "".join(run(*name, "--help").stdout for name in ([], *([name] for name in listed)))
    assert set(re.findall(r"--[a-z][a-z-]+", COMMAND_LINE)) <= set(re.findall(r"--[a-z][a-z-]+", helps))


def test_commands_with_version_options_are_those_of_the_page() -> None:
    commands = re.findall(r"^\| `([a-z-]+)` \|", COMMAND_LINE, re.MULTILINE)
    (sentence,) = re.findall(r"^(.*) take one of these options\.", COMMAND_LINE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", sentence)) == {
        name for name in commands if "--asof" in run(name, "--help").stdout
    }


def test_shell_commands_of_the_page_are_those_of_the_shell() -> None:
    assert set(re.findall(r"`(\.[a-z]+)", COMMAND_LINE.split("## The shell")[1])) == set(DOT_COMMANDS)


def test_read_only_sql_with_keep_going_exits_with_1(folder: Path) -> None:
    examples.write("data", rows=100)
    refused = run("sql", "data", "--read-only", "DELETE FROM trips", "--keep-going")
    assert (refused.exit_code, refused.stdout) == (1, "")


@pytest.mark.parametrize(
    "words",
    [
        'head data/trips.lance --columns id,fare --where "fare > 20" --limit 3',
        "head data/trips.lance --version 1 --json",
        "head data/trips.lance --asof 2999-01-01",
        'search data/docs.lance "full moon" --column text --limit 2',
        "bench data/docs.lance --where \"topic = 'sailing'\" --runs 1",
        "export data/trips.lance trips.parquet --columns id,fare",
        'import data/some.lance rows.parquet --columns id --where "id < 5"',
        "write data/more.lance rows.parquet",
        'write data/other.lance "SELECT 1 AS x"',
        "diff data/trips.lance --from 3 --to 5",
        "cleanup data/trips.lance --dry-run",
        "doctor",
    ],
)
def test_commands_that_the_page_describes_run(folder: Path, words: str) -> None:
    examples.write("data", rows=100, enable_stable_row_ids=True)
    ld.connect("data").execute("COPY (FROM trips) TO 'rows.parquet'")
    answer = run(*shlex.split(words))
    assert (answer.exit_code, bool(answer.stdout)) == (0, True), answer.output


@pytest.mark.parametrize(
    ("words", "code"), [(["info", "nowhere.lance"], 1), (["info"], 2), (["sql", ".", "SELEC 1"], 1)]
)
def test_errors_go_to_stderr_with_the_exit_codes_of_the_page(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str], code: int
) -> None:
    monkeypatch.setattr(sys, "argv", ["lance-duck", *words])
    with pytest.raises(SystemExit) as left:
        command.main()
    out, err = capfd.readouterr()
    assert (left.value.code, out, bool(err)) == (code, "", True)
