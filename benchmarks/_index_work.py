"""Build an index, or merge its segments: python -m benchmarks._index_work LIBRARY WORK WARM PATH ARGUMENTS.

The process imports only one of the libraries. It first does the same work on a small table, which loads libraries and
kernels. Then it prints wall seconds, processor seconds of all threads, and the growth of its peak memory in megabytes.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks._harness import OURS, Case

LIBRARIES = {OURS: "lance_duck", "pylance": "lance"}
MEASURES = {"": "", ", processor time": "", ", peak memory": "MB"}
"""Units by the suffix of a case name. Seconds do not have a unit."""


def main() -> None:
    """Do the work twice, and measure the second time."""
    library, work, warm, path, arguments = sys.argv[1:]
    do = WORKS[work]
    module = importlib.import_module(library)
    do(module.dataset(warm), json.loads(arguments))
    before, clock, processor = most_kilobytes(), time.perf_counter(), time.process_time()
    do(module.dataset(path), json.loads(arguments))
    clock, processor = time.perf_counter() - clock, time.process_time() - processor
    print(json.dumps([clock, processor, (most_kilobytes() - before) / 1024]))


def most_kilobytes() -> int:
    """Return the peak of this process; `ru_maxrss` of a child begins with what its parent had."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def build(dataset: Any, arguments: Mapping[str, Any]) -> None:
    """Build an index."""
    dataset.create_scalar_index(**arguments)


def optimize(dataset: Any, arguments: Mapping[str, Any]) -> None:
    """Merge segments."""
    dataset.optimize.optimize_indices(**arguments)


WORKS = {"build": build, "optimize": optimize}


def measured(who: str, work: str, warm: str, path: str, arguments: Mapping[str, Any]) -> list[float]:
    """Run the work in a new process, and return the numbers that it prints."""
    command = [*(sys.executable, "-W", "ignore", "-m", "benchmarks._index_work"), LIBRARIES[who], work, warm, path]
    said = subprocess.run([*command, json.dumps(arguments)], check=True, capture_output=True, text=True).stdout
    figures: list[float] = json.loads(said)
    return figures


def cases_of(name: str, measurements: Mapping[str, Sequence[Sequence[float]]]) -> list[Case]:
    """Return the cases of work: each measurement of each contestant is what `measured` returns."""
    return [
        Case(f"{name}{what}", {who: [each[at] for each in rounds] for who, rounds in measurements.items()}, unit)
        for at, (what, unit) in enumerate(MEASURES.items())
    ]


if __name__ == "__main__":
    main()
