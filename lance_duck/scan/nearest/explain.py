"""Descriptions, in words, of what a search will do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lance_duck.index.catalog import Segment
from lance_duck.index.registry import name_of
from lance_duck.index.search import ask
from lance_duck.index.vector.search.contract import VectorIndex
from lance_duck.redact import shown
from lance_duck.scan import explain as scans
from lance_duck.scan.nearest.covered import covered_vectors
from lance_duck.scan.nearest.search import PreparedSearch
from lance_duck.scan.options import ScanOptions


def explain_nearest(
    search: PreparedSearch, options: ScanOptions, columns: Sequence[str], num_queries: int, *, verbose: bool = False
) -> Iterator[str]:
    """Yield the lines that describe a search; a filter is described as the scan that it begins with."""
    nearest, route, snapshot = search.nearest, search.route, search.table.snapshot
    many = f"{num_queries} queries" if num_queries > 1 else "1 query"
    yield f"LanceNearest: uri={shown(snapshot.uri)}, {scans.version_of(snapshot)}"
    yield f"  columns: {', '.join(columns)}"
    yield f"  search: {nearest.k} nearest of {nearest.column.path} to {many}, metric {route.metric}"
    if nearest.lower is not None or nearest.upper is not None:
        low = "" if nearest.lower is None else f"{nearest.lower} <= "
        high = "" if nearest.upper is None else f" < {nearest.upper}"
        yield f"  distances: {low}_distance{high}"
    yield from _route(search)
    yield from scans.after_search(search.post, options)
    yield from scans.before_search(search.table, search.named, verbose=verbose)


def _route(search: PreparedSearch) -> Iterator[str]:
    route = search.route
    total = len(search.plan.fragment_ids)
    if route.segments and route.index is not None:
        names = ", ".join(str(segment.uuid)[:8] for segment, _ in route.segments[:8])
        more = f" and {len(route.segments) - 8} more" if len(route.segments) > 8 else ""
        first = route.segments[0][0]
        kind = name_of(first.kind.type_url, first.metadata.details) or first.kind.name
        yield f"  VectorIndexQuery: {route.index.name} ({kind}, segments {names}{more})"
        yield from _settings(search)
        if search.plan.filter is not None:
            yield "    filter: before the search; few rows that pass are compared one by one"
    yield from (f"  not by an index: {reason}" for reason in route.reasons)
    num_open = len(route.open)
    what = "left out" if search.fast else "compared vector by vector"
    yield f"  fragments: {total - num_open} through the index, {num_open} {what}"


def _settings(search: PreparedSearch) -> Iterator[str]:
    nearest, pairs = search.nearest, search.route.segments
    if nearest.promise is None:
        probe = search.explicit_probe.probe
        most = "all" if probe.max_nprobes is None else probe.max_nprobes
        yield f"    partitions probed: {probe.nprobes}, at most {most}" + (f", ef {probe.ef}" if probe.ef else "")
        if nearest.column.is_many:
            yield "    vectors of a row: their scores choose rows, which are compared by all of their vectors"
        if nearest.refine_factor is not None:
            yield f"    refine: {nearest.refine_factor} times as many rows, by their own vectors"
        return
    for segment, fragment_ids in pairs:
        name = f"segment {str(segment.uuid)[:8]}, " if len(pairs) > 1 else ""
        text = ask(search.table.snapshot, segment, partial(_reached, search, segment, fragment_ids))
        if text is not None:
            yield f"    settings: {name}{text}"
    if search.plan.filter is not None:
        yield "    settings with a filter: chosen by the share of the rows that pass it"


def _reached(search: PreparedSearch, segment: Segment, fragment_ids: frozenset[int], index: VectorIndex) -> str:
    """Describe the settings that reach the recall in a segment, without a filter."""
    rows = covered_vectors(search.table.snapshot, segment, index)
    return search.described_recall(segment, index, rows, rows.allowed(None, fragment_ids))
