"""How fast are the nearest neighbours found, and how long does an index take to build?

Each library builds its own index over its own copy of the same clustered vectors, and looks as far as it has to for the
recall that is asked for; the queries are others than the rows, and the same for all. faiss keeps everything in memory.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import faiss
import lance
import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import DATA, OURS, Case, options, race, report

LIBRARIES: dict[str, Any] = {OURS: ld, "pylance": lance}
KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ")
K = 10
M, EF_CONSTRUCTION = 20, 150
CHECKED, BATCH, TURN = 50, 1000, 10  # queries that recall is measured with, of a batch, and of a turn one by one
REFINE = (None, 2, 5, 10, 20)
EF = (10, 15, 20, 30, 50, 80, 120, 200, 400)
FILTERS = {"": None, "1/50": "fiftieth = 7", "1/5,000": "rare = 7"}

Setting = Mapping[str, int]


def main() -> None:
    """Build, choose settings, then race."""
    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000, rounds=7)
    parser.add_argument("--dim", type=int, default=128, help="numbers of a vector")
    parser.add_argument("--recall", type=float, default=0.95, help="recall that has to be reached")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="indexes")
    arguments = parser.parse_args()
    data = Data(arguments.rows, arguments.dim)
    cases = [case for kind in arguments.kinds for case in races(data, kind, arguments)]
    cases += exact(data, arguments)
    report(f"Nearest neighbours, {arguments.rows:,} x {arguments.dim}, k = {K}", cases, arguments.json)


@dataclass(frozen=True)
class Data:
    """Clustered vectors, columns to filter by, queries, and their true neighbours."""

    rows: int
    dim: int

    @cached_property
    def path(self) -> Path:
        """The table without indexes of vectors, written unless it is there."""
        path = DATA / f"vectors-{self.rows}-{self.dim}.lance"
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            step = 100_000
            batches = (self.batch(at, min(step, self.rows - at)) for at in range(0, self.rows, step))
            reader = pa.RecordBatchReader.from_batches(self.batch(0, 1).schema, batches)
            dataset = lance.write_dataset(reader, unfinished, max_rows_per_file=1_000_000)
            for column in ("fiftieth", "rare"):
                dataset.create_scalar_index(column, "BTREE")
            unfinished.rename(path)
        return path

    def batch(self, start: int, count: int) -> pa.RecordBatch:
        """Rows from `start`."""
        rng = np.random.default_rng([start, self.dim])
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self._clustered(rng, count).ravel()), self.dim)
        flags = {"fiftieth": rng.integers(0, 50, count), "rare": rng.integers(0, 5000, count)}
        return pa.record_batch({"id": np.arange(start, start + count), **flags, "vec": vectors})

    @cached_property
    def _centres(self) -> np.ndarray:
        count = max(16, self.rows // 500)
        return np.random.default_rng(self.dim).standard_normal((count, self.dim), np.float32)

    def _clustered(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Vectors around centres; the clusters overlap, and are of different sizes and widths."""
        chosen = (len(self._centres) * rng.random(count) ** 1.5).astype(np.int64)
        widths = 0.3 + 0.5 * (chosen % 7)[:, None].astype(np.float32) / 7
        return self._centres[chosen] + widths * rng.standard_normal((count, self.dim), np.float32)

    @cached_property
    def table(self) -> pa.Table:
        """All rows, in memory."""
        return lance.dataset(str(self.path)).to_table()

    @cached_property
    def vectors(self) -> np.ndarray:
        """(rows, dim)."""
        column = self.table["vec"].combine_chunks()
        return np.ascontiguousarray(column.values.to_numpy().reshape(-1, self.dim))

    def flags(self, condition: str) -> np.ndarray:
        """Which rows pass a filter."""
        column, value = condition.split(" = ")
        return self.table[column].to_numpy() == int(value)

    @cached_property
    def queries(self) -> np.ndarray:
        """(batch, dim), from the same clusters."""
        return self._clustered(np.random.default_rng(10**9), BATCH)

    def truth(self, condition: str | None) -> np.ndarray:
        """(checked, k): rows nearest to the first queries."""
        ids = np.arange(self.rows) if condition is None else np.flatnonzero(self.flags(condition))
        near = faiss.knn(self.queries[:CHECKED], self.vectors[ids], min(K, len(ids)))[1]
        return ids[near]

    @property
    def partitions(self) -> int:
        """Of an inverted file, of whichever library."""
        return max(1, int(self.rows**0.5))


@dataclass
class Table:
    """A copy of the table with an index of one kind, built by a library."""

    name: str
    data: Data
    kind: str
    built: float = 0.0
    setting: Setting = field(default_factory=dict)
    handle: Any = None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return DATA / f"vectors-{self.data.rows}-{self.data.dim}-{self.kind}-{self.name}.lance"

    def build(self) -> None:
        """Build the index; the data files are the same files by other names."""
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.data.path, self.path, copy_function=os.link)
        given: dict[str, Any] = {"num_partitions": self.data.partitions}
        if self.kind == "IVF_PQ":
            given |= {"num_sub_vectors": self.data.dim // 4}
        if "HNSW" in self.kind:
            given |= {"num_partitions": 1, "m": M, "ef_construction": EF_CONSTRUCTION}
        dataset = LIBRARIES[self.name].dataset(str(self.path))
        begin = time.perf_counter()
        dataset.create_index("vec", self.kind, metric="l2", **given)
        self.built = time.perf_counter() - begin
        self.handle = LIBRARIES[self.name].dataset(str(self.path))

    @property
    def megabytes(self) -> float:
        """Size of the index on disk."""
        before = sum(file.stat().st_size for file in self.data.path.rglob("_indices/**/*") if file.is_file())
        after = sum(file.stat().st_size for file in self.path.rglob("_indices/**/*") if file.is_file())
        return (after - before) / 1e6

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """Rows nearest to a query, or to each of several."""
        nearest = {"column": "vec", "q": q, "k": K, **(setting or self.setting)}
        found = self.handle.to_table(
            columns=["id", "_distance"], filter=condition, prefilter=condition is not None, nearest=nearest
        )
        return found["id"].to_numpy()

    def cold(self) -> float:
        """Seconds to open and to ask once. It has a path of its own each time, so that nothing is known of it."""
        place = DATA / "cold" / f"{self.path.stem}-{time.monotonic_ns()}.lance"
        shutil.copytree(self.path, place, copy_function=os.link)
        warm = self.handle
        begin = time.perf_counter()
        self.handle = LIBRARIES[self.name].dataset(str(place))
        self.search(self.data.queries[0])
        seconds = time.perf_counter() - begin
        self.handle = warm
        shutil.rmtree(place)
        return seconds

    def exact(self, q: np.ndarray) -> object:
        """Search without an index."""
        return self.search(q, use_index=False)


@dataclass
class Bare:
    """The same index in faiss alone."""

    data: Data
    kind: str
    name: str = "faiss"
    built: float = 0.0
    setting: Setting = field(default_factory=dict)
    index: Any = None

    @property
    def path(self) -> Path:
        """Where it lies."""
        return DATA / f"vectors-{self.data.rows}-{self.data.dim}-{self.kind}.faiss"

    def build(self) -> None:
        """Train and fill the index."""
        dim, lists = self.data.dim, self.data.partitions
        text = {
            "IVF_FLAT": f"IVF{lists},Flat",
            "IVF_PQ": f"IVF{lists},PQ{dim // 4}",
            "IVF_HNSW_SQ": f"HNSW{M}_SQ8",
        }
        vectors = self.data.vectors
        begin = time.perf_counter()
        self.index = faiss.index_factory(dim, text[self.kind])
        if "HNSW" in self.kind:
            self.index.hnsw.efConstruction = EF_CONSTRUCTION
        self.index.train(vectors)
        self.index.add(vectors)
        self.built = time.perf_counter() - begin
        faiss.write_index(self.index, str(self.path))

    @property
    def megabytes(self) -> float:
        """Size of the index on disk."""
        return self.path.stat().st_size / 1e6

    def search(self, q: np.ndarray, condition: str | None = None, **setting: Any) -> np.ndarray:
        """Rows nearest to a query, or to each of several, one query after the other."""
        chosen = setting or self.setting
        queries = np.atleast_2d(q)
        if "use_index" in chosen:
            ids = np.arange(self.data.rows) if condition is None else np.flatnonzero(self.data.flags(condition))
            return ids[faiss.knn(queries, self.data.vectors[ids], min(K, len(ids)))[1]].ravel()
        selector = None if condition is None else faiss.IDSelectorBitmap(self._bits(condition))
        with_selector = {} if selector is None else {"sel": selector}
        if "HNSW" in self.kind:
            parameters = faiss.SearchParametersHNSW(efSearch=chosen["ef"], **with_selector)
        else:
            parameters = faiss.SearchParametersIVF(nprobe=chosen["nprobes"], **with_selector)
        refine = chosen.get("refine_factor")
        found = self.index.search(queries, K * (refine or 1), params=parameters)[1]
        return (found if refine is None else self._refined(queries, found)).ravel()

    def _bits(self, condition: str) -> np.ndarray:
        return self._flags.setdefault(condition, np.packbits(self.data.flags(condition), bitorder="little"))

    @cached_property
    def _flags(self) -> dict[str, np.ndarray]:
        return {}

    def _refined(self, queries: np.ndarray, found: np.ndarray) -> np.ndarray:
        """The nearest of what was found, by the vectors themselves."""
        best = []
        for query, ids in zip(queries, found, strict=True):
            there = ids[ids >= 0]
            distances = ((self.data.vectors[there] - query) ** 2).sum(axis=1)
            best.append(np.resize(there[np.argsort(distances)[:K]], K))
        return np.array(best)

    def cold(self) -> float:
        """Seconds to read the index and to ask it once."""
        begin = time.perf_counter()
        self.index = faiss.read_index(str(self.path))
        self.search(self.data.queries[0])
        return time.perf_counter() - begin

    def exact(self, q: np.ndarray) -> object:
        """Search without an index."""
        return faiss.knn(np.atleast_2d(q), self.data.vectors, K)


def races(data: Data, kind: str, arguments: Any) -> Iterator[Case]:
    """All about an index of one kind."""
    contestants = [*(Table(name, data, kind) for name in LIBRARIES), Bare(data, kind)]
    for contestant in contestants:
        contestant.build()
        print(f"{kind}, {contestant.name}: {contestant.megabytes:,.1f} MB", flush=True)
    if arguments.only in f"build, {kind}":
        yield Case(f"build, {kind}", {each.name: [each.built] for each in contestants})
    for each in contestants:
        each.setting = chosen(each, data, arguments.recall, None)[0]
    name = f"batch of {BATCH:,}, {kind}"
    if arguments.only in name:
        work = {c.name: lambda c=c: c.search(data.queries) for c in contestants}
        yield race(name, work, arguments.rounds)
    name = f"cold first query, {kind}"
    if arguments.only in name:
        seconds: dict[str, list[float]] = {each.name: [] for each in contestants}
        for _, contestant in itertools.product(range(arguments.rounds), contestants):
            seconds[contestant.name].append(contestant.cold())
        yield Case(name, seconds)
    for label, condition in FILTERS.items():
        name = f"single{f' of {label}' if label else ''}, {kind}"
        if arguments.only in name:
            for each in contestants:
                each.setting, reached = chosen(each, data, arguments.recall, condition)
                print(f"{name}, {each.name}: recall {reached:.3f} with {dict(each.setting)}", flush=True)
            yield per_query(race(name, {c.name: turns(c, data, condition) for c in contestants}, arguments.rounds))


def exact(data: Data, arguments: Any) -> Iterator[Case]:
    """Search without an index, and say how much memory is read in a second."""
    contestants: list[Table | Bare] = [Table(name, data, "exact") for name in LIBRARIES]
    for table in contestants:
        table.handle = LIBRARIES[table.name].dataset(str(data.path))
    contestants.append(Bare(data, "exact"))
    for name, queries in (("exact, 1 query", data.queries[0]), ("exact, 100 queries", data.queries[:100])):
        if arguments.only in name:
            case = race(name, {c.name: lambda c=c, q=queries: c.exact(q) for c in contestants}, arguments.rounds)
            if queries.ndim == 1:
                speeds = (f"{c.name} {data.vectors.nbytes / case.median(c.name) / 1e9:.1f} GB/s" for c in contestants)
                print(f"{name}: {', '.join(speeds)}")
            yield case


def chosen(each: Table | Bare, data: Data, wanted: float, condition: str | None) -> tuple[Setting, float]:
    """The fastest setting that reaches the recall, and its recall; of each refinement, the least look that does."""
    truth, best = data.truth(condition), {}
    for refine in REFINE if each.kind != "IVF_FLAT" else (None,):
        refined = {} if refine is None else {"refine_factor": refine}
        settings = [{**look, **refined} for look in looks(each.kind, data.partitions)]
        if recall(each, data, truth, condition, settings[-1]) < wanted:
            continue
        for setting in settings:
            reached = recall(each, data, truth, condition, setting)
            if reached >= wanted:
                best[timed(each, data, condition, setting)] = setting, reached
                break
        if len(best) == 2 or (refine is None and best):
            break
    return best[min(best)] if best else ({"use_index": False}, 1.0)


def looks(kind: str, partitions: int) -> Iterator[dict[str, int]]:
    """How far to look, further and further."""
    if "HNSW" in kind:
        yield from ({"ef": ef} for ef in EF)
        return
    sizes = (1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 60, 80, 120, 160, 240, 480)
    yield from ({"nprobes": size} for size in itertools.takewhile(lambda size: size < partitions, sizes))
    yield {"nprobes": partitions}


def recall(c: Table | Bare, data: Data, truth: np.ndarray, condition: str | None, setting: Setting) -> float:
    shares = [
        len(np.intersect1d(c.search(query, condition, **setting), true)) / len(true)
        for query, true in zip(data.queries, truth, strict=False)
    ]
    return float(np.mean(shares))


def timed(contestant: Table | Bare, data: Data, condition: str | None, setting: Setting) -> float:
    times = []
    for query in data.queries[:CHECKED]:
        begin = time.perf_counter()
        contestant.search(query, condition, **setting)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def turns(contestant: Table | Bare, data: Data, condition: str | None) -> Callable[[], object]:
    """Several queries one by one, others at each call; every contestant gets the same."""
    starts = itertools.cycle(range(0, BATCH - TURN, TURN))

    def work() -> None:
        start = next(starts)
        for query in data.queries[start : start + TURN]:
            contestant.search(query, condition)

    return work


def per_query(case: Case) -> Case:
    return Case(case.name, {name: [second / TURN for second in seconds] for name, seconds in case.seconds.items()})


if __name__ == "__main__":
    main()
