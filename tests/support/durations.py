"""Test durations: the slowest tests of a run, and the tests that `make test` and `make test-rest` leave out.

tests/long.txt has a line for each test function whose cases together take longer than `BUDGET`: the seconds of one
case, and the function. `make test` runs as many of its cases as fit `BUDGET`. `make test-rest` runs others up to
`REST_BUDGET`, at least one. `make test-full` runs all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import pytest

BUDGET = 0.5
"""Seconds of one test function in `make test`."""
REST_BUDGET = 2.0
"""Seconds of one test function in `make test` and `make test-rest` together."""
LONG = Path(__file__).parents[1] / "long.txt"


def seconds_by_test(reports: Iterable[object]) -> dict[str, float]:
    """Return the seconds of setup, call and teardown together, by test."""
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid] += report.duration
    return seconds


def slowest_by_folder(seconds: Mapping[str, float], count: int) -> Iterator[str]:
    """Yield lines: the folders of the slowest tests with the seconds of all their tests, and these tests."""
    folders: dict[str, float] = defaultdict(float)
    for test, spent in seconds.items():
        folders[_folder(test)] += spent
    slowest: dict[str, list[str]] = defaultdict(list)
    for test in sorted(seconds, key=lambda test: -seconds[test])[:count]:
        slowest[_folder(test)].append(test)
    for folder in sorted(slowest, key=lambda folder: -folders[folder]):
        yield f"{folders[folder]:8.1f} s  {folder}"
        for test in slowest[folder]:
            yield f"{seconds[test]:12.1f} s  {test.removeprefix(folder + '/')}"


def long_functions(seconds: Mapping[str, float]) -> Iterator[str]:
    """Yield the lines of tests/long.txt for a run of all tests."""
    cases: dict[str, list[float]] = defaultdict(list)
    for test, spent in seconds.items():
        cases[function_of(test)].append(spent)
    for function, each in sorted(cases.items()):
        if sum(each) > BUDGET:
            yield f"{sum(each) / len(each):.2f} {function}"


def left_out(tests: Iterable[str], lines: Iterable[str], budget: float = BUDGET, least: int = 0) -> set[str]:
    """Return the tests that do not fit a budget. The kept cases are spread over each function.

    Args:
        tests: All tests, in order.
        lines: Lines of tests/long.txt.
        budget: Seconds of one function.
        least: Number of cases of each function to keep in any case.
    """
    pairs = (line.split() for line in lines)
    kept = {function: max(least, int(budget / float(seconds))) for seconds, function in pairs}
    tests = list(tests)
    cases = Counter(map(function_of, tests))
    seen: Counter[str] = Counter()
    out = set()
    for test in tests:
        function = function_of(test)
        if function in kept:
            at, count = seen[function], cases[function]
            share = min(kept[function], count)
            if (at + 1) * share // count == at * share // count:
                out.add(test)
            seen[function] += 1
    return out


def function_of(test: str) -> str:
    """Return the test function of a test, without its case."""
    return test.partition("[")[0]


def _folder(test: str) -> str:
    return str(PurePosixPath(test.partition("::")[0]).parent)
