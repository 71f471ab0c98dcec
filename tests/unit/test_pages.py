"""The code of the README and of the documentation's pages runs."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command_line import run

import lance_duck as ld
import lance_duck_command as command
from lance_duck import examples
from lance_duck.cli.sql.dot_commands import DOT_COMMANDS

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
    assert scope["ds"].index_statistics("id_idx")["num_unindexed_rows"] == 0
    assert ld.dataset("data/trips.lance").count_rows("note = 'heavy rain' AND tip > 0") == 0


def test_tasks_run_in_python(folder: Path) -> None:
    rows = examples.trips(300)
    scope: dict[str, Any] = {
        "rows": rows,
        "more": examples.trips(320).slice(300),
        "changes": rows.slice(0, 3),
        "vector": np.zeros(128, np.float32),
        "docs": ld.write_dataset(examples.docs(50), "data/docs.lance"),
    }
    for block in blocks("docs/guides/tasks.md", "python"):
        exec("\n".join(line for line in block.splitlines() if "s3://" not in line), scope)
    assert ld.dataset("data/t.lance").version > 9


def test_tasks_run_in_sql(folder: Path) -> None:
    examples.trips(300).to_pandas().to_csv("rows.csv", index=False)
    (folder / "data").mkdir()
    with ld.connect("data") as con:
        con.execute("COPY (FROM 'rows.csv') TO 'rows.parquet'")
        con.execute("CREATE TEMP TABLE changes AS FROM 'rows.csv' LIMIT 3")
        for block in blocks("docs/guides/tasks.md", "sql"):
            for statement in filter(str.strip, re.sub("--.*", "", block).split(";")):
                con.execute(statement).fetchall()


def test_the_commands_of_the_readme_run(folder: Path) -> None:
    examples.write("data", rows=100)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = [shlex.split(line)[1:] for line in re.findall(r"^\$ (lance-duck .*)$", text, re.MULTILINE)]
    assert [words[0] for words in lines] == ["sql", "info"]
    assert all(run(*words).exit_code == 0 for words in lines)


def test_the_first_page_of_the_site_runs(folder: Path) -> None:
    (block,) = blocks("docs/index.md", "python")
    scope: dict[str, Any] = {}
    exec(block, scope)
    assert scope["ds"].search("full moon", k=10).num_rows == 10


def test_the_page_on_indexes_runs(folder: Path) -> None:
    rows = examples.docs(300).rename_columns(["id", "topic", "body", "vec"])
    ds = ld.write_dataset(rows, "data/t.lance")
    (python,), (sql,) = (
        blocks("docs/guides/choose-an-index.md", "python"),
        blocks("docs/guides/choose-an-index.md", "sql"),
    )
    exec(python, {"ds": ds})
    with ld.connect("data") as con:
        con.execute(sql.replace("IVF_PQ (vec) WITH (", "IVF_PQ (vec) WITH (num_partitions = 1, "))
        assert {row[0] for row in con.execute("SHOW INDEXES ON t").fetchall()} == {
            *("id_idx", "body_idx", "vec_idx"),
            *("by_id", "neighbours"),
        }
        con.execute("ALTER INDEX by_id ON t OPTIMIZE")
    kinds = re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", (ROOT / "docs/guides/choose-an-index.md").read_text(encoding="utf-8"))
    for kind in sorted({kind for kind in kinds if kind.startswith("IVF_")}):
        ds.create_index("vec", kind, train=False, replace=True)
    assert ld.recall_report(ds, "vec", sample=3).choose(recall=0.9) is not None


def test_the_page_on_history_in_sql_runs(folder: Path) -> None:
    table = ld.write_dataset({"x": [1]}, "data/t.lance", enable_stable_row_ids=True)
    for x in range(2, 6):
        table.insert({"x": [x]})
    (block,) = blocks("docs/reference/sql/index.md", "sql")
    with ld.connect("data") as con:
        changed, named = [con.execute(line).fetchall() for line in block.splitlines()]
    assert sorted(row[-1] for row in changed) == [3, 4, 5]
    assert len(named) == 5


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
