"""How much processor time do checksums cost, in writes, first reads and later reads?"""

from __future__ import annotations

import argparse
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld

CHOICES = ("true", "false")
COLUMNS: dict[str, list[str] | None] = {"float64": ["f"], "int64": ["i"], "string": ["s"], "all columns": None}


def data(rows: int) -> pa.Table:
    """Numbers that fill their bytes, numbers of few bits, texts."""
    generator = np.random.default_rng(1)
    texts = [f"text {i % 99_991}" for i in range(rows)]
    return pa.table({"f": generator.random(rows), "i": generator.integers(0, 1000, rows), "s": texts})


def ratio(runs: int, do: Callable[[str], list[float]]) -> list[float]:
    """Return the median ratios of `do` with and without checksums, measured alternately."""
    ratios = []
    for _ in range(runs):
        times = {choice: do(choice) for choice in random.sample(CHOICES, 2)}
        ratios.append([a / b for a, b in zip(times["true"], times["false"], strict=True)])
    return [statistics.median(column) for column in zip(*ratios, strict=True)]


def timed(work: Callable[[], Any]) -> float:
    """Return the processor time of a call, in seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=9)
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    table = data(args.rows)
    places = np.sort(np.random.default_rng(2).integers(0, args.rows, 1000))

    def write(choice: str) -> list[float]:
        settings = {"checksums": choice, "fsync": "false"}
        path = folder / f"{choice}.lance"
        return [timed(lambda: ld.write_dataset(table, path, mode="overwrite", storage_options=settings))]

    def opened(choice: str) -> ld.LanceDataset:
        return ld.dataset(folder / f"{choice}.lance", storage_options={"checksums": choice})

    def scan(choice: str, columns: list[str] | None) -> list[float]:
        dataset = opened(choice)
        return [timed(lambda: dataset.to_table(columns)) for _ in range(2)]

    def take(choice: str) -> list[float]:
        dataset = opened(choice)
        dataset.take([0])
        return [timed(lambda: dataset.take(places)) for _ in range(2)]

    try:
        print(f"{args.rows:,} rows: processor time with checksums over without, medians of {args.repeat}")
        print(f"write                    {ratio(max(3, args.repeat // 3), write)[0]:.2f}")
        for name, columns in COLUMNS.items():
            first, later = ratio(args.repeat, lambda choice, columns=columns: scan(choice, columns))  # type: ignore[misc]
            print(f"scan, {name:<12} first {first:.2f}, later {later:.2f}")
        first, later = ratio(args.repeat, take)
        print(f"take of 1,000      first {first:.2f}, later {later:.2f}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
