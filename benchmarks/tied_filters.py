"""What recall do searches reach if the filter depends on the vectors, and how fast are they?

Vectors form 100 clusters, called topics, and a filter allows some of them. Queries come from allowed topics, or from
others, whose neighbours are far away. All searches use default settings. "by settings alone" is lance-duck without its
estimate of allowed neighbours per partition.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final
from unittest import mock

import lance
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lance_duck as ld
from benchmarks._harness import chosen, machine, options
from lance_duck.index.vector.search.chance import AllowedCounts

TOPICS: Final = 100
DIM: Final = 64
QUERIES: Final = 100
K: Final = 10
KINDS: Final = ("IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ")


def main() -> None:
    """Print recall and time by index, number of topics, and side of the queries."""
    arguments = options((__doc__ or "").split("\n")[0], rows=100_000, rounds=1).parse_args()
    table = Table(title=f"Filters by topic, {arguments.rows:,} of {DIM} numbers\n{machine()}", title_justify="left")
    for heading in ("index", "topics allowed", "queries", "", "recall", "ms a query"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for kind in chosen(KINDS, arguments.only):
            topics, vectors = _write(Path(folder) / f"{kind}.lance", kind, arguments.rows)
            for allowed in (5, 20, 50):
                for side in ("allowed", "others"):
                    rows = np.flatnonzero((topics < allowed) == (side == "allowed"))
                    queries = vectors[np.random.default_rng(3).choice(rows, QUERIES)]
                    for name, recall, seconds in _race(Path(folder) / f"{kind}.lance", queries, f"topic < {allowed}"):
                        cells = (kind, f"{allowed} of {TOPICS}", side, name, f"{recall:.3f}", f"{seconds * 1e3:.2f}")
                        table.add_row(*cells)
                        print(*cells, flush=True)
    Console(width=110).print(table)


def _write(path: Path, kind: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    centres = rng.standard_normal((TOPICS, DIM)).astype(np.float32)
    topics = rng.integers(0, TOPICS, rows)
    vectors = centres[topics] + 0.8 * rng.standard_normal((rows, DIM), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    dataset = ld.write_dataset(pa.table({"id": np.arange(rows), "topic": topics, "v": column}), path)
    more: dict[str, Any] = {"num_sub_vectors": DIM // 4} if kind.endswith("PQ") else {}
    dataset.create_index("v", kind, num_partitions=10 if "HNSW" in kind else 100, **more)
    return topics, vectors


def _race(path: Path, queries: np.ndarray, filter_: str) -> list[tuple[str, float, float]]:
    ours, theirs = ld.dataset(path), lance.dataset(path)
    truth = [_ids(ours, query, filter_, use_index=False) for query in queries]
    searches = {"lance_duck": (ours, False), "by settings alone": (ours, True), "pylance": (theirs, False)}
    results = []
    for name, (dataset, by_chance) in searches.items():
        with _all_by_chance() if by_chance else nullcontext():
            _ids(dataset, queries[0], filter_)
            begin = time.process_time()
            found = [_ids(dataset, query, filter_) for query in queries]
            seconds = (time.process_time() - begin) / len(queries)
        results.append((name, sum(len(a & b) for a, b in zip(found, truth, strict=True)) / (K * len(queries)), seconds))
    return results


@contextmanager
def _all_by_chance() -> Iterator[None]:
    """Take all filters for filters by chance."""
    nothing = {"are_tied": lambda *_: False, "are_few": lambda _, mask, share, nearest: np.zeros(len(nearest), bool)}
    with mock.patch.multiple(AllowedCounts, **nothing):
        yield


def _ids(dataset: Any, query: np.ndarray, filter_: str, **settings: Any) -> set[int]:
    nearest = {"column": "v", "q": query, "k": K, **settings}
    return set(
        dataset.to_table(columns=["id", "_distance"], filter=filter_, prefilter=True, nearest=nearest)["id"].to_pylist()
    )


if __name__ == "__main__":
    main()
