"""Assigns indexes to conditions. This only needs the predicate and the list of indexes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from lance_duck.index.catalog import ColumnIndex, IndexCatalog
from lance_duck.index.json_path import shown_path
from lance_duck.index.query import Among, Between, ContainsAny, Overlaps, Query
from lance_duck.index.registry import files_kind
from lance_duck.scan.indexes.query import intersection, is_empty, query_of, union
from lance_duck.scan.predicate.tree import (
    And,
    BoxCondition,
    Compare,
    ConstantCondition,
    JsonCondition,
    Not,
    Opaque,
    Or,
    Predicate,
)
from lance_duck.scan.predicate.types import worded
from lance_duck.scan.projection import HIDDEN, ROW_ADDRESS, ROW_ID
from lance_duck.wire.column_path import join_path


@dataclass(frozen=True)
class IndexLeaf:
    """A query on the indexes of one column.

    Attributes:
        path: Dotted path of the column.
        query: The query to run on the indexes.
        indexes: Suitable indexes. For each fragment, the first one that covers it is used.
    """

    path: str
    query: Query
    indexes: tuple[ColumnIndex, ...]

    def __str__(self) -> str:
        return f"{self.path}: {worded(self.query)}"


@dataclass(frozen=True)
class ByName:
    """A condition on row ids or addresses. Its rows are found without an index.

    Attributes:
        column: `_rowid` or `_rowaddr`.
        query: The query that selects the row ids or addresses.
    """

    column: str
    query: Among | Between

    def __str__(self) -> str:
        return f"{self.column}: {self.query}"


@dataclass(frozen=True)
class Open:
    """A condition without an index: any row may match.

    Attributes:
        reason: Text that explains why no index applies.
    """

    reason: str

    def __str__(self) -> str:
        return f"without an index: {self.reason}"


@dataclass(frozen=True)
class AllOf:
    """Rows that match all parts. Without parts, every row matches."""

    parts: tuple[IndexPlan, ...]

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.parts)) + ")" if self.parts else "every row"


@dataclass(frozen=True)
class AnyOf:
    """Rows that match at least one part. Without parts, no row matches. No part is open: see `is_open`."""

    parts: tuple[IndexPlan, ...]

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.parts)) + ")" if self.parts else "no row"


IndexPlan: TypeAlias = AllOf | AnyOf | IndexLeaf | ByName | Open

EVERY: Final = AllOf(())
NONE: Final = AnyOf(())


def plan_index(predicate: Predicate, catalog: IndexCatalog) -> IndexPlan:
    """Plan the index lookups that find the rows for which a predicate is true.

    Args:
        predicate: Any predicate on the columns of the table.
        catalog: The indexes of the table.
    """
    return _Planner(catalog).plan(predicate, true=True)


def is_open(plan: IndexPlan) -> bool:
    """Return whether a plan does not restrict any row."""
    return isinstance(plan, Open) or (isinstance(plan, AllOf) and bool(plan.parts) and all(map(is_open, plan.parts)))


def reasons(plan: IndexPlan) -> Iterator[str]:
    """Yield the reasons why parts of a plan do not restrict rows, in order."""
    if isinstance(plan, Open):
        yield plan.reason
    elif isinstance(plan, AllOf | AnyOf):
        for part in plan.parts:
            yield from reasons(part)


class _Planner:
    def __init__(self, catalog: IndexCatalog) -> None:
        self._catalog = catalog
        self._json: dict[str, tuple[ColumnIndex, ...]] = {}

    def plan(self, predicate: Predicate, *, true: bool) -> IndexPlan:
        """Return the plan for the rows for which a predicate is true, or for which it is false if `true` is False."""
        match predicate:
            case And(operands) | Or(operands):
                parts = [self.plan(operand, true=true) for operand in operands]
                return self._all(parts) if isinstance(predicate, And) is true else self._any(parts)
            case Not(operand):
                return self.plan(operand, true=not true)
            case ConstantCondition(value):
                return EVERY if value is true else NONE
            case Opaque(implied=implied):
                if true and implied is not None:
                    return self.plan(implied, true=True)
                return Open(f"{predicate} is evaluated by DuckDB")
            case BoxCondition(column):
                return self._box(predicate, join_path(column)) if true else Open(f"{predicate} is not asked of indexes")
            case JsonCondition():
                return self._json_value(predicate, true)
        (path,) = predicate.paths()
        if path[0] in HIDDEN and path[0] not in self._catalog.schema.names:
            return _by_name(predicate, path[0], true)
        return self._leaf(predicate, join_path(path), true)

    def _box(self, leaf: BoxCondition, path: str) -> IndexPlan:
        plan = self._ask(path, Overlaps(*leaf.box)) if self._over(path) else None
        return Open(f"no RTREE index on {path}") if plan is None or isinstance(plan, Open) else plan

    def _json_value(self, leaf: JsonCondition, true: bool) -> IndexPlan:
        """Plan a condition on a value of a JSON column. Its own condition has one column, with a name for the value."""
        column = join_path(leaf.column)
        indexes, why = self._catalog.over_json(column, leaf.path, leaf.type)
        if not indexes:
            ignored = [f"index {i.metadata.name!r} is ignored: {i.reason}" for i in self._catalog.ignored_over(column)]
            reasons_ = "".join(f"; {text}" for text in (why, *ignored) if text)
            return Open(f"no JSON index on {column} at {shown_path(leaf.path)} for {leaf.type}{reasons_}")
        (name,) = leaf.condition.paths()
        self._json[join_path(name)] = indexes
        return self.plan(leaf.condition, true=true)

    def _over(self, path: str) -> tuple[ColumnIndex, ...]:
        return self._json.get(path) or self._catalog.over(path)

    def _leaf(self, predicate: Predicate, path: str, true: bool) -> IndexPlan:
        indexes = self._over(path)
        if not indexes:
            ignored = [f"index {i.metadata.name!r} is ignored: {i.reason}" for i in self._catalog.ignored_over(path)]
            return Open(f"no index on {path}" + "".join(f"; {text}" for text in ignored))
        try:
            query = query_of(predicate, indexes[0].segments[0].type, true=true)
        except ValueError as error:
            return Open(str(error))
        return NONE if query is None else self._ask(path, query)

    def _ask(self, path: str, query: Query) -> IndexPlan:
        if is_empty(query):
            return NONE
        indexes = sorted((i for i in self._over(path) if i.answers(query)), key=_rank)
        if indexes:
            return IndexLeaf(path, query, tuple(indexes))
        kinds = ", ".join(f"{i.kind.name} index {i.name!r}" for i in self._over(path) if i.kind is not None)
        return Open(f"the {kinds} on {path} does not answer: {worded(query)}")

    def _all(self, parts: Sequence[IndexPlan]) -> IndexPlan:
        merged: list[IndexPlan] = []
        places: dict[str, int] = {}
        for part in _flat(parts, AllOf):
            place = places.setdefault(part.path, len(merged)) if isinstance(part, IndexLeaf) else len(merged)
            both = self._both(merged[place], part) if place < len(merged) else None
            if both is None:
                merged.append(part)
            else:
                merged[place] = both
        if NONE in merged:
            return NONE
        return merged[0] if len(merged) == 1 else AllOf(tuple(merged))

    def _both(self, first: IndexPlan, second: IndexPlan) -> IndexPlan | None:
        """Intersect two queries on one column. Returns None if the result is not a single query."""
        if not isinstance(first, IndexLeaf) or not isinstance(second, IndexLeaf):
            return None
        query = intersection(first.query, second.query)
        both = None if query is None else self._ask(first.path, query)
        return None if isinstance(both, Open) else both

    def _any(self, parts: Sequence[IndexPlan]) -> IndexPlan:
        merged: list[IndexPlan] = []
        groups: dict[tuple[str, type], list[Query]] = {}
        for part in _flat(parts, AnyOf):
            if isinstance(part, IndexLeaf) and isinstance(part.query, Among | ContainsAny):
                groups.setdefault((part.path, type(part.query)), []).append(part.query)
            else:
                merged.append(part)
        merged += [self._ask(path, query) for (path, _), all_ in groups.items() if (query := union(all_)) is not None]
        if EVERY in merged:
            return EVERY
        unknown = [reason for part in merged if is_open(part) for reason in reasons(part)]
        if unknown:
            return Open("; ".join(dict.fromkeys(unknown)))
        return merged[0] if len(merged) == 1 else AnyOf(tuple(merged))


def _flat(parts: Sequence[IndexPlan], kind: type[AllOf | AnyOf]) -> Iterator[IndexPlan]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.parts
        else:
            yield part


def _rank(index: ColumnIndex) -> int:
    """Return the sort key of an index: exact indexes come first."""
    return 0 if index.kind is not None and files_kind(index.kind).name in _EXACT else 1


_EXACT: Final = ("BTree", "Bitmap", "LabelList")


def _by_name(predicate: Predicate, column: str, true: bool) -> IndexPlan:
    if column not in (ROW_ID, ROW_ADDRESS):
        return Open(f"no index on {column}")
    if isinstance(predicate, Compare) and predicate.value.is_valid and pa.types.is_integer(predicate.value.type):
        value = predicate.value.as_py()
        if not 0 <= value < 2**64:
            return Open(f"{value} is not a value of {column}")
    try:
        query = query_of(predicate, pa.uint64(), true=true)
    except ValueError as error:
        return Open(str(error))
    if query is None or is_empty(query):
        return NONE
    if isinstance(query, Among | Between):
        return ByName(column, query)
    return Open(f"{column} {query} would return most of the table")
