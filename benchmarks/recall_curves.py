"""How many queries per second does each engine run at each recall, for wide vectors?

Every engine builds its own index of the same clustered vectors, and tries many settings. The fastest setting that
reaches a recall counts. Queries are not rows, and run one at a time. The clock is processor time.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np

from benchmarks._harness import OURS, machine, options
from benchmarks._vector_data import Data, K
from benchmarks._vector_engines import Engine, Setting, engines
from benchmarks._vector_peers import compared

KINDS = ("IVF_PQ", "IVF_HNSW_SQ")
METRICS = ("cosine", "dot")
RECALLS = (0.8, 0.9, 0.95, 0.99)
QUERIES = 100
TIMED = 20  # in a turn
NPROBES = (1, 2, 5, 10, 20, 40, 80)
REFINE = (2, 5, 10)
EF = (20, 40, 80, 160, 320)

Point = tuple[Setting, float, float]


def main() -> None:
    """Build, measure, and print a table."""
    parser = options((__doc__ or "").split("\n")[0], rows=None, rounds=3)
    parser.add_argument("--sizes", nargs="+", default=("100000x768", "100000x1536"), help="rows, numbers of a vector")
    parser.add_argument("--metrics", nargs="+", choices=("l2", *METRICS), default=METRICS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="indexes")
    parser.add_argument("--peers", nargs="+", default=("pylance", "faiss", "hnswlib"), help="who runs beside us")
    parser.add_argument("--kept", action="store_true", help="our index is not built anew, either, where it is kept")
    arguments = parser.parse_args()
    print(machine())
    lines = []
    for size, metric, kind in itertools.product(arguments.sizes, arguments.metrics, arguments.kinds):
        data = Data.of(size)
        near = truth(data, metric)
        contestants = [e for e in engines(data, kind, metric) if e.name in (OURS, *arguments.peers)]
        for each in contestants:
            each.prepare(each.name == OURS and not arguments.kept)
            print(f"{data}, {metric}, {kind}, {each.name}: built in {each.figures['seconds']:.0f} s", flush=True)
        lines += list(rows(contestants, near, arguments.rounds))
    names = " | ".join(f"recall {recall:g}" for recall in RECALLS)
    print(f"\n| vectors | index | engine | {names} |\n|---|---|---|{'---|' * len(RECALLS)}", *lines, sep="\n")


def truth(data: Data, metric: str) -> np.ndarray:
    """(queries, k): rows nearest to the first queries."""
    ways = {"dot": faiss.METRIC_INNER_PRODUCT}
    queries, vectors = compared(data.queries[:QUERIES], metric), compared(data.vectors, metric)
    near: np.ndarray = faiss.knn(queries, vectors, K, metric=ways.get(metric, faiss.METRIC_L2))[1]
    return near


def rows(contestants: list[Engine], near: np.ndarray, rounds: int) -> Iterator[str]:
    """Measure all settings of each engine, and yield the lines of the table."""
    points: dict[str, list[Point]] = {}
    for each in contestants:
        for setting in settings(each):
            recall = recall_of(each, near, setting)
            points.setdefault(each.name, []).append((setting, recall, rate(each, setting, rounds)))
    promised = f"{OURS}, `recall=`"
    ours = next(each for each in contestants if each.name == OURS)
    for wanted in RECALLS:
        setting = {"recall": wanted}
        points.setdefault(promised, []).append((setting, recall_of(ours, near, setting), rate(ours, setting, rounds)))
    about = f"{ours.data}, {ours.metric} | {ours.kind}"
    for name, mine in points.items():
        for setting, recall, queries in mine:
            print(f"{about} | {name}: {setting} recall {recall:.3f}, {queries:,.0f} a second", flush=True)
        if name == promised:
            cells = [f"{queries:,.0f} (found {recall:.3f})" for _, recall, queries in mine]
        else:
            best = [max((q for _, recall, q in mine if recall >= wanted), default=None) for wanted in RECALLS]
            cells = ["-" if queries is None else f"{queries:,.0f}" for queries in best]
        yield f"| {about} | {name} | {' | '.join(cells)} |"


def settings(each: Engine) -> Iterator[Setting]:
    """Yield how far to look."""
    if "HNSW" in each.kind:
        for ef in EF:
            yield {"ef": ef}
            if each.name != "hnswlib":  # it holds the vectors themselves
                yield {"ef": ef, "refine_factor": REFINE[0]}
        return
    for nprobes, refine in itertools.product(NPROBES, REFINE):
        if nprobes <= each.data.partitions:
            yield {"nprobes": nprobes, "refine_factor": refine}


def recall_of(each: Engine, near: np.ndarray, setting: dict[str, Any]) -> float:
    """Return the share of the nearest rows that searches find, on average."""
    queries = each.data.queries[: len(near)]
    found = (
        np.intersect1d(each.search(query, None, **setting), mine) for query, mine in zip(queries, near, strict=True)
    )
    return float(np.mean([len(one) / K for one in found]))


def rate(each: Engine, setting: dict[str, Any], rounds: int) -> float:
    """Return queries a second, the median of rounds."""
    seconds = []
    for turn in range(rounds):
        begin = time.process_time()
        for query in each.data.queries[QUERIES + turn * TIMED : QUERIES + (turn + 1) * TIMED]:
            each.search(query, None, **setting)
        seconds.append((time.process_time() - begin) / TIMED)
    return 1 / float(np.median(seconds))


if __name__ == "__main__":
    main()
