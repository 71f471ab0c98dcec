"""Shared by the benchmarks: options, interleaved timing, ratios and the printed table.

A ratio divides our time by a peer's time from the same round. Below 1, lance-duck is faster. Each case reports the
median over its rounds.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

OURS = "lance-duck"
DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Case:
    """One question, and what each contestant needed in each round.

    Attributes:
        name: The question, as the tables print it.
        seconds: Measurements by contestant. One of them is `OURS`.
        unit: Unit of the measurements. Empty for seconds.
        note: One sentence that explains the result, for readers of the figures.
    """

    name: str
    seconds: Mapping[str, Sequence[float]]
    unit: str = ""
    note: str = ""

    def median(self, contestant: str) -> float:
        return statistics.median(self.seconds[contestant])

    def shown(self, contestant: str) -> str:
        """Return the median in milliseconds, or with its unit."""
        return f"{self.median(contestant):,.1f} {self.unit}" if self.unit else f"{self.median(contestant) * 1e3:,.2f}"

    def ratio(self, peer: str) -> float:
        """Return the median ratio over the rounds. It is infinite if only the peer needs nothing."""
        pairs = zip(self.seconds[OURS], self.seconds[peer], strict=True)
        return statistics.median(1.0 if a == b else a / b if b else math.inf for a, b in pairs)


def ways(case: Case, own: Iterable[str]) -> list[Case]:
    """Return a case for each contestant that is a way of using this package, beside all other contestants."""
    names = list(own)
    others = {name: seconds for name, seconds in case.seconds.items() if name not in names}
    return [
        Case(case.name if name == OURS else f"{case.name}, {name}", {OURS: case.seconds[name], **others})
        for name in names
    ]


def race(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    note: str = "",
) -> Case:
    """Warm every contestant up, then time all of them in each round. The first one changes from round to round."""
    names = list(contestants)
    for contestant in names:
        contestants[contestant]()
    seconds: dict[str, list[float]] = {contestant: [] for contestant in names}
    for turn in range(rounds):
        at = turn % len(names)
        for contestant in names[at:] + names[:at]:
            gc.collect()
            begin = clock()
            contestants[contestant]()
            seconds[contestant].append(clock() - begin)
    return Case(name, seconds, note=note)


def alternate(contestants: Mapping[str, Any], rounds: int) -> Iterator[tuple[int, str, Any]]:
    """Yield the round and each contestant in order. Round 0 is the warm-up, which is not timed."""
    for turn in range(rounds + 1):
        yield from ((turn, name, contestant) for name, contestant in contestants.items())


def mixed_rows(rows: int, dim: int) -> pa.Table:
    """Return rows with a key, a random float, an integer below 1,000, a short string and a float32 vector."""
    rng = np.random.default_rng(0)
    columns = {
        "id": pa.array(range(rows)),
        "x": rng.random(rows),
        "n": rng.integers(0, 1000, rows),
        "text": pa.array([f"text {number} of a row" for number in rng.permutation(rows).tolist()]),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(rows * dim, dtype=np.float32)), dim),
    }
    return pa.table(columns)


def options(question: str, rows: int | None, rounds: int = 7) -> argparse.ArgumentParser:
    """Return the parser that every benchmark extends. Pass `rows=None` if sizes have options of their own."""
    parser = argparse.ArgumentParser(description=question, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    if rows is not None:
        parser.add_argument("--rows", type=int, default=rows, help="rows of the table")
    parser.add_argument("--rounds", type=int, default=rounds, help="timed rounds after a warm-up")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the results to this file or folder")
    return parser


def add_clock(parser: argparse.ArgumentParser) -> None:
    """Add `--processor`, which makes `clock_of` return the clock of processor time."""
    parser.add_argument("--processor", action="store_true", help="processor time of all threads, for a busy machine")


def clock_of(arguments: argparse.Namespace) -> Callable[[], float]:
    """Return the clock that the command line selects."""
    return time.process_time if arguments.processor else time.perf_counter


def chosen(names: Iterable[str], only: str) -> list[str]:
    return [name for name in names if only in name]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of the values that have a logarithm, or NaN if none has."""
    logs = [math.log(value) for value in values if 0 < value < math.inf]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def report(question: str, cases: Sequence[Case], arguments: argparse.Namespace, note: str = "") -> None:
    """Print times, ratios and their geometric means. With `--json`, also write them as JSON.

    A case may lack some of the peers.

    Args:
        question: Title of the table.
        cases: The measurements.
        arguments: The parsed command line.
        note: One sentence that readers of the figures need, about the contestants.
    """
    if not cases:
        return
    peers = list(dict.fromkeys(name for case in cases for name in case.seconds if name != OURS))
    table = Table(title=f"{question}\n{machine()}", title_justify="left", title_style="bold")
    (_fill_wide if len(peers) <= _WIDEST else _fill_long)(table, cases, peers)
    Console(width=None if os.isatty(1) else 120).print(table)
    if arguments.json:
        from benchmarks import _results  # which imports this module

        _results.write(question, note, cases, arguments)


_WIDEST = 4
"""Maximum number of peers that have columns of their own in a printed table."""


def _fill_wide(table: Table, cases: Sequence[Case], peers: Sequence[str]) -> None:
    """Fill a table with one row for each case."""
    table.add_column("case")
    table.add_column(f"{OURS} ms", justify="right")
    for peer in peers:
        table.add_column(f"{peer} ms", justify="right")
        table.add_column("ratio", justify="right")
    for case in cases:
        of_peers = (_shown(case, peer) if peer in case.seconds else ("", "") for peer in peers)
        table.add_row(case.name, case.shown(OURS), *(cell for cells in of_peers for cell in cells))
    table.add_section()
    table.add_row("geometric mean", "", *(cell for peer in peers for cell in ("", _mean(cases, peer))))


def _fill_long(table: Table, cases: Sequence[Case], peers: Sequence[str]) -> None:
    """Fill a table with one row for each case and contestant."""
    for name in ("case", "contestant"):
        table.add_column(name)
    for name in ("ms", "ratio"):
        table.add_column(name, justify="right")
    for case in cases:
        table.add_row(case.name, OURS, case.shown(OURS), "")
        for peer in peers:
            if peer in case.seconds:
                table.add_row("", peer, *_shown(case, peer))
        table.add_section()
    for peer in peers:
        table.add_row("geometric mean", peer, "", _mean(cases, peer))


def _shown(case: Case, peer: str) -> tuple[str, str]:
    """Return the median of a peer, and the ratio to it."""
    ratio = case.ratio(peer)
    return case.shown(peer), f"[{'green' if ratio <= 1 else 'red'}]{ratio:.2f}[/]"


def _mean(cases: Sequence[Case], peer: str) -> str:
    """Return the geometric mean of the ratios to a peer."""
    return f"[bold]{geometric_mean(case.ratio(peer) for case in cases if peer in case.seconds):.2f}[/]"


def machine() -> str:
    """Return one line that describes the machine and the libraries."""
    libraries = ("pylance", "duckdb", "pyarrow", "numpy", "numba")
    with_what = ", ".join(f"{name} {version(name)}" for name in libraries)
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}; {with_what}"


def touch(batches: Iterable[pa.RecordBatch]) -> int:
    """Consume batches and read one byte of each memory page, which makes mapped files count as read."""
    total = 0
    for batch in batches:
        total += batch.num_rows
        for column in batch.columns:
            _touch(column)
    return total


def _touch(column: pa.Array) -> None:
    for buffer in column.buffers():
        if buffer is not None and buffer.size:
            np.frombuffer(buffer, np.uint8)[::4096].max()
    if pa.types.is_dictionary(column.type):
        _touch(column.dictionary)
