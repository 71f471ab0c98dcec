"""How fast does a table with many versions or fragments open?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, chosen, clock_of, options, race, report


def write(path: Path, versions: int, fragments: int, file_version: str, rows: int) -> None:
    """Write a table of `fragments` files whose last version is number `versions`."""
    data = pa.table({"id": range(rows), "word": [f"w{i % 100}" for i in range(rows)]})
    rows_of_file = max(1, rows // fragments)
    dataset = lance.write_dataset(data, path, max_rows_per_file=rows_of_file, data_storage_version=file_version)
    for i in range(versions - 1):
        dataset.update_config({"step": str(i)})


def main() -> None:
    """Open, count, read one row or all rows with new handles."""
    parser = options(__doc__ or "", rows=10_000, rounds=15)
    add_clock(parser)
    arguments = parser.parse_args()
    clock = clock_of(arguments)
    shapes = {
        "1 version": (1, 1, "2.2"),
        "100 versions": (100, 1, "2.2"),
        "1,000 versions": (1000, 1, "2.2"),
        "1,000 fragments": (1, 1000, "2.2"),
        "1,000 fragments of format 2.0": (1, 1000, "2.0"),
    }
    cases = []
    for shape in chosen(shapes, arguments.only):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder) / "t.lance")
            write(Path(path), *shapes[shape], arguments.rows)
            asked = ("open and count", "open and read a row", "open version 1", "open and read all")
            cases += [race(f"{shape}, {what}", contestants(path, what), arguments.rounds, clock) for what in asked]
    report(f"Open a table of {arguments.rows:,} rows", cases, arguments)


def contestants(path: str, what: str) -> dict[str, Callable[[], object]]:
    """Return what each side does for a case."""
    actions: dict[str, Callable[[Any], object]] = {
        "open and count": lambda opened: opened(path).count_rows(),
        "open and read a row": lambda opened: opened(path).take([7]),
        "open and read all": lambda opened: opened(path).to_table(),
        "open version 1": lambda opened: opened(path, version=1).schema,
    }
    return {OURS: partial(actions[what], ld.dataset), "pylance": partial(actions[what], lance.dataset)}


if __name__ == "__main__":
    main()
