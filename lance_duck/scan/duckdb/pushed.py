"""Filters that DuckDB 1.x pushes down to a pyarrow dataset, with DuckDB semantics.

DuckDB 1.x pushes filters down as pyarrow expressions. In DuckDB, however, NaN equals itself and is greater than all
other floats. This module therefore converts the pickled expression (a tree in prefix notation, see `scan.arrow.filter`)
to a predicate tree. pyarrow never evaluates the expression.

DuckDB 1.x converts `x <= 'NaN'` to the literal true, without its column, although NULL rows do not satisfy the
condition. Before, it calls `pyarrow.dataset.field` for the column of every comparison, in the order of the expression.
`note_fields` replaces that function with one that records these columns.

DuckDB 1.x names a struct field as the query spells it. It means the first field with that name in any case.
"""

from __future__ import annotations

import datetime
import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from types import MethodType
from typing import Any, Concatenate, Final, Generic, ParamSpec, TypeVar, cast, overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from lance_duck.arguments import checked_call
from lance_duck.arrow.types import storage_type
from lance_duck.errors import UnsupportedError
from lance_duck.scan.arrow.tree import ARROW_OPS, UNREADABLE, Node, expression_tree
from lance_duck.scan.identifiers import folded
from lance_duck.scan.predicate.leaves import comparison
from lance_duck.scan.predicate.tree import (
    Compare,
    In,
    IsNull,
    Not,
    Op,
    Path,
    Predicate,
    all_of,
    any_of,
)
from lance_duck.scan.predicate.types import compared_type, path_type

_S = TypeVar("_S")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class ByCaller(Generic[_S, _P, _R]):
    """A method that resolves to a different function if it is looked up on the class.

    Users call `dataset.scanner(...)`, which resolves to `on_instance`. DuckDB 1.x calls
    `type(dataset).scanner(dataset, ...)`, which resolves to `on_class`.
    """

    def __init__(self, on_instance: Callable[Concatenate[_S, _P], _R], on_class: Callable[..., Any]) -> None:
        self._on_instance = checked_call(on_instance)
        self._on_class = on_class
        self.__doc__ = on_instance.__doc__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Callable[..., Any]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Callable[_P, _R]: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> Callable[..., Any]:
        if instance is None:
            return self._on_class
        return cast("Callable[..., Any]", MethodType(self._on_instance, instance))


class _AskedFields(threading.local):
    """Columns that this thread requested from `pyarrow.dataset.field` since the last filter, newest last."""

    def __init__(self) -> None:
        self.paths: deque[Path] = deque(maxlen=_MOST_FIELDS)

    def taken(self) -> list[Path]:
        """Return the recorded columns, and clear the record."""
        paths = list(self.paths)
        self.paths.clear()
        return paths


_MOST_FIELDS: Final = 1 << 14
_ASKED: Final = _AskedFields()


def note_fields() -> None:
    """Make `pyarrow.dataset.field` record the columns of the next filter. DuckDB 1.x calls it for each column."""
    field = pads.field

    @wraps(field)
    def noting(*name_or_index: Any) -> pc.Expression:
        if len(name_or_index) == 1 and isinstance(name_or_index[0], tuple):
            _ASKED.paths.append(name_or_index[0])
        return field(*name_or_index)

    pads.field = noting


def predicate_from_pushed(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Convert an expression that DuckDB 1.x pushed down to a predicate with DuckDB semantics.

    Args:
        expression: The filter that DuckDB pushed down.
        schema: Columns of the table.

    Raises:
        UnsupportedError: DuckDB does not push down this form of expression, or its pickled form is unknown.
    """
    asked = _ASKED.taken()
    try:
        root = expression_tree(expression)
        return _Translator(schema, _fields_of_literals(root, asked)).predicate(root)
    except UNREADABLE as error:
        raise UnsupportedError(
            "filter that DuckDB pushed down is not understood",
            where=str(expression),
            remedy="use duckdb 2.0 or newer, or report this filter",
        ) from error


def _fields_of_literals(root: Node, asked: Sequence[Path]) -> Iterator[Path]:
    """Yield the column of each condition that a filter contains as a literal, in order.

    Raises ValueError if the columns of the filter differ from the recorded columns.
    """
    leaves = list(_leaves(root))
    if all(kind == "field" for kind, _ in leaves):
        return
    fields = asked[len(asked) - len(leaves) :] if len(asked) >= len(leaves) else []
    if len(fields) < len(leaves) or any(
        kind == "field" and path != field for (kind, path), field in zip(leaves, fields, strict=True)
    ):
        raise ValueError("the column of a literal is unknown")
    yield from (field for (kind, _), field in zip(leaves, fields, strict=True) if kind == "literal")


def _leaves(node: Node) -> Iterator[Node]:
    """Yield the column of each condition in order. For a literal that replaces a condition, yield the literal."""
    function, arguments = node
    if function in ("and_kleene", "or_kleene", "invert"):
        for argument in arguments:
            yield from _leaves(argument)
    else:
        yield node if function == "literal" else arguments[0]


class _Translator:
    """Translates the nodes of one expression.

    Args:
        schema: Columns of the table.
        of_literals: The column of each literal that replaces a condition, in order.
    """

    def __init__(self, schema: pa.Schema, of_literals: Iterator[Path]) -> None:
        self.schema = schema
        self.of_literals = of_literals

    def predicate(self, node: Node) -> Predicate:
        function, arguments = node
        if function in ARROW_OPS:
            return self._comparison(ARROW_OPS[function], self._field(arguments[0]), _literal(arguments[1]))
        if function in ("and_kleene", "or_kleene"):
            combine = all_of if function == "and_kleene" else any_of
            return combine(*(self.predicate(argument) for argument in arguments))
        if function == "invert":
            return Not(self.predicate(arguments[0]))
        if function == "literal":
            return self._comparison_with_nan(arguments)
        return self._test(function, arguments)

    def _comparison_with_nan(self, answer: pa.Scalar) -> Predicate:
        """Return the comparison that DuckDB replaced by a literal: true for <= NaN, false for > NaN."""
        path = self._stored(next(self.of_literals))
        op: Op = "<=" if answer.as_py() else ">"
        return Compare(op, path, pa.scalar(math.nan, self._type(path)))

    def _comparison(self, op: Op, path: Path, constant: pa.Scalar) -> Predicate:
        type_ = self._type(path)
        try:
            return Compare(op, path, constant.cast(type_))
        except pa.ArrowInvalid:
            return comparison(op, path, constant, type_)

    def _test(self, function: str, arguments: list[Node]) -> Predicate:
        path = self._field(arguments[0])
        options = arguments[1][1] if len(arguments) > 1 else {}
        if function == "is_valid":
            return Not(IsNull(path))
        if function == "is_null" and not options["nan_is_null"].as_py():
            return IsNull(path)
        type_ = self._type(path)
        if function == "is_nan":
            return Compare("=", path, pa.scalar(float("nan"), type_))
        if function == "is_in":
            return In(path, _listed(options["value_set"].values, type_))
        raise ValueError(function)

    def _type(self, path: Path) -> pa.DataType:
        """Return the type in which the values of a column are compared."""
        return compared_type(path_type(self.schema, path))

    def _field(self, node: Node) -> Path:
        if node[0] != "field":
            raise ValueError(node[0])
        return self._stored(cast("Path", node[1]))

    def _stored(self, path: Path) -> Path:
        """Return a path with the stored names of its struct fields."""
        stored = path[:1]
        for name in path[1:]:
            type_ = storage_type(path_type(self.schema, stored))
            fields = type_ if pa.types.is_struct(type_) else ()
            stored += (next((field.name for field in fields if folded(field.name) == folded(name)), name),)
        return stored


def _listed(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return the values of an IN list in the type of the column.

    DuckDB 1.x converts infinite dates and timestamps to Python's first and last ones. Because the query may have
    contained either form, both are included.
    """
    if not (pa.types.is_date32(values.type) or pa.types.is_timestamp(values.type)):
        return values.cast(type_)
    python = datetime.date if pa.types.is_date32(values.type) else datetime.datetime
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))  # only finite values may have a time zone
    listed = values.to_pylist()
    most = 2 ** (type_.bit_width - 1) - 1
    infinite = [number for number, end in ((-most, python.min), (most, python.max)) if end in listed]
    if not infinite:
        return values.cast(type_)
    ends = pa.array(infinite, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    try:
        return pa.concat_arrays([values.cast(type_), ends])
    except pa.ArrowInvalid:  # the type cannot represent Python's minimum or maximum, so that no row contains it
        others = pa.array([value for value in listed if value not in (python.min, python.max)], values.type)
        return pa.concat_arrays([others.cast(type_), ends])


def _literal(node: Node) -> pa.Scalar:
    if node[0] != "literal":
        raise ValueError(node[0])
    return node[1]
