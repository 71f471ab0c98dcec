"""Results of long runs in a file of JSON lines, and the page that shows their totals.

    {"kind": …, "on": "2026-11-26", "with": "lance-duck …, Python …, …",
     "first": 7, "trials": 3, "failed": [8], "counts": {…}}

Each line describes one run of one kind. `first` is the seed of its first trial. Later trials use the next seeds.
`failed` lists the seeds of failed trials. The totals cover the package version of the last line only.
"""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from trust.campaign import TrialCounts
from trust.kinds import TOPICS, TrialKind

LIBRARIES: Final = ("lance-duck", "duckdb", "pyarrow", "faiss-cpu", "obstore", "pylance")
LABELS: Final = {
    "30 levels of nesting": "tables with 30 levels of nesting",
    "EIO": "I/O errors",
    "cannot go on": "rejected work of parent threads",
    "cells of 100 MB": "tables with a value of 100 MB",
    "doubled answers": "requests run twice",
    "inherited": "inherited handles",
    "kills while vectors were indexed": "attempts on tables with a vector index",
    "lost answers": "lost responses",
    "opened anew": "tables opened in the child",
    "pools": "process pools",
    "reads of versions that were gone": "reads of removed versions",
    "refused": "conflicts",
    "refused by both": "rejected by both",
    "refused by the order of evaluation": "rejected by one, depending on evaluation order",
    "tables of 1,000 columns": "tables with 1,000 columns",
    "tables of 5,000 fragments": "tables with 5,000 fragments",
    "threads of children": "threads of a child",
    "unknown": "unknown outcomes",
    "while threads work": "forks of a process with busy threads",
}
"""Names of checks on the page, if they differ from the recorded names."""
FAULTS: Final = {
    ("texts", 40007): "A text search failed if no remaining row contained a word.",
    ("hostile indexes", 0): "A B-tree index whose file declared a wrong row count could exhaust the memory.",
}
"""Description of each fault by the kind and the seed that found it."""

Run = dict[str, Any]


def record(file: Path, found: TrialCounts) -> bool:
    """Add a run to a file, unless it repeats recorded seeds. Returns whether it was added."""
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
    """Return the first seed after all recorded seeds of a kind."""
    return max((last + 1 for _, last in seed_ranges(_of(kind, runs(file)))), default=0)


def seed_ranges(of_kind: Iterable[Run]) -> list[tuple[int, int]]:
    """Return the first and last seeds of runs in ascending order. Adjacent ranges are merged."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted((run["first"], run["first"] + run["trials"] - 1) for run in of_kind):
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined


def write_page(path: Path, all_runs: Sequence[Run], topics: Mapping[str, Sequence[TrialKind]] = TOPICS) -> None:
    """Write the kinds, the totals of runs and the faults between the markers of a page."""
    kinds = [kind for of_topic in topics.values() for kind in of_topic]
    current = [run for run in all_runs if run["with"].split(",")[0] == all_runs[-1]["with"].split(",")[0]]
    rows = [row(kind, found) for kind in kinds if (found := _of(kind.name, current))]
    text = path.read_text(encoding="utf-8")
    text = _filled(text, "kinds", _described(topics))
    text = _filled(text, "counts", _table(("kind", "trials", "failures", "checks", "seeds", "dates"), rows))
    text = _filled(text, "versions", _versions(current))
    text = _filled(text, "faults", _table(("kind", "seed", "fault"), _faults(kinds, current)))
    path.write_text(text, encoding="utf-8")


def row(kind: TrialKind, found: Sequence[Run]) -> tuple[str, ...]:
    """Return the cells of one kind."""
    counts: Counter[str] = sum((Counter(run["counts"]) for run in found), Counter())
    return (
        kind.name,
        f"{sum(run['trials'] for run in found):,}",
        f"{sum(len(run['failed']) for run in found):,}",
        "; ".join(sorted(f"{LABELS.get(name, name)}: {count:,}" for name, count in counts.items())),
        ", ".join(f"{first} to {last}" if first < last else f"{first}" for first, last in seed_ranges(found)),
        _days(found),
    )


def versions() -> str:
    """Return the versions of this package and its libraries. This package is first."""
    package, *libraries = (f"{name} {version(name)}" for name in LIBRARIES)
    return ", ".join((package, f"Python {platform.python_version()}", *libraries))


def _described(topics: Mapping[str, Sequence[TrialKind]]) -> list[str]:
    """Return the lines of one table of kinds for each topic."""
    lines: list[str] = []
    for topic, kinds in topics.items():
        table = _table(("kind", "a trial"), [(kind.name, kind.what) for kind in kinds])
        lines += [*([""] if lines else []), f"### {topic}", "", *table]
    return lines


def _versions(current: Sequence[Run]) -> list[str]:
    """Return a list item for each set of library versions, with its dates."""
    texts = dict.fromkeys(run["with"] for run in current)
    return [f"- {_days(run for run in current if run['with'] == text)}: {text}." for text in texts]


def _faults(kinds: Sequence[TrialKind], current: Sequence[Run]) -> list[tuple[str, ...]]:
    """Return the cells of each failed trial."""
    return [
        (kind.name, f"{seed}", FAULTS.get((kind.name, seed), "not fixed yet"))
        for kind in kinds
        for run in _of(kind.name, current)
        for seed in run["failed"]
    ]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (head, ("---",) * len(head), *rows)]


def _filled(text: str, name: str, lines: Sequence[str]) -> str:
    """Return a text with lines between the markers of a name."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n\n" + "\n".join(lines) + f"\n\n{end}{after}"


def _of(kind: str, some: Iterable[Run]) -> list[Run]:
    return [run for run in some if run["kind"] == kind]


def _days(some: Iterable[Run]) -> str:
    return ", ".join(sorted({run["on"] for run in some}))
