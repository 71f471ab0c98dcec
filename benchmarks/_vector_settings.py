"""How far each engine has to look to reach a recall, found by trying."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import faiss
import numpy as np

from benchmarks._vector_data import CHECKED, Data, K
from benchmarks._vector_engines import Engine, Setting

REFINE = (None, 2, 5, 10, 20)
EF = (10, 15, 20, 30, 50, 80, 120, 200, 400)
NPROBES = (1, 2, 3, 5, 7, 10, 14, 20, 30, 40, 60, 80, 120, 160, 240, 480)


def truth(data: Data, condition: str | None) -> np.ndarray:
    """(checked, k): rows nearest to the first queries."""
    ids = np.arange(data.rows) if condition is None else np.flatnonzero(data.flags(condition))
    near = faiss.knn(data.queries[:CHECKED], data.vectors[ids], min(K, len(ids)))[1]
    return ids[near]


def choose(each: Engine, true: np.ndarray, condition: str | None, wanted: float) -> float:
    """Give an engine the fastest setting that reaches the recall, and return its recall.

    For each refinement, the narrowest search that reaches the recall is timed. If none does, all vectors are compared.
    """
    best: dict[float, tuple[Setting, float]] = {}
    for refine in REFINE if each.kind != "IVF_FLAT" and each.name != "hnswlib" else (None,):
        refined = {} if refine is None else {"refine_factor": refine}
        settings: list[Setting] = [{**look, **refined} for look in _looks(each, K * (refine or 1))]
        if _recall(each, true, condition, settings[-1]) < wanted:
            continue
        for setting in settings:
            reached = _recall(each, true, condition, setting)
            if reached >= wanted:
                best[_seconds(each, condition, setting)] = setting, reached
                break
        if len(best) == 2 or (refine is None and best):
            break
    each.setting, reached = best[min(best)] if best else ({"use_index": False}, 1.0)
    return reached


def _looks(each: Engine, candidates: int) -> Iterator[Setting]:
    """How far to look, further and further."""
    if "HNSW" in each.kind:
        yield from ({"ef": ef} for ef in EF if ef >= candidates)  # pylance refuses less
        return
    partitions = each.data.partitions
    yield from ({"nprobes": size} for size in itertools.takewhile(lambda size: size < partitions, NPROBES))
    yield {"nprobes": partitions}


def _recall(each: Engine, true: np.ndarray, condition: str | None, setting: Setting) -> float:
    shares = [
        len(np.intersect1d(each.search(query, condition, **setting), near)) / len(near)
        for query, near in zip(each.data.queries, true, strict=False)
    ]
    return float(np.mean(shares))


def _seconds(each: Engine, condition: str | None, setting: Setting) -> float:
    times = []
    for query in each.data.queries[:CHECKED]:
        begin = time.perf_counter()
        each.search(query, condition, **setting)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))
