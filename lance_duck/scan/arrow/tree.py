"""Reads a pyarrow expression as nodes from its pickled form, a tree in prefix notation: see `scan.arrow.filter`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.scan.predicate.tree import Op
from lance_duck.wire.c_schema import metadata_pairs

Node: TypeAlias = tuple[str, Any]
"""(function, list of arguments), ("field", path), ("literal", scalar) or ("options", dict)."""

UNREADABLE: Final = (pa.ArrowException, ValueError, TypeError, LookupError, AttributeError, StopIteration)
"""Errors that reading an expression raises if its pickled form is unknown."""

ARROW_OPS: Final[dict[str, Op]] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""Predicate comparison operators by pyarrow function name."""

_END: Final[Node] = ("end", ())


def expression_tree(expression: pc.Expression) -> Node:
    """Return the root of an expression. Raises one of `UNREADABLE`."""
    root, constants = numbered_tree(expression)
    return _with_constants(root, constants)


def numbered_tree(expression: pc.Expression) -> tuple[Node, pa.RecordBatch]:
    """Return an expression's root, with literals and options replaced by numbers, and a batch of the replaced values.

    The batch has one row. A number is the index of a column in the batch.

    Raises one of `UNREADABLE`.
    """
    payload = expression.__reduce__()[1][0]
    file = pa.ipc.open_file(pa.py_buffer(payload))
    return _TreeReader(iter(metadata_pairs(file.schema))).node(), file.get_batch(0)


def _with_constants(node: Node, constants: pa.RecordBatch) -> Node:
    kind, value = node
    if kind == "field":
        return node
    if kind == "literal":
        return kind, constants.column(value)[0]
    if kind == "options":
        return kind, dict(constants.column(value)[0].items())
    return kind, [_with_constants(argument, constants) for argument in value]


@dataclass
class _TreeReader:
    """Reader of nodes in prefix notation.

    Attributes:
        pairs: The remaining (kind, value) pairs.
    """

    pairs: Iterator[tuple[str, str]]

    def node(self) -> Node:
        kind, value = next(self.pairs)
        if kind == "call":
            arguments = []
            while (argument := self.node()) != _END:
                arguments.append(argument)
            return value, arguments
        if kind == "field_ref":
            return "field", (value,)
        if kind == "nested_field_ref":
            return "field", tuple(next(self.pairs)[1] for _ in range(int(value)))
        if kind in ("literal", "options"):
            return kind, int(value)
        if kind == "end":
            return _END
        raise ValueError(kind)
