"""The figures in the documentation come from stored results of the benchmarks."""

from __future__ import annotations

import json
import math
import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import figures
from benchmarks.__main__ import ALL
from benchmarks._chart import LABELS, Row, chart
from benchmarks._harness import OURS
from benchmarks._results import FOLDER, command

FILES = sorted(FOLDER.glob("*.json"))
WIDEST_CHARACTER = 7.2  # on average over a label, in pixels
PUBLISHED = {name: benchmark for topic in figures.TOPICS.values() for name, benchmark in topic.items()}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_is_complete(path: Path) -> None:
    result = json.loads(path.read_text(encoding="utf-8"))
    assert list(result) == ["question", "note", "command", "date", "clock", "rounds", "machine", "versions", "cases"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", result["date"])
    assert result["clock"] in {"processor", "wall"}
    assert {"cores", "processor", "memory", "system"} == set(result["machine"])
    assert OURS in result["versions"]
    for name, case in result["cases"].items():
        assert list(case) == ["unit", "note", "median", "ratio"], name
        assert set(case["median"]) == {OURS, *case["ratio"]}, name
        assert all(value >= 0 for value in case["median"].values()), name
        assert all(ratio is None or 0 <= ratio < math.inf for ratio in case["ratio"].values()), name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_result_was_measured_as_the_figures_say(path: Path) -> None:
    name = path.stem
    result = json.loads(path.read_text(encoding="utf-8"))
    assert result["command"] == command(name, shlex.split(PUBLISHED[name].options))


def test_the_overview_in_the_repository_shows_the_stored_results() -> None:
    assert figures.OVERVIEW.read_text(encoding="utf-8") == figures.overview(), "run `make figures`"


def test_charts_are_valid_and_have_a_title() -> None:
    for name, text in {**figures.charts(), "overview": figures.overview()}.items():
        root = ElementTree.fromstring(text)
        assert root.get("role") == "img", name
        assert root[0].tag.endswith("title"), name


def test_a_table_puts_the_slowest_question_first_and_the_mean_last() -> None:
    ratios = {f"question {number}": 0.1 * number for number in range(1, 21)}
    cases = {
        name: {
            "unit": "s",
            "note": "Why.",
            "median": {OURS: 0.001 * ratio, "pylance": 0.001},
            "ratio": {"pylance": ratio},
        }
        for name, ratio in ratios.items()
    }
    lines = figures.table(figures.Result("x", {"cases": cases}).answers("pylance"), "pylance").splitlines()
    assert lines[2] == "| question 20 | 2.00 ms | 1.00 ms | 2.00 |"
    assert lines[3 + figures.ROWS - 1] == "| 8 more questions | | | 0.10 to 0.80 |"
    assert lines[4 + figures.ROWS - 1] == "| **geometric mean of 20** | | | **0.83** |"
    notes = [line for line in lines if line.startswith("- ")]
    assert notes == [f"- question {number}: Why." for number in range(20, 10, -1)]


def test_a_ratio_without_a_finite_value_stays_out_of_the_mean() -> None:
    cases = {
        name: {"unit": "requests", "note": "", "median": {OURS: 3, "pylance": theirs}, "ratio": {"pylance": ratio}}
        for name, theirs, ratio in (("a", 0, None), ("b", 6, 0.5))
    }
    lines = figures.table(figures.Result("x", {"cases": cases}).answers("pylance", "requests"), "pylance").splitlines()
    assert lines[2:5] == [
        "| a | 3 | 0 | - |",
        "| b | 3 | 6 | 0.50 |",
        "| **geometric mean of 2** | | | **0.50** |",
    ]


def test_a_chart_escapes_its_labels() -> None:
    assert "list&lt;int32&gt;" in chart("A & B", [Row("list<int32>", [0.5, 2.0])])


def test_the_labels_of_charts_fit() -> None:
    labels = [
        f"{benchmark.label}, {peer}"
        for name, benchmark in PUBLISHED.items()
        if name in (known := figures.results())
        for peer in known[name].peers
    ]
    assert max(map(len, labels)) * WIDEST_CHARACTER < LABELS


def test_all_published_benchmarks_run_by_name_but_the_one_that_needs_an_interpreter() -> None:
    assert set(PUBLISHED) - set(ALL) == {"extension"}
