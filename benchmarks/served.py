"""How long do clients of a server wait under load, and how long do the same calls take in one process?

`CLIENTS` clients send point queries, vector searches, scans and inserts at the same time, to a server and then to the
Python API, each in a process of its own. Every insert is counted afterwards. Needs the extra `serve`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from benchmarks._harness import DATA

CLIENTS = 16
DIM = 64
SCANNED = 5_000
INSERTED = 10
CALLS = {"point query": 60, "vector search": 25, "scan": 10, "insert": 5}
"""What clients send, and its share in percent."""
STREAM = "application/vnd.apache.arrow.stream"

Call = Callable[[random.Random], None]


def main() -> None:
    """Run the load, and print the waiting times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0, help="duration of each of the two runs")
    arguments = parser.parse_args()
    folder = DATA / "served"
    console = Console()
    for kind in ("server", "one process"):
        table = make(folder, arguments.rows)
        before = table.count_rows()
        with served(folder) if kind == "server" else local(table) as (calls, memory):
            sizes = [memory()]
            waits, failures = run(calls, arguments.seconds, lambda sizes=sizes, memory=memory: sizes.append(memory()))
        console.print(shown(f"{CLIENTS} clients, {kind}, {arguments.rows:,} rows, {arguments.seconds:g} s", waits))
        console.print(
            f"memory in MiB: {', '.join(f'{size / 2**20:,.0f}' for size in sizes)}; failures: {failures or 0}"
        )
        inserted = INSERTED * len(waits["insert"])
        lost = before + inserted - ld.dataset(table.uri).count_rows()
        console.print(f"{inserted:,} rows inserted, {lost} lost")
        if lost or failures:
            sys.exit("a client saw an error, or a row was lost")


def make(folder: Path, rows: int) -> ld.LanceDataset:
    """Write the table with its indexes anew."""
    shutil.rmtree(folder, ignore_errors=True)
    table = ld.write_dataset(batch(0, rows), folder / "t.lance")
    table.create_scalar_index("id", "BTREE")
    table.create_index("v", "IVF_FLAT", num_partitions=64)
    return ld.dataset(table.uri)


def batch(first: int, rows: int) -> pa.Table:
    """Return rows with ids from `first`."""
    values = np.random.default_rng(first).standard_normal(rows * DIM, np.float32)
    columns = {"id": pa.array(range(first, first + rows)), "v": pa.FixedSizeListArray.from_arrays(values, DIM)}
    return pa.table({**columns, "s": pa.array([f"text {number % 997}" for number in range(first, first + rows)])})


@contextmanager
def served(folder: Path) -> Iterator[tuple[dict[str, Call], Callable[[], int]]]:
    """Start a server, and yield the calls of a client and the size of the server's memory."""
    command = [
        sys.executable,
        "-m",
        "lance_duck",
        "serve",
        str(folder),
        "--write",
        "--port",
        "0",
        "--max-waiting",
        "64",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        words = server.stdout.readline().split()
        address = next(word for word in words if word.startswith("http")).removeprefix("http://").strip("/,.")
        here = threading.local()

        def post(path: str, body: bytes, media_type: str) -> bytes:
            if not hasattr(here, "connection"):
                here.connection = http.client.HTTPConnection(address)
            here.connection.request("POST", f"/v1/table/t/{path}", body, {"content-type": media_type})
            answer = here.connection.getresponse()
            content: bytes = answer.read()
            if answer.status != 200:
                raise RuntimeError(f"{answer.status}: {content[:200]!r}")
            return content

        def query(**body: Any) -> int:
            content = post("query/", json.dumps(body).encode(), "application/json")
            return pa.ipc.open_file(content).read_all().num_rows

        def insert(rows: pa.Table) -> None:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_table(rows)
            post("insert/", sink.getvalue().to_pybytes(), STREAM)

        columns = {"column_names": ["id", "s"]}
        try:
            yield (
                calls_of(
                    lambda id_: query(vector={}, filter=f"id = {id_}", k=10, columns=columns),
                    lambda vector: query(vector={"single_vector": vector}, k=10, columns=columns, nprobes=8),
                    lambda: query(vector={}, k=SCANNED, columns=columns),
                    insert,
                ),
                lambda: resident(server.pid),
            )
        finally:
            server.terminate()


@contextmanager
def local(table: ld.LanceDataset) -> Iterator[tuple[dict[str, Call], Callable[[], int]]]:
    """Yield the same calls in this process, each on the newest version, and the size of its memory."""

    def newest() -> ld.LanceDataset:
        return ld.dataset(table.uri)

    columns = ["id", "s"]
    yield (
        calls_of(
            lambda id_: newest().to_table(columns, filter=f"id = {id_}").num_rows,
            lambda vector: newest().search(vector, k=10, columns=columns, nprobes=8).num_rows,
            lambda: newest().to_table(columns, limit=SCANNED).num_rows,
            lambda rows: ld.write_dataset(rows, table.uri, mode="append"),
        ),
        lambda: resident(os.getpid()),
    )


def calls_of(
    point: Callable[[int], int],
    search: Callable[[list[float]], int],
    scan: Callable[[], int],
    insert: Callable[[pa.Table], object],
) -> dict[str, Call]:
    """Return the calls by name. Each one checks its answer."""

    def check(rows: int, expected: int) -> None:
        if rows != expected:
            raise RuntimeError(f"{rows} rows in place of {expected}")

    return {
        "point query": lambda dice: check(point(dice.randrange(50_000)), 1),
        "vector search": lambda dice: check(search([dice.gauss(0, 1) for _ in range(DIM)]), 10),
        "scan": lambda dice: check(scan(), SCANNED),
        "insert": lambda dice: insert(batch(dice.randrange(10**9, 10**12), INSERTED)) and None,
    }


def run(
    calls: dict[str, Call], seconds: float, note: Callable[[], object]
) -> tuple[dict[str, list[float]], dict[str, int]]:
    """Let clients call for a while. Returns the waiting times by call, and the failures by text."""
    waits: dict[str, list[float]] = {name: [] for name in calls}
    failures: dict[str, int] = {}
    end = time.monotonic() + seconds

    def client(seed: int) -> None:
        dice = random.Random(seed)
        while time.monotonic() < end:
            name = dice.choices([*CALLS], [*CALLS.values()])[0]
            began = time.perf_counter()
            try:
                calls[name](dice)
            except Exception as error:
                failures[str(error)] = failures.get(str(error), 0) + 1
            else:
                waits[name].append(time.perf_counter() - began)

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        time.sleep(seconds / 3)
        note()
    for thread in threads:
        thread.join()
    return waits, failures


def resident(process: int) -> int:
    """Return the private memory of a process in bytes. Memory-mapped files do not count."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line.startswith("Private_Dirty"))


def shown(title: str, waits: dict[str, list[float]]) -> Table:
    """Return the waiting times as a table."""
    table = Table(title=title)
    for name in ("call", "times", "p50 in ms", "p99 in ms"):
        table.add_column(name, justify="left" if name == "call" else "right")
    for name, times in waits.items():
        if times:
            percentiles = statistics.quantiles(times, n=100) if len(times) > 1 else times * 99
            table.add_row(name, f"{len(times):,}", f"{percentiles[49] * 1e3:,.1f}", f"{percentiles[98] * 1e3:,.1f}")
    return table


if __name__ == "__main__":
    main()
