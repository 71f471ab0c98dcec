"""The example of the documentation that changes a table."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import lance_duck as ld

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "sql" / "index.md"


def test_the_example_of_the_page_gives_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8").split("\n## Changes\n")[1].split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    Path("people").mkdir()
    scope: dict[str, Any] = {}
    answers = []
    for statement in ast.parse(text).body:
        code = ast.unparse(statement)
        shown = re.search(r"  # (\[.*?\])", text.splitlines()[(statement.end_lineno or 0) - 1])
        if shown is None:
            exec(code, scope)
        else:
            answers.append((repr(eval(code, scope)), shown[1]))
    scope["con"].close()
    assert [given for given, _ in answers] == [said for _, said in answers] == ["[(5, 'EVE')]", "[(3,)]"]
    assert ld.dataset("people/person.lance").version == 4
