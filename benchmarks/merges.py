"""How much processor time and memory do many small merges need?

Each merge changes or inserts 1,000 rows by an indexed key. After every twentieth merge the table is compacted and its
index updated. One handle does all of this. Each library has its own process, and the two take turns step by step.

The first turn of a step loads libraries and kernels, and is not counted. pylance does not flush. Memory is measured
after each quarter of the merges, without mapped files: `--merges 200` shows whether it grows.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, Case, options, report

LIBRARIES = {OURS: "lance_duck", "pylance": "lance"}
COMPACTED_EVERY = 20
MERGED_ROWS = 1000
MERGE, COMPACTION, UPKEEP = "merge", "compaction", "update of the index"
MEMORY = "memory"
AT_MOST, STAYS = f"{MEMORY}, peak", f"{MEMORY}, remaining"
QUARTERS = 4

Figures = dict[str, dict[str, list[float]]]


def main() -> None:
    """Let the libraries take turns."""
    parser = options(__doc__ or "", rows=100_000, rounds=3)
    parser.add_argument("--merges", type=int, default=120, help="to each table")
    parser.add_argument("--flushed", action="store_true", help="flush our changes to the disk")
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    found: Figures = {}
    for _ in range(arguments.rounds):
        for what, figures in turns(arguments.rows, arguments.merges, arguments.flushed).items():
            for who, values in figures.items():
                found.setdefault(what, {}).setdefault(who, []).extend(values)
    cases = [Case(what, figures, "MB" if what.startswith(MEMORY) else "") for what, figures in found.items()]
    how = "flushed" if arguments.flushed else "not flushed"
    title = f"Merge {MERGED_ROWS:,} rows into {arguments.rows:,}, {arguments.merges:,} times, {how}"
    report(title, cases, arguments)


def turns(rows: int, merges: int, flushed: bool) -> Figures:
    """Run all steps, alternating between the libraries. Return seconds, their sum, and megabytes."""
    workers = {who: Worker(library, rows, flushed) for who, library in LIBRARIES.items()}
    found: Figures = {}
    memory: Figures = {}
    for turn, (step, merged) in enumerate(steps(merges)):
        for who in list(workers)[:: 1 if turn % 2 else -1]:
            found.setdefault(step, {}).setdefault(who, []).append(workers[who].ask(step))
        if step == MERGE and merged % -(-merges // QUARTERS) == 0:
            memory[f"{STAYS} after {merged} merges"] = told(workers, STAYS)
    found = {step: {who: values[1:] for who, values in each.items()} for step, each in found.items()}
    sums = {who: [sum(sum(each[who]) for each in found.values())] for who in workers}
    memory |= {AT_MOST: told(workers, AT_MOST), STAYS: told(workers, STAYS)}
    for worker in workers.values():
        worker.close()
    return {**found, "all steps": sums, **memory}


def steps(merges: int) -> Iterator[tuple[str, int]]:
    """Yield each step with the number of merges so far."""
    for merged in range(1, merges + 1):
        yield MERGE, merged
        if merged % COMPACTED_EVERY == 0:
            yield from ((COMPACTION, merged), (UPKEEP, merged))


def told(workers: dict[str, Worker], what: str) -> dict[str, list[float]]:
    """Return the megabytes that each worker tells."""
    return {who: [worker.ask(what)] for who, worker in workers.items()}


class Worker:
    """A process of a library that runs steps on command."""

    def __init__(self, library: str, rows: int, flushed: bool) -> None:
        call = f"from benchmarks.merges import work; work({library!r}, {rows}, {flushed})"
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", call], stdin=pipe, stdout=pipe, text=True)
        self._answer()

    def ask(self, what: str) -> float:
        """Run a step, or measure memory; return seconds or megabytes."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> float:
        assert self._process.stdout is not None
        return float(json.loads(self._process.stdout.readline()))


def work(library: str, rows: int, flushed: bool) -> None:
    """Answer questions from stdin, after a first answer once the table and its index are there."""
    lib = import_module(library)
    settings = {"storage_options": {"fsync": str(flushed).lower()}} if library == LIBRARIES[OURS] else {}
    with tempfile.TemporaryDirectory() as folder:
        table = lib.write_dataset(data(np.arange(rows)), str(Path(folder) / "t.lance"), **settings)
        table.create_scalar_index("id", "BTREE")
        begin = resident()
        rng = np.random.default_rng(0)
        answers: dict[str, Callable[[], float]] = {
            MERGE: lambda: merge(table, data(np.unique(rng.integers(0, rows * 6 // 5, MERGED_ROWS)))),
            COMPACTION: lambda: took(table.optimize.compact_files),
            UPKEEP: lambda: took(table.optimize.optimize_indices),
            AT_MOST: lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            STAYS: lambda: max(1.0, resident() - begin),
        }
        print(begin, flush=True)
        for line in sys.stdin:
            print(answers[line.strip()](), flush=True)


def merge(table: Any, source: pa.Table) -> float:
    """Merge rows by their key; return the processor time."""
    merging = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return took(lambda: merging.execute(source))


def data(ids: np.ndarray) -> pa.Table:
    """Rows with these keys."""
    return pa.table({"id": ids, "v": ids / 3, "s": [f"text {i}" for i in ids.tolist()]})


def took(work: Callable[[], object]) -> float:
    """Processor time of a call, with all its threads."""
    begin = time.process_time()
    work()
    return time.process_time() - begin


def resident() -> float:
    """Megabytes of memory that the process has now, without mapped files."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


if __name__ == "__main__":
    main()
