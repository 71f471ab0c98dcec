"""Count the comparisons of the oracle suite and print their number at the end of a run."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from oracle.cases import Cases

os.environ.setdefault("LANCE_LOG", "error")
os.environ.setdefault("LANCE_ENABLE_UNSTABLE_DATA_OVERLAY_FILES", "1")  # read once, at the first use
KINDS = ("column", "nested", "blob", "life cycle", "surface", "written", "predicate", "nearest", "tokens")


@pytest.fixture
def cases() -> Cases:
    return Cases()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, Any, Any]:
    result = yield
    found = pyfuncitem.funcargs.get("cases")
    if isinstance(found, Cases):
        kind = getattr(pyfuncitem.module, "CASE_KIND", "column")
        pyfuncitem.user_properties.append((f"oracle {kind}", found.count))
        found.settle()
    return result


def pytest_terminal_summary(terminalreporter: Any) -> None:
    totals = dict.fromkeys(KINDS, 0)
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name.startswith("oracle ") and getattr(report, "when", "") == "call":
                    totals[name.removeprefix("oracle ")] += value
    parts = [f"{count:,} {kind} cases" for kind, count in totals.items() if count]
    if parts:
        terminalreporter.write_line("oracle: " + ", ".join(parts))
