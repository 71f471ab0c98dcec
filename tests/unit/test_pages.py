"""The code of the README and of the page of tasks runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lance_duck as ld
from lance_duck import examples

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
    for block in blocks("docs/tasks.md", "python"):
        exec("\n".join(line for line in block.splitlines() if "s3://" not in line), scope)
    assert ld.dataset("data/t.lance").version > 9


def test_tasks_run_in_sql(folder: Path) -> None:
    examples.trips(300).to_pandas().to_csv("rows.csv", index=False)
    (folder / "data").mkdir()
    with ld.connect("data") as con:
        con.execute("COPY (FROM 'rows.csv') TO 'rows.parquet'")
        con.execute("CREATE TEMP TABLE changes AS FROM 'rows.csv' LIMIT 3")
        for block in blocks("docs/tasks.md", "sql"):
            for statement in filter(str.strip, re.sub("--.*", "", block).split(";")):
                con.execute(statement).fetchall()
