"""Routes of vector searches: the segments to search, the fragments to compare exactly, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lance_duck.index.catalog import ColumnIndex, Segment, catalog
from lance_duck.index.search import ask, wrong_with
from lance_duck.scan.nearest.options import Nearest
from lance_duck.snapshot import Snapshot

_DETAILS: Final = "VectorIndexDetails"


@dataclass(frozen=True, eq=False)
class Route:
    """The segments and fragments that a search reads.

    Attributes:
        metric: Metric of the distances.
        index: The index to search, or None.
        segments: The intact segments of the index, each with the ids of its fragments to search.
        open: Ids of the fragments that no segment covers.
        reasons: Reasons why an index or a segment is not searched.
    """

    metric: str
    index: ColumnIndex | None
    segments: Sequence[tuple[Segment, frozenset[int]]]
    open: frozenset[int]
    reasons: tuple[str, ...] = ()


def route(snapshot: Snapshot, nearest: Nearest, fragments: frozenset[int]) -> Route:
    """Choose the segments for a search. The segments are opened, because their files store the metric."""
    if not nearest.use_index:
        return Route(nearest.default_metric, None, (), fragments, ("use_index is false",))
    path = nearest.column.path
    indexes, ignored = snapshot.derived(("vector indexes", path), lambda: _indexes(snapshot, path))
    reasons = list(ignored)
    for index in indexes:
        asked_of = [segment for segment in index.segments if len(segment.fragments)]
        pairs = [(segment, ask(snapshot, segment, lambda opened: opened.metric)) for segment in asked_of]
        broken = [segment for segment, metric in pairs if metric is None]
        reasons += [f"{segment} is not used: {wrong_with(snapshot, segment)}" for segment in broken]
        metric = next((metric for _, metric in pairs if metric is not None), None)
        if metric is None:
            continue
        if nearest.metric not in (None, metric):
            reasons.append(f"index {index.name!r} measures {metric}, not {nearest.metric}")
            continue
        sound = [(segment, frozenset(segment.fragments.tolist()) & fragments) for segment, m in pairs if m == metric]
        segments = [(segment, covered) for segment, covered in sound if covered]
        return Route(
            metric, index, segments, fragments.difference(*(covered for _, covered in segments)), tuple(reasons)
        )
    return Route(nearest.default_metric, None, (), fragments, (*reasons, "no index fits") if reasons else ("no index",))


def _indexes(snapshot: Snapshot, path: str) -> tuple[list[ColumnIndex], list[str]]:
    """Return the vector indexes of a column, and the reasons for ignoring segments."""
    index_catalog = catalog(snapshot)
    ignored = [
        f"segment {str(each.metadata.uuid)[:8]} of index {each.metadata.name!r} is ignored: {each.reason}"
        for each in index_catalog.ignored_over(path)
    ]
    return [i for i in index_catalog.over(path) if i.kind is not None and i.kind.type_url.endswith(_DETAILS)], ignored
