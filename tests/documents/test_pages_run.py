"""The code of the guides and of the reference runs, and gives the output that the pages show."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from support.pages import blocks, run_page

DOCS = Path(__file__).parents[2] / "docs"
# tests/spark/test_page.py has a Spark session. tests/unit/test_troubleshooting.py runs each section in an empty folder.
OTHERWISE = {"guides/spark.md", "guides/troubleshooting.md"}
PAGES = [
    name
    for folder in ("start", "guides", "reference", "background")
    for page in sorted((DOCS / folder).rglob("*.md"))
    if (name := page.relative_to(DOCS).as_posix()) not in OTHERWISE and any(blocks(page))
] + ["guarantees.md"]


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_a_page_runs_and_gives_the_output_that_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for block, output in run_page(DOCS / name):
        if block.output is not None and duckdb.__version__ >= "2":
            assert output == block.output, f"{name}:{block.line}"
    shutil.rmtree(tmp_path)
