"""Text descriptions of scans, before and after they run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Final

import pyarrow as pa

from lance_duck.forks import Lock
from lance_duck.index.catalog import ColumnIndex
from lance_duck.redact import shown
from lance_duck.scan.evaluator.types import Columns
from lance_duck.scan.filters import AllFilters, Filter, SqlFilter, TreeFilter, all_filters
from lance_duck.scan.indexes.conjuncts import Conjunct, conjuncts_of
from lance_duck.scan.indexes.lookup import IndexRows
from lance_duck.scan.indexes.plan import AllOf, AnyOf, IndexLeaf, IndexPlan, reasons
from lance_duck.scan.indexes.selection import Choices
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.tree import Opaque, Path, Predicate
from lance_duck.scan.routing import Routes
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, shards
from lance_duck.store.request import watched
from lance_duck.wire.index import MEM_WAL

_MAYBE: Final = ("ZoneMap", "BloomFilter", "NGram", "RTree")
"""Index kinds whose results may include rows that do not match."""


def explain(table: TableScan, plan: ScanPlan, options: ScanOptions, *, verbose: bool = False) -> str:
    """Describe a planned scan. Row counts from indexes are estimates."""
    return "\n".join([*_scan(table, plan, options, verbose), *_routes(table, plan)]) + "\n"


def analyze(table: TableScan, plan: ScanPlan, options: ScanOptions, *, counting: bool = False) -> str:
    """Run a scan, and describe its reads, result and duration. With `counting`, rows are only counted."""
    began = time.perf_counter()
    with watched() as reads:
        plan = table.routed(plan)
        counted, stages = _staged(plan)
        if counting:
            rows, batches, size = table.count(counted), 0, 0
        else:
            sizes = [(batch.num_rows, batch.nbytes) for batch in table.reader(counted, options)]
            rows, batches, size = sum(n for n, _ in sizes), len(sizes), sum(n for _, n in sizes)
    took = (time.perf_counter() - began) * 1000
    lines = list(_scan(table, plan, options, True))
    lines += _chosen(table, plan, plan.choices) if plan.choices is not None else _routes(table, plan)
    lines += [f"  {stage} kept {stage.kept} of {stage.seen} rows" for stage in stages if stage.seen]
    lines.append(f"  read: {reads.size} bytes in {reads.ranges} requests")
    lines.append(f"  took: {took:.1f} ms, {rows} rows, {batches} batches, {size} bytes")
    return "\n".join(lines) + "\n"


def version_of(snapshot: Snapshot) -> str:
    """Return the name of the version that is read, for a plan's text."""
    base = snapshot.base
    return f"version={snapshot.version}" if base is None else f"uncommitted, on top of version {base.version}"


def of_log(snapshot: Snapshot) -> Iterator[str]:
    """Yield the line about rows in the write-ahead log. Yields nothing for a table without a log."""
    if snapshot.log is not None:
        yield f"  with rows of the write-ahead log: {snapshot.log}"
    elif (waiting := shards.waiting_rows(snapshot)) is not None:
        yield f"  not read: rows that are only in the write-ahead log (index {MEM_WAL}): {waiting}"


def after_search(post: Filter | None, options: ScanOptions) -> Iterator[str]:
    """Yield the lines that describe how the rows found by a search are processed.

    Args:
        post: The filter applied to the found rows, or None.
        options: The options of the search.
    """
    if post is not None:
        yield f"  filter of the rows found: {post} ({evaluator(post)})"
    yield from _rows_given(options, options.limit, options.offset or 0)


def before_search(table: TableScan, plan: ScanPlan, *, verbose: bool) -> Iterator[str]:
    """Yield the lines about a search's prefilter. Yields nothing without a prefilter."""
    if plan.filter is not None:
        yield "  rows that may be found:"
        yield from (f"    {line}" for line in explain(table, plan, ScanOptions(), verbose=verbose).splitlines())


def _rows_given(options: ScanOptions, limit: int | None, offset: int) -> Iterator[str]:
    if options.orderings:
        sorts = [f"{o.column_name} {'ascending' if o.ascending else 'descending'}" for o in options.orderings]
        yield f"  sort: {', '.join(sorts)}"
    if limit is not None or offset:
        yield f"  limit: {'none' if limit is None else limit}, offset: {offset}"


def _scan(table: TableScan, plan: ScanPlan, options: ScanOptions, verbose: bool) -> Iterator[str]:
    snapshot = table.snapshot
    yield f"LanceScan: uri={shown(snapshot.uri)}, {version_of(snapshot)}"
    yield from of_log(snapshot)
    yield f"  columns: {', '.join(plan.projection.schema.names) or 'none'}"
    yield f"  fragments: {len(plan.fragments)} of {len(snapshot.fragments)}"
    if plan.filter is not None:
        yield f"  filter: {plan.filter} ({evaluator(plan.filter)})"
        yield f"  read first, for the filter: {_names([r.name for r in plan.first_reads], plan.hidden_in_filter)}"
        yield f"  read then, for the rows left: {_names([r.name for r in plan.later_reads], plan.hidden)}"
    else:
        yield f"  read: {_names([r.name for r in plan.later_reads], plan.hidden)}"
    yield from _rows_given(options, plan.limit, plan.offset)
    if verbose:
        for read in (*plan.first_reads, *plan.later_reads):
            yield f"  fields of {read.name}: {', '.join(str(f.id) for f in read.field.walk())} as {read.arrow_type}"


def _routes(table: TableScan, plan: ScanPlan) -> Iterator[str]:
    """Yield the lines that name the indexes used for the filter, and why other indexes are not used."""
    if plan.filter is None:
        return
    if not plan.use_index or plan.include_deleted:
        why = "use_scalar_index is false" if not plan.use_index else "include_deleted_rows is true"
        yield f"  indexes not used: {why}"
        return
    routes = table.routes(plan.filter)
    if routes.are_open:
        yield from (f"  without an index: {text}" for text in _reasons(routes))
        return
    rows = IndexRows(table.snapshot, plan.fragment_ids)
    for part in routes.plans:
        for leaf in _leaves(part):
            expected, closed = rows.expected(leaf), rows.closes(leaf)
            yield f"  {_question(leaf)}"
            yield f"    {_at_most(expected)}, {_many(len(closed), 'fragment')} through the index"
            if not closed:
                yield "    not used: it would return most of the table"
    yield from (f"  without an index: {text}" for text in _reasons(routes))
    closed = reduce(frozenset.union, (rows.closes(part) for part in routes.plans))
    yield f"  fragments: {len(closed)} through indexes, {len(plan.fragment_ids - closed)} scanned"
    filters = [part.filter for part, plan_ in zip(routes.parts, routes.plans, strict=True) if not _exact(part, plan_)]
    if filters:
        yield f"  filter checked again on the index's rows: {_listed(filters)}"


def _chosen(table: TableScan, plan: ScanPlan, choices: Choices) -> Iterator[str]:
    """Yield lines about the index lookups."""
    for outcome in choices.log:
        yield f"  {_question(outcome.part)}"
        if outcome.refused:
            yield f"    not used: {outcome.refused}"
        for uuid, count in outcome.rows.items():
            which = f"segment {uuid[:8]}: " if uuid else ""
            yield f"    {which}" + ("broken, so its rows are scanned" if count is None else _many(count, "row"))
    if plan.filter is not None:
        yield from (f"  without an index: {text}" for text in _reasons(table.routes(plan.filter)))
    closed = choices.total.closed & plan.fragment_ids
    hit = len(choices.rows.parts)
    yield (f"  fragments: {hit} through indexes, {len(closed) - hit} pruned, {len(plan.fragment_ids - closed)} scanned")
    yield f"  rows through indexes: {len(choices.rows)}"
    filters = [choices.residual(fragment_id) for fragment_id in choices.rows.fragment_ids]
    for condition in {id(each): each for each in filters if each is not None}.values():
        yield f"  filter checked again on the index's rows: {condition} ({evaluator(condition)})"


def _question(leaf: Any) -> str:
    if not isinstance(leaf, IndexLeaf):
        return f"ByAddress: {leaf}"
    names = ", ".join(_described(index) for index in leaf.indexes)
    return f"ScalarIndexQuery: {leaf}, by {names}"


def _described(index: ColumnIndex) -> str:
    kind = "index" if index.kind is None else index.kind.name
    segments = ", ".join(str(segment.uuid)[:8] for segment in index.segments[:8])
    more = f" and {len(index.segments) - 8} more" if len(index.segments) > 8 else ""
    ignored = "".join(f"; segment {str(i.metadata.uuid)[:8]} is ignored: {i.reason}" for i in index.ignored)
    return f"{index.name} ({kind}, segments {segments}{more}{ignored})"


def _leaves(plan: IndexPlan) -> Iterator[Any]:
    if isinstance(plan, AllOf | AnyOf):
        for part in plan.parts:
            yield from _leaves(part)
    elif not list(reasons(plan)):
        yield plan


def _reasons(routes: Routes) -> list[str]:
    return list(dict.fromkeys(text for plan in routes.plans for text in reasons(plan)))


def _exact(part: Conjunct, plan: IndexPlan) -> bool:
    """Return whether indexes return exactly the matching rows of a condition, in all fragments."""
    maybe = any(i.kind and i.kind.name in _MAYBE for leaf in _leaves(plan) for i in _indexes(leaf))
    return part.exact and not maybe and not list(reasons(plan))


def _indexes(leaf: Any) -> Sequence[ColumnIndex]:
    return leaf.indexes if isinstance(leaf, IndexLeaf) else ()


def _at_most(expected: int | None) -> str:
    return "row count known only after the lookup" if expected is None else f"at most {_many(expected, 'row')}"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _listed(conditions: Sequence[Filter]) -> str:
    return ", ".join(f"{condition} ({evaluator(condition)})" for condition in conditions)


def _names(columns: list[str], hidden: tuple[str, ...]) -> str:
    return ", ".join([*columns, *hidden]) or "nothing"


def evaluator(condition: Filter) -> str:
    """Return the name of a filter's evaluator."""
    if isinstance(condition, AllFilters):
        return ", ".join(dict.fromkeys(evaluator(part) for part in condition.parts))
    if isinstance(condition, TreeFilter):
        by_duckdb = any(isinstance(leaf, Opaque) for leaf in condition.predicate.leaves())
        only = by_duckdb and isinstance(condition.predicate, Opaque)
        return "by DuckDB" if only else "on Arrow columns and by DuckDB" if by_duckdb else "on Arrow columns"
    return str(getattr(condition, "evaluator", "by DuckDB" if isinstance(condition, SqlFilter) else "by pyarrow"))


def _staged(plan: ScanPlan) -> tuple[ScanPlan, list[_Stage]]:
    """Return a plan whose filters count their input rows and the rows that pass, and these filters."""
    if plan.filter is None:
        return plan, []
    parts = conjuncts_of(plan.filter) if plan.choices is None else plan.choices.parts
    stages = [_Stage(part.filter, part.implied, part.exact) for part in parts]
    choices = plan.choices
    if choices is not None:
        counted = [replace(part, filter=stage) for part, stage in zip(parts, stages, strict=True)]
        choices = replace(choices, parts=counted)
    return replace(plan, filter=all_filters(*stages), choices=choices), stages


@dataclass(eq=False)
class _Stage:
    """A filter that counts its input rows and the rows that pass."""

    inner: Filter
    implied: Predicate | None
    implied_exactly: bool
    seen: int = 0
    kept: int = 0
    lock: Lock = field(default_factory=Lock)

    def paths(self) -> tuple[Path, ...]:
        return self.inner.paths()

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        answer = self.inner.mask(columns, num_rows)
        with self.lock:
            self.seen += num_rows
            self.kept += answer.true_count
        return answer

    def __str__(self) -> str:
        return str(self.inner)
