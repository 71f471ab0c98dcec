"""Do graph searches reach the requested recall?

Queries have the distribution of the rows, but are not among them. They run one at a time. A line shows two groups of
settings. The first group was measured with rows as queries, the second with displaced rows, which is what lance-duck
does. `--walks` also prints the recall of plain walks over a graph.
"""

from __future__ import annotations

import itertools
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Final
from unittest import mock

import faiss
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import chosen, machine, options
from lance_duck.scan.nearest.settings import compared_queries, segment_curves
from lance_duck.scan.nearest.settings.compared_queries import displaced

K: Final = 10
QUERIES: Final = 500
RECALLS: Final = (0.9, 0.95, 0.99)
EF: Final = (11, 20, 40, 64, 128)
METRICS: Final = ("l2", "cosine", "dot")
NEAR: Final = 8

KINDS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "HNSW_FLAT": ("IVF_HNSW_FLAT", {"num_partitions": 1}),
    "IVF_HNSW_FLAT": ("IVF_HNSW_FLAT", {"num_partitions": 8}),
    "IVF_HNSW_SQ": ("IVF_HNSW_SQ", {"num_partitions": 8}),
    "IVF_HNSW_PQ": ("IVF_HNSW_PQ", {"num_partitions": 4}),
}

_FAISS: Final[Any] = faiss  # its stubs do not have all of it

Draw = Callable[[np.random.Generator, int], np.ndarray]


def main() -> None:
    """Print the promised, the measured and the actual recall."""
    parser = options((__doc__ or "").split("\n")[0], rows=20_000, rounds=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=("HNSW_FLAT", "IVF_HNSW_SQ"), help="indexes")
    parser.add_argument("--metrics", nargs="+", choices=METRICS, default=("l2",))
    parser.add_argument("--filter", default=None, help="of rows, by a number u between 0 and 1: u < 0.1")
    parser.add_argument("--walks", action="store_true", help="bare walks first")
    arguments = parser.parse_args()
    names = chosen(VECTORS, arguments.only)
    if arguments.walks:
        _show(f"Walks of faiss, {arguments.rows:,} vectors", WALKS, _walks(names, arguments.rows))
    title = f"Recall of {QUERIES} queries, {arguments.rows:,} vectors{f', {arguments.filter}' * bool(arguments.filter)}"
    _show(title, PROMISES, _promises(names, arguments.kinds, arguments.metrics, arguments.rows, arguments.filter))


def _show(title: str, headings: tuple[str, ...], lines: Iterator[tuple[str, ...]]) -> None:
    print(f"{title}; {machine()}", " | ".join(headings), sep="\n")
    for line in lines:
        print(*line, sep=" | ", flush=True)


WALKS: Final = ("vectors", "candidates", "queries", "rows", "displaced rows")


def _walks(names: list[str], rows: int) -> Iterator[tuple[str, ...]]:
    """Yield the recall of graph walks for queries, rows and displaced rows. A row is not its own neighbour."""
    for name in names:
        vectors, queries = (VECTORS[name](np.random.default_rng(seed), n) for seed, n in ((1, rows), (2, QUERIES)))
        graph: Any = faiss.IndexHNSWFlat(vectors.shape[1], 20)
        graph.hnsw.efConstruction = 150
        graph.add(vectors)
        own = np.random.default_rng(3).choice(rows, QUERIES, replace=False)
        near = faiss.knn(vectors[own], vectors, NEAR)[1]
        which, places = np.nonzero(near != own[:, None])
        others = vectors[near[which, places]]
        moved = displaced(vectors[own], which, others, "l2", np.random.default_rng(4))
        for ef in EF:
            kinds = ((queries, None), (vectors[own], own), (moved, own))
            yield name, str(ef), *(f"{_found_by_walk(graph, vectors, each, ef, mine):.3f}" for each, mine in kinds)


def _found_by_walk(graph: Any, vectors: np.ndarray, queries: np.ndarray, ef: int, own: np.ndarray | None) -> float:
    settings = _FAISS.SearchParametersHNSW(efSearch=ef)
    found, true = graph.search(queries, K + 1, params=settings)[1], faiss.knn(queries, vectors, K + 1)[1]
    shares = []
    for number, (mine, near) in enumerate(zip(found, true, strict=True)):
        row = -1 if own is None else own[number]
        mine, near = (each[each != row][:K] for each in (mine, near))
        distances, last = (((vectors[each] - queries[number]) ** 2).sum(axis=1) for each in (mine, near))
        shares.append((distances <= _rounded(last.max())).sum() / K)
    return float(np.mean(shares))


PROMISES: Final = (
    *("vectors", "metric", "index", "asked for"),
    *("measured with rows", "found", "settings", "measured with displaced rows", "found", "settings"),
)


def _promises(
    names: list[str], kinds: list[str], metrics: list[str], rows: int, condition: str | None
) -> Iterator[tuple[str, ...]]:
    for name, metric, kind in itertools.product(names, metrics, kinds):
        vectors, queries = (VECTORS[name](np.random.default_rng(seed), n) for seed, n in ((1, rows), (2, QUERIES)))
        with tempfile.TemporaryDirectory() as folder:
            uri = _write(Path(folder) / "t.lance", vectors, kind, metric)
            last = _last_distances(uri, queries, metric, condition)
            for recall in RECALLS:
                cells: list[str] = []
                for measured_with in (_rows_themselves, nullcontext):
                    with measured_with():
                        cells += _asked(uri, queries, last, metric, recall, condition)
                yield name, metric, kind, f"{recall:g}", *cells


def _rows_themselves() -> AbstractContextManager[Any]:
    """Measure settings with rows as they are, by their own curves."""
    return mock.patch.multiple(compared_queries, displaced=lambda rows, *_: rows)


def _write(path: Path, vectors: np.ndarray, kind: str, metric: str) -> Path:
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    table = pa.table({"u": np.random.default_rng(5).random(len(vectors)), "v": column})
    name, parameters = KINDS[kind]
    codes = {"num_sub_vectors": max(vectors.shape[1] // 4, 1)} if name.endswith("PQ") else {}
    ld.write_dataset(table, path).create_index("v", name, metric=metric, **parameters, **codes)
    return path


def _last_distances(path: Path, queries: np.ndarray, metric: str, condition: str | None) -> np.ndarray:
    """Return the distance of each query's k-th nearest row."""
    nearest = {"column": "v", "q": queries, "k": K, "metric": metric, "use_index": False}
    true = ld.dataset(path).to_table(columns=["_distance"], filter=condition, nearest=nearest)
    distances: np.ndarray = true["_distance"].to_numpy().reshape(len(queries), K)[:, -1]
    return distances


def _asked(
    path: Path, queries: np.ndarray, last: np.ndarray, metric: str, recall: float, condition: str | None
) -> tuple[str, str, str]:
    """Return the measured recall, the recall found, and the settings."""
    with mock.patch.multiple(segment_curves, decoded=_nothing_stored, _CURVES={}):
        ds = ld.dataset(path)
        nearest = {"column": "v", "k": K, "metric": metric, "recall": recall, "exact_distance": True}
        plan = ds.scanner(filter=condition, nearest={**nearest, "q": queries[0]}).analyze_plan()
        shares = []
        for query, limit in zip(queries, last, strict=True):
            found = ds.to_table(columns=["_distance"], filter=condition, nearest={**nearest, "q": query})
            shares.append((found["_distance"].to_numpy() <= _rounded(limit)).sum() / K)
    measured = re.search(r"target recall [\d.]+: ([^;]*); (at most )?([\d.]+) measured", plan)
    settings, share = (measured[1], measured[3]) if measured else ("", "")
    error = np.std(shares) / math.sqrt(len(shares))
    return share, f"{np.mean(shares):.3f} ± {error:.3f}", settings


def _nothing_stored(*_: Any) -> list[Any]:
    return []


def _rounded(distance: float) -> float:
    """Return the greatest distance that is the same but for rounding."""
    return float(distance + 1e-5 * abs(distance) + 1e-6)


def _clustered(rng: np.random.Generator, count: int) -> np.ndarray:
    centres = np.random.default_rng(77).standard_normal((60, 32))
    widths = np.random.default_rng(78).uniform(0.05, 0.8, (60, 1))
    mine = rng.integers(0, 60, count)
    return (centres[mine] + widths[mine] * rng.standard_normal((count, 32))).astype(np.float32)


def _flat(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return vectors close to a space of six dimensions."""
    axes = np.random.default_rng(80).standard_normal((6, 64))
    return (rng.standard_normal((count, 6)) @ axes + 1e-3 * rng.standard_normal((count, 64))).astype(np.float32)


def _unit(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return unit vectors in 40 clusters, like embeddings."""
    axes, centres = (
        np.random.default_rng(5).standard_normal((24, 64)),
        np.random.default_rng(6).standard_normal((40, 24)),
    )
    near = centres[rng.integers(0, 40, count)] + 0.7 * rng.standard_normal((count, 24))
    vectors = near @ axes + 0.5 * rng.standard_normal((count, 64))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


def _repeated(rng: np.random.Generator, count: int) -> np.ndarray:
    return np.random.default_rng(81).standard_normal((5000, 32)).astype(np.float32)[rng.integers(0, 5000, count)]


def _of_many_lengths(rng: np.random.Generator, count: int) -> np.ndarray:
    return (rng.standard_normal((count, 32)) * np.exp(0.7 * rng.standard_normal((count, 1)))).astype(np.float32)


VECTORS: Final[dict[str, Draw]] = {
    "uniform, 4": lambda rng, count: rng.random((count, 4), dtype=np.float32),
    "uniform, 24": lambda rng, count: rng.random((count, 24), dtype=np.float32),
    "normal, 32": lambda rng, count: rng.standard_normal((count, 32)).astype(np.float32),
    "heavy tails, 32": lambda rng, count: rng.standard_t(3, (count, 32)).astype(np.float32),
    "clustered, 32": _clustered,
    "unit, 64": _unit,
    "small integers, 16": lambda rng, count: rng.integers(0, 4, (count, 16)).astype(np.float32),
    "repeated, 32": _repeated,
    "near to a plane, 64": _flat,
    "of many lengths, 32": _of_many_lengths,
}

if __name__ == "__main__":
    main()
