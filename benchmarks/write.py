"""How fast are new tables written, with and without flushing to disk?

pylance never flushes; "fsync" is our default, and "no fsync" is the direct comparison. The ratio of bytes on disk
follows the name.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, chosen, options, race, report
from benchmarks.columns import KINDS

# Name -> kinds of its columns, and the part of the rows that it has.
TABLES = {
    "all together": (("int64", "int32 small", "float64", "string many", "list<int32>", "float32[16]"), 1.0),
    "numbers": (("int64", "int64 ascending", "int32 small", "float64", "decimal(15,2)", "date32"), 1.0),
    "texts": (("string few", "string many", "binary"), 1.0),
    "one column of texts": (("string many",), 1.0),
    "lists": (("list<int32>", "list<string>", "struct"), 0.5),
    "vectors": (("int64 ascending", "float32[768]"), 0.04),
}
BATCH_ROWS = 65_536


def main() -> None:
    """Write tables with both implementations."""
    parser = options(__doc__ or "", rows=5_000_000, rounds=5)
    parser.add_argument("--file-version", default="2.2", choices=["2.0", "2.1", "2.2"])
    arguments = parser.parse_args()
    cases = []
    for name in chosen(TABLES, arguments.only):
        cases += write(name, arguments.rows, arguments.rounds, arguments.file_version)
    report(f"Write, format {arguments.file_version}, {arguments.rows:,} rows", cases, arguments.json)


def write(name: str, rows: int, rounds: int, file_version: str) -> list[Case]:
    """Race over new tables of the same rows."""
    data = rows_of(name, rows)
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
        for fsync, label in (("false", "no fsync"), ("true", "fsync")):
            mine = writer(label, lambda reader, path, fsync=fsync: ours(reader, path, fsync))  # type: ignore[misc]
            cases.append(race(f"{name}, {label}", {OURS: mine, "pylance": theirs}, rounds))
        size = sizes["no fsync"] / sizes["pylance"]
        return [Case(f"{case.name} ({size:.2f} of the bytes)", case.seconds) for case in cases]


def rows_of(name: str, rows: int) -> pa.Table:
    """A table, the same each time."""
    kinds, part = TABLES[name]
    rng = np.random.default_rng(7)
    return pa.table({kind: KINDS[kind](int(rows * part), rng) for kind in kinds})


if __name__ == "__main__":
    main()
