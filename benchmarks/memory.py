"""How much memory do a scan of a large table and an index of many keys need?

Each measurement has its own process. Resident memory includes mapped pages of files, which the system can take back.
Anonymous memory stays until the process frees it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

from benchmarks import indexes
from benchmarks._harness import DATA, OURS, Case, options, report

WAYS = ("scan by batches", "scan in SQL")
INDEXED_WAYS = ("1,000 lookups", "index prewarmed")
NOTE = "Each measurement starts a new process, which needs memory for its libraries."


def main() -> None:
    """Measure both implementations in child processes."""
    parser = options((__doc__ or "").split("\n")[0], rows=16_000_000)
    parser.add_argument("--index-rows", type=int, default=10_000_000, help="rows of the table with an index")
    arguments = parser.parse_args()
    path = DATA / f"memory-{arguments.rows}.lance"
    if not path.exists():
        write(path, arguments.rows)
    cases = []
    for way in (*WAYS, *INDEXED_WAYS):
        paths = {
            who: str(path) if way in WAYS else indexes.table(who, arguments.index_rows) for who in (OURS, "pylance")
        }
        figures = {who: measured(who, way, place) for who, place in paths.items()}
        cases += [Case(f"{way}, {kind}", {who: [figures[who][kind]] for who in paths}, "MB") for kind in figures[OURS]]
    report(f"Peak memory of a process that reads {arguments.rows:,} rows", cases, arguments, NOTE)


def measured(who: str, way: str, path: str) -> dict[str, float]:
    """Megabytes that a way takes, by kind."""
    library = "lance_duck" if who == OURS else "lance"
    command = [sys.executable, "-m", "benchmarks._measured_once", library, way, path]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


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


if __name__ == "__main__":
    main()
