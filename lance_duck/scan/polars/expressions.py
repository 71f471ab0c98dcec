"""Translates polars expressions to this package's predicates.

The tree of an expression is read from its JSON form. Each node is an object with one key, which is the kind of node.

{"Column": "a"}
{"Literal": …}                                              evaluated by polars
{"BinaryExpr": {"left": node, "op": "Eq", "right": node}}     the operator "Modulus" gives a remainder
{"Function": {"input": [node, …], "function": {"Boolean": "IsNull"}}}
{"Alias": [node, name]}

polars casts both sides of a comparison to one type before it passes the filter to a source. Because the JSON form may
change, polars evaluates conditions with unknown nodes.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl
import pyarrow as pa

from lance_duck.arrow.types import is_text, storage_type
from lance_duck.errors import LanceDuckError
from lance_duck.scan.identifiers import quoted
from lance_duck.scan.predicate.leaves import comparison
from lance_duck.scan.predicate.texts import CONTAINS, implied_by_text
from lance_duck.scan.predicate.tree import (
    MIRRORED,
    Compare,
    In,
    IsNull,
    Not,
    Op,
    Opaque,
    Path,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from lance_duck.scan.predicate.types import exact, path_type, value_type

_OPS: Final[dict[str, Op]] = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_BOUNDS: Final[dict[str, tuple[Op, Op]]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}
_TEXTS: Final = {"Contains": "contains", "EndsWith": "suffix"}
_HALF: Final = 1 << 62  # if the divisor is smaller, the sum of two remainders fits in 64 bits
_PLAIN_PATTERN: Final = re.compile(r"[^\\.+*?()|\[\]{}^$#&\-~\s]*")
_UNREADABLE: Final = (
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError),
    *(pa.ArrowException, LanceDuckError, pl.exceptions.PolarsError),
)


@dataclass(frozen=True)
class PushedDown:
    """The part of a polars expression that a scan evaluates.

    Attributes:
        predicate: Predicate that is true for every row that the expression selects, or None if no part was translated.
        is_whole: Whether the predicate is equivalent to the expression.
    """

    predicate: Predicate | None
    is_whole: bool


def pushed_down(expression: pl.Expr, schema: pa.Schema) -> PushedDown:
    """Return the part of a condition that a scan can evaluate.

    Args:
        expression: The condition that polars passes to a source.
        schema: Columns on which a scan evaluates conditions. polars evaluates conditions on other columns.
    """
    try:
        parts = _conjuncts(json.loads(expression.meta.serialize(format="json")))
    except _UNREADABLE:
        return PushedDown(None, is_whole=False)
    reader = _NodeReader(schema)
    predicates = [predicate for part in parts if (predicate := reader.translated(part)) is not None]
    return PushedDown(all_of(*predicates) if predicates else None, is_whole=len(predicates) == len(parts))


class _NodeReader:
    """Parses the nodes of one expression. An unknown node raises one of `_UNREADABLE`."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def translated(self, node: Any) -> Predicate | None:
        """Translate a node to a predicate. Returns None if it cannot be translated."""
        try:
            return self._predicate(node)
        except _UNREADABLE:
            return None

    def _predicate(self, node: Any) -> Predicate:
        kind, value = _only(node)
        if kind == "Alias":
            return self._predicate(value[0])
        if kind == "BinaryExpr":
            return self._binary(value["left"], value["op"], value["right"])
        if kind == "Function":
            return self._function(value["input"], *_only(value["function"]))
        path, type_ = self._column(node)
        if not pa.types.is_boolean(type_):
            raise TypeError(type_)
        return Compare("=", path, pa.scalar(True))

    def _binary(self, left: Any, op: str, right: Any) -> Predicate:
        if op in ("And", "LogicalAnd"):
            return all_of(self._predicate(left), self._predicate(right))
        if op in ("Or", "LogicalOr"):
            return any_of(self._predicate(left), self._predicate(right))
        compared: Op = "=" if op == "EqValidity" else _OPS[op]
        if _only(left)[0] == "Literal":
            left, compared, right = right, MIRRORED[compared], left
        if op != "EqValidity" and _only(left)[0] == "BinaryExpr":
            return self._remainder(left["BinaryExpr"], compared, right)
        path, constant = self._column(left)[0], _constant(right)
        if op == "EqValidity":
            return all_of(Not(IsNull(path)), self._compared(compared, path, constant))
        return self._compared(compared, path, constant)

    def _remainder(self, division: Any, op: Op, right: Any) -> Predicate:
        """Compare a remainder. It has the sign of the divisor in polars, and of the dividend in DuckDB."""
        path, type_ = self._column(division["left"])
        divisor, constant = _constant(division["right"]).as_py(), _constant(right).as_py()
        are_integers = type(divisor) is type(constant) is int and pa.types.is_integer(type_)
        if division["op"] != "Modulus" or not are_integers or pa.types.is_uint64(type_) or not 0 < divisor < _HALF:
            raise TypeError(type_)
        sql = f"((({'.'.join(map(quoted, path))})::BIGINT % ? + ?) % ? {op} ?)"
        return Opaque(sql, (path,), [divisor, divisor, divisor, constant])

    def _function(self, inputs: Sequence[Any], family: str, function: Any) -> Predicate:
        name, options = _only(function) if isinstance(function, dict) else (function, {})
        if family == "Boolean":
            return self._boolean(name, options, inputs)
        if family == "StringExpr":
            return self._text(name, options, inputs)
        raise KeyError(family)

    def _boolean(self, name: str, options: Any, inputs: Sequence[Any]) -> Predicate:
        if name == "Not":
            return Not(self._predicate(inputs[0]))
        path, type_ = self._column(inputs[0])
        if name in ("IsNull", "IsNotNull"):
            return IsNull(path) if name == "IsNull" else Not(IsNull(path))
        if name in ("IsNan", "IsNotNan") and pa.types.is_floating(type_):
            is_nan = Compare("=", path, pa.scalar(float("nan"), type_))
            return is_nan if name == "IsNan" else Not(is_nan)
        if name == "IsBetween":
            above, below = _BOUNDS[options["closed"]]
            lower, upper = (_constant(each) for each in inputs[1:])
            return all_of(self._compared(above, path, lower), self._compared(below, path, upper))
        if name == "IsIn" and not options["nulls_equal"]:
            return self._membership(path, type_, _constant(inputs[1]))
        raise KeyError(name)

    def _membership(self, path: Path, type_: pa.DataType, constants: pa.Scalar) -> Predicate:
        """Translate a membership test. In polars, no value equals a null constant."""
        values = constants.values.drop_null()
        if not len(values):
            raise ValueError("nothing to be equal to")
        return In(path, exact(values, _comparable(type_)))

    def _text(self, name: str, options: Any, inputs: Sequence[Any]) -> Predicate:
        path, type_ = self._column(inputs[0])
        part = _constant(inputs[1])
        if not (is_text(type_) and part.is_valid):
            raise TypeError(type_)
        text = part.as_py()
        if name == "StartsWith":
            return StartsWith(path, pa.scalar(text, type_))
        if name == "Contains" and not options["literal"] and not _PLAIN_PATTERN.fullmatch(text):
            raise ValueError(text)  # regular expression syntax differs between polars and DuckDB
        sql = f"{_TEXTS[name]}({'.'.join(map(quoted, path))}, ?)"
        return Opaque(sql, (path,), [text], implied_by_text(path, CONTAINS, text))

    def _compared(self, op: Op, path: Path, constant: pa.Scalar) -> Predicate:
        type_ = path_type(self._schema, path)
        if pa.types.is_dictionary(storage_type(type_)) and op not in ("=", "!="):
            raise TypeError(type_)  # polars orders categories differently
        if not constant.is_valid:
            raise ValueError("null")
        return comparison(op, path, constant, _comparable(value_type(type_)))

    def _column(self, node: Any) -> tuple[Path, pa.DataType]:
        """Return the path of a column or struct field, and the type of its values."""
        path = _path(node)
        return path, value_type(path_type(self._schema, path))


def _path(node: Any) -> Path:
    kind, value = _only(node)
    if kind == "Column":
        return (value,)
    family, function = _only(value["function"])
    name = function["FieldByName"]
    if kind != "Function" or family != "StructExpr" or not isinstance(name, str):
        raise KeyError(kind)
    return (*_path(value["input"][0]), name)


def _comparable(type_: pa.DataType) -> pa.DataType:
    """Return the type of a column if polars orders its values like this package. Raises TypeError otherwise."""
    is_plain = pa.types.is_boolean(type_) or pa.types.is_integer(type_) or pa.types.is_decimal128(type_)
    is_float = pa.types.is_float32(type_) or pa.types.is_float64(type_)
    is_time = pa.types.is_date32(type_) or pa.types.is_timestamp(type_)
    is_bytes = pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    if not (is_plain or is_float or is_time or is_bytes or is_text(type_)):
        raise TypeError(type_)
    return type_


def _constant(node: Any) -> pa.Scalar:
    """Return the value of a literal. polars evaluates it."""
    while _only(node)[0] == "Alias":
        node = node["Alias"][0]
    if _only(node)[0] != "Literal":
        raise KeyError("Literal")
    expression = pl.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    values = pl.select(expression).to_series().to_arrow()
    if len(values) != 1:
        raise ValueError("several constants")
    return values[0]


def _conjuncts(node: Any) -> list[Any]:
    """Return the operands of AND, in order. Chains can have thousands of operands."""
    parts, pending = [], [node]
    while pending:
        part = pending.pop()
        kind, value = _only(part)
        if kind == "BinaryExpr" and value["op"] in ("And", "LogicalAnd"):
            pending += [value["right"], value["left"]]
        else:
            parts.append(part)
    return parts


def _only(node: Any) -> tuple[str, Any]:
    """Return the kind and the content of a node."""
    ((kind, value),) = node.items()
    return kind, value
