"""How do thresholds of vector partitions affect time and recall?

Clustered vectors are partitioned with several values of each threshold. The results are training time, the rows in
the nearest partitions, and the share of true neighbours there. Near neighbours for a graph are then found with several
block thresholds, in clustered and in uniform vectors. The last race searches an index of product quantization with and
without faiss's distance tables.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from unittest import mock

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import lance_duck as ld
from benchmarks._harness import OURS, Case, machine, options, race, report
from lance_duck.index.vector.costs import TRAINING_ROUNDS
from lance_duck.index.vector.graph import near
from lance_duck.index.vector.graph.hnsw import M
from lance_duck.index.vector.search import lists
from lance_duck.index.vector.training import balanced

Vectors = NDArray[np.float32]

VALUES: Final = {"EVENNESS": (0.0, 0.01, 0.1, 0.3, 1.0), "SETTLED_SAMPLE": (16, 64, 1 << 20)}
BLOCKS: Final = {"PROBES": (2, 4, 8, 16), "MOST_BLOCKS": (6, 12, 24, 48), "ENOUGH": (0.7, 0.8, 0.9, 1.0)}
PROBES: Final = (5, 20)
QUERIES: Final = 500
K: Final = 10


def main() -> None:
    """Divide, find neighbours, then search."""
    parser = options(__doc__ or "", rows=200_000, rounds=15)
    parser.add_argument("--dimension", type=int, default=64, help="of the vectors")
    arguments = parser.parse_args()
    vectors, queries = clustered(arguments.rows, arguments.dimension)
    count = int(arguments.rows**0.5)
    print(f"{machine()}\n{arguments.rows:,} vectors of {arguments.dimension} numbers, {count} partitions")
    for name, values in VALUES.items():
        if arguments.only in name:
            divide(name, values, vectors, queries, count)
    for name, values in BLOCKS.items():
        if arguments.only in name:
            find_near(name, values, {"clustered": vectors, "uniform": uniform(*vectors.shape)})
    if arguments.only in "tables":
        with tempfile.TemporaryDirectory() as folder:
            cases = [tables(Path(folder), vectors, queries, count, arguments.rounds)]
        report(f"A query of {PROBES[-1]} of {count} partitions", cases, arguments)


def clustered(rows: int, dim: int) -> tuple[Vectors, Vectors]:
    """Return vectors around about as many uneven centres as there are partitions, and matching queries."""
    rng = np.random.default_rng(0)
    centers = rng.standard_normal((int(rows**0.5), dim), np.float32)
    shares = 1 / np.arange(10, len(centers) + 10)
    of = rng.choice(len(centers), rows + QUERIES, p=shares / shares.sum())
    points = centers[of] + 0.4 * rng.standard_normal((rows + QUERIES, dim), np.float32)
    return points[:rows], points[rows:]


def uniform(rows: int, dim: int) -> Vectors:
    """Return vectors without clusters."""
    return np.random.default_rng(1).random((rows, dim), np.float32)


def divide(name: str, values: tuple[float, ...], vectors: Vectors, queries: Vectors, count: int) -> None:
    """Print what partitions hold with each value of a threshold, and without exchanges."""
    _, truth = index_of(vectors).search(queries, K)

    def exchanged(value: float) -> Vectors:
        with mock.patch.object(balanced, name, value):
            return balanced.balanced_clusters(vectors, count, TRAINING_ROUNDS, 1)

    ways: dict[str, Callable[[], Vectors]] = {
        "no exchanges": lambda: balanced.plain_rounds(vectors, None, count, TRAINING_ROUNDS, 1)
    }
    ways |= {f"{name} {value:g}": lambda value=value: exchanged(value) for value in values}
    for label, way in ways.items():
        begin = time.process_time()
        centroids = way()
        seconds = time.process_time() - begin
        index = index_of(centroids)
        own = index.search(vectors, 1)[1].ravel()
        sizes = np.bincount(own, minlength=count)
        near = index.search(queries, PROBES[-1])[1]
        found = {
            probes: (
                sizes[near[:, :probes]].sum(axis=1).mean(),
                (own[truth][:, :, None] == near[:, None, :probes]).any(axis=2).mean(),
            )
            for probes in PROBES
        }
        said = "; ".join(f"{p} hold {rows:,.0f} rows and {share:.4f}" for p, (rows, share) in found.items())
        print(f"{label}: {seconds:.2f} s, {said} of the neighbours", flush=True)


def find_near(name: str, values: tuple[float, ...], kinds: dict[str, Vectors]) -> None:
    """Print what near neighbours take with each value of a threshold, and the share of the true ones among them."""
    k = 2 * M
    near.near(next(iter(kinds.values()))[:1000], k)  # kernels are loaded
    for kind, vectors in kinds.items():
        rows = np.random.default_rng(2).choice(len(vectors), QUERIES, replace=False)
        truth = index_of(vectors).search(vectors[rows], k + 1)[1][:, 1:]  # without the vector itself
        for value in values:
            begin = time.process_time()
            with mock.patch.object(near, name, value):
                numbers = near.near(vectors, k).numbers[rows]
            seconds = time.process_time() - begin
            share = np.mean([np.isin(mine, found).mean() for mine, found in zip(truth, numbers, strict=True)])
            print(f"{name} {value:g}, {kind}: {seconds:.2f} s, {share:.4f} of the {k} neighbours", flush=True)


def index_of(vectors: Vectors) -> Any:
    """Return an index of faiss that compares all vectors."""
    index = faiss.IndexFlatL2(vectors.shape[1])
    index.add(np.ascontiguousarray(vectors))
    return index


def tables(folder: Path, vectors: Vectors, queries: Vectors, count: int, rounds: int) -> Case:
    """Compare searches in two copies of a table, with and without distance tables."""
    dim = vectors.shape[1]
    data = pa.table({"v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dim)})
    dataset = ld.write_dataset(data, folder / "plain.lance")
    dataset.create_index("v", "IVF_PQ", num_partitions=count, num_sub_vectors=dim // 4)
    shutil.copytree(folder / "plain.lance", folder / "tables.lance")
    make = lists._MAKERS["PQ"]

    def with_tables(*arguments: Any) -> Any:
        index = make(*arguments)
        index.use_precomputed_table = 1
        index.precompute_table()
        return index

    def search(path: Path) -> Callable[[], object]:
        table = ld.dataset(path)
        nearest = [{"column": "v", "q": q, "k": K, "nprobes": PROBES[-1], "refine_factor": 1} for q in queries[:100]]
        return lambda: [table.to_table(columns=["_distance"], nearest=each) for each in nearest]

    ways = {OURS: search(folder / "plain.lance"), "tables": search(folder / "tables.lance")}
    ways[OURS]()
    with mock.patch.dict(lists._MAKERS, PQ=with_tables):
        ways["tables"]()
    return race("100 queries, one by one", ways, rounds, time.process_time)


if __name__ == "__main__":
    main()
