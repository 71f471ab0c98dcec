"""How long does compaction of small fragments and of deleted rows take?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import lance

from benchmarks._harness import add_clock, chosen, clock_of, options, report
from benchmarks.changes import FLUSHED, LAZY, change, table

# Name -> fragments, and how many rows of a hundred are deleted.
TABLES = {"1,000 fragments": (1000, 0), "100 fragments, 20 % deleted": (100, 20), "one fragment, 50 % deleted": (1, 50)}
NOTE = "pylance does not flush files to the disk."


def main() -> None:
    """Compact new copies of tables, whose data files are hard links."""
    parser = options(__doc__ or "", rows=1_000_000, rounds=5)
    add_clock(parser)
    arguments = parser.parse_args()
    data, clock = table(arguments.rows), clock_of(arguments)
    cases = []
    for name in chosen(TABLES, arguments.only):
        fragments, deleted = TABLES[name]
        with tempfile.TemporaryDirectory(dir=os.environ.get("BENCHMARK_DIR")) as folder:
            original = Path(folder) / "t"
            ds = lance.write_dataset(data, original, max_rows_per_file=-(-arguments.rows // fragments))
            if deleted:
                ds.delete(f"part < {deleted}")
            cases += [change(f"{name}, {how}", compact, original, arguments.rounds, clock) for how in (LAZY, FLUSHED)]
    report(f"Compact {arguments.rows:,} rows", cases, arguments, NOTE)


def compact(ds: Any) -> tuple[int, int]:
    """Both compact the same fragments."""
    done = ds.optimize.compact_files()
    return done.fragments_removed, done.fragments_added


if __name__ == "__main__":
    main()
