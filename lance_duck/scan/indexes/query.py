"""Converts conditions on one column to index queries, and combines queries.

A query finds the rows for which a condition is true, or the rows for which it is false. NOT is therefore applied to
single conditions. Nulls match only `Null` queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from lance_duck.arrow.types import is_list, is_text
from lance_duck.index.query import (
    Among,
    Between,
    ContainsAll,
    ContainsAny,
    ContainsTrigrams,
    Except,
    HasPrefix,
    Null,
    Query,
)
from lance_duck.scan.predicate import tree
from lance_duck.scan.predicate.evaluate import evaluate
from lance_duck.scan.predicate.lists import item_type
from lance_duck.scan.predicate.tree import Compare, Path, Predicate
from lance_duck.scan.predicate.types import exact, value_type

_VALUE: Path = ("value",)


def query_of(condition: Predicate, type_: pa.DataType, *, true: bool = True) -> Query | None:
    """Convert a condition to an index query. Returns None if no row satisfies the condition.

    Args:
        condition: A predicate leaf that reads one column.
        type_: Storage type of the column. Constants are converted to it exactly.
        true: Whether to find the rows for which the condition is true, or the rows for which it is false.

    Raises:
        ValueError: A constant cannot be converted exactly to the type, or indexes do not support the condition.
    """
    type_ = value_type(type_)
    match condition:
        case Compare(op, _, value):
            return _comparison(op if true else _OPPOSITE[op], exact(value, type_)) if value.is_valid else None
        case tree.In(_, values):
            if not true and values.null_count:
                return None
            return _either(Among(exact(values.drop_null(), type_)), true)
        case tree.IsNull():
            return _either(Null(), true)
        case tree.StartsWith(_, prefix):
            return _either(HasPrefix(exact(prefix, type_)), true) if prefix.is_valid else None
        case tree.HasTrigrams(_, words) if true and is_text(type_):
            return ContainsTrigrams(words)
        case tree.HasAny(_, values) if is_list(type_):
            return _either(ContainsAny(exact(values.drop_null(), item_type(type_))), true)
        case tree.HasAll(_, values) if is_list(type_):
            return _either(ContainsAll(exact(values.drop_null(), item_type(type_))), true)
    raise ValueError(f"{condition} is not asked of indexes")


def intersection(first: Query, second: Query) -> Query | None:
    """Intersect two queries. Returns None if the result is not a single query."""
    if isinstance(first, Between) and isinstance(second, Between):
        low, low_open = _tighter(first.low, first.low_open, second.low, second.low_open, ">")
        high, high_open = _tighter(first.high, first.high_open, second.high, second.high_open, "<")
        return Between(low, high, low_open, high_open)
    if isinstance(first, ContainsTrigrams) and isinstance(second, ContainsTrigrams):
        return ContainsTrigrams(tuple(dict.fromkeys((*first.words, *second.words))))
    if isinstance(second, Among):
        first, second = second, first
    if isinstance(first, Among) and isinstance(second, Between | Among):
        return Among(first.values.filter(_satisfying(second, first.values)))
    return None


def union(queries: Sequence[Query]) -> Query | None:
    """Unite queries of the same kind. Returns None if the result is not a single query."""
    if len(queries) == 1:
        return queries[0]
    if all(isinstance(query, Among) for query in queries):
        return Among(pa.concat_arrays([query.values for query in queries if isinstance(query, Among)]))
    if all(isinstance(query, ContainsAny) for query in queries):
        return ContainsAny(pa.concat_arrays([query.values for query in queries if isinstance(query, ContainsAny)]))
    return None


def is_empty(query: Query) -> bool:
    """Return whether no value can satisfy the query. Returns False if this depends on the data."""
    if isinstance(query, Among | ContainsAny):
        return not len(query.values)
    if isinstance(query, Between) and query.low is not None and query.high is not None:
        op: tree.Op = ">=" if query.low_open or query.high_open else ">"
        return _holds(op, query.low, query.high)
    return False


_OPPOSITE: dict[tree.Op, tree.Op] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _comparison(op: tree.Op, value: pa.Scalar) -> Query:
    match op:
        case "=":
            return Among(_one(value))
        case "!=":
            return Except(Among(_one(value)))
        case "<" | "<=":
            return Between(high=value, high_open=op == "<")
    return Between(low=value, low_open=op == ">")


def _either(query: Any, true: bool) -> Query:
    return query if true else Except(query)


def _one(value: pa.Scalar) -> pa.Array:
    return pa.repeat(value, 1)


def _tighter(
    first: pa.Scalar | None, first_open: bool, second: pa.Scalar | None, second_open: bool, op: tree.Op
) -> tuple[pa.Scalar | None, bool]:
    """Return the tighter of two bounds, and whether it is open."""
    if first is None or second is None:
        return (second, second_open) if first is None else (first, first_open)
    if _holds(op, first, second):
        return first, first_open
    if _holds(op, second, first):
        return second, second_open
    return first, first_open or second_open


def _holds(op: tree.Op, left: pa.Scalar, right: pa.Scalar) -> bool:
    return bool(evaluate(Compare(op, _VALUE, right), {_VALUE[0]: _one(left)}, 1)[0].as_py())


def _satisfying(query: Between | Among, values: pa.Array) -> pa.BooleanArray:
    conditions: list[Predicate] = []
    if isinstance(query, Among):
        conditions.append(tree.In(_VALUE, query.values))
    else:
        if query.low is not None:
            conditions.append(Compare(">" if query.low_open else ">=", _VALUE, query.low))
        if query.high is not None:
            conditions.append(Compare("<" if query.high_open else "<=", _VALUE, query.high))
    return evaluate(tree.And(tuple(conditions)), {_VALUE[0]: values}, len(values))
