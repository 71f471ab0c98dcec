"""Scan a table or search its indexes, and print the memory used: python -m benchmarks._measured_once LIBRARY WAY PATH.

The process imports only one of the two libraries.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from benchmarks._harness import touch


def main() -> None:
    """Print peak megabytes as JSON."""
    library, way, path = sys.argv[1:]
    dataset = importlib.import_module(library).dataset(path)
    before, peak, done = memory(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], memory("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)  # work that fails ends the process
    watcher.start()
    WAYS[way](dataset)
    done.set()
    watcher.join()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"resident": rss, "anonymous": peak[0], "resident before": before}))


def batches(dataset: Any) -> None:
    """Read everything once."""
    touch(dataset.to_batches())


def sql(dataset: Any) -> None:
    """Read everything once, through DuckDB."""
    connection = duckdb.connect()
    connection.register("t", dataset)
    sums = ", ".join(f"sum(n{i})" for i in range(5))
    connection.execute(f"SELECT {sums}, max(key), sum(vector[1]) FROM t").fetchall()


def lookups(dataset: Any) -> None:
    """Look up 1,000 keys one by one."""
    keys = np.random.default_rng(0).integers(0, dataset.count_rows(), 1000).tolist()
    for key in keys:
        dataset.to_table(columns=["value"], filter=f"id = {key}")


def prewarmed(dataset: Any) -> None:
    """Load an index whole, and look one key up."""
    dataset.prewarm_index("id_idx")
    dataset.to_table(columns=["value"], filter="id = 7")


def memory(kind: str = "VmRSS") -> float:
    """Return the resident memory of this process in megabytes, all or a kind of it."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / 1e3
    return 0.0


WAYS = {"scan by batches": batches, "scan in SQL": sql, "1,000 lookups": lookups, "index prewarmed": prewarmed}

if __name__ == "__main__":
    main()
