"""Scan a table once and print the memory it took: python -m benchmarks._scan_once LIBRARY WAY PATH.

A process of its own, which imports one of the two libraries only.
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

from benchmarks._harness import touch


def main() -> None:
    """Print peak megabytes as JSON."""
    library, way, path = sys.argv[1:]
    dataset = importlib.import_module(library).dataset(path)
    before, peak, done = memory(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], memory("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    scan(dataset, way)
    done.set()
    watcher.join()
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(json.dumps({"peak RSS MB": rss, "peak anonymous MB": peak[0], "RSS before MB": before}))


def scan(dataset: Any, way: str) -> None:
    """Read everything once."""
    if way == "batches":
        touch(dataset.to_batches())
        return
    connection = duckdb.connect()
    connection.register("t", dataset)
    sums = ", ".join(f"sum(n{i})" for i in range(5))
    connection.execute(f"SELECT {sums}, max(key), sum(vector[1]) FROM t").fetchall()


def memory(kind: str = "VmRSS") -> float:
    """Return the resident memory of this process in megabytes, all or a kind of it."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) / 1e3
    return 0.0


if __name__ == "__main__":
    main()
