"""How fast are reads of a table that is not in memory?

The system drops all pages of the table before each cold read, and the benchmark verifies that. Every read opens a new
handle. Wall time is the clock here, because reads wait for the disk.

Warm takes follow. They measure the processor time of the check for resident pages, which runs before each read.
"""

from __future__ import annotations

import gc
import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import numpy as np

import lance_duck as ld
from benchmarks._harness import OURS, Case, alternate, chosen, mixed_rows, options, report
from lance_duck.store import mapped, pages

DIM = 64
Rows = list[int]


def main() -> None:
    """Read cold with both libraries, then warm with this one."""
    arguments = options((__doc__ or "").split("\n")[0], rows=1_000_000, rounds=9).parse_args()
    columns = ["id", "n", "text"]
    actions: dict[str, Callable[[Any, Rows], object]] = {
        "1,000 scattered rows": lambda table, rows: table.take(rows),
        "strings of 1,000 scattered rows": lambda table, rows: table.take(rows, columns=["text"]),
        "10 scattered rows": lambda table, rows: table.take(rows[:10]),
        "one row by key": lambda table, rows: table.to_table(filter=f"id = {rows[0]}"),
        "a filtered scan": lambda table, rows: table.to_table(columns=columns, filter=f"n = {rows[0] % 1000}"),
        "one column": lambda table, rows: table.to_table(columns=["x"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.lance"
        write(path, arguments.rows)
        names = chosen(actions, arguments.only)
        cases = [cold(name, path, actions[name], arguments.rows, arguments.rounds) for name in names]
        report(f"Read a table of {arguments.rows:,} rows that is not in memory", cases, arguments)
        for count in (1, 10, 1000):
            ratio = warm(path, count, arguments.rows, 20 * arguments.rounds)
            print(f"warm take of {count:,} rows, look-up over none, processor time: {ratio:.3f}")


def write(path: Path, rows: int) -> None:
    """Write a table with an index of keys."""
    lance.write_dataset(mixed_rows(rows, DIM), path).create_scalar_index("id", "BTREE")


def cold(name: str, path: Path, action: Callable[[Any, Rows], object], rows: int, rounds: int) -> Case:
    """Return the seconds of each contestant, after a round to warm up; none of the others finds what one has read."""
    rng = np.random.default_rng(len(name))
    draws = [rng.choice(rows, 1000, replace=False).tolist() for _ in range(rounds + 1)]
    seconds: dict[str, list[float]] = {OURS: [], "pylance": []}
    for turn, contestant, library in alternate({OURS: ld, "pylance": lance}, rounds):
        drop(path)
        begin = time.perf_counter()
        action(library.dataset(str(path)), draws[turn])
        if turn:
            seconds[contestant].append(time.perf_counter() - begin)
    return Case(name, seconds)


def drop(path: Path) -> None:
    """Let the system drop cached pages of a table's files, and check it; mapped pages stay."""
    gc.collect()
    for file in (each for each in path.rglob("*") if each.is_file() and each.stat().st_size):
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            data = np.frombuffer(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
        places = np.arange(0, len(data), mmap.PAGESIZE)
        resident = sum(pages.are_resident(data, places[at : at + 1]) for at in range(0, len(places), 64))
        if resident * 64 > len(places) // 20 + 64:
            raise RuntimeError(f"{file} is still in memory: {resident} of {len(places) // 64} places")


def warm(path: Path, count: int, rows: int, rounds: int) -> float:
    """Return the median ratio of processor time with the look-up over that without."""
    table = ld.dataset(str(path))
    table.to_table()
    rng = np.random.default_rng(count)
    ratios = []
    for turn in range(rounds):
        seconds = {}
        for looks in (True, False) if turn % 2 else (False, True):
            drawn = np.sort(rng.choice(rows, count, replace=False)).tolist()
            idle = mock.patch.object(mapped.MappedFile, "read_ahead")
            with nullcontext() if looks else idle:
                begin = time.process_time()
                table.take(drawn)
                seconds[looks] = time.process_time() - begin
        ratios.append(seconds[True] / seconds[False])
    return statistics.median(ratios)


if __name__ == "__main__":
    main()
