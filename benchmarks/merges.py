"""What do many small merges take: processor time, and memory that stays?

Each merges 1,000 rows, of which most are in the table, by a key with an index; every twenty the table is compacted and
its index brought up to date, by one handle from the first merge to the last. Each library runs in a process of its own,
which says what it took. Nothing is flushed, as pylance never does.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, Case, options, report

LIBRARIES = {OURS: "lance_duck", "pylance": "lance"}
COMPACTED_EVERY = 20
MERGED_ROWS = 1000


def main() -> None:
    """Let the libraries take turns."""
    parser = options(__doc__ or "", rows=100_000, rounds=3)
    parser.add_argument("--merges", type=int, default=120, help="to each table")
    arguments = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for turn in range(arguments.rounds):
        for who in list(LIBRARIES)[:: 1 if turn % 2 else -1]:
            call = f"merged({LIBRARIES[who]!r}, {arguments.rows}, {arguments.merges})"
            command = [sys.executable, "-c", f"from benchmarks.merges import merged; print({call})"]
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            for what, figure in json.loads(said.splitlines()[-1]).items():
                found.setdefault(what, {}).setdefault(who, []).append(figure)
    cases = [Case(what, figures, "MB" if "memory" in what else "") for what, figures in found.items()]
    report(f"{arguments.merges:,} merges of {MERGED_ROWS:,} rows into {arguments.rows:,}", cases, arguments.json)


def merged(library: str, rows: int, merges: int) -> str:
    """Merge with a library; returns seconds and megabytes by name, as JSON."""
    lib = import_module(library)
    rng = np.random.default_rng(0)
    settings = {"storage_options": {"fsync": "false"}} if library == LIBRARIES[OURS] else {}
    seconds = dict.fromkeys(("merges", "compactions", "indexes"), 0.0)
    with tempfile.TemporaryDirectory() as folder:
        table = lib.write_dataset(data(np.arange(rows)), str(Path(folder) / "t.lance"), **settings)
        table.create_scalar_index("id", "BTREE")
        begin = resident()
        for turn in range(merges):
            source = data(np.unique(rng.integers(0, rows * 6 // 5, MERGED_ROWS)))
            merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
            seconds["merges"] += took(lambda merge=merge, source=source: merge.execute(source))
            if turn % COMPACTED_EVERY == COMPACTED_EVERY - 1:
                seconds["compactions"] += took(table.optimize.compact_files)
                seconds["indexes"] += took(table.optimize.optimize_indices)
        grown = resident() - begin
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return json.dumps({**seconds, "memory at most": most, "memory that stays": max(1.0, grown)})


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
