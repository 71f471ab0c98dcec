"""Filters that DuckDB 1.x pushes down to a pyarrow dataset, in DuckDB's own meaning.

DuckDB 1.x pushes its filters down as pyarrow expressions but means its own semantics: NaN equals itself and is greater
than all other floats, where pyarrow's does not. So such an expression is read from its pickled form (the tree in
prefix notation, see `scan.arrow.filter`) into a predicate tree and never evaluated by pyarrow.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arguments import checked_call
from lance_duck.errors import UnsupportedError
from lance_duck.scan.arrow.tree import ARROW_OPS, UNREADABLE, Node, expression_tree
from lance_duck.scan.predicate.leaves import comparison
from lance_duck.scan.predicate.tree import (
    Compare,
    ConstantCondition,
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
    """A method that is another one when it is looked up on the class.

    `dataset.scanner(...)` is what people call. DuckDB 1.x calls `type(dataset).scanner(dataset, ...)`, and so reaches
    the second function.
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


def predicate_from_pushed(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Return the predicate that DuckDB 1.x meant by an expression.

    Args:
        expression: The filter that DuckDB pushed down.
        schema: Columns of the table.

    Raises:
        UnsupportedError: The expression is not one that DuckDB pushes, or pyarrow pickles it in a form unknown here.
    """
    try:
        return _Translator(schema).predicate(expression_tree(expression))
    except UNREADABLE as error:
        raise UnsupportedError(
            "filter that DuckDB pushed down is not understood",
            where=str(expression),
            remedy="use duckdb 2.0 or newer, or report this filter",
        ) from error


class _Translator:
    """Translates the nodes of one expression.

    Args:
        schema: Columns of the table.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema

    def predicate(self, node: Node) -> Predicate:
        function, arguments = node
        if function in ARROW_OPS:
            return self._comparison(ARROW_OPS[function], _field(arguments[0]), _literal(arguments[1]))
        if function in ("and_kleene", "or_kleene"):
            combine = all_of if function == "and_kleene" else any_of
            return combine(*(self.predicate(argument) for argument in arguments))
        if function == "invert":
            return Not(self.predicate(arguments[0]))
        if function == "literal":
            return ConstantCondition(arguments.as_py())
        return self._test(function, arguments)

    def _comparison(self, op: Op, path: Path, constant: pa.Scalar) -> Predicate:
        type_ = self._type(path)
        try:
            return Compare(op, path, constant.cast(type_))
        except pa.ArrowInvalid:
            return comparison(op, path, constant, type_)

    def _test(self, function: str, arguments: list[Node]) -> Predicate:
        path = _field(arguments[0])
        options = arguments[1][1] if len(arguments) > 1 else {}
        if function == "is_valid":
            return Not(IsNull(path))
        if function == "is_null" and not options["nan_is_null"].as_py():
            return IsNull(path)
        type_ = self._type(path)
        if function == "is_nan":
            return Compare("=", path, pa.scalar(float("nan"), type_))
        if function == "is_in":
            return In(path, options["value_set"].values.cast(type_))
        raise ValueError(function)

    def _type(self, path: Path) -> pa.DataType:
        """Return the type that the values of a column are compared in."""
        return compared_type(path_type(self.schema, path))


def _field(node: Node) -> Path:
    if node[0] != "field":
        raise ValueError(node[0])
    return cast("Path", node[1])


def _literal(node: Node) -> pa.Scalar:
    if node[0] != "literal":
        raise ValueError(node[0])
    return node[1]
