"""What recall do graphs reach that are joined from neighbour lists?

Each graph is built twice: joined from near neighbours, and by inserting vectors one after another. Queries have the
distribution of the vectors, but are not among them. A line shows the share of true neighbours in the lists, and
whether a build would join the graph. Build time and recall follow for both graphs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final
from unittest import mock

import faiss
import numpy as np

from benchmarks._harness import chosen, machine, options
from lance_duck.index.vector.graph import join
from lance_duck.index.vector.graph.hnsw import EF_CONSTRUCTION, MAX_LEVEL, Graph, M, build_graph, flat_storage, index_of
from lance_duck.index.vector.graph.near import near

K: Final = 10
QUERIES: Final = 500
EF: Final = (32, 64, 128)

_FAISS: Final[Any] = faiss  # its stubs do not have all of it


def main() -> None:
    """Print a line for each kind of vectors."""
    parser = options((__doc__ or "").split("\n")[0], rows=20_000, rounds=1)
    arguments = parser.parse_args()
    print(f"Graphs of {arguments.rows:,} vectors, recall@{K} with {EF} candidates; {machine()}")
    print("vectors | share | joined | seconds, recall if joined | seconds, recall if inserted")
    for name in chosen(VECTORS, arguments.only):
        vectors, queries = (
            np.asarray(VECTORS[name](np.random.default_rng(seed), count), np.float32)
            for seed, count in ((1, arguments.rows), (2, QUERIES))
        )
        share = near(vectors, 2 * M).share
        is_joined = join.join_graph(vectors, M, EF_CONSTRUCTION, MAX_LEVEL) is not None
        cells = [_measured(build, vectors, queries) for build in (_joined, _inserted)]
        print(name, f"{share:.2f}", "yes" if is_joined else "no", *cells, sep=" | ", flush=True)


def _joined(vectors: np.ndarray) -> Graph | None:
    with mock.patch.multiple(join, _LEAST_FOUND=0, _REACHED=0):
        return join.join_graph(vectors, M, EF_CONSTRUCTION, MAX_LEVEL)


def _inserted(vectors: np.ndarray) -> Graph:
    return build_graph(vectors, "l2")


def _measured(build: Callable[[np.ndarray], Graph | None], vectors: np.ndarray, queries: np.ndarray) -> str:
    began = time.process_time()
    graph = build(vectors)
    seconds = time.process_time() - began
    assert graph is not None
    storage = flat_storage(vectors.shape[1], "l2")
    storage.add(vectors)
    index = index_of(storage, graph)
    last = faiss.knn(queries, vectors, K)[0][:, -1:]
    shares = []
    for ef in EF:
        settings = _FAISS.SearchParametersHNSW(efSearch=ef)
        shares.append((index.search(queries, K, params=settings)[0] <= last * (1 + 1e-5)).mean())
    return f"{seconds:.1f}, {' '.join(f'{share:.3f}' for share in shares)}"


def _clustered(rng: np.random.Generator, count: int) -> np.ndarray:
    centres = np.random.default_rng(7).standard_normal((200, 64))
    return centres[rng.integers(0, 200, count)] + 0.5 * rng.standard_normal((count, 64))


def _of_many_lengths(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal((count, 16)) * np.exp(rng.standard_normal((count, 1)))


VECTORS: Final[dict[str, Callable[[np.random.Generator, int], np.ndarray]]] = {
    "clustered, 64": _clustered,
    "normal, 8": lambda rng, count: rng.standard_normal((count, 8)),
    "normal, 12": lambda rng, count: rng.standard_normal((count, 12)),
    "normal, 16": lambda rng, count: rng.standard_normal((count, 16)),
    "normal, 32": lambda rng, count: rng.standard_normal((count, 32)),
    "normal, 128": lambda rng, count: rng.standard_normal((count, 128)),
    "of many lengths, 16": _of_many_lengths,
    "heavy tails, 8": lambda rng, count: rng.standard_t(2, (count, 8)),
    "heavy tails, 16": lambda rng, count: rng.standard_t(2, (count, 16)),
    "heavy tails, 32": lambda rng, count: rng.standard_t(2, (count, 32)),
    "decreasing widths, 256": lambda rng, count: rng.standard_normal((count, 256)) * np.arange(1, 257) ** -0.5,
}

if __name__ == "__main__":
    main()
