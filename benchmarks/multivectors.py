"""What recall do searches in rows with several vectors reach, and how fast are they?

The benchmark varies `VECTORS_FOR_EACH` and `RANKED_FOR_EACH` in `lance_duck/scan/costs.py`. A query has four vectors,
each near a vector of one row. Recall counts the ten best rows, and the clock is processor time. The index uses product
quantization.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final
from unittest import mock

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from benchmarks._harness import chosen, machine, options
from lance_duck.scan.nearest import multivector as module

DIM: Final = 32
K: Final = 10
QUERIES: Final = 40
FACTORS: Final = (0.1, 0.25, 0.5, 1, 2, 4)
THRESHOLDS: Final = ("VECTORS_FOR_EACH", "RANKED_FOR_EACH")


def main() -> None:
    """Print recall and time by the value of each threshold."""
    arguments = options((__doc__ or "").split("\n")[0], rows=50_000, rounds=3).parse_args()
    table = Table(title=f"Rows of several vectors, {arguments.rows:,} of them\n{machine()}", title_justify="left")
    for heading in ("threshold", "value", "recall", "ms a query"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        dataset, queries = _make(Path(folder) / "t.lance", arguments.rows)
        truth = [_found(dataset, query, metric="cosine", use_index=False) for query in queries]
        for name in chosen(THRESHOLDS, arguments.only):
            value = getattr(module, name)
            for factor in FACTORS:
                with mock.patch.object(module, name, max(1, int(value * factor))):
                    recall, seconds = _measure(dataset, queries, truth, arguments.rounds)
                table.add_row(name, f"{max(1, int(value * factor))}", f"{recall:.3f}", f"{seconds * 1e3:.1f}")
    Console(width=100).print(table)


def _make(path: Path, rows: int) -> tuple[ld.LanceDataset, list[np.ndarray]]:
    rng = np.random.default_rng(5)
    centres = rng.standard_normal((500, DIM)).astype(np.float32)
    counts = rng.integers(4, 17, rows)
    values = centres[rng.integers(0, 500, int(counts.sum()))]
    values += 0.5 * rng.standard_normal(values.shape, np.float32)
    ends = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), DIM)
    data = pa.table({"id": np.arange(rows), "v": pa.ListArray.from_arrays(ends, vectors)})
    dataset = ld.write_dataset(data, path, max_rows_per_file=rows)
    dataset.create_index("v", "IVF_PQ", metric="cosine", num_partitions=64, num_sub_vectors=DIM // 4)
    firsts = np.append(0, np.cumsum(counts))[rng.integers(0, rows, QUERIES)]
    near = values[firsts[:, None] + np.arange(4)]
    return dataset, list(near + 0.3 * rng.standard_normal(near.shape, np.float32))


def _found(dataset: ld.LanceDataset, query: np.ndarray, **settings: Any) -> set[int]:
    nearest = {"column": "v", "q": query, "k": K, **settings}
    return set(dataset.to_table(columns=["id"], nearest=nearest)["id"].to_pylist())


def _measure(
    dataset: ld.LanceDataset, queries: list[np.ndarray], truth: list[set[int]], rounds: int
) -> tuple[float, float]:
    times = []
    for _ in range(rounds):
        begin = time.process_time()
        results = [_found(dataset, query) for query in queries]
        times.append((time.process_time() - begin) / len(queries))
    hits = sum(len(rows & true) for rows, true in zip(results, truth, strict=True))
    return hits / (K * len(queries)), statistics.median(times)


if __name__ == "__main__":
    main()
