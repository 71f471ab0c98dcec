"""Measurement of recall: one search of a segment evaluates many settings.

A row is found if three conditions are true. Its partition is searched, which depends only on the rank of the centroid.
The graph walk reaches the row. The row's code ranks it among the candidates, which one search determines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import LEAST_EF
from lance_duck.index.vector.search.contract import Probe, Shape, VectorIndex
from lance_duck.scan.costs import (
    CANDIDATE_BYTE_NS,
    CANDIDATE_NS,
    CODE_BYTE_NS,
    CODE_NS,
    FAST_CODE_BYTE_NS,
    FAST_TABLE_BYTE_NS,
    FREE_NS,
    GRAPH_STEPS,
    MOST_CANDIDATES,
    REMOTE_CANDIDATE_NS,
    ROW_BYTE_NS,
    SAMPLE_CODES,
    SAMPLE_WALKS,
    TABLE_BYTE_NS,
    WALK_BYTE_NS,
    WALK_NS,
)
from lance_duck.scan.nearest.settings.curve import Curve, MeasuredSetting, Setting
from lance_duck.scan.nearest.settings.sample import Sample

_STEP: Final = 1.25
_REACHED: Final = 0.998  # recall at which the measurement stops; to reach a higher recall, all rows are compared
_REFINED: Final = 4  # growth factor of the candidate count while too few neighbours are among the candidates
_FIRST_REFINED: Final = 16
_REFINE_STEP: Final = 4  # each candidate count that is tried is a quarter larger than the previous one
_FEW: Final = 16  # queries from which the candidate count is estimated

Ranks = NDArray[np.int64]


def measure(index: VectorIndex, sample: Sample, k: int, share: float, candidate_ns: float) -> Curve:
    """Measure the recall of settings, and return their curve.

    Args:
        index: The opened segment.
        sample: Queries and their neighbours.
        k: Number of neighbours per query.
        share: Share of the rows to search, 0 to 1. Stored in the curve.
        candidate_ns: Nanoseconds to rerank a candidate by its vector in the table: see `candidate_cost`.
    """
    ranks = index.partition_ranks(sample.queries.astype(np.float32, copy=False), sample.positions)
    shape = index.shape
    probes = _probes(shape, sample, ranks)
    if shape.has_graphs:
        measured = list(_walks(index, sample, ranks, probes, candidate_ns))
    elif index.is_exact:
        measured = [_measured(shape, sample, ranks < n, Setting(n), candidate_ns) for n in probes]
    else:
        measured = list(_codes(index, sample, ranks, probes, candidate_ns))
    return Curve.of(k, share, len(sample.queries), measured)


def candidate_cost(width: int, *, is_remote: bool) -> float:
    """Return the cost of reranking one candidate with its original vector, in nanoseconds.

    Args:
        width: Size of a vector in the table, in bytes.
        is_remote: Whether the table is in an object store.
    """
    return REMOTE_CANDIDATE_NS if is_remote else CANDIDATE_NS + width * CANDIDATE_BYTE_NS


def everything(index: VectorIndex, k: int) -> Curve:
    """Return the curve of a small segment, in which every row is compared."""
    shape = index.shape
    setting = Setting(max(shape.num_partitions, 1), None, None if index.is_exact else max(shape.num_rows, k))
    return Curve(k, 1.0, 0, (MeasuredSetting(setting, 1.0, 0.0, 0.0),))


def _probes(shape: Shape, sample: Sample, ranks: Ranks) -> list[int]:
    """Return the partition counts to try, up to the first one that misses hardly any neighbours."""
    count = max(shape.num_partitions, 1)
    part = max(_part_cost(shape, sample.num_allowed / count), 1e-9)
    least = 1 if shape.has_graphs else min(math.ceil(FREE_NS / part), count)
    probes = []
    number = float(least)
    while True:
        probes.append(min(int(number), count))
        if probes[-1] == count or sample.recall(ranks < probes[-1])[0] >= _REACHED:
            return probes
        number = max(number * _STEP, probes[-1] + 1)


def _codes(
    index: VectorIndex, sample: Sample, ranks: Ranks, probes: list[int], candidate_ns: float
) -> Iterator[MeasuredSetting]:
    """Yield measured settings of a segment with codes and without graphs."""
    shape = index.shape
    rows = max(probes[-1] * shape.num_rows // max(shape.num_partitions, 1), 1)
    least = min(len(sample.queries), 32)
    sampled = sample.first(max(min(SAMPLE_CODES // rows, len(sample.queries)), least))
    ranks = ranks[: len(sampled.queries)]
    candidates = _enough(index, sampled.first(_FEW), Probe(probes[-1]))
    orders = _orders(index, sampled, candidates, Probe(probes[-1]))
    for nprobes in probes:
        for refine in _refines(sample.k, candidates):
            is_hit = (ranks < nprobes) & (orders < (refine or sample.k))
            yield _measured(shape, sampled, is_hit, Setting(nprobes, None, refine), candidate_ns)


def _enough(index: VectorIndex, few: Sample, probe: Probe) -> int:
    """Return how many candidates include nearly all neighbours of a few queries, at most `MOST_CANDIDATES`."""
    times = _FIRST_REFINED
    while True:
        candidates = min(times * few.k, MOST_CANDIDATES, few.num_allowed)
        if candidates < times * few.k or few.recall(_orders(index, few, candidates, probe) < candidates)[0] >= _REACHED:
            return candidates
        times *= _REFINED


def _walks(
    index: VectorIndex, sample: Sample, ranks: Ranks, probes: list[int], candidate_ns: float
) -> Iterator[MeasuredSetting]:
    """Yield measured settings of a segment with graphs."""
    shape, nprobes = index.shape, probes[-1]
    ef = max(sample.k + sample.k // 2, LEAST_EF)
    for _ in range(GRAPH_STEPS):
        least = min(len(sample.queries), 32)
        sampled = sample.first(max(min(SAMPLE_WALKS // (ef * nprobes), len(sample.queries)), least))
        query_ranks = ranks[: len(sampled.queries)]
        candidates = min(sample.k if index.is_exact else max(ef, sample.k), sampled.num_allowed)
        orders = _orders(index, sampled, candidates, Probe(nprobes, ef=ef))
        for number in probes:
            for refine in [None] if index.is_exact else _refines(sample.k, candidates):
                is_hit = (query_ranks < number) & (orders < (refine or sample.k))
                yield _measured(shape, sampled, is_hit, Setting(number, ef, refine), candidate_ns)
        if sum(sampled.recall(orders < candidates)) >= _REACHED:  # within the precision of the sample
            return
        ef *= 2


def _refines(k: int, most: int) -> Iterator[int | None]:
    """Yield the candidate counts that reranking is tried with. The first is None, which means no reranking."""
    yield None
    number = 2 * k
    while number < most:
        yield number
        number += max(number // _REFINE_STEP, 1)
    if most > k:
        yield most


def _orders(index: VectorIndex, sample: Sample, candidates: int, probe: Probe) -> Ranks:
    """Return the rank of each sampled row among a search's candidates, or the int64 maximum if the row is missing."""
    queries = sample.queries.astype(np.float32, copy=False)
    hits = index.search(queries, candidates + 1, sample.allowed, replace(probe, is_alone=True)).positions
    orders = np.full(sample.positions.shape, np.iinfo(np.int64).max)
    for number, (positions, targets, query_row) in enumerate(zip(hits, sample.positions, sample.own, strict=True)):
        others = positions[(positions != query_row) & (positions >= 0)]
        by_number = np.argsort(others)
        places = np.minimum(np.searchsorted(others, targets, sorter=by_number), max(len(others) - 1, 0))
        if len(others):
            at = by_number[places]
            orders[number] = np.where(others[at] == targets, at, orders[number])
    return orders


def _measured(
    shape: Shape, sample: Sample, hits: NDArray[np.bool_], setting: Setting, candidate_ns: float
) -> MeasuredSetting:
    recall, error = sample.recall(hits)
    return MeasuredSetting(setting, recall, error, _cost(shape, setting, candidate_ns))


def _cost(shape: Shape, setting: Setting, candidate_ns: float) -> float:
    """Estimate the time of a query, in nanoseconds."""
    again = (setting.candidates or 0) * candidate_ns
    if shape.has_graphs:
        return again + setting.nprobes * (setting.ef or 1) * (WALK_NS + shape.code_bytes * WALK_BYTE_NS)
    return again + setting.nprobes * _part_cost(shape, shape.num_rows / max(shape.num_partitions, 1))


def _part_cost(shape: Shape, rows: float) -> float:
    """Estimate the time to scan `rows` rows of a partition without a graph, in nanoseconds."""
    table, byte = TABLE_BYTE_NS, CODE_BYTE_NS if shape.table_bytes else ROW_BYTE_NS
    if shape.is_fast:
        table, byte = FAST_TABLE_BYTE_NS, FAST_CODE_BYTE_NS
    return shape.table_bytes * table + rows * (CODE_NS + shape.code_bytes * byte)
