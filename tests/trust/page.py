"""Counts of long runs, one line of JSON per run and kind, and the page that sums them.

    {"kind": …, "on": "2026-11-26", "with": "lance-duck …, Python …, …",
     "first": 7, "trials": 3, "failed": [8], "counts": {…}}

`first` is the seed of the first trial, the others follow; `failed` has seeds. Only runs of the package version in the
last line are added.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trust.campaign import TrialCounts
from trust.kinds import KINDS, TrialKind

BEGIN, END = "<!-- counts -->", "<!-- end of counts -->"
TRIALS_HEAD = ("kind", "one trial")
COUNTS_HEAD = ("kind", "trials", "failures", "checks", "seeds", "dates")
LIBRARIES = ("lance-duck", "duckdb", "pyarrow", "faiss-cpu", "obstore", "pylance")

Run = dict[str, Any]


def record(file: Path, found: TrialCounts) -> bool:
    """Add a run to a file. Returns False, without adding it, if the file already has one of its seeds."""
    first, end = found.first, found.first + found.trials
    if not found.trials or any(a < end and first <= b for a, b in seed_ranges(_of(found.kind.name, runs(file)))):
        return False
    run = {
        "kind": found.kind.name,
        "on": f"{datetime.now(UTC):%Y-%m-%d}",
        "with": versions(),
        "first": first,
        "trials": found.trials,
        "failed": [seed for seed, _ in found.failures],
        "counts": dict(sorted(found.counts.items())),
    }
    with open(file, "a", encoding="utf-8") as lines:
        lines.write(json.dumps(run) + "\n")
    return True


def runs(file: Path) -> list[Run]:
    """Return the runs in a file, or an empty list if the file does not exist."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []


def next_seed(file: Path, kind: str) -> int:
    """Return the seed after the highest one that a kind has used."""
    return max((last + 1 for _, last in seed_ranges(_of(kind, runs(file)))), default=0)


def seed_ranges(of_kind: Iterable[Run]) -> list[tuple[int, int]]:
    """Return the first and last seeds of runs in ascending order, with adjacent ranges joined."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((run["first"], run["first"] + run["trials"] - 1) for run in of_kind):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined


def write_page(path: Path, all_runs: Sequence[Run], kinds: Iterable[TrialKind] = KINDS) -> None:
    """Replace the tables on a page: descriptions of the trials, and the sums of all runs."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    current = [run for run in all_runs if run["with"].split(",")[0] == all_runs[-1]["with"].split(",")[0]]
    counted = {kind: found for kind in kinds if (found := _of(kind.name, current))}
    lines = ["## Trials", "", *_table(TRIALS_HEAD, ((kind.name, kind.what) for kind in counted))]
    lines += ["", "## Counts", "", *_table(COUNTS_HEAD, (row(kind, found) for kind, found in counted.items()))]
    lines += ["", "Versions:", ""]
    for text in dict.fromkeys(run["with"] for run in current):
        lines.append(f"- {_days(run for run in current if run['with'] == text)}: {text}")
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}", encoding="utf-8")


def row(kind: TrialKind, found: Sequence[Run]) -> tuple[str, ...]:
    """Return the cells of one kind in the table of counts."""
    counts = sum((Counter(run["counts"]) for run in found), Counter())
    return (
        kind.name,
        f"{sum(run['trials'] for run in found):,}",
        f"{sum(len(run['failed']) for run in found):,}",
        " · ".join(f"{name}: {count:,}" for name, count in sorted(counts.items())),
        ", ".join(f"{first} to {last}" for first, last in seed_ranges(found)),
        _days(found),
    )


def versions() -> str:
    """Return the versions of a campaign, this package first."""
    package, *libraries = (f"{name} {version(name)}" for name in LIBRARIES)
    return ", ".join((package, f"Python {platform.python_version()}", *libraries))


def _of(kind: str, some: Iterable[Run]) -> list[Run]:
    return [run for run in some if run["kind"] == kind]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *rows)]


def _days(some: Iterable[Run]) -> str:
    return ", ".join(sorted({run["on"] for run in some}))
