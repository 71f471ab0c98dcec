"""How expensive are tables of 1,000 to 100,000 fragments?

Most tables here are only manifests. Each fragment claims a million rows, and data files do not exist. Lookups by key
use real tables of at most 10,000 small fragments. Nothing is flushed.

Three costs grow with the fragments:

- Every version stores a complete manifest. A commit reads, changes and writes all of it.
- A plan creates a few Python objects for each fragment, in every process that plans.
- A Spark task has a fixed cost, which is why a scan limits its number of tasks. `columns` and `filter` reduce it.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import duckdb
import lance
import lance.optimize
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.source import partitions
from lance_duck.spark.io.stream_offsets import Offset, Walk
from lance_duck.spark.io.stream_options import Limits, StreamOptions
from lance_duck.spark.table_ref import TableRef

PEER = "pylance"
ROWS = 1_000_000
HASTY = {"fsync": "false"}
MOST_FILES = 10_000
GROUP = {"target_rows_per_fragment": 16 * ROWS}

HELD = """
import sys, lance_duck as ld
def held():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
ld.dataset(sys.argv[1], 1).count_rows()
begin = held()
table = ld.dataset(sys.argv[1])
opened = held()
fragments = list(table.handle.snapshot.fragments)
print(opened - begin, held() - opened)
"""

Action = Callable[[], object]


def main() -> None:
    """Write the tables, then measure."""
    parser = options(__doc__ or "", rows=None, rounds=5)
    parser.add_argument("--fragments", type=int, nargs="+", default=[1000, 10_000, 100_000])
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    cases: list[Case] = []
    for count in arguments.fragments:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "t.lance")
            make(path, count)
            asked = questions(path)
            names = chosen(asked, arguments.only)
            cases += [race(f"{count:,} fragments, {name}", asked[name], arguments.rounds, clock) for name in names]
            figures = sizes(path)
            cases += [Case(f"{count:,} fragments, {name}", {OURS: [mb]}, "MB") for name, mb in figures.items()]
            if count <= MOST_FILES:
                asked = lookups(str(Path(folder) / "files.lance"), count)
                names = chosen(asked, arguments.only)
                cases += [race(f"{count:,} fragments, {name}", asked[name], arguments.rounds, clock) for name in names]
    report("Open, plan and change tables of many fragments", cases, arguments)


def make(path: str, count: int) -> None:
    """Commit a table whose fragments do not have files."""
    rows = pa.table({"id": pa.array([0]), "word": ["w"], "v": pa.array([[0.0] * 128], pa.list_(pa.float32(), 128))})
    made = ld.write_dataset(rows, path, storage_options=HASTY)
    one = made.get_fragments()[0].metadata
    files = (replace(one.files[0], path=f"{uuid4().hex}.lance", file_size_bytes=540 * ROWS) for _ in range(count))
    fragments = [replace(one, physical_rows=ROWS, files=[file]) for file in files]
    ld.LanceDataset.commit(made, ld.LanceOperation.Overwrite(made.schema, fragments), storage_options=HASTY)


def questions(path: str) -> Mapping[str, Mapping[str, Action]]:
    """Return the operations by name, for each contestant that supports them."""
    one = ld.dataset(path, 1).get_fragments()[0].metadata
    theirs = lance.dataset(path, 1).get_fragments()[0].metadata
    ours_open: Callable[[], Any] = lambda: ld.dataset(path, storage_options=HASTY)  # noqa: E731
    return {
        "open": {OURS: ours_open, PEER: lambda: lance.dataset(path)},
        "open and count": {OURS: lambda: ours_open().count_rows(), PEER: lambda: lance.dataset(path).count_rows()},
        "open and plan a scan": {
            OURS: lambda: ours_open().scanner(columns=["id"], filter="id = 3").explain_plan(),
            PEER: lambda: lance.dataset(path).scanner(columns=["id"], filter="id = 3").explain_plan(),
        },
        "commit an append": {
            OURS: lambda: ld.LanceDataset.commit(
                handle := ours_open(), ld.LanceOperation.Append([one]), handle.version
            ),
            PEER: lambda: append(path, theirs),
        },
        "a stream finds one append": {OURS: lambda: follow(ours_open())},
        "plan a scan of Spark": {OURS: lambda: plan(ours_open())},
        "plan compaction": {
            OURS: lambda: ld.optimize.Compaction.plan(ours_open(), GROUP),
            PEER: lambda: lance.optimize.Compaction.plan(lance.dataset(path), GROUP),
        },
    }


def lookups(path: str, count: int) -> Mapping[str, Mapping[str, Action]]:
    """Return lookups by key, through open handles and connections."""
    rows = pa.table({"id": np.arange(count * 10), "x": np.arange(count * 10) / 3})
    ours = ld.write_dataset(rows, path, max_rows_per_file=10, storage_options=HASTY)
    ours.create_scalar_index("id", "BTREE")
    theirs = lance.dataset(path)
    connections: dict[str, Any] = {OURS: ld.connect({"t": path}), PEER: duckdb.connect()}
    connections[PEER].register("t", theirs)
    draws = {who: np.random.default_rng(0) for who in connections}

    def key(who: str) -> int:
        return int(draws[who].integers(0, count * 10))

    sql = "SELECT * FROM t WHERE id = ?"
    return {
        "one row by key": {
            OURS: lambda: ours.to_table(filter=f"id = {key(OURS)}"),
            PEER: lambda: theirs.to_table(filter=f"id = {key(PEER)}"),
        },
        "one row by key, in SQL": {
            OURS: lambda: connections[OURS].execute(sql, [key(OURS)]).fetchall(),
            PEER: lambda: connections[PEER].execute(sql, [key(PEER)]).fetchall(),
        },
    }


def append(path: str, fragment: Any) -> None:
    """Commit an append with pylance."""
    table = lance.dataset(path)
    lance.LanceDataset.commit(table, lance.LanceOperation.Append([fragment]), read_version=table.version)


def follow(table: ld.LanceDataset) -> Offset:
    """Let a stream find the newest version."""
    newest = table.version
    return Walk(table, StreamOptions()).advance(Offset(newest), Offset(newest + 1), Limits())


def plan(table: ld.LanceDataset) -> Sequence[object]:
    """Split the table into partitions for Spark tasks."""
    return partitions(table, ReadOptions(TableRef.of(table.uri)), table.schema.names)


def sizes(path: str) -> dict[str, float]:
    """Return sizes that grow with the fragments, in megabytes."""
    manifests = [file.stat().st_size for file in Path(path, "_versions").glob("*.manifest")]
    held = subprocess.run([sys.executable, "-c", HELD, path], capture_output=True, text=True, check=True).stdout
    return {
        "manifest": max(manifests) / 1e6,
        "partitions of Spark, pickled": len(pickle.dumps(plan(ld.dataset(path)))) / 1e6,
        "memory of a version": float(held.split()[0]),
        "memory of its fragments as objects": float(held.split()[1]),
    }


if __name__ == "__main__":
    main()
