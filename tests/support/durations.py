"""The slowest tests of a run, by folder."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

import pytest


def slowest_by_folder(reports: Iterable[pytest.TestReport], count: int) -> Iterator[str]:
    """Yield lines: the folders of the slowest tests with the seconds of all their tests, and these tests.

    Args:
        reports: Reports of setups, calls and teardowns.
        count: Number of tests to name.
    """
    seconds: dict[str, float] = defaultdict(float)
    for report in reports:
        seconds[report.nodeid] += report.duration
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


def _folder(test: str) -> str:
    return str(PurePosixPath(test.partition("::")[0]).parent)
