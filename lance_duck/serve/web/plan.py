"""The plan of a query as a tree, from DuckDB's JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance_duck.serve.gate.refusals import RequestError

PREFIX: Final = "EXPLAIN (FORMAT JSON) "
_SCANS: Final = "Lance Scans"
_ESTIMATE: Final = "Estimated Cardinality"
_LONGEST: Final = 400


@dataclass(frozen=True)
class PlanNode:
    """An operator of a plan. Templates show a list of them as nested lists, without recursion.

    Attributes:
        name: Name of the operator.
        estimate: Estimated number of rows, or "".
        facts: Details, by name.
        opens: Whether it is the first child of the node before it.
        closes: Number of lists that end after it.
    """

    name: str
    estimate: str
    facts: Sequence[tuple[str, str]]
    opens: bool
    closes: int


@dataclass(frozen=True)
class PlanTree:
    """A plan.

    Attributes:
        scans: How each Lance table is read.
        nodes: The operators. The outermost one comes first.
    """

    scans: Sequence[str]
    nodes: Sequence[PlanNode]


def plan_tree(text: str) -> PlanTree:
    """Parse the JSON of `EXPLAIN (FORMAT JSON)`.

    Raises:
        RequestError: The text is not such JSON.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError("the plan cannot be shown as a tree", remedy="run EXPLAIN with the statement") from None
    roots = content if isinstance(content, list) else [content]
    scans = [_text(plan) for root in roots for scan in _facts(root).get(_SCANS, []) for plan in _plans(scan)]
    found = list(_walk(roots))
    depths = [depth for depth, _ in found] + [0]
    nodes = [
        _node(each, depth > (depths[at - 1] if at else -1), max(0, depth - depths[at + 1]))
        for at, (depth, each) in enumerate(found)
    ]
    return PlanTree(scans, nodes)


def _walk(roots: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    waiting = [(0, root) for root in reversed(roots)]
    while waiting:
        depth, node = waiting.pop()
        yield depth, node
        waiting.extend((depth + 1, child) for child in reversed(node.get("children", [])))


def _node(node: Any, opens: bool, closes: int) -> PlanNode:
    facts = {name: _text(value) for name, value in _facts(node).items() if name != _SCANS}
    estimate = facts.pop(_ESTIMATE, "")
    shown = [(name, text[:_LONGEST]) for name, text in facts.items() if text.strip()]
    if estimate.isdecimal():
        estimate = f"{int(estimate):,}"
    return PlanNode(str(node.get("name", "")).strip().replace("_", " "), estimate, shown, opens, closes)


def _plans(scan: Any) -> Iterator[Any]:
    return (value for name, value in scan.items() if name.startswith("Lance Plan"))


def _facts(node: Any) -> dict[str, Any]:
    found = node.get("extra_info", {})
    return found if isinstance(found, dict) else {"": found}


def _text(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
