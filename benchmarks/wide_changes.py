"""How much do changes in SQL cost that use few columns of wide rows?

Each statement has its own process and a new table, whose rows hold ten numbers and a vector. The results are processor
time, and the growth of peak memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, chosen, options, report

_MERGE: Final = "MERGE INTO t USING (SELECT range AS id, range + 1 AS v FROM range(0, {rows}, 10)) s ON s.id = t.id "
STATEMENTS: Final = {
    "update 10 %": "UPDATE t SET a1 = a1 + 1 WHERE id % 10 = 0",
    "update by rowid": "UPDATE t SET a1 = 0 WHERE rowid = 7",
    "delete 10 %": "DELETE FROM t WHERE id % 10 = 0",
    "merge 10 %": f"{_MERGE} WHEN MATCHED THEN UPDATE SET a1 = s.v",
    "merge, delete 10 %": f"{_MERGE} WHEN MATCHED AND t.a1 >= 0 THEN DELETE WHEN MATCHED THEN UPDATE SET a1 = s.v",
    "merge by source": f"{_MERGE} WHEN NOT MATCHED BY SOURCE AND t.a2 = 7 THEN DELETE",
    "upsert 10 %": "INSERT INTO t (id, a1) SELECT range, 1 FROM range(0, {rows}, 10) "
    "ON CONFLICT (id) DO UPDATE SET a1 = excluded.a1",
}
"""Statements by name; each names two or three columns."""


def main() -> None:
    """Measure the statements."""
    parser = options((__doc__ or "").split("\n")[0], rows=100_000)
    parser.add_argument("--width", type=int, default=768, help="numbers of a vector")
    parser.add_argument("--one", help="measure one statement in this process")
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measured(STATEMENTS[arguments.one], arguments.rows, arguments.width)))
        return
    figures = {}
    for name in chosen(STATEMENTS, arguments.only):
        command = [sys.executable, "-m", "benchmarks.wide_changes", "--one", name]
        command += ["--rows", str(arguments.rows), "--width", str(arguments.width)]
        figures[name] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    cases = [Case(name, {OURS: [seconds]}) for name, (seconds, _) in figures.items()]
    cases += [Case(f"{name}, memory", {OURS: [size]}, "MB") for name, (_, size) in figures.items()]
    report(f"Change {arguments.rows:,} rows with vectors of {arguments.width} dimensions", cases, arguments)


def measured(sql: str, rows: int, width: int) -> tuple[float, float]:
    """Return the seconds of the processor and the megabytes that a statement takes."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "t.lance", rows, width)
        write(Path(folder) / "first.lance", 100, 2)
        with ld.connect(folder) as con:
            con.execute(sql.replace(" t ", " first ").replace("t.", "first.").format(rows=100))  # compiles, imports
            Path("/proc/self/clear_refs").write_text("5")
            before, start = _peak(), time.process_time()
            con.execute(sql.format(rows=rows)).fetchall()
            return time.process_time() - start, _peak() - before


def write(path: Path, rows: int, width: int) -> None:
    """Write a table of ten numbers and a vector."""
    rng = np.random.default_rng(0)
    numbers = {f"a{i}": rng.integers(0, 100, rows) for i in range(1, 10)}
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(rows * width, np.float32)), width)
    ld.write_dataset(pa.table({"id": np.arange(rows), **numbers, "vec": vectors}), path)


def _peak() -> float:
    """Return the most memory that this process had since the peak was reset, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000


if __name__ == "__main__":
    main()
