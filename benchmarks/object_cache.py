"""How many requests, bytes and milliseconds does the disk cache save, and what does filling it cost?

The table and the store are those of `object_store`. Every read opens the table in a new process, as far as the cache is
concerned: it asks the store for the e-tag of each file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

import lance_duck as ld
from benchmarks._harness import OURS, Case, chosen
from benchmarks._s3_server import Server
from benchmarks.object_store import SEARCH, Figure, cases_of, on_a_store, timed
from lance_duck.store.disk_cache import cache as cache_module
from lance_duck.store.disk_cache import wait_for_blocks

ROWS: Final = 100
READS: Final[dict[str, Callable[[Any], object]]] = {
    "100 scattered rows": lambda table: table.take(scattered(table.count_rows()), columns=["id", "text"]),
    "one row by key": lambda table: table.to_table(filter="id = 7777"),
    "one column": lambda table: table.to_table(columns=["x"]),
    "all columns": lambda table: table.to_table(),
    "search": lambda table: table.to_table(nearest={**SEARCH, "nprobes": 8, "refine_factor": 2}),
}
NO_CACHE: Final = "no cache"
CACHES: Final = ("cold cache", "warm cache")
NOTE: Final = (
    f"{OURS} has a cache on the local disk, and the peer is {OURS} without one. A cold cache is an empty folder. "
    "A warm cache has been filled by the same read. The blocks are written after the answer, and this time is not "
    "counted. One local server delays every request."
)


def main() -> None:
    """Read without a cache, through an empty one, and through a warm one."""
    on_a_store(__doc__, "Read {rows} through a disk cache, {wait} per request", NOTE, measured)


def measured(uri: str, server: Server, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield the times, the requests and the bytes of each read. The first round is a warm-up."""
    for name in chosen(READS, arguments.only):
        figures: dict[str, list[Figure]] = {each: [] for each in (NO_CACHE, *CACHES)}
        for _ in range(arguments.rounds + 1):
            with tempfile.TemporaryDirectory() as folder:
                for each, rows in figures.items():
                    cache = {} if each == NO_CACHE else {"cache": str(Path(folder) / "cache")}
                    rows.append(opened_and_read(uri, server, cache, READS[name]))
        for each in CACHES:
            yield from cases_of(f"{name}, {each}", {OURS: figures[each][1:], NO_CACHE: figures[NO_CACHE][1:]})


def opened_and_read(uri: str, server: Server, cache: Mapping[str, str], read: Callable[[Any], object]) -> Figure:
    """Return what opening the table and reading it costs."""
    cache_module._opened.cache_clear()
    figure = timed(server, lambda: read(ld.dataset(uri, storage_options={**server.options, **cache})))
    wait_for_blocks()
    return figure


def scattered(rows: int) -> list[int]:
    return np.random.default_rng(0).choice(rows, ROWS, replace=False).tolist()  # type: ignore[no-any-return]


if __name__ == "__main__":
    main()
