"""How many requests, bytes and milliseconds does the disk cache save?

The table and the store are those of `object_store`. Every read opens the table in a new process, as far as the cache is
concerned: it asks the store for the e-tag of each file. The cold cache is an empty folder. The warm cache has been
filled by the same read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import lance_duck as ld
from benchmarks._harness import OURS, Case, chosen, options, report
from benchmarks._s3_server import BUCKET, Server, s3_server
from benchmarks.object_store import SEARCH, Figure, timed, write
from lance_duck.store.disk_cache import cache as disk_cache

ROWS: Final = 100
READS: Final[dict[str, Callable[[Any], object]]] = {
    "100 scattered rows": lambda table: table.take(scattered(table.count_rows()), columns=["id", "text"]),
    "one row by key": lambda table: table.to_table(filter="id = 7777"),
    "one column": lambda table: table.to_table(columns=["x"]),
    "all columns": lambda table: table.to_table(),
    "search": lambda table: table.to_table(nearest={**SEARCH, "nprobes": 8, "refine_factor": 2}),
}
NO_CACHE: Final = "no cache"
COLD: Final = "cold cache"
UNITS: Final = {"": "", ", requests": "requests", ", traffic": "kB"}


def main() -> None:
    """Read through a warm cache, through an empty one, and without a cache."""
    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000, rounds=5)
    parser.add_argument("--wait", type=float, default=20.0, help="milliseconds that each request waits")
    arguments = parser.parse_args()
    with s3_server(arguments.wait) as server:
        uri = f"s3://{BUCKET}/t.lance"
        write(uri, server, arguments.rows)
        cases = [
            case
            for name in chosen(READS, arguments.only)
            for case in measured(name, uri, server, READS[name], arguments.rounds)
        ]
    title = f"Read a table of {arguments.rows:,} rows in an object store again, {arguments.wait:g} ms per request"
    note = f"{OURS} has the warm cache. One local server delays every request."
    report(title, sorted(cases, key=lambda case: case.unit), arguments, note)


def measured(name: str, uri: str, server: Server, read: Callable[[Any], object], rounds: int) -> list[Case]:
    """Return the times, the requests and the bytes. The first round is a warm-up."""
    figures: dict[str, list[Figure]] = {OURS: [], COLD: [], NO_CACHE: []}
    for _ in range(rounds + 1):
        with tempfile.TemporaryDirectory() as folder:
            cache = {"cache": str(Path(folder) / "cache")}
            figures[NO_CACHE].append(opened_and_read(uri, server, {}, read))
            figures[COLD].append(opened_and_read(uri, server, cache, read))
            figures[OURS].append(opened_and_read(uri, server, cache, read))
    columns = {who: list(zip(*rows[1:], strict=True)) for who, rows in figures.items()}
    return [
        Case(f"{name}{what}", {who: values[at] for who, values in columns.items()}, unit)
        for at, (what, unit) in enumerate(UNITS.items())
    ]


def opened_and_read(uri: str, server: Server, cache: Mapping[str, str], read: Callable[[Any], object]) -> Figure:
    """Return what opening the table and reading it costs."""
    disk_cache._opened.cache_clear()
    return timed(server, lambda: read(ld.dataset(uri, storage_options={**server.options, **cache})))


def scattered(rows: int) -> list[int]:
    return np.random.default_rng(0).choice(rows, ROWS, replace=False).tolist()  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
