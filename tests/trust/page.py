"""The page of counts in the documentation: its table is written by the campaign."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from trust.campaign import TrialCounts

BEGIN, END = "<!-- counts -->", "<!-- end of counts -->"
HEAD = ("kind", "a trial is", "trials", "failures", "checked", "seeds", "on")
LIBRARIES = ("duckdb", "pyarrow", "faiss-cpu", "obstore", "pylance")


def write_page(path: Path, counts: Iterable[TrialCounts]) -> None:
    """Put counts in the place of those of the same kinds; rows of other kinds stay, with the versions they had."""
    before, rest = path.read_text(encoding="utf-8").split(BEGIN)
    old, after = rest.split(END)
    rows = {cells[0]: cells for cells in map(_cells, old.splitlines()) if len(cells) == len(HEAD)}
    for line in (HEAD, ("---",) * len(HEAD)):
        rows.pop(line[0], None)
    for found in counts:
        rows[found.kind.name] = row(found)
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEAD, ("---",) * len(HEAD), *rows.values())]
    path.write_text(f"{before}{BEGIN}\n\n" + "\n".join(lines) + f"\n\n{END}{after}", encoding="utf-8")


def row(found: TrialCounts) -> tuple[str, ...]:
    """Return the cells of one kind."""
    return (
        found.kind.name,
        found.kind.what,
        f"{found.trials:,}",
        f"{len(found.failures):,}",
        ", ".join(f"{count:,} {name}" for name, count in sorted(found.counts.items())),
        f"{found.first} to {found.first + found.trials - 1}",
        f"{datetime.now(UTC):%Y-%m-%d}, {versions()}",
    )


def versions() -> str:
    """Return what a campaign runs on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"Python {platform.python_version()}, {libraries}"


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))
