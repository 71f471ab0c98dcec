"""Render the results of the benchmarks as tables and charts: python -m benchmarks.figures.

The sources are `benchmarks/results/*.json`. Nothing is measured here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Final

from benchmarks._chart import Row, chart
from benchmarks._harness import OURS, geometric_mean
from benchmarks._results import FOLDER

DOCS: Final = Path(__file__).parents[1] / "docs"
OVERVIEW: Final = DOCS / "_static" / "overview.svg"
PEER: Final = "pylance"


@dataclass(frozen=True)
class Published:
    """A benchmark whose results are published.

    Attributes:
        label: Its name in charts.
        options: Its command line.
    """

    label: str
    options: str


TOPICS: Final[Mapping[str, Mapping[str, Published]]] = {
    "Open and scan": {
        "open_table": Published("Open a table", "--rounds 7 --processor"),
        "scan": Published("Scan a column", "--rounds 5 --processor"),
        "selective": Published("Scan with a filter", "--rows 500000 --rounds 3 --processor --only lance-duck"),
        "cold": Published("Read from disk", "--rounds 5"),
        "memory": Published("Memory of reads", "--rows 4000000 --index-rows 1000000"),
        "first_use": Published("Start a process", "--starts --rounds 5"),
    },
    "Take": {"take": Published("Take random rows", "--rounds 7 --processor")},
    "SQL": {
        "sql": Published("Query in SQL", "--rounds 5 --processor"),
        "tpch": Published("TPC-H", "--scale 0.3 --rounds 3 --processor --peers parquet pylance native"),
        "extension": Published("SQL queries", "PYTHON --rounds 5"),
        "sql_statements": Published("Native queries", "--rounds 7 --threads 1 --processor"),
    },
    "Changes": {
        "changes": Published("Delete, update, merge", "--rows 1000000 --rounds 5 --processor"),
        "sql_changes": Published("Change in SQL", "--rows 300000 --rounds 7 --processor"),
        "primary_keys": Published("Check primary keys", "--rounds 7 --processor"),
        "merges": Published("Merge many times", "--rounds 1"),
    },
    "Scalar indexes": {
        "indexes": Published("Filter by an index", "--rows 1000000 --rounds 7 --processor"),
        "sql_indexes": Published("SQL through an index", "--rows 1000000 --rounds 7 --processor"),
        "bitmaps": Published("Bitmap indexes", "--rows 1000000 --rounds 7 --processor"),
        "zones": Published("Zone maps, Bloom filters", "--rows 1000000 --rounds 7 --processor"),
    },
    "Vector search": {
        "vectors": Published(
            "Search vectors", "--sizes 100000x128 --kinds IVF_PQ IVF_HNSW_SQ exact --rounds 5 --processor"
        ),
        "nearest_by": Published("Join nearest rows", "--rows 50000 --rounds 5 --processor"),
        "hybrid": Published("Hybrid search", "--rounds 7 --processor"),
    },
    "Full text": {
        "full_text_search": Published("Search text", "--rounds 7 --processor"),
        "full_text": Published("Build a text index", "--rounds 3"),
    },
    "One query at a time": {
        "prepared": Published("One vector query", "--rounds 15 --processor"),
        "fast_codes": Published("4-bit codes", "--rounds 15 --processor"),
        "prepared_queries": Published("One query", "--rounds 15 --processor"),
        "search_game": Published("search-benchmark-game", "--rounds 9 --processor"),
    },
    "Training": {"loader": Published("Load tensors", "--rounds 5 --processor")},
    "Write and compaction": {
        "write": Published("Write a table", "--rows 1000000 --rounds 5 --processor"),
        "sizes": Published("Write a file", "--rows 200000 --rounds 5 --processor"),
        "appends": Published("Append a few rows", "--appends 300 --rounds 5 --processor"),
        "streams": Published("Insert ten rows", "--rows 3000 --rounds 3 --processor"),
        "uncovered": Published("Rows without an index", "--rounds 5 --processor"),
        "compaction": Published("Compact a table", "--rounds 5 --processor"),
        "many_fragments": Published("Many fragments", "--rounds 5 --processor"),
    },
    "Spark": {
        "spark": Published(
            "Spark jobs", "--rows 200000 --dimension 16 --near-rows 5000 --queries 20 --rounds 3 --processor"
        )
    },
    "Object store": {
        "object_store": Published("Use an object store", "--rounds 3"),
        "object_cache": Published("Read through a disk cache", "--rounds 5"),
    },
}
"""Benchmarks by topic. A benchmark without results is left out of the page."""

ROWS: Final = 12
"""Maximum rows of a table. The lowest ratios share one row below them."""


@dataclass(frozen=True)
class Answer:
    """How long one question takes with lance-duck and with a peer.

    Attributes:
        question: The question.
        ours: Our median.
        theirs: The peer's median.
        ratio: The median ratio, or None if only the peer needs nothing.
        unit: Unit of the medians: "s" for seconds.
        note: One sentence about the result, or an empty string.
    """

    question: str
    ours: float
    theirs: float
    ratio: float | None
    unit: str
    note: str

    @property
    def order(self) -> float:
        """The ratio as a number that sorts."""
        return math.inf if self.ratio is None else self.ratio


class Result:
    """The results of one benchmark.

    Attributes:
        name: Name of the module.
        data: The contents of its file.
    """

    def __init__(self, name: str, data: Mapping[str, Any]) -> None:
        self.name = name
        self.data = data

    @cached_property
    def peers(self) -> list[str]:
        """Names of the peers, in order of appearance."""
        return list(dict.fromkeys(peer for case in self.data["cases"].values() for peer in case["ratio"]))

    def units(self, peer: str) -> list[str]:
        """Return the units in which a peer was measured, seconds first."""
        units = {case["unit"] for case in self.data["cases"].values() if peer in case["ratio"]}
        return sorted(units, key=lambda unit: (unit != "s", unit))

    def answers(self, peer: str, unit: str = "s") -> list[Answer]:
        """Return the questions that a peer answered in a unit, the highest ratio first."""
        answers = [
            Answer(name, case["median"][OURS], case["median"][peer], case["ratio"][peer], unit, case["note"])
            for name, case in self.data["cases"].items()
            if peer in case["ratio"] and case["unit"] == unit
        ]
        return sorted(answers, key=lambda answer: -answer.order)


def results(folder: Path = FOLDER) -> dict[str, Result]:
    """Return the results of all benchmarks by name."""
    return {
        path.stem: Result(path.stem, json.loads(path.read_text(encoding="utf-8")))
        for path in sorted(folder.glob("*.json"))
    }


def topics() -> Iterator[tuple[str, dict[str, Result]]]:
    """Yield each topic with the results of its benchmarks, by label."""
    known = results()
    for topic, benchmarks in TOPICS.items():
        found = {each.label: known[name] for name, each in benchmarks.items() if name in known}
        if found:
            yield topic, found


def page() -> str:
    """Return the tables of all topics as Markdown, with links to the charts."""
    return "\n".join(line for topic, found in topics() for line in _section(topic, found))


def _section(topic: str, found: Mapping[str, Result]) -> Iterator[str]:
    yield f"## {topic}\n"
    yield f"![{topic}: time relative to each peer](../generated/figures/{_slug(topic)}.svg)\n"
    for result in found.values():
        yield f"### {result.data['question']}\n"
        if result.data["note"]:
            yield f"{result.data['note']}\n"
        for peer in result.peers:
            for unit in result.units(peer):
                yield table(result.answers(peer, unit), peer)
        yield _small_print(result.data)


def table(answers: list[Answer], peer: str) -> str:
    """Return a table with the highest ratio first, and the geometric mean last."""
    lines = [f"| question | {OURS} | {peer} | ratio |", "|---|--:|--:|--:|"]
    shown = answers if len(answers) <= ROWS + 1 else answers[:ROWS]
    lines += [
        f"| {_plain(answer.question)} | {_amount(answer.ours, answer.unit)} | {_amount(answer.theirs, answer.unit)} "
        f"| {_ratio(answer.ratio)} |"
        for answer in shown
    ]
    if rest := answers[len(shown) :]:
        lines.append(f"| {len(rest)} more questions | | | {_ratio(rest[-1].ratio)} to {_ratio(rest[0].ratio)} |")
    if len(answers) > 1:
        mean = geometric_mean(answer.order for answer in answers)
        lines.append(f"| **geometric mean of {len(answers)}** | | | **{_ratio(mean)}** |")
    notes = [f"- {_plain(answer.question)}: {answer.note}" for answer in shown if answer.note and answer.order > 1]
    return "\n".join([*lines, "", *notes, *([""] if notes else [])])


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"


def _plain(text: str) -> str:
    """Return a text that Markdown leaves as it is."""
    return escape(text, quote=False).replace("*", r"\*").replace("|", r"\|")


def _amount(value: float, unit: str) -> str:
    if unit == "s":
        factor, unit = (1, "s") if value >= 1 else (1e3, "ms") if value >= 1e-3 else (1e6, "µs")
        value *= factor
    digits = max(0, 2 - math.floor(math.log10(value))) if value else 0
    return f"{value:,.0f}" if unit == "requests" else f"{value:,.{min(digits, 2)}f} {unit}"


def _small_print(data: Mapping[str, Any]) -> str:
    machine = data["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in data["versions"].items())
    clock = {"processor": "Processor time", "wall": "Wall time"}[data["clock"]]
    rounds = f"{data['rounds']} round{'s' if data['rounds'] > 1 else ''}"
    return (
        f"<small>{clock}, {rounds}, {data['date']}. "
        f"{machine['cores']} cores, {machine['processor']}, {machine['memory']}, {machine['system']}. "
        f"{versions}.<br>`{data['command']}`</small>\n"
    )


def overview() -> str:
    """Return the chart of times relative to pylance, one line for each task."""
    rows = [
        Row(label, [answer.ratio for answer in result.answers(PEER) if answer.ratio])
        for _, found in topics()
        for label, result in found.items()
        if PEER in result.peers and "s" in result.units(PEER)
    ]
    rows.sort(key=lambda row: row.mean)
    return chart(f"Time of lance-duck relative to {PEER}, by task", rows)


def charts() -> dict[str, str]:
    """Return the chart of each topic by its file name."""
    found = {}
    for topic, by_label in topics():
        rows = [
            Row(f"{label}, {peer}", [answer.ratio for answer in result.answers(peer) if answer.ratio])
            for label, result in by_label.items()
            for peer in result.peers
            if "s" in result.units(peer)
        ]
        found[f"{_slug(topic)}.svg"] = chart(f"{topic}: time of lance-duck relative to each peer", rows)
    return found


def _slug(topic: str) -> str:
    return topic.lower().replace(" ", "-")


def write(folder: Path) -> None:
    """Write the page and the charts of the topics below a folder."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    (folder / "figures.md").write_text(page(), encoding="utf-8")
    for name, text in charts().items():
        (folder / "figures" / name).write_text(text, encoding="utf-8")


def main() -> None:
    """Write the page, its charts, and the chart for the README."""
    write(DOCS / "generated")
    OVERVIEW.write_text(overview(), encoding="utf-8")


if __name__ == "__main__":
    main()
