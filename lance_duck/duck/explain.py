"""Adds a row to the result of EXPLAIN that describes how each Lance table is read.

With FORMAT JSON, the description is part of the document: `Lance Scans` in the outermost operator's `extra_info`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import duckdb

from lance_duck.duck.places import shown_place
from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.identifiers import literal
from lance_duck.duck.tables.scan_observer import ScanObserver, watching
from lance_duck.duck.tables.search import SearchRows
from lance_duck.duck.tables.table import ROWS, DuckTable
from lance_duck.errors import LanceDuckError
from lance_duck.redact import shown
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.scan.sql.parser import tree_from_sql

KEY: Final = "lance_plan"
_SCANS: Final = ("ARROW_SCAN", "PYTHON_ARROW_SCAN")
_OPTIONAL: Final = "optional: "
_JSON: Final = re.compile(r"\bformat\s+'?json\b", re.IGNORECASE)
_DOCUMENT: Final = "Lance Scans"
_BOUND: Final = "Lance Plan (Bind)"
_READ: Final = "Lance Plan"
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class ReadPlan:
    """A description of how one Lance table is read.

    Attributes:
        text: The description in words.
        facts: Details, by the keys that DuckDB's `lance` extension uses. Other details are omitted.
    """

    text: str
    facts: dict[str, str] = field(default_factory=dict)

    def shown(self) -> ReadPlan:
        """Return the plan with its locations as `shown_place` returns them."""
        return ReadPlan(shown_place(self.text), {name: shown_place(fact) for name, fact in self.facts.items()})


def explained(sql: str, run: Callable[[str], Rows], plan: str | None = None) -> Rows | None:
    """Return the rows of an EXPLAIN, plus a row about Lance tables. Returns None for other statements.

    Args:
        sql: The statement.
        run: Runs a statement and returns its rows.
        plan: Description of tables that were read before the statement.
    """
    first = FirstWords.of(sql)
    if not first.explain:
        return None
    analyze = "analyze" in first.explain.lower()
    with watching() as watch:
        rows = run(sql)
        nodes = [] if analyze or SPEAKS_SOURCE or not watch.bound else _nodes(sql[first.start :], run)
    if any(len(row) != 2 for row in rows):
        return None
    plans = list(_actual(watch) if analyze else _planned(watch) if SPEAKS_SOURCE else _read_from(watch, nodes))
    plans += [] if plan is None else [ReadPlan(plan)]
    plans = [each.shown() for each in plans]
    if not plans:
        return rows
    if _JSON.search(first.explain) and len(rows) == 1:
        return [(rows[0][0], _with_plans(rows[0][1], plans, _READ if analyze else _BOUND))]
    return [*rows, (KEY, "\n".join(plan.text for plan in plans))]


def rows_as_statement(rows: Rows) -> str:
    """Return a statement that returns the rows of an EXPLAIN."""
    listed = ", ".join(f"({', '.join(literal(str(value)) for value in row)})" for row in rows)
    return f"SELECT * FROM (VALUES {listed}) AS plan(explain_key, explain_value)"  # noqa: S608


def _with_plans(document: str, plans: Sequence[ReadPlan], name: str) -> str:
    """Return DuckDB's JSON plan with the Lance plans added.

    Args:
        document: DuckDB's plan.
        plans: The Lance plans.
        name: Key of the Lance plans.
    """
    content = json.loads(document)
    outermost = content[0] if isinstance(content, list) else content
    scans = [{**plan.facts, name: plan.text} for plan in plans]
    outermost["extra_info"] = {**outermost.get("extra_info", {}), _DOCUMENT: scans}
    return json.dumps(content, indent=4, ensure_ascii=False)


def _actual(watch: ScanObserver) -> Iterator[ReadPlan]:
    for scan in watch.scans:
        text = scan.plan
        if text is None:
            columns = [name for name in scan.columns if name != ROWS]
            text = scan.dataset.scanner(columns=columns, filter=scan.predicate).explain_plan()
        text = f"{text}  returned: {scan.rows} rows, {scan.batches} batches, in {scan.seconds * 1000:.1f} ms\n"
        yield ReadPlan(text, {"Lance Path": shown(scan.dataset.uri), "Lance Rows Out": str(scan.rows)})


def _planned(watch: ScanObserver) -> Iterator[ReadPlan]:
    """Yield plans from the tables and filters that DuckDB 2.0 passed while it planned the statement."""
    for table in {id(table): table for table in watch.bound}.values():
        mine = {str(p): (p, taken) for of, p, taken in watch.offered if of is table}
        taken = [predicate for predicate, taken in mine.values() if taken]
        left = [text for text, (_, taken) in mine.items() if not taken]
        alone = sum(bound is table for bound in watch.bound) > 1
        for parts in [[part] for part in taken] if alone and taken else [taken]:
            yield _read_plan(table, parts, left)


def _read_plan(table: DuckTable | SearchRows, parts: list[Predicate], left: list[str]) -> ReadPlan:
    if isinstance(table, SearchRows):
        return _search_plan(table)
    facts = {"Lance Path": shown(table.dataset.uri), "Lance Pushed Filter Parts": str(len(parts))}
    return ReadPlan(_text(table, parts, left), facts)


def _search_plan(rows: SearchRows) -> ReadPlan:
    return ReadPlan(rows.explained(), {**rows.facts})


def _text(table: DuckTable, parts: list[Predicate], left: list[str]) -> str:
    lines = (f"  evaluated by DuckDB, because it keeps too many rows: {text}\n" for text in left)
    return table.explained(parts) + "".join(lines)


def _read_from(watch: ScanObserver, nodes: list[dict[str, Any]]) -> Iterator[ReadPlan]:
    """Yield plans from DuckDB 1.x's plan, for scans that can be matched to a single table."""
    searches = {table.explained(): table for table in watch.bound if isinstance(table, SearchRows)}
    yield from (_search_plan(searches[text]) for text in sorted(searches))
    tables = list({id(table): table for table in watch.bound if not isinstance(table, SearchRows)}.values())
    restricted = {id(table): table for table in tables if isinstance(table, DuckTable) and table.is_restricted}
    for node in nodes:
        names = _list(node.get("Projections"))
        filters = [text.removeprefix(_OPTIONAL) for text in _list(node.get("Filters"))]
        found = [(table, parts) for table in tables if (parts := _parts(table, names, filters)) is not None]
        if len({(table.dataset.uri, str(table.condition)) for table, _ in found}) == 1:
            restricted.pop(id(found[-1][0]), None)
            yield _read_plan(*found[-1], [])
    yield from (_read_plan(table, [], []) for table in restricted.values())


def _parts(table: DuckTable, names: list[str], filters: list[str]) -> list[Predicate] | None:
    """Return the conditions of a scan, or None if it reads a different table."""
    schema = table.filtered_schema(table.dataset)
    if not set(names) <= {*schema.names, ROWS}:
        return None
    try:
        predicates = [tree_from_sql(text, schema) for text in filters]
    except LanceDuckError:
        return None
    return [predicate for predicate in predicates if predicate is not None]


def _nodes(sql: str, run: Callable[[str], Rows]) -> list[dict[str, Any]]:
    """Return the scans in DuckDB's plan."""
    try:
        pending = list(json.loads(run(f"EXPLAIN (FORMAT JSON) {sql}")[0][1]))
    except (duckdb.Error, ValueError, LookupError):
        return []
    nodes = []
    while pending:
        node = pending.pop(0)
        pending = [*node.get("children", []), *pending]
        if node.get("name", "").strip() in _SCANS:
            nodes.append(node.get("extra_info", {}))
    return nodes


def _list(value: Any) -> list[str]:
    return [text for text in ([value] if isinstance(value, str) else value or []) if text]
