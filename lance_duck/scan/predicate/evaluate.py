"""Evaluates predicate trees on Arrow columns, one batch at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_list, is_text
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.expressions import evaluate_sql
from lance_duck.scan.predicate.lists import has_all, has_any, item_type
from lance_duck.scan.predicate.masks import true_rows
from lance_duck.scan.predicate.ordering import PLAIN_FORM, comparable, hashable
from lance_duck.scan.predicate.tree import (
    And,
    BoxCondition,
    Compare,
    ConstantCondition,
    HasAll,
    HasAny,
    HasTrigrams,
    In,
    IsNull,
    JsonCondition,
    Not,
    Op,
    Opaque,
    Or,
    Path,
    Predicate,
    StartsWith,
)
from lance_duck.text.needles import trigrams_of_words
from lance_duck.text.trigrams import has_trigrams

Columns = Mapping[str, pa.Array]

_COMPARE: Final[dict[Op, Callable[..., pa.Array]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def evaluate(predicate: Predicate, columns: Columns, num_rows: int) -> pa.BooleanArray:
    """Evaluate a predicate on each row.

    Args:
        predicate: The predicate.
        columns: Top-level columns by name, each with `num_rows` values. Conditions on dictionary columns are evaluated
            once per distinct value.
        num_rows: Number of rows in the batch.

    Returns: A boolean for each row, null if the predicate is null.

    Raises:
        InvalidInputError: A column is missing, or a constant does not fit its column.
    """
    match predicate:
        case Compare(op, path, value):
            return _leaf(path, columns, lambda values: _compare(op, values, value))
        case In(path, values):
            return _leaf(path, columns, lambda array: _is_in(array, values))
        case StartsWith(path, prefix):
            return _leaf(path, columns, lambda array: _starts_with(array, prefix))
        case HasTrigrams(path, words):
            return _leaf(path, columns, lambda array: _has_trigrams(array, words))
        case HasAny(path, values):
            return _of_lists(path, columns, values.drop_null(), has_any)
        case HasAll(path, values):
            return _of_lists(path, columns, values.drop_null(), has_all)
        case Opaque():
            return _ask_duckdb(predicate, columns, num_rows)
        case IsNull(path):
            return pc.is_null(_plain_nulls(_column(path, columns)))
        case And(operands):
            return _fold(pc.and_kleene, operands, columns, num_rows, empty=True)
        case Or(operands):
            return _fold(pc.or_kleene, operands, columns, num_rows, empty=False)
        case Not(operand):
            return pc.invert(evaluate(operand, columns, num_rows))
        case JsonCondition() | BoxCondition():
            return pa.repeat(pa.scalar(True), num_rows)
        case ConstantCondition(value):
            return pa.repeat(pa.scalar(value, pa.bool_()), num_rows)
    raise InvalidInputError("unknown predicate", found=type(predicate).__name__)


def mask(predicate: Predicate, columns: Columns, num_rows: int) -> pa.BooleanArray:
    """Return a mask, without nulls, of the rows for which the predicate is true. Uses compiled passes if available."""
    bits = np.packbits(true_rows(predicate, columns, num_rows, evaluate), bitorder="little")
    return pa.BooleanArray.from_buffers(pa.bool_(), num_rows, [None, pa.py_buffer(bits)])


def _fold(
    combine: Callable[..., pa.Array], operands: Sequence[Predicate], columns: Columns, num_rows: int, *, empty: bool
) -> pa.BooleanArray:
    answers = (evaluate(operand, columns, num_rows) for operand in operands)
    first = next(answers, None)
    return pa.repeat(pa.scalar(empty), num_rows) if first is None else reduce(combine, answers, first)


def _column(path: Path, columns: Columns) -> pa.Array:
    """Return the values at `path`. Null structs on the path give null values."""
    if path[0] not in columns:
        raise InvalidInputError(
            "the filter uses a column that does not exist", found=path[0], expected=", ".join(columns)
        )
    array = columns[path[0]]
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    for part in path[1:]:
        if not pa.types.is_struct(array.type) or array.type.get_field_index(part) < 0:
            raise InvalidInputError(
                "the filter uses a field that does not exist", found=".".join(path), expected=array.type
            )
        array = pc.struct_field(array, [array.type.get_field_index(part)])
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
    return array


def _leaf(path: Path, columns: Columns, ask: Callable[[pa.Array], pa.BooleanArray]) -> pa.BooleanArray:
    array = _column(path, columns)
    if pa.types.is_dictionary(array.type):
        return ask(comparable(array.dictionary)).take(array.indices)
    return ask(comparable(array))


def _plain_nulls(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) and array.dictionary.null_count else array


def _fit(value: Any, type_: pa.DataType) -> Any:
    if value.type == type_:
        return value
    try:
        return value.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError("a filter's constant does not fit its column", expected=type_, found=value) from error


def _compare(op: Op, array: pa.Array, value: pa.Scalar) -> pa.BooleanArray:
    value = _fit(value, array.type)
    if not value.is_valid:
        return pa.nulls(len(array), pa.bool_())
    if not pa.types.is_floating(array.type):
        return _COMPARE[op](array, value)
    if math.isnan(value.as_py()):
        return _compare_with_nan(op, array)
    answer = _COMPARE[op](array, value)
    return pc.or_(answer, pc.is_nan(array)) if op in (">", ">=") else answer


def _compare_with_nan(op: Op, array: pa.Array) -> pa.BooleanArray:
    if op in ("=", ">="):
        return pc.is_nan(array)
    if op in ("!=", "<"):
        return pc.invert(pc.is_nan(array))
    always = pa.repeat(pa.scalar(op == "<="), len(array))
    return pc.if_else(array.is_valid(), always, pa.scalar(None, pa.bool_()))


def _starts_with(array: pa.Array, prefix: pa.Scalar) -> pa.BooleanArray:
    if not prefix.is_valid:
        return pa.nulls(len(array), pa.bool_())
    plain = array.cast(PLAIN_FORM.get(array.type, array.type))
    return pc.starts_with(plain, prefix.as_py())


def _has_trigrams(array: pa.Array, words: Sequence[str]) -> pa.BooleanArray:
    if not is_text(array.type):
        raise InvalidInputError("trigram filters need a string column", found=array.type)
    has_all_words = has_trigrams(array, trigrams_of_words(words))
    return pa.array(has_all_words, mask=array.is_null().to_numpy(zero_copy_only=False))


def _of_lists(
    path: Path, columns: Columns, values: pa.Array, ask: Callable[[pa.Array, pa.Array], pa.BooleanArray]
) -> pa.BooleanArray:
    array = _column(path, columns)
    if not is_list(array.type):
        raise InvalidInputError("list filters need a list column", found=".".join(path))
    return ask(array, _fit(values, item_type(array.type)))


def _ask_duckdb(condition: Opaque, columns: Columns, num_rows: int) -> pa.BooleanArray:
    inputs = {name: columns[name] for name in dict.fromkeys(path[0] for path in condition.inputs)}
    select = f"CAST({condition.sql} AS BOOLEAN) AS answer"
    text = condition.sql.removeprefix("(").removesuffix("\n)")
    answer = evaluate_sql(select, inputs, num_rows, condition.parameters, text=text)
    return answer.column(0).combine_chunks()


def _is_in(array: pa.Array, values: pa.Array) -> pa.BooleanArray:
    null_among = values.null_count > 0
    array, values = hashable(array, _fit(values.drop_null(), array.type))
    is_in = pc.is_in(array, value_set=values)
    unknown = pa.scalar(None, pa.bool_())
    if null_among:
        return pc.if_else(is_in, True, unknown)
    return is_in if array.null_count == 0 else pc.if_else(array.is_valid(), is_in, unknown)
