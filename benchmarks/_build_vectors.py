"""Build one index and print its costs: python -m benchmarks._build_vectors ENGINE KIND ROWSxDIM METRIC.

This process does nothing else. Its peak memory therefore belongs to the build, to the libraries, and to vectors that
an engine keeps in memory. Resident memory includes mapped pages of files. Anonymous memory cannot be taken back.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

from benchmarks._vector_data import Data
from benchmarks._vector_engines import Table, engine


def main() -> None:
    """Print figures as JSON."""
    name, kind, size, metric = sys.argv[1:]
    built = engine(name, Data.of(size), kind, metric)
    if isinstance(built, Table):
        built.open()  # libraries are loaded
    else:
        built.data.vectors  # noqa: B018  and vectors are in memory
    peak, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], megabytes("RssAnon"))

    watcher = threading.Thread(target=watch, daemon=True)  # a build that fails ends the process
    watcher.start()
    begin, processor_begin = time.perf_counter(), time.process_time()
    built.build()
    seconds, processor_seconds = time.perf_counter() - begin, time.process_time() - processor_begin
    done.set()
    watcher.join()
    figures = {
        "seconds": seconds,
        "processor seconds": processor_seconds,
        "peak MB": megabytes("VmHWM"),
        "anonymous MB": peak[0],
        "index MB": built.megabytes(),
    }
    print(json.dumps(figures))


def megabytes(kind: str) -> float:
    """Memory of this process, of a kind that the system counts."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(text.partition(f"{kind}:")[2].split()[0]) / 1e3


if __name__ == "__main__":
    main()
