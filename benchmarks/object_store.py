"""How many requests, bytes and milliseconds does a table in an object store cost?

A local server plays the store, and every request waits 20 ms. Wall time is the right clock here, because nearly all of
it is waiting. A case opens the table with an empty cache, unless its name ends in "again". The search without settings
looks for settings that reach a recall of 0.95, and pylance does not promise a recall.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import lance
import numpy as np

import lance_duck as ld
from benchmarks._harness import OURS, Case, alternate, chosen, mixed_rows, options, report
from benchmarks._s3_server import BUCKET, Server, s3_server

DIM = 16
FRAGMENTS = 4
SEARCH = {"column": "v", "q": np.ones(DIM, np.float32), "k": 10}
READS: dict[str, Callable[[Any], object]] = {
    "open": lambda table: table.schema,
    "count": lambda table: table.count_rows(),
    "one column": lambda table: table.to_table(columns=["x"]),
    "all columns": lambda table: table.to_table(),
    "one row by key": lambda table: table.to_table(filter="id = 7777"),
    "filtered scan": lambda table: table.to_table(columns=["id", "x", "text"], filter="n = 7"),
    "take 3 rows": lambda table: table.take(
        [5, table.count_rows() // 3, table.count_rows() - 5], columns=["id", "text"]
    ),
    "search": lambda table: table.to_table(nearest=SEARCH),
    "search, 8 partitions": lambda table: table.to_table(nearest={**SEARCH, "nprobes": 8, "refine_factor": 2}),
}
AGAIN = ("one column", "one row by key", "filtered scan", "search", "search, 8 partitions")

Figure = tuple[float, float, float]
NOTE = (
    "One local server delays every request. "
    "A search without settings keeps its promised recall, and pylance does not promise one."
)


def main() -> None:
    """Measure both implementations on the same store."""
    on_a_store(__doc__, "Use {rows} in an object store, {wait} per request", NOTE, compared)


def on_a_store(
    question: str | None,
    title: str,
    note: str,
    measured: Callable[[str, Server, argparse.Namespace], Iterable[Case]],
) -> None:
    """Write a table to a store, measure cases on it, and report them.

    Args:
        question: Docstring of the benchmark.
        title: Title of the report, with "{rows}" and "{wait}".
        note: See `report`.
        measured: Returns the cases for the URI of the table, the store and the command line.
    """
    parser = options((question or "").split("\n")[0], rows=1_000_000, rounds=5)
    parser.add_argument("--wait", type=float, default=20.0, help="milliseconds that each request waits")
    arguments = parser.parse_args()
    with s3_server(arguments.wait) as server:
        uri = f"s3://{BUCKET}/t.lance"
        write(uri, server, arguments.rows)
        cases = sorted(measured(uri, server, arguments), key=lambda case: case.unit)
    texts = {"rows": f"a table of {arguments.rows:,} rows", "wait": f"{arguments.wait:g} ms"}
    report(title.format(**texts), cases, arguments, note)


def write(uri: str, server: Server, rows: int) -> None:
    """Write a table with a key index and a vector index."""
    lance.write_dataset(
        mixed_rows(rows, DIM), uri, max_rows_per_file=-(-rows // FRAGMENTS), storage_options=server.options
    )
    table = lance.dataset(uri, storage_options=server.options)
    table.create_scalar_index("id", "BTREE")
    table.create_index("v", "IVF_PQ", num_partitions=64, num_sub_vectors=4)


def compared(uri: str, server: Server, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield the times, the requests and the bytes of both implementations for each case."""
    actions = {name: partial(read, uri, server, action) for name, action in READS.items()}
    actions |= {f"{name}, again": partial(read_again, uri, server, READS[name]) for name in AGAIN}
    actions |= {"append 1,000 rows": partial(append, server), "commit a setting": partial(commit, server)}
    for name in chosen(actions, arguments.only):
        figures: dict[str, list[Figure]] = {OURS: [], "pylance": []}
        for turn, contestant, library in alternate({OURS: ld, "pylance": lance}, arguments.rounds):
            figure = actions[name](library)
            if turn:
                figures[contestant].append(figure)
        yield from cases_of(name, figures)


def cases_of(name: str, figures: Mapping[str, Sequence[Figure]]) -> Iterator[Case]:
    """Yield the times, the requests and the bytes of each contestant."""
    columns = {who: list(zip(*rows, strict=True)) for who, rows in figures.items()}
    for at, (what, unit) in enumerate({"": "", ", requests": "requests", ", traffic": "kB"}.items()):
        yield Case(f"{name}{what}", {who: values[at] for who, values in columns.items()}, unit)


def read(uri: str, server: Server, action: Callable[[Any], object], library: Any) -> Figure:
    """Open the table and read."""
    return timed(server, lambda: action(opened(library, uri, server)))


def read_again(uri: str, server: Server, action: Callable[[Any], object], library: Any) -> Figure:
    """Read twice through one handle, and measure the second time."""
    table = opened(library, uri, server)
    action(table)
    return timed(server, lambda: action(table))


def append(server: Server, library: Any) -> Figure:
    """Append to a new small table."""
    uri = new_table(server)
    more = mixed_rows(1000, DIM)
    return timed(server, lambda: library.write_dataset(more, uri, mode="append", storage_options=server.options))


def commit(server: Server, library: Any) -> Figure:
    """Change a setting through an open handle: one commit without data."""
    table = opened(library, new_table(server), server)
    return timed(server, lambda: table.update_config({"step": "1"}))


_numbers = itertools.count()


def new_table(server: Server) -> str:
    """Write a small table and return its URI."""
    uri = f"s3://{BUCKET}/{next(_numbers)}.lance"
    lance.write_dataset(mixed_rows(1000, DIM), uri, storage_options=server.options)
    return uri


def opened(library: Any, uri: str, server: Server) -> Any:
    """Open a table with an empty cache."""
    fresh = {"session": lance.Session()} if library is lance else {}
    return library.dataset(uri, storage_options=server.options, **fresh)


def timed(server: Server, action: Callable[[], object]) -> Figure:
    """Return the seconds, the requests and the kilobytes that an action takes."""
    server.traffic()
    begin = time.perf_counter()
    action()
    seconds = time.perf_counter() - begin
    traffic = server.traffic()
    return seconds, traffic.requests, traffic.size / 1000


if __name__ == "__main__":
    main()
