"""How fast are rows written to a new table, of each common type and of all together, flushed to the disk and not?

pylance never flushes; "fsync" is what we do by default, "no fsync" is like for like. Beside the times, the ratio of
the bytes on disk.
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
from benchmarks.columns import KINDS, column

MIXED = "all together"
PARTS = ("int64", "int32 small", "float64", "string many", "list<int32>", "float32[16]")


def main() -> None:
    """Write tables with both implementations."""
    parser = options(__doc__ or "", rows=1_000_000, rounds=5)
    parser.add_argument("--file-version", default="2.2", choices=["2.0", "2.1", "2.2"])
    parser.add_argument("--mixed-rows", type=int, default=5_000_000, help=f"rows of {MIXED!r}")
    arguments = parser.parse_args()
    kinds = [f"{kind}{nulls}" for kind in KINDS for nulls in ("", " nulls")]
    if arguments.file_version == "2.0":
        kinds = [name for name in kinds if name != "struct nulls"]  # 2.0 cannot write them
    names = chosen([MIXED, *kinds], arguments.only)
    cases = []
    for name in names:
        rows = arguments.mixed_rows if name == MIXED else arguments.rows
        cases += write(name, rows, arguments.rounds, arguments.file_version)
    report(f"Write, format {arguments.file_version}", cases, arguments.json)


def write(name: str, rows: int, rounds: int, file_version: str) -> list[Case]:
    """Race over new tables of the same rows."""
    data = rows_of(name, rows)
    with tempfile.TemporaryDirectory() as folder:
        sizes: dict[str, int] = {}

        def writer(who: str, run: Callable[[str], object]) -> Callable[[], None]:
            path = Path(folder) / who

            def once() -> None:
                shutil.rmtree(path, ignore_errors=True)
                run(str(path))
                sizes[who] = sum(f.stat().st_size for f in path.rglob("*.lance"))

            return once

        def ours(path: str, fsync: str) -> None:
            settings = {"fsync": fsync}
            ld.write_dataset(data, path, data_storage_version=file_version, storage_options=settings)

        theirs = writer("pylance", lambda path: lance.write_dataset(data, path, data_storage_version=file_version))
        cases = []
        for fsync, label in (("false", "no fsync"), ("true", "fsync")):
            mine = writer(label, lambda path, fsync=fsync: ours(path, fsync))  # type: ignore[misc]
            cases.append(race(f"{name}, {label}", {OURS: mine, "pylance": theirs}, rounds))
        size = sizes["no fsync"] / sizes["pylance"]
        return [Case(f"{case.name}, {size:.2f} of the bytes", case.seconds) for case in cases]


def rows_of(name: str, rows: int) -> pa.Table:
    """A table of one column of a kind, or of several kinds."""
    if name != MIXED:
        kind = name.removesuffix(" nulls")
        return pa.table({"x": column(kind, rows, nulls=name != kind)})
    rng = np.random.default_rng(7)
    return pa.table({"id": np.arange(rows), **{kind: KINDS[kind](rows, rng) for kind in PARTS}})


if __name__ == "__main__":
    main()
