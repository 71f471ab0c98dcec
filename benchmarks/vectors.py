"""How fast are nearest-neighbour searches, and how long does an index build take?

Every engine builds its own index of the same clustered vectors. Before a race, each engine gets the fastest settings
that reach the recall. The queries are not rows of the table. faiss keeps its vectors in memory.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from benchmarks._harness import OURS, Case, add_clock, clock_of, options, race, report
from benchmarks._vector_data import BATCH, FILTERS, Data, K
from benchmarks._vector_engines import KINDS, LIBRARIES, Engine, engine, engines
from benchmarks._vector_settings import choose, truth

SIZES = ("1000000x128", "100000x768")
QUICK = ("50000x64", "10000x256")
TURN = 10  # queries one by one, in a turn
EXACT_BATCH = 20
FIGURES = {
    "build": ("seconds", ""),
    "build, peak memory": ("anonymous MB", "MB"),
    "size on disk": ("index MB", "MB"),
}
NOTE = "faiss keeps all vectors in memory, and does not read a table."


def main() -> None:
    """Build, choose settings, then race."""
    parser = options((__doc__ or "").split("\n")[0], rows=None)
    parser.add_argument("--sizes", nargs="+", default=SIZES, help="rows, and numbers of a vector")
    parser.add_argument("--quick", action="store_true", help=f"sizes {' '.join(QUICK)}, and three rounds")
    parser.add_argument("--recall", type=float, default=0.95, help="recall that has to be reached")
    parser.add_argument("--kinds", nargs="+", choices=(*KINDS, "exact"), default=(*KINDS, "exact"), help="indexes")
    parser.add_argument("--rebuild", action="store_true", help="build the indexes of the peers, too, though kept")
    parser.add_argument("--kept", action="store_true", help="our index is not built anew, either, where it is kept")
    add_clock(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.rounds = QUICK, min(arguments.rounds, 3)
    cases: list[Case] = []
    for data in map(Data.of, arguments.sizes):
        for kind in arguments.kinds:
            cases += list(exact(data, arguments) if kind == "exact" else races(data, kind, arguments))
    sizes = ", ".join(str(Data.of(size)) for size in arguments.sizes)
    report(f"Find the nearest {K} vectors at a recall of {arguments.recall}, {sizes}", cases, arguments, NOTE)


def races(data: Data, kind: str, arguments: Any) -> Iterator[Case]:
    """Build one kind of index with all engines, and yield its cases."""
    contestants = engines(data, kind)
    for each in contestants:
        each.prepare(arguments.rebuild or (each.name == OURS and not arguments.kept))
        figures = ", ".join(f"{value:,.1f} {name}" for name, value in each.figures.items())
        print(f"{data}, {kind}, {each.name}: {figures}", flush=True)
    about = kind if len(arguments.sizes) == 1 else f"{kind}, {data}"
    for topic, (figure, unit) in FIGURES.items():
        name = f"processor {figure}" if figure == "seconds" and arguments.processor else figure
        if any(name not in each.figures for each in contestants):
            continue  # an older stored index without measurements
        values = {each.name: [each.figures[name]] for each in contestants}
        yield from _if(topic, about, arguments, lambda name, v=values, u=unit: Case(name, v, u))
    chosen(contestants, None, arguments.recall)
    rounds, clock = arguments.rounds, clock_of(arguments)
    yield from _if(
        "one query at a time", about, arguments, lambda name: one_by_one(name, contestants, None, rounds, clock)
    )
    works = {each.name: partial(each.search, data.queries) for each in contestants}
    yield from _if(f"{BATCH:,} queries in one call", about, arguments, lambda name: race(name, works, rounds, clock))
    yield from _if("open and search once", about, arguments, lambda name: cold(name, contestants, rounds, clock))
    filtering = [each for each in contestants if each.filters]
    for label, condition in FILTERS.items():

        def filtered(name: str, condition: str = condition) -> Case:
            chosen(filtering, condition, arguments.recall)
            return one_by_one(name, filtering, condition, rounds, clock)

        yield from _if(f"one query at a time, a filter keeps {label}", about, arguments, filtered)


def exact(data: Data, arguments: Any) -> Iterator[Case]:
    """Search without an index, and print how fast memory is read."""
    contestants = [engine(name, data, "exact") for name in (*LIBRARIES, "faiss")]
    rounds, clock = arguments.rounds, clock_of(arguments)
    for each in contestants:
        each.open()
        each.setting = {"use_index": False}
    batch = f"{EXACT_BATCH} queries in one call"
    queries = {"one query": data.queries[0], batch: data.queries[:EXACT_BATCH]}
    for topic, q in queries.items():
        works = {each.name: partial(each.search, q) for each in contestants}
        for case in _if(
            topic,
            "exact" if len(arguments.sizes) == 1 else str(data),
            arguments,
            lambda name, w=works: race(name, w, rounds, clock),
        ):
            yield case
            if q.ndim == 1:
                size, most = data.vectors.nbytes / 1e9, bandwidth(data.vectors)
                speeds = (f"{each.name} {size / case.median(each.name):.1f}" for each in contestants)
                share = size / case.median(OURS) / most
                print(f"{case.name}: {', '.join(speeds)} GB/s; memory {most:.1f} GB/s: {share:.0%} of it", flush=True)


def _if(topic: str, about: str, arguments: Any, work: Callable[[str], Case]) -> Iterator[Case]:
    name = f"{topic}, {about}"
    if arguments.only in name:
        yield work(name)


def chosen(contestants: Iterable[Engine], condition: str | None, recall: float) -> None:
    """Give all engines the fastest settings that reach the recall."""
    true: np.ndarray | None = None
    for each in contestants:
        true = truth(each.data, condition) if true is None else true
        reached = choose(each, true, condition, recall)
        what = "" if condition is None else f" where {condition}"
        print(f"{each.data}, {each.kind}{what}, {each.name}: recall {reached:.3f} with {each.setting}", flush=True)


def one_by_one(
    name: str,
    contestants: Iterable[Engine],
    condition: str | None,
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Case:
    """Return the seconds per query. Each round uses other queries, the same for all engines."""

    def turns(each: Engine) -> Callable[[], None]:
        starts = itertools.cycle(range(0, BATCH - TURN, TURN))

        def work() -> None:
            start = next(starts)
            for query in each.data.queries[start : start + TURN]:
                each.search(query, condition)

        return work

    case = race(name, {each.name: turns(each) for each in contestants}, rounds, clock)
    return Case(name, {who: [second / TURN for second in seconds] for who, seconds in case.seconds.items()})


def cold(name: str, contestants: list[Engine], rounds: int, clock: Callable[[], float]) -> Case:
    seconds: dict[str, list[float]] = {each.name: [] for each in contestants}
    for _, each in itertools.product(range(rounds), contestants):
        seconds[each.name].append(each.cold(clock))
    return Case(name, seconds)


def bandwidth(vectors: np.ndarray) -> float:
    """Return the highest speed at which all cores read memory, in GB/s."""
    cores = len(os.sched_getaffinity(0))
    parts = np.array_split(vectors.reshape(-1).view(np.uint64), cores)
    best = 0.0
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(7):
            begin = time.perf_counter()
            list(pool.map(np.bitwise_or.reduce, parts))
            best = max(best, vectors.nbytes / (time.perf_counter() - begin) / 1e9)
    return best


if __name__ == "__main__":
    main()
