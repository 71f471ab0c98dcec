"""Splits a filter into conditions that are joined by AND. Each has a predicate for index searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_duck.scan.filters import AllFilters, Filter, TreeFilter, all_filters
from lance_duck.scan.predicate.tree import Compare, Opaque, Path, Predicate, all_of, conjuncts

_RANGES: Final = ("<", "<=", ">", ">=")


@dataclass(frozen=True, eq=False)
class Conjunct:
    """One of the conditions that a filter joins by AND.

    Attributes:
        filter: The condition.
        implied: A predicate that is true for every row that satisfies the condition, or None if unknown.
        exact: Whether the predicate is equivalent to the condition.
    """

    filter: Filter
    implied: Predicate | None
    exact: bool


def conjuncts_of(filter_: Filter) -> tuple[Conjunct, ...]:
    """Split a filter at its ANDs. Ranges of one column are combined into one condition."""
    return tuple(_parts(filter_))


def conjunction(filters: Sequence[Filter]) -> Filter | None:
    """Combine filters. Predicate trees become one tree. Returns None for an empty sequence."""
    trees = [each.predicate for each in filters if isinstance(each, TreeFilter)]
    others = [each for each in filters if not isinstance(each, TreeFilter)]
    return all_filters(TreeFilter(all_of(*trees)) if trees else None, *others)


def _parts(filter_: Filter) -> Iterator[Conjunct]:
    if isinstance(filter_, AllFilters):
        for each in filter_.parts:
            yield from _parts(each)
    elif isinstance(filter_, TreeFilter):
        for predicate in _grouped(filter_.predicate):
            is_exact = not any(isinstance(leaf, Opaque) and leaf.implied is not None for leaf in predicate.leaves())
            yield Conjunct(TreeFilter(predicate), predicate, is_exact)
    else:
        implied: Any = getattr(filter_, "implied", None)
        yield Conjunct(filter_, implied, bool(getattr(filter_, "implied_exactly", False)))


def _grouped(predicate: Predicate) -> list[Predicate]:
    groups: list[Predicate] = []
    places: dict[Path, int] = {}
    for part in conjuncts(predicate):
        if isinstance(part, Compare) and part.op in _RANGES:
            place = places.setdefault(part.path, len(groups))
            if place < len(groups):
                groups[place] = all_of(groups[place], part)
                continue
        groups.append(part)
    return groups
