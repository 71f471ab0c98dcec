"""How much memory do compactions and merges need, for narrow and wide rows, with and without a limit?

Each change has its own process, and works on a copy of a table with deleted rows in every fragment. The result is the
growth of anonymous memory after the libraries are loaded. Mapped pages of files do not count.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, Case, chosen, options, report
from benchmarks._measured_once import memory

FRAGMENTS = 40
WIDTHS = {"1 kB": 1 << 10, "32 kB": 1 << 15, "1 MB": 1 << 20}
LIMIT = "128MB"
COMPACTION, MERGE = "compaction", "merge"
MERGED_SHARE = 10  # a merge changes one row in ten


def main() -> None:
    """Measure both libraries in child processes."""
    parser = options((__doc__ or "").split("\n", maxsplit=1)[0], rows=None, rounds=1)
    parser.add_argument("--megabytes", type=int, default=800, help="size of a table")
    arguments = parser.parse_args()
    cases = []
    for width in WIDTHS:
        names = chosen([f"{width}, {what}" for what in (COMPACTION, MERGE)], arguments.only)
        if not names:
            continue
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
            original = Path(folder) / "t"
            write(original, WIDTHS[width], arguments.megabytes << 20)
            cases += [case for name in names for case in compared(name, original, arguments.rounds)]
    report(f"Peak memory of changing tables of {arguments.megabytes:,} MB", cases, arguments)


def compared(name: str, original: Path, rounds: int) -> Iterator[Case]:
    """Yield the peak memory of a change, with and without a limit. pylance does not support limits."""
    what = name.split(", ")[1]
    theirs = [peak("lance", what, None, original) for _ in range(rounds)]
    for how, limit in (("", None), (f", limit of {LIMIT}", LIMIT)):
        ours = [peak("lance_duck", what, limit, original) for _ in range(rounds)]
        yield Case(name + how, {OURS: ours, "pylance": theirs}, "MB")


def peak(library: str, what: str, limit: str | None, original: Path) -> float:
    """Make a change in a new process, and return its peak memory in megabytes."""
    copy = original.with_name("copy")
    shutil.copytree(original, copy, copy_function=os.link)
    call = f"from benchmarks.change_memory import work; work({library!r}, {what!r}, {limit!r}, {str(copy)!r})"
    done = subprocess.run([sys.executable, "-c", call], check=True, capture_output=True)
    shutil.rmtree(copy)
    return float(json.loads(done.stdout))


def work(library: str, what: str, limit: str | None, path: str) -> None:
    """Change a table, and print the megabytes that it took."""
    table = import_module(library).dataset(path)
    rows = table.to_table(columns=["id"], filter=f"id % {MERGED_SHARE} = 3")
    width = len(table.take([0], columns=["value"])["value"][0].as_py())
    before, most, done = memory("RssAnon"), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.005):
            most[0] = max(most[0], memory("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)  # a change that fails ends the process
    watcher.start()
    change(table, what, {"memory_limit": limit} if limit else {}, rows["id"].to_numpy(), width)
    done.set()
    watcher.join()
    print(max(1.0, most[0] - before))


def change(table: Any, what: str, limit: dict[str, str], ids: np.ndarray, width: int) -> None:
    """Compact the table, or merge rows in small batches."""
    if what == COMPACTION:
        table.optimize.compact_files(**limit)
        return
    merging = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    if limit:
        merging = merging.memory_limit(limit["memory_limit"])
    merging.execute(pa.RecordBatchReader.from_batches(schema(), batches(ids, width)))


def write(path: Path, width: int, size: int) -> None:
    """Write values that do not compress, and delete a tenth of them."""
    rows = max(size // width, FRAGMENTS)
    reader = pa.RecordBatchReader.from_batches(schema(), batches(np.arange(rows), width))
    lance.write_dataset(reader, path, max_rows_per_file=-(-rows // FRAGMENTS)).delete("id % 10 = 7")


def schema() -> pa.Schema:
    """Return a key, and a value as wide as a row."""
    return pa.schema({"id": pa.int64(), "value": pa.binary()})


def batches(ids: np.ndarray, width: int) -> Iterator[pa.RecordBatch]:
    """Yield rows of these keys, 4 MB at a time."""
    rng = np.random.default_rng(0)
    step = max((4 << 20) // width, 1)
    for at in range(0, len(ids), step):
        keys = ids[at : at + step]
        yield pa.record_batch([keys, pa.array([rng.bytes(width) for _ in keys], pa.binary())], schema())


if __name__ == "__main__":
    main()
