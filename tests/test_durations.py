"""Tests that `make test` leaves out, and the reported durations."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.durations import BUDGET, LONG, left_out, long_functions, slowest_by_folder

CASES = [f"tests/a/test_a.py::test_long[{i}]" for i in range(6)]


@pytest.mark.parametrize(
    ("share", "kept"), [(2.0, []), (0.6, [5]), (0.5, [2, 5]), (0.3, [1, 3, 5]), (0.1, [0, 1, 2, 3, 4, 5])]
)
def test_long_functions_keep_the_cases_that_fit_the_budget(share: float, kept: list[int]) -> None:
    out = left_out([*CASES, "tests/a/test_a.py::test_short"], [f"{share * BUDGET} tests/a/test_a.py::test_long"])
    assert sorted(set(CASES) - out) == [CASES[i] for i in kept]
    assert "tests/a/test_a.py::test_short" not in out


def test_a_larger_budget_keeps_more_cases_and_the_least_number_in_any_case() -> None:
    lines = ["0.5 tests/a/test_a.py::test_long"]
    kept = [set(CASES) - left_out(CASES, lines, budget, least=1) for budget in (0.5, 2.0, 3.0)]
    assert [len(each) for each in kept] == [1, 4, 6]
    assert set(CASES) - left_out(CASES, ["9.0 tests/a/test_a.py::test_long"], 5.0, least=1) == {CASES[5]}


def test_functions_are_long_if_their_cases_together_are() -> None:
    seconds = {**dict.fromkeys(CASES, 0.25), "tests/a/test_a.py::test_short": 0.4, "tests/b/test_b.py::test_b": 1.5}
    assert list(long_functions(seconds)) == ["0.25 tests/a/test_a.py::test_long", "1.50 tests/b/test_b.py::test_b"]


def test_the_slowest_tests_are_named_below_their_folders() -> None:
    seconds = {"tests/a/test_a.py::x": 1.0, "tests/b/test_b.py::y": 3.0, "tests/a/test_a.py::z": 2.5}
    assert list(slowest_by_folder(seconds, 2)) == [
        "     3.5 s  tests/a",
        "         2.5 s  test_a.py::z",
        "     3.0 s  tests/b",
        "         3.0 s  test_b.py::y",
    ]


def test_listed_long_tests_exist() -> None:
    root = Path(__file__).parents[1]
    for line in LONG.read_text(encoding="utf-8").splitlines():
        path, name, *_ = line.split()[1].split("::")
        assert name in (root / path).read_text(encoding="utf-8"), f"{line}: run `make durations`"
