"""How long do many small appends take, and how fast does the table open afterwards?

Each append commits a version with one fragment. Times are per append, in rounds of 50. pylance does not flush.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report

PEER = "pylance"
FLUSHED, LAZY = "flushed", "not flushed"
ROUND = 50
Append = Callable[[pa.Table, str], None]
Clock = Callable[[], float]
NOTE = "pylance does not flush files to the disk."


def main() -> None:
    """Append to the tables alternately, then open them."""
    parser = options(__doc__ or "", rows=3, rounds=15)
    parser.add_argument("--appends", type=int, default=1000, help="to each table")
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    ways = [f"{way}, {how}" for way in ("by path", "by handle") for how in (LAZY, FLUSHED)]
    cases = []
    for name in chosen(ways, arguments.only):
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
            cases.append(appends(name, Path(folder), rows_of(arguments.rows), arguments.appends, clock))
            cases += opens(name, Path(folder), arguments.rounds, clock)
    report(f"Append {arguments.rows:,} rows, {arguments.appends:,} times", cases, arguments, NOTE)


def rows_of(rows: int) -> pa.Table:
    """A few rows of common types."""
    return pa.table(
        {
            "id": range(rows),
            "name": [f"name {i}" for i in range(rows)],
            "price": [i / 3 for i in range(rows)],
            "tags": [[f"tag {i}"] * (i % 3) for i in range(rows)],
        }
    )


def appends(name: str, folder: Path, data: pa.Table, count: int, clock: Clock) -> Case:
    """Append to one table per contestant, in alternating rounds."""
    way, how = name.split(", ")
    fsync = {"fsync": "true" if how == FLUSHED else "false"}
    writers = {OURS: writer(ld, way, storage_options=fsync), PEER: writer(lance, way)}
    lance.write_dataset(data, folder / OURS)
    lance.write_dataset(data, folder / PEER)
    seconds: dict[str, list[float]] = {who: [] for who in writers}
    for turn in range(count // ROUND):
        for who in list(writers)[:: 1 if turn % 2 else -1]:
            begin = clock()
            for _ in range(ROUND):
                writers[who](data, str(folder / who))
            seconds[who].append((clock() - begin) / ROUND)
    return Case(name, seconds)


def writer(library: Any, way: str, **settings: Mapping[str, str]) -> Append:
    """Return a function that appends to a path or to a handle. A path requires finding the newest version."""
    handles: dict[str, Any] = {}

    def by_handle(data: pa.Table, path: str) -> None:
        handles[path] = library.write_dataset(data, handles.get(path, path), mode="append", **settings)

    def by_path(data: pa.Table, path: str) -> None:
        library.write_dataset(data, path, mode="append", **settings)

    return by_handle if way == "by handle" else by_path


def opens(name: str, folder: Path, rounds: int, clock: Clock) -> list[Case]:
    """Open a table with many versions and fragments."""
    path = str(folder / OURS)
    asked: dict[str, Callable[[Any], object]] = {
        "open and count": lambda opened: opened(path).count_rows(),
        "open and read all": lambda opened: opened(path).to_table().num_rows,
    }
    cases = []
    for what, ask in asked.items():
        assert ask(ld.dataset) == ask(lance.dataset)
        contestants = {OURS: lambda ask=ask: ask(ld.dataset), PEER: lambda ask=ask: ask(lance.dataset)}
        cases.append(race(f"then {what}, {name}", contestants, rounds, clock))
    return cases


if __name__ == "__main__":
    main()
