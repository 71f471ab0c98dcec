"""All meetings with other pylance versions, and the table of results.

`make meetings` prints the table of docs/reference/format.md. `PYTHONPATH=.:tests python -m versions.meetings 4.0.2`
prints one row.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from versions.data import FILE_VERSIONS
from versions.environments import VERSIONS, at_work, file_versions, python_of

OURS = "lance_duck"
THEIRS = "lance"
TOPICS = {
    "columns": ("kinds",),
    "deletions": ("deleted",),
    "stable row ids": ("stable",),
    "scalar indexes": ("BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER"),
    "vector indexes": ("IVF",),
}
"""Columns of the table, and the words that assign outcomes to them; the last match counts."""


@dataclass(frozen=True)
class Meeting:
    """The result of one meeting.

    Attributes:
        outcome: Attempt → "ok", "unused", or the error.
    """

    outcome: Mapping[str, str]

    def failures(self) -> dict[str, str]:
        """Return the failures."""
        return {what: how for what, how in self.outcome.items() if how not in ("ok", "unused")}

    def unused(self) -> set[str]:
        """Return the attempts with a right answer but without the index."""
        return {what for what, how in self.outcome.items() if how == "unused"}


def write_ours(folder: Path) -> dict[str, str]:
    """Write our tables of all file versions; returns what could not be written."""
    return at_work(sys.executable, OURS, "write", folder, FILE_VERSIONS)


def they_read(version: str, folder: Path) -> Meeting:
    """Let a pylance read our tables."""
    return Meeting(at_work(python_of(version), THEIRS, "read", folder, file_versions(version)))


def they_write(version: str, folder: Path) -> dict[str, str]:
    """Let a pylance write its tables; return its failures."""
    return at_work(python_of(version), THEIRS, "write", folder, file_versions(version))


def they_read_their_own(version: str, folder: Path) -> Meeting:
    """Let a pylance read its tables, to recognise failures without this package."""
    return Meeting(at_work(python_of(version), THEIRS, "read", folder, file_versions(version)))


def we_read(version: str, folder: Path) -> Meeting:
    """Read the tables of a pylance."""
    return Meeting(at_work(sys.executable, OURS, "read", folder, file_versions(version)))


def topic_of(what: str) -> str:
    """The column of the table that an outcome belongs to."""
    return [topic for topic, words in TOPICS.items() if any(word in what for word in words)][-1]


def row(version: str, there: Meeting, back: Meeting) -> str:
    """Return a table row: for each topic, reads by the other library and by this one."""
    cells = []
    for topic in TOPICS:
        both = [_cell([how for what, how in m.outcome.items() if topic_of(what) == topic]) for m in (there, back)]
        cells.append(" · ".join(both))
    return f"| {version} | {', '.join(file_versions(version))} | {' | '.join(cells)} |"


def _cell(outcomes: Sequence[str]) -> str:
    if not outcomes:
        return "none"
    right = sum(how in ("ok", "unused") for how in outcomes)
    unused = sum(how == "unused" for how in outcomes)
    return f"{right}/{len(outcomes)}" + (f" ({unused} without the index)" if unused else "")


def main(versions: Sequence[str]) -> None:
    """Hold the meetings, one at a time; print the table, and on stderr all that is not as it should be."""
    print(f"| pylance | files | {' | '.join(TOPICS)} |")
    print("|---|---|" + "---|" * len(TOPICS), flush=True)
    with tempfile.TemporaryDirectory() as place:
        ours = Path(place) / "ours"
        ours.mkdir()
        _say("we do not write", write_ours(ours))
        for version in versions:
            theirs = Path(place) / version
            theirs.mkdir()
            _say(f"{version} does not write", they_write(version, theirs))
            there, back = they_read(version, ours), we_read(version, theirs)
            print(row(version, there, back), flush=True)
            _say(f"{version} reads ours", there.outcome)
            _say(f"we read {version}", back.outcome)
            if there.failures():
                _say(f"{version} reads its own", they_read_their_own(version, theirs).failures())


def _say(who: str, outcome: Mapping[str, str]) -> None:
    for what, how in outcome.items():
        if how != "ok":
            print(f"{who}, {what}: {how}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or VERSIONS)
