"""How fast are new tables written, with and without flushing to disk?

lance-duck flushes by default. pylance never flushes: compare it with the cases that are not flushed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report
from benchmarks.columns import KINDS

# Name -> kinds of its columns, and the part of the rows that it has.
TABLES = {
    "mixed columns": (
        ("int64", "int32 below 1,000", "float64", "string, three words", "list<int32>", "float32[16]"),
        1.0,
    ),
    "numbers": (("int64", "ascending int64", "int32 below 1,000", "float64", "decimal(15,2)", "date32"), 1.0),
    "strings": (("string, 25 values", "string, three words", "binary"), 1.0),
    "one string column": (("string, three words",), 1.0),
    "lists": (("list<int32>", "list<string>", "struct"), 0.5),
    "vectors": (("ascending int64", "float32[768]"), 0.04),
}
BATCH_ROWS = 65_536
NOTE = "pylance does not flush files to the disk."


def main() -> None:
    """Write tables with both implementations."""
    parser = options(__doc__ or "", rows=5_000_000, rounds=5)
    add_clock(parser)
    parser.add_argument("--file-version", default="2.2", choices=["2.0", "2.1", "2.2"])
    arguments = parser.parse_args()
    cases = []
    for name in chosen(TABLES, arguments.only):
        cases += write(name, arguments)
    report(f"Write tables of up to {arguments.rows:,} rows", cases, arguments, NOTE)


def write(name: str, arguments: argparse.Namespace) -> list[Case]:
    """Race over new tables of the same rows."""
    data = rows_of(name, arguments.rows)
    file_version = arguments.file_version
    with tempfile.TemporaryDirectory() as folder:
        sizes: dict[str, int] = {}

        def writer(who: str, run: Callable[[pa.RecordBatchReader, str], object]) -> Callable[[], None]:
            path = Path(folder) / who

            def once() -> None:
                shutil.rmtree(path, ignore_errors=True)
                run(data.to_reader(BATCH_ROWS), str(path))
                sizes[who] = sum(f.stat().st_size for f in path.rglob("*.lance"))

            return once

        def ours(reader: pa.RecordBatchReader, path: str, fsync: str) -> None:
            ld.write_dataset(reader, path, data_storage_version=file_version, storage_options={"fsync": fsync})

        theirs = writer(
            "pylance", lambda reader, path: lance.write_dataset(reader, path, data_storage_version=file_version)
        )
        cases = []
        for fsync, label in (("false", "not flushed"), ("true", "flushed")):
            mine = writer(label, lambda reader, path, fsync=fsync: ours(reader, path, fsync))  # type: ignore[misc]
            contestants = {OURS: mine, "pylance": theirs}
            cases.append(race(f"{name}, {label}", contestants, arguments.rounds, clock_of(arguments)))
        megabytes = {OURS: [sizes["not flushed"] / 1e6], "pylance": [sizes["pylance"] / 1e6]}
        return [*cases, Case(f"{name}, size on disk", megabytes, "MB")]


def rows_of(name: str, rows: int) -> pa.Table:
    """A table, the same each time."""
    kinds, part = TABLES[name]
    rng = np.random.default_rng(7)
    return pa.table({kind: KINDS[kind](int(rows * part), rng) for kind in kinds})


if __name__ == "__main__":
    main()
