"""How fast is a whole column read, for each common type, with and without nulls?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import lance
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report, touch
from benchmarks.columns import KINDS, column

NULLS = ", with nulls"


def main() -> None:
    """Scan one-column tables with both implementations."""
    parser = options(__doc__ or "", rows=1_000_000)
    parser.add_argument("--file-version", default="2.2", choices=["2.0", "2.1", "2.2"])
    add_clock(parser)
    arguments = parser.parse_args()
    names = chosen([f"{kind}{nulls}" for kind in KINDS for nulls in ("", NULLS)], arguments.only)
    if arguments.file_version == "2.0":
        names = [name for name in names if name != f"struct{NULLS}"]  # 2.0 cannot write them
    clock = clock_of(arguments)
    cases = [scan(name, arguments.rows, arguments.rounds, arguments.file_version, clock) for name in names]
    report(f"Scan one column of {arguments.rows:,} rows", cases, arguments)


def scan(name: str, rows: int, rounds: int, file_version: str, clock: Callable[[], float]) -> Case:
    """Write a table of one column and race over it."""
    kind = name.removesuffix(NULLS)
    data = pa.table({"x": column(kind, rows, nulls=name != kind)})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "t.lance")
        lance.write_dataset(data, path, data_storage_version=file_version)
        ours, theirs = ld.dataset(path), lance.dataset(path)
        assert touch(ours.to_batches()) == touch(theirs.to_batches()) == data.num_rows
        runs = {OURS: lambda: touch(ours.to_batches()), "pylance": lambda: touch(theirs.to_batches())}
        return race(name, runs, rounds, clock)


if __name__ == "__main__":
    main()
