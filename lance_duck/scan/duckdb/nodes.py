"""Translation of DuckDB 2.0 predicate nodes.

DuckDB's tree contains Binary (AND, OR, or a comparison of Col and Lit), Unary NOT, Postfix IS [NOT] NULL and In nodes.
`Lit.type` names the type of the constant. It is the column's type in DuckDB.
"""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import pyarrow as pa

from lance_duck.arrow.decimals import wide_decimal
from lance_duck.arrow.types import is_instant, is_naive, is_number, is_text
from lance_duck.errors import UnsupportedError
from lance_duck.scan.costs import COMPARED_VALUES
from lance_duck.scan.predicate.tree import Compare, In, IsNull, Not, Op, Path, Predicate, all_of, any_of
from lance_duck.scan.predicate.types import InexactError, compared_type, exact, path_type


def predicate_from_nodes(nodes: Sequence[Any], schema: pa.Schema) -> Predicate | None:
    """Combine accepted nodes into one predicate. Returns None for an empty sequence.

    Raises:
        UnsupportedError: `predicate_from_node` cannot translate a node.
    """
    predicates = [predicate_from_node(node, schema) for node in nodes]
    if None in predicates:
        raise UnsupportedError("the filter was not accepted before", found=[node.fragment() for node in nodes])
    return all_of(*cast("list[Predicate]", predicates)) if predicates else None


def predicate_from_node(node: Any, schema: pa.Schema) -> Predicate | None:
    """Translate a node of DuckDB's predicate tree. Returns None if the node does not have an equivalent.

    Args:
        node: Binary, Unary, Postfix, In, Col or Lit of `duckdb._sources.nodes`.
        schema: Columns of the table, before conversion to DuckDB's types.
    """
    try:
        return _translate(node, schema)
    except (_Untranslatable, RecursionError):
        return None


class _Untranslatable(Exception):  # noqa: N818  # only raised and caught within this module
    pass


def _translate(node: Any, schema: pa.Schema) -> Predicate:
    kind = type(node).__name__
    if kind == "Binary" and node.op in ("AND", "OR"):
        operands = [_translate(part, schema) for part in _flat(node)]
        return all_of(*operands) if node.op == "AND" else any_of(*operands)
    if kind == "Binary" and node.op in _OPS:
        path, type_ = _column(node.left, schema)
        return Compare(cast("Op", node.op), path, _scalar(node.right, type_))
    if kind == "Unary" and node.op == "NOT":
        return Not(_translate(node.operand, schema))
    if kind == "Postfix" and node.op in ("IS NULL", "IS NOT NULL"):
        null = IsNull(_column(node.operand, schema)[0])
        return null if node.op == "IS NULL" else Not(null)
    if kind == "In" and node.values:
        path, type_ = _column(node.operand, schema)
        return _membership(path, _values(node.values, type_))
    raise _Untranslatable


_OPS: Final = frozenset({"=", "!=", "<", "<=", ">", ">="})


def _membership(path: Path, values: pa.Array) -> Predicate:
    """Translate IN. A few integers become comparisons, which are faster than a lookup."""
    if pa.types.is_integer(values.type) and len(values) <= COMPARED_VALUES:
        return any_of(*(Compare("=", path, value) for value in values))
    return In(path, values)


def _flat(node: Any) -> list[Any]:
    """Return the operands of a chain of the same operator, in order. A chain may have thousands of operands."""
    operands, pending = [], [node]
    while pending:
        part = pending.pop()
        if type(part).__name__ == "Binary" and part.op == node.op:
            pending += [part.right, part.left]
        else:
            operands.append(part)
    return operands


def _column(node: Any, schema: pa.Schema) -> tuple[Path, pa.DataType]:
    """Return the path of a column or struct field, and the type in which its values are compared."""
    path = getattr(node, "parts", None)
    if not path or schema.get_field_index(path[0]) < 0:
        raise _Untranslatable
    try:
        type_ = compared_type(path_type(schema, path))
    except KeyError:
        raise _Untranslatable from None
    if wide_decimal(type_) is not None:
        raise _Untranslatable  # DuckDB then reads the column, and the scan rejects it with a clear error
    return tuple(path), type_


def _values(nodes: Sequence[Any], type_: pa.DataType) -> pa.Array:
    literal_type = _literal_type(nodes[0])
    if any(node.type != nodes[0].type or not _is_value(node.value, literal_type) for node in nodes):
        raise _Untranslatable
    return _fit(pa.array([node.value for node in nodes], literal_type), type_)


def _scalar(node: Any, type_: pa.DataType) -> pa.Scalar:
    literal_type = _literal_type(node)
    if not _is_value(node.value, literal_type):
        raise _Untranslatable
    return _fit(pa.scalar(node.value, literal_type), type_)


def _fit(value: Any, type_: pa.DataType) -> Any:
    """Convert a constant to the column's storage type. Raises _Untranslatable if the conversion is not exact."""
    if is_number(type_) and value.type != type_:
        raise _Untranslatable  # DuckDB would cast the column to the type of the constant
    try:
        return exact(value, type_)
    except InexactError:
        raise _Untranslatable from None


_LITERALS: Final[dict[str, pa.DataType]] = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(),
    "USMALLINT": pa.uint16(),
    "UINTEGER": pa.uint32(),
    "UBIGINT": pa.uint64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BLOB": pa.binary(),
    "DATE": pa.date32(),
    "TIME": pa.time64("us"),
    "TIMESTAMP_S": pa.timestamp("s"),
    "TIMESTAMP_MS": pa.timestamp("ms"),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}
_DECIMAL: Final = re.compile(r"DECIMAL\((\d+),(\d+)\)")


def _literal_type(node: Any) -> pa.DataType:
    name = getattr(node, "type", "")
    if name in _LITERALS:
        return _LITERALS[name]
    shape = _DECIMAL.fullmatch(name)
    if shape is None:
        raise _Untranslatable
    return pa.decimal128(int(shape[1]), int(shape[2]))


def _is_value(value: object, type_: pa.DataType) -> bool:
    """Return whether a constant from DuckDB is a plain Python value of the type. Infinite dates are not."""
    if pa.types.is_boolean(type_):
        return isinstance(value, bool)
    if pa.types.is_integer(type_) or is_instant(type_):
        return isinstance(value, int) and not isinstance(value, bool)
    if pa.types.is_date(type_):
        return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    if is_naive(type_):
        return isinstance(value, datetime.datetime) and value.tzinfo is None
    if pa.types.is_time(type_):
        return isinstance(value, datetime.time) and value.tzinfo is None
    if pa.types.is_decimal(type_):
        return isinstance(value, decimal.Decimal) and value.is_finite()
    plain: type = float if pa.types.is_floating(type_) else str if is_text(type_) else bytes
    return isinstance(value, plain)
