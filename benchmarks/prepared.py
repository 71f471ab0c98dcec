"""How fast is one vector query, prepared or not, beside libraries that only hold an index?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report, ways

DIM = 128
LATENT = 16
K = 10
EF = 64
M, EF_CONSTRUCTION = 20, 150
QUERIES = 200
LEAST_RECALL = 0.95

Search = Callable[[np.ndarray], Any]


def main() -> None:
    """Search for one query at a time in one thread, each library with the same vectors and effort."""
    parser = options(__doc__ or "", rows=100_000, rounds=15)
    add_clock(parser)
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    vectors, queries = made(arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        own = ours(vectors, folder)
        searches = {**own, **peers(vectors)}
        for name, search in searches.items():
            print(f"{name}: recall {recall(search, vectors, queries):.3f}")
        contestants = {name: repeated(search, queries) for name, search in searches.items()}
        case = race(f"{QUERIES} queries, one by one", contestants, arguments.rounds, clock_of(arguments))
    report(f"One of {arguments.rows:,} vectors of {DIM} numbers, k {K}", ways(case, own), arguments)


def made(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors and queries that vary in few directions, like embeddings."""
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((LATENT, DIM))
    points = rng.standard_normal((rows + QUERIES, LATENT)) @ directions
    points += 0.05 * rng.standard_normal(points.shape)
    numbers = points.astype(np.float32)
    return np.ascontiguousarray(numbers[:rows]), np.ascontiguousarray(numbers[rows:])


def ours(vectors: np.ndarray, folder: str) -> dict[str, Search]:
    """Return our searches with default settings: ordinary, prepared, and without a table as result."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    table = pa.table({"id": np.arange(len(vectors)), "vec": column})
    dataset = ld.write_dataset(table, str(Path(folder) / "vectors.lance"))
    dataset.create_index("vec", "IVF_HNSW_SQ", num_partitions=1, m=M, ef_construction=EF_CONSTRUCTION)
    near = dataset.prepare_search("vec", k=K, columns=["id"])
    return {
        OURS: lambda q: dataset.to_table(columns=["id"], nearest={"column": "vec", "q": q, "k": K})["id"].to_numpy(),
        "prepared": lambda q: near(q)["id"].to_numpy(),
        "ids": lambda q: near.ids(q)[0],
    }


def peers(vectors: np.ndarray) -> dict[str, Search]:
    """Return the searches of faiss, and of the other libraries that are installed."""
    made: Mapping[str, Callable[[np.ndarray], Search]] = {"hnswlib": of_hnswlib, "usearch": of_usearch, "svs": of_svs}
    return {"faiss": of_faiss(vectors)} | {name: make(vectors) for name, make in made.items() if find_spec(name)}


def of_faiss(vectors: np.ndarray) -> Search:
    """Return faiss's own call, over 8-bit codes like ours."""
    index = faiss.index_factory(DIM, f"HNSW{M}_SQ8")
    index.hnsw.efConstruction = EF_CONSTRUCTION
    index.train(vectors)
    index.add(vectors)
    parameters = faiss.SearchParametersHNSW(efSearch=EF)
    return lambda q: index.search(q[None], K, params=parameters)[1][0]


def of_hnswlib(vectors: np.ndarray) -> Search:
    """Return hnswlib's call, over the vectors themselves."""
    import hnswlib

    index = hnswlib.Index("l2", DIM)
    index.init_index(len(vectors), ef_construction=EF_CONSTRUCTION, M=M)
    index.add_items(vectors)
    index.set_ef(EF)
    index.set_num_threads(1)
    return lambda q: index.knn_query(q, K)[0][0]


def of_usearch(vectors: np.ndarray) -> Search:
    """Return usearch's call, over the vectors themselves."""
    from usearch.index import Index

    index = Index(
        ndim=DIM, metric="l2sq", connectivity=M, expansion_add=EF_CONSTRUCTION, expansion_search=EF, dtype="f32"
    )
    index.add(np.arange(len(vectors)), vectors)
    return lambda q: index.search(q, K, threads=1).keys


def of_svs(vectors: np.ndarray) -> Search:
    """Return the call of Scalable Vector Search, over the vectors themselves."""
    import svs

    parameters = svs.VamanaBuildParameters(graph_max_degree=2 * M, window_size=EF_CONSTRUCTION)
    index = svs.Vamana.build(parameters, vectors, svs.DistanceType.L2, num_threads=1)
    index.search_window_size = EF
    return lambda q: index.search(q[None], K)[0][0]


def recall(search: Search, vectors: np.ndarray, queries: np.ndarray, least: float = LEAST_RECALL) -> float:
    """Return the share of the true neighbours that a search finds, which must be enough."""
    truth = faiss.knn(queries, vectors, K)[1]
    share = float(np.mean([len(np.intersect1d(search(q), true)) / K for q, true in zip(queries, truth, strict=True)]))
    if share < least:
        raise SystemExit(f"recall {share:.3f} is below {least}")
    return share


def repeated(search: Search, queries: np.ndarray) -> Callable[[], None]:
    """Return a function that searches for all queries."""

    def run() -> None:
        for q in queries:
            search(q)

    return run


if __name__ == "__main__":
    main()
