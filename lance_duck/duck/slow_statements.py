"""The log of slow statements. Records contain neither values nor secrets.

The logger `lance_duck.slow` gets a WARNING for each statement that takes as long as the setting
`lance_slow_statement_ms`. The record's attributes `seconds`, `statement` and `plan` repeat the parts of its message.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.masked import masked
from lance_duck.redact import shown

_LOG: Final = logging.getLogger("lance_duck.slow")
_EXPLAINED: Final = frozenset({"select", "from", "with", "values", "insert", "update", "delete", "merge"})
"""First words of statements whose plan is logged."""
_DOCUMENT: Final = "Lance Scans"
_PLANS: Final = ("Lance Plan (Bind)", "Lance Plan")
_KEPT: Final = re.compile(
    r"\s*(?:fragments: \d+ (?:of \d+|through indexes, (?:\d+ pruned, )?\d+ scanned)"
    r"|(?:row count known only after the lookup|at most [\d,]+ rows?), [\d,]+ fragments? through the index"
    r"|not used: it would return most of the table|without an index: no index on \w+)"
)
"""Matches lines of a plan that never contain values of the statement."""
_CUT: Final = re.compile(r"(\s*(?:filter|evaluated by DuckDB, because it keeps too many rows|ScalarIndexQuery): )")
_BY: Final = re.compile(r"\w+ \(\w+, segments [0-9a-f, ]+(?: and \d+ more)?\)")


def report(sql: str, seconds: float, explain: Callable[[str], str] | None) -> None:
    """Log a slow statement. Never raises.

    Args:
        sql: The statement.
        seconds: Its duration.
        explain: Returns the JSON plan of an EXPLAIN. None if the statement failed.
    """
    with suppress(Exception):
        text = masked(sql)
        plan = None if explain is None else _plan(sql, explain)
        message = f"{seconds:.3f} s: {text}" + ("" if plan is None else f"\n{plan}")
        _LOG.warning("%s", message, extra={"seconds": seconds, "statement": text, "plan": plan})


def _plan(sql: str, explain: Callable[[str], str]) -> str | None:
    """Return the plan of a statement without values. Returns None if DuckDB does not explain the statement."""
    first = FirstWords.of(sql)
    if first.explain or first.word not in _EXPLAINED:
        return None
    with suppress(Exception):
        document = json.loads(explain(f"EXPLAIN (FORMAT JSON) {sql[first.start :]}"))
        nodes = document if isinstance(document, list) else [document]
        return "\n".join(line for node in nodes for line in (*_operators(node, 0), *_scans(node)))
    return None


def _operators(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    """Yield a line for each operator: its name, its table, and its estimated number of rows."""
    details = node.get("extra_info", {})
    table, rows = details.get("Table", ""), details.get("Estimated Cardinality")
    estimate = "" if rows is None else f" (about {rows} rows)"
    yield f"{'  ' * depth}{str(node.get('name', '')).strip()} {table}".rstrip() + estimate
    for child in node.get("children", []):
        yield from _operators(child, depth + 1)


def _scans(node: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines about Lance tables."""
    for scan in node.get("extra_info", {}).get(_DOCUMENT, []):
        first, *lines = next((scan[name] for name in _PLANS if name in scan), "").splitlines() or [""]
        yield shown(first) if first.startswith("LanceScan: ") else "LanceScan"
        for line in lines:
            cut = _CUT.match(line)
            if _KEPT.fullmatch(line):
                yield line
            elif cut is not None:
                by = _BY.fullmatch(line.rpartition(", by ")[2])
                yield f"{cut[1]}?" + ("" if by is None else f", by {by[0]}")
