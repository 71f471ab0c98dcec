"""How fast are searches by 4-bit codes, beside other indexes and other libraries with the same recall?"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, Final

import faiss
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report, ways
from benchmarks.prepared import DIM, EF_CONSTRUCTION, LEAST_RECALL, QUERIES, K, M, Search, made, peers, recall, repeated

KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    OURS: ("IVF_PQ", {"num_bits": 4}),
    "8 bits": ("IVF_PQ", {}),
    "graph": ("IVF_HNSW_SQ", {"num_partitions": 1, "m": M, "ef_construction": EF_CONSTRUCTION}),
}
ROWS_PER_LIST: Final = 2048
NPROBES: Final = (1, 2, 4, 6, 8, 12, 16, 24, 32)
REFINE: Final = (2, 4, 8, 16)
NOISE: Final = 0.02  # settings reach the recall on average over other queries


def main() -> None:
    """Search for one query at a time in one thread, each index with settings that reach the recall."""
    parser = options(__doc__ or "", rows=100_000, rounds=15)
    add_clock(parser)
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    vectors, queries = made(arguments.rows)
    with tempfile.TemporaryDirectory() as folder:
        searches = dict(ours(vectors, folder)) | {"faiss fast scan": of_fast_scan(vectors, queries)} | peers(vectors)
        for name, search in searches.items():
            print(f"{name}: recall {recall(search, vectors, queries, LEAST_RECALL - NOISE):.3f}")
        contestants = {name: repeated(search, queries) for name, search in searches.items()}
        case = race(f"{QUERIES} queries, one by one", contestants, arguments.rounds, clock_of(arguments))
    report(f"One of {arguments.rows:,} vectors of {DIM} numbers, k {K}", ways(case, KINDS), arguments)


def ours(vectors: np.ndarray, folder: str) -> Iterator[tuple[str, Search]]:
    """Yield the name of each kind of index, and its prepared search with default settings."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    for name, (kind, parameters) in KINDS.items():
        dataset = ld.write_dataset(pa.table({"vec": column}), Path(folder) / f"{name}.lance")
        near = dataset.create_index("vec", kind, **parameters).prepare_search("vec", k=K)
        yield name, lambda q, ids=near.ids: ids(q)[0]


def of_fast_scan(vectors: np.ndarray, queries: np.ndarray) -> Search:
    """Return faiss's own search by 4-bit codes and vectors in memory, with the least settings that reach the recall."""
    lists = max(len(vectors) // ROWS_PER_LIST, 1)
    index = faiss.index_factory(DIM, f"IVF{lists},PQ{DIM // 2}x4fsr")
    index.train(vectors)
    index.add(vectors)
    refined = faiss.IndexRefineFlat(index, faiss.swig_ptr(vectors))
    truth = faiss.knn(queries, vectors, K)[1]
    for nprobe, factor in product(NPROBES, REFINE):
        base = faiss.SearchParametersIVF(nprobe=nprobe)
        given = faiss.IndexRefineSearchParameters(k_factor=factor, base_index_params=base)
        found = refined.search(queries, K, params=given)[1]
        if np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, truth, strict=True)]) >= LEAST_RECALL:
            break
    return lambda q: refined.search(q[None], K, params=given)[1][0]


if __name__ == "__main__":
    main()
