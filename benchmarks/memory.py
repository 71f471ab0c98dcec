"""How much memory does a scan of a table of 2 GB take?

Each scan runs in a process of its own. Peak RSS counts mapped pages of the file too, which the system can take back at
any time; anonymous memory cannot be taken back.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import lance
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from benchmarks._harness import DATA, OURS, machine, options, touch

WAYS = ("batches", "sql")


def main() -> None:
    """Measure both implementations in child processes."""
    parser = options((__doc__ or "").split("\n")[0], rows=16_000_000)
    parser.add_argument("--child", nargs=3, metavar=("WHO", "WAY", "PATH"), help="scan and print the figures")
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(measure(*arguments.child)))
        return
    path = DATA / f"memory-{arguments.rows}.lance"
    if not path.exists():
        write(path, arguments.rows)
    figures = {}
    for way in WAYS:
        for who in (OURS, "pylance"):
            command = [sys.executable, "-m", "benchmarks.memory", "--child", who, way, str(path)]
            figures[f"{way}, {who}"] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    size = sum(file.stat().st_size for file in path.rglob("*.lance") if file.is_file())
    show(figures, size)
    if arguments.json:
        arguments.json.write_text(json.dumps({"machine": machine(), "bytes": size, "mb": figures}, indent=1) + "\n")


def show(figures: dict[str, dict[str, float]], size: int) -> None:
    """Print the figures."""
    table = Table(title=f"Peak memory of scanning {size / 1e9:.2f} GB\n{machine()}", title_justify="left")
    table.add_column("scan")
    for name in next(iter(figures.values())):
        table.add_column(name, justify="right")
    for name, row in figures.items():
        table.add_row(name, *(f"{value:,.0f}" for value in row.values()))
    Console().print(table)


def write(path: Path, rows: int) -> None:
    """Write 128 bytes a row or so: numbers, vectors and text that does not compress well."""
    shutil.rmtree(path, ignore_errors=True)
    step = 500_000
    reader = pa.RecordBatchReader.from_batches(
        batch(1).schema, (batch(min(step, rows - at), at) for at in range(0, rows, step))
    )
    lance.write_dataset(reader, path, max_rows_per_file=4_000_000)


def batch(count: int, seed: int = 0) -> pa.RecordBatch:
    """Return rows of 128 bytes."""
    rng = np.random.default_rng(seed)
    text = pa.FixedSizeBinaryArray.from_buffers(pa.binary(24), count, [None, pa.py_buffer(rng.bytes(count * 24))])
    numbers = {f"n{i}": rng.integers(0, 1 << 62, count) for i in range(5)}
    vector = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(count * 16, np.float32)), 16)
    return pa.record_batch(numbers | {"key": text, "vector": vector})


def measure(who: str, way: str, path: str) -> dict[str, float]:
    """Scan the table; return peak megabytes: whole process, anonymous, and anonymous before the scan."""
    dataset = ld.dataset(path) if who == OURS else lance.dataset(path)
    before = anonymous()
    peak, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    scan(dataset, way)
    done.set()
    watcher.join()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    return {"peak RSS MB": rss, "peak anonymous MB": peak[0], "anonymous before MB": before}


def scan(dataset: object, way: str) -> None:
    """Read everything once."""
    if way == "batches":
        touch(dataset.to_batches())  # type: ignore[attr-defined]
    else:
        connection = duckdb.connect()
        connection.register("t", dataset)
        connection.execute(
            "SELECT sum(n0), sum(n1), sum(n2), sum(n3), sum(n4), max(key), sum(vector[1]) FROM t"
        ).fetchall()


def anonymous() -> float:
    """Return the anonymous resident memory of this process in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1e3
    return 0.0


if __name__ == "__main__":
    main()
