"""How many requests, bytes and milliseconds does an object store with 20 ms per request cost?

Reads begin with an empty handle, except in cases named "again". Time is wall-clock time, since nearly all of it is
waiting. Rounds alternate between us and pylance. The results are medians, their ratios, and the geometric mean of the
ratios. Without an explicit partition count, our first search reads a sample of vectors to find the settings for a
recall of 0.95; pylance does not promise a recall.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import lance
import numpy as np
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from benchmarks._harness import OURS, alternate, chosen, geometric_mean, machine, mixed_rows, options
from benchmarks._s3_server import BUCKET, Server, s3_server

DIM = 16
FRAGMENTS = 4
SEARCH = {"column": "v", "q": np.ones(DIM, np.float32), "k": 10}
READS: dict[str, Callable[[Any], object]] = {
    "open": lambda table: table.schema,
    "count": lambda table: table.count_rows(),
    "one column": lambda table: table.to_table(columns=["x"]),
    "all columns": lambda table: table.to_table(),
    "a row by key": lambda table: table.to_table(filter="id = 7777"),
    "filtered scan": lambda table: table.to_table(columns=["id", "x", "text"], filter="n = 7"),
    "take 3 rows": lambda table: table.take(
        [5, table.count_rows() // 3, table.count_rows() - 5], columns=["id", "text"]
    ),
    "search": lambda table: table.to_table(nearest=SEARCH),
    "search, 8 partitions": lambda table: table.to_table(nearest={**SEARCH, "nprobes": 8, "refine_factor": 2}),
}
AGAIN = ("one column", "a row by key", "filtered scan", "search", "search, 8 partitions")

Figure = tuple[float, int, int]


def main() -> None:
    """Measure both implementations on the same store."""
    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000, rounds=5)
    parser.add_argument("--wait", type=float, default=20.0, help="milliseconds that each request waits")
    arguments = parser.parse_args()
    with s3_server(arguments.wait) as server:
        uri = f"s3://{BUCKET}/t.lance"
        write(uri, server, arguments.rows)
        cases = {name: partial(read, uri, server, action) for name, action in READS.items()}
        cases |= {f"{name}, again": partial(read_again, uri, server, READS[name]) for name in AGAIN}
        cases |= {"append 1,000 rows": partial(append, server), "commit a setting": partial(commit, server)}
        wanted = chosen(cases, arguments.only)
        figures = {name: measured(cases[name], arguments.rounds) for name in wanted}
    show(figures, arguments)


def write(uri: str, server: Server, rows: int) -> None:
    """Write a table of four fragments with a key index and a vector index."""
    lance.write_dataset(
        mixed_rows(rows, DIM), uri, max_rows_per_file=-(-rows // FRAGMENTS), storage_options=server.options
    )
    table = lance.dataset(uri, storage_options=server.options)
    table.create_scalar_index("id", "BTREE")
    table.create_index("v", "IVF_PQ", num_partitions=64, num_sub_vectors=4)


def measured(case: Callable[[Any], Figure], rounds: int) -> dict[str, Figure]:
    """Return the median time, requests and bytes of each contestant, after a round to warm up."""
    figures: dict[str, list[Figure]] = {OURS: [], "pylance": []}
    for turn, contestant, library in alternate({OURS: ld, "pylance": lance}, rounds):
        figure = case(library)
        if turn:
            figures[contestant].append(figure)
    medians = {
        contestant: [statistics.median(values) for values in zip(*rows, strict=True)]
        for contestant, rows in figures.items()
    }
    return {who: (seconds, int(requests), int(size)) for who, (seconds, requests, size) in medians.items()}


def read(uri: str, server: Server, action: Callable[[Any], object], library: Any) -> Figure:
    """Open the table and read."""
    return timed(server, lambda: action(opened(library, uri, server)))


def read_again(uri: str, server: Server, action: Callable[[Any], object], library: Any) -> Figure:
    """Repeat a read with the same handle."""
    table = opened(library, uri, server)
    action(table)
    return timed(server, lambda: action(table))


def append(server: Server, library: Any) -> Figure:
    """Append to a table that is there."""
    uri = new_table(server)
    more = mixed_rows(1000, DIM)
    return timed(server, lambda: library.write_dataset(more, uri, mode="append", storage_options=server.options))


def commit(server: Server, library: Any) -> Figure:
    """Change a setting by a handle that is open: one commit without data."""
    table = opened(library, new_table(server), server)
    return timed(server, lambda: table.update_config({"step": "1"}))


_numbers = itertools.count()


def new_table(server: Server) -> str:
    """Write a small table and return its URI."""
    uri = f"s3://{BUCKET}/{next(_numbers)}.lance"
    lance.write_dataset(mixed_rows(1000, DIM), uri, storage_options=server.options)
    return uri


def opened(library: Any, uri: str, server: Server) -> Any:
    """Open a table with a new handle."""
    fresh = {"session": lance.Session()} if library is lance else {}
    return library.dataset(uri, storage_options=server.options, **fresh)


def timed(server: Server, action: Callable[[], object]) -> Figure:
    """Return the seconds, requests and bytes that an action takes."""
    server.traffic()
    begin = time.perf_counter()
    action()
    seconds = time.perf_counter() - begin
    traffic = server.traffic()
    return seconds, traffic.requests, traffic.size


def show(figures: Mapping[str, Mapping[str, Figure]], arguments: argparse.Namespace) -> None:
    """Print the figures, and optionally write them."""
    shape = f"{arguments.rows:,} rows, {FRAGMENTS} fragments"
    title = f"A store whose requests wait {arguments.wait:g} ms, {shape}\n{machine()}"
    table = Table(title=title, title_justify="left")
    for name in ("case", "ms", "pylance", "ratio", "requests", "pylance", "kB", "pylance"):
        table.add_column(name, justify="left" if name == "case" else "right")
    ratios = {name: row[OURS][0] / row["pylance"][0] for name, row in figures.items()}
    for name, row in figures.items():
        (ours, ask, size), (theirs, their_ask, their_size) = row[OURS], row["pylance"]
        times = f"{ours * 1e3:,.0f}", f"{theirs * 1e3:,.0f}", f"{ratios[name]:.2f}"
        table.add_row(name, *times, str(ask), str(their_ask), f"{size / 1e3:,.0f}", f"{their_size / 1e3:,.0f}")
    mean = geometric_mean(ratios.values())
    table.add_section()
    table.add_row("geometric mean", "", "", f"{mean:.2f}")
    Console(width=None if os.isatty(1) else 120).print(table)
    if arguments.json:
        found = {"machine": machine(), "geometric_mean": mean, "cases": figures}
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
