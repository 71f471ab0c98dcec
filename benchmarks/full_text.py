"""How long does a full-text index take to build, how large is it, and how much memory does it need?

Both libraries index the same strings, whose word frequencies follow a natural language. In the JSON case they are one
of four values in each document. Each build and each merge of segments has its own process, which has already done the
same work with a small table. Memory is the peak above that.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, Case, chosen, options, report
from benchmarks._index_work import LIBRARIES, cases_of, measured
from benchmarks._texts import texts

PLAIN: dict[str, Any] = {"stem": False, "remove_stop_words": False}
POSITIONS: dict[str, Any] = {**PLAIN, "with_position": True}
SETTINGS: dict[str, dict[str, Any]] = {
    "default analyser": {},
    "no stemming": PLAIN,
    "with positions": POSITIONS,
    "with positions, memory_limit=16": {**POSITIONS, "memory_limit": 16},
    "with positions, format 3": {**POSITIONS, "format_version": 3},
    "blocks of 256, format 3": {**PLAIN, "block_size": 256},
    "JSON": {**PLAIN, "column": "j"},
}
STEP = 50_000
SEGMENTS = 4
LIMITS = (64, 256)
"""Megabytes that a merge may hold."""

_MERGE = """
import shutil, sys
from pathlib import Path
from lance_duck.index.build import merge_segments
from lance_duck.index.catalog import catalog
from lance_duck.index.kind import BuildOptions
from lance_duck.snapshot import open_snapshot

def most():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

snapshot = open_snapshot(sys.argv[1])
(index,) = catalog(snapshot).over("s")
options = BuildOptions(memory_limit=int(sys.argv[2]))

def merge(segments):
    written = merge_segments(snapshot, segments, options=options)
    shutil.rmtree(Path(sys.argv[1], "_indices", str(written.uuid)))

merge(index.segments[:1])  # for what kernels and libraries take
before = most()
merge(index.segments)
print((most() - before) / 1024)
"""


def main() -> None:
    """Build alternately, then compare sizes."""
    arguments = options((__doc__ or "").split("\n")[0], rows=200_000, rounds=3).parse_args()
    cases = []
    for name in chosen(SETTINGS, arguments.only):
        settings = SETTINGS[name]
        path = table(arguments.rows, is_json="column" in settings)
        work = {"index_type": "INVERTED", "column": "s", "replace": True, **settings}
        measurements: dict[str, list[list[float]]] = {who: [] for who in LIBRARIES}
        for turn in range(arguments.rounds):
            for who in list(LIBRARIES)[:: 1 if turn % 2 else -1]:
                warm = warm_table(path)
                measurements[who].append(measured(who, "build", warm, path, {**work, "name": f"built-{who}"}))
        cases += cases_of(f"build, {name}", measurements)
        cases.append(Case(f"build, {name}, size", {who: [size_of(who, path) / 1e6] for who in LIBRARIES}, "MB"))
    if arguments.only in "merge":
        cases += merges(arguments.rows, arguments.rounds)
    report(f"Full-text indexes of {arguments.rows:,} texts", cases, arguments)


def merges(rows: int, rounds: int) -> list[Case]:
    """Return what merging segments takes, each time in a copy of a table, and with what memory, by its limit."""
    path, warm = segmented_table(rows, STEP), segmented_table(SEGMENTS * 250, 250)
    measurements: dict[str, list[list[float]]] = {who: [] for who in LIBRARIES}
    for turn in range(rounds):
        for who in list(LIBRARIES)[:: 1 if turn % 2 else -1]:
            with TemporaryDirectory(dir=DATA) as folder:
                copies = [str(shutil.copytree(each, Path(folder, each.parent.name))) for each in (warm, path)]
                measurements[who].append(measured(who, "optimize", *copies, {"num_indices_to_merge": SEGMENTS}))
    name = f"merge of {SEGMENTS} segments"
    cases = cases_of(name, measurements)
    for limit in LIMITS:
        command = [sys.executable, "-W", "ignore", "-c", _MERGE, str(path), str(limit << 20)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        cases.append(Case(f"{name}, limit {limit} MB, peak memory", {OURS: [float(said)]}, "MB"))
    return cases


def segmented_table(rows: int, step: int) -> Path:
    """Return the path of a table whose index has several segments. Write it if it does not exist."""
    path = DATA / f"full-text-{rows}-merges" / "t.lance"
    if path.exists():
        return path
    shutil.rmtree(path.parent, ignore_errors=True)
    for batch in batches(rows, step):
        dataset = ld.write_dataset(pa.table([batch["id"], batch["s"]], names=["id", "s"]), path, mode="append")
    fragments = [fragment.fragment_id for fragment in dataset.get_fragments()]
    count = -(-len(fragments) // SEGMENTS)
    parts = [
        dataset.create_index_uncommitted(
            "s", "INVERTED", name="s_idx", fragment_ids=fragments[at : at + count], **POSITIONS
        )
        for at in range(0, len(fragments), count)
    ]
    dataset.commit_existing_index_segments("s_idx", "s", parts)
    return path


def size_of(who: str, path: str) -> int:
    """Return the bytes of the index of a table."""
    (index,) = (index for index in ld.dataset(path).describe_indices() if index.name == f"built-{who}")
    return index.total_size_bytes or 0


def warm_table(path: str) -> str:
    """Return the path of a small table in the same folder. Write it if it does not exist."""
    warm = Path(path).parent / "warm.lance"
    if not warm.exists():
        lance.write_dataset(
            pa.table({"s": texts(1000), "j": documents(texts(1000), 0)}), warm, data_storage_version="2.2"
        )
    return str(warm)


def table(rows: int, *, is_json: bool = False) -> str:
    """Write a table, unless it is there."""
    path = DATA / f"full-text-{rows}{'-json' if is_json else ''}" / "t.lance"
    if not path.exists():
        shutil.rmtree(path.parent, ignore_errors=True)
        parts = json_batches(rows) if is_json else batches(rows)
        first = next(parts)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], parts))
        lance.write_dataset(reader, path, max_rows_per_file=100_000, data_storage_version="2.2")
    return str(path)


def batches(rows: int, step: int = STEP) -> Iterator[pa.RecordBatch]:
    """Yield texts with their numbers."""
    for at in range(0, rows, step):
        count = min(step, rows - at)
        yield pa.record_batch({"id": np.arange(at, at + count), "s": texts(count, at)})


def json_batches(rows: int) -> Iterator[pa.RecordBatch]:
    """Yield texts in JSON, with their numbers."""
    for batch in batches(rows):
        yield pa.record_batch({"id": batch["id"], "j": documents(batch["s"], batch["id"][0].as_py())})


def documents(bodies: pa.StringArray, first: int) -> pa.Array:
    """Return JSON documents with a string, a number, one of a few names, and a boolean."""
    listed = [
        {"body": body, "about": {"number": number, "name": f"name{number % 50}"}, "is_new": number % 3 == 0}
        for number, body in enumerate(bodies.to_pylist(), first)
    ]
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(map(json.dumps, listed)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
