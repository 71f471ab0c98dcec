"""Recognizes SQL expressions for the distance or similarity between a vector column and a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.statement.deterministic_sql import Node

_FUNCTIONS: Final = {
    "distance": ("l2", False),
    "cosine_distance": ("cosine", False),
    "cosine_similarity": ("cosine", True),
    "inner_product": ("dot", True),
    "dot_product": ("dot", True),
    "negative_inner_product": ("dot", False),
    "negative_dot_product": ("dot", False),
}
_NODES: Final = {
    exp.Distance: ("l2", False),
    exp.NullSafeEQ: ("cosine", False),
    exp.EuclideanDistance: ("l2", False),
    exp.CosineDistance: ("cosine", False),
}
"""Syntax nodes of `<->`, `<=>`, list_distance and list_cosine_distance, with their measures."""
_CASTS: Final = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Measure:
    """A distance or similarity.

    Attributes:
        metric: Metric of searches: "l2", "cosine" or "dot".
        similarity: Whether larger values are nearer.
        column: The column's syntax node.
        vector: The other operand. It has the same value for all rows.
        takes_arrays: Whether both operands must be arrays of equal length. Lists are then rejected.
    """

    metric: str
    similarity: bool
    column: exp.Column
    vector: Node
    takes_arrays: bool


def measure_of(node: Node, outer: str = "") -> Measure | None:
    """Return the measure that an expression computes, or None for other expressions.

    Args:
        node: The expression.
        outer: Alias of a table whose column may be the vector, in lower case.
    """
    if isinstance(node, exp.Paren):
        return measure_of(node.this, outer)
    if isinstance(node, exp.Neg) or (isinstance(node, exp.Sub) and _is_one(node.left)):
        inner = measure_of(node.this if isinstance(node, exp.Neg) else node.right, outer)
        if inner is None or (inner.metric == "l2" and isinstance(node, exp.Sub)):
            return None  # `1 - l2` is not a recognized similarity
        return Measure(inner.metric, not inner.similarity, inner.column, inner.vector, inner.takes_arrays)
    call = _called(node)
    if call is None:
        return None
    (metric, similarity), sides, arrays = call
    for column, vector in (sides, sides[::-1]):
        if _is_column(column) and not _is_of(column, outer) and (_is_of(vector, outer) or _is_constant(vector)):
            return Measure(metric, similarity, column, vector, arrays)
    return None


def cast_length(node: Node) -> tuple[Node, int | None]:
    """Return the operand and the array length of a cast to a float array or list. Returns other nodes unchanged."""
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Cast) or not isinstance(node.to, exp.DataType):
        return node, None
    kind = node.to
    inner = kind.expressions[0] if len(kind.expressions) == 1 else None
    if kind.this not in (exp.DataType.Type.ARRAY, exp.DataType.Type.LIST) or not isinstance(inner, exp.DataType):
        return node, None
    if inner.this.name not in _CASTS or inner.expressions or isinstance(node, exp.TryCast):
        return node, None
    sizes = kind.args.get("values") or []
    length = int(sizes[0].this) if sizes and isinstance(sizes[0], exp.Literal) else None
    within = node.this
    while isinstance(within, exp.Paren):
        within = within.this
    return within, length


def _called(node: Node) -> tuple[tuple[str, bool], tuple[Node, Node], bool] | None:
    kind = _NODES.get(type(node))
    if kind is not None:
        return kind, (node.this, node.expression), False
    if not isinstance(node, exp.Anonymous) or len(node.expressions) != 2:
        return None
    prefix, _, name = str(node.this).lower().partition("_")
    if prefix not in ("array", "list") or name not in _FUNCTIONS:
        return None
    return _FUNCTIONS[name], (node.expressions[0], node.expressions[1]), prefix == "array"


def _is_column(node: Node) -> bool:
    return isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier) and not node.args.get("db")


def _is_of(node: Node, table: str) -> bool:
    return bool(table) and _is_column(node) and node.table.lower() == table


def _is_constant(node: Node) -> bool:
    """Return whether a node has the same value for all rows: a subquery, or an expression without columns."""
    inner = cast_length(node)[0]
    return isinstance(inner, exp.Subquery) or inner.find(exp.Column) is None


def _is_one(node: Node) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.this in ("1", "1.0")
