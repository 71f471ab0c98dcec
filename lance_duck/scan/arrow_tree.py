"""A pyarrow expression as nodes, read from its pickled form: the tree in prefix notation, see `scan.arrow_filter`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.scan.arrow_filter import metadata_pairs
from lance_duck.scan.predicate import Op

Node: TypeAlias = tuple[str, Any]
"""(function, list of arguments), ("field", path), ("literal", scalar) or ("options", dict)."""

UNREADABLE: Final = (pa.ArrowException, ValueError, TypeError, LookupError, AttributeError, StopIteration)
"""What reading raises where pyarrow pickles expressions in another form."""

ARROW_OPS: Final[dict[str, Op]] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
"""Functions of pyarrow that compare, and what they are in a predicate."""

_END: Final[Node] = ("end", ())


def expression_tree(expression: pc.Expression) -> Node:
    """The root of an expression; raises one of `UNREADABLE`."""
    payload = expression.__reduce__()[1][0]
    file = pa.ipc.open_file(pa.py_buffer(payload))
    return _Reading(iter(metadata_pairs(file.schema)), file.get_batch(0)).node()


@dataclass
class _Reading:
    """Nodes on their way.

    Attributes:
        pairs: What is left, in prefix notation.
        constants: One row; literals and options name a column of it.
    """

    pairs: Iterator[tuple[str, str]]
    constants: pa.RecordBatch

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
        if kind == "literal":
            return "literal", self.constants.column(int(value))[0]
        if kind == "options":
            return "options", dict(self.constants.column(int(value))[0].items())
        if kind == "end":
            return _END
        raise ValueError(kind)
