"""The fast path of `evaluate.mask`: compiled passes compute the mask of the rows that satisfy a predicate.

Null counts as false. This is correct below AND and OR, but not below NOT. Conditions without a compiled pass are
evaluated by `evaluate`, the reference implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import number_dtype
from lance_duck.errors import InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.scan.predicate import kernels
from lance_duck.scan.predicate.arrays import pick
from lance_duck.scan.predicate.kernels import Mask
from lance_duck.scan.predicate.number_set import NumberSet
from lance_duck.scan.predicate.tree import (
    And,
    Compare,
    ConstantCondition,
    In,
    Op,
    Opaque,
    Or,
    Predicate,
    conjuncts,
)

Columns = Mapping[str, pa.Array]
Rest = Callable[[Predicate, Columns, int], pa.BooleanArray]

_OPS: Final[dict[Op, int]] = {
    "<": kernels.LESS,
    "<=": kernels.LESS_EQUAL,
    "=": kernels.EQUAL,
    "!=": kernels.NOT_EQUAL,
    ">=": kernels.GREATER_EQUAL,
    ">": kernels.GREATER,
}


def true_rows(predicate: Predicate, columns: Columns, num_rows: int, rest: Rest) -> Mask:
    """Return a uint8 mask (0 or 1) of the rows for which the predicate is true.

    Args:
        predicate: The predicate.
        columns: Top-level columns by name, each with `num_rows` values.
        num_rows: Number of rows in the batch.
        rest: Evaluates conditions without a compiled pass. Null counts as false.
    """
    mask = np.ones(num_rows, np.uint8)
    _narrow(predicate, columns, mask, rest)
    return mask


def _narrow(predicate: Predicate, columns: Columns, mask: Mask, rest: Rest) -> None:
    others = _keep_ranges(conjuncts(predicate), columns, mask)
    for operand in sorted(others, key=_is_dear):
        _narrow_by(operand, columns, mask, rest)


def _keep_ranges(operands: Sequence[Predicate], columns: Columns, mask: Mask) -> list[Predicate]:
    """Narrow the mask by comparisons with integers, in one pass for each column. Return the other operands."""
    others: list[Predicate] = []
    ranges: dict[str, tuple[int, int]] = {}
    for operand in operands:
        found = _range_of(operand, columns)
        if found is None:
            others.append(operand)
            continue
        name, low, high = found
        least, most = ranges.get(name, (low, high))
        ranges[name] = max(low, least), min(high, most)
    for name, (low, high) in ranges.items():
        array = columns[name]
        if low > high:
            mask[:] = 0
            continue
        values = _values(array, _integer_dtype(array.type))
        kernels.and_range(values, values.dtype.type(low), values.dtype.type(high), mask)
        _drop_nulls(array, mask)
    return others


def _range_of(predicate: Predicate, columns: Columns) -> tuple[str, int, int] | None:
    """Return a column of integers, and the least and greatest integer that pass. Returns None for other predicates."""
    if not isinstance(predicate, Compare) or predicate.op == "!=" or len(predicate.path) != 1:
        return None
    array = columns.get(predicate.path[0])
    if array is None or not predicate.value.is_valid or not _is_integral(array.type):
        return None
    return predicate.path[0], *_limits(predicate.op, predicate.value, array.type)


@lru_cache(maxsize=1024)
def _limits(op: Op, value: pa.Scalar, type_: pa.DataType) -> tuple[int, int]:
    """Return the least and greatest integer that pass a comparison, in a type that is stored as integers."""
    constant = _whole_number(_fitted(value, type_))
    bounds = np.iinfo(_integer_dtype(type_))
    low = constant + (op == ">") if op in (">", ">=", "=") else int(bounds.min)
    high = constant - (op == "<") if op in ("<", "<=", "=") else int(bounds.max)
    return low, high


def _narrow_by(predicate: Predicate, columns: Columns, mask: Mask, rest: Rest) -> None:
    match predicate:
        case And():
            _narrow(predicate, columns, mask, rest)
            return
        case Or(operands) if operands:
            union = np.zeros(len(mask), np.uint8)
            for operand in operands:
                union |= true_rows(operand, columns, len(mask), rest)
            mask &= union
            return
        case ConstantCondition(value):
            mask &= np.uint8(value is True)
            return
        case Opaque():
            _ask_where_left(predicate, columns, mask, rest)
            return
        case Compare(op, path, value) if len(path) == 1 and value.is_valid:
            array = columns.get(path[0])
            if array is not None and not isinstance(array, pa.ExtensionArray) and _compare(op, array, value, mask):
                _drop_nulls(array, mask)
                return
        case In(path, values) if len(path) == 1 and path[0] in columns:
            array = columns[path[0]]
            if predicate.numbers is not None and values.type == array.type:
                keep_members(_values(array, number_dtype(array.type)), predicate.numbers, values, mask)
                _drop_nulls(array, mask)
                return
    paths = predicate.paths()
    array = columns.get(paths[0][0]) if len(paths) == 1 else None
    if (
        array is not None
        and pa.types.is_dictionary(array.type)
        and _ask_dictionary(predicate, paths[0][0], array, mask, rest)
    ):
        return
    mask &= _to_bytes(rest(predicate, columns, len(mask)))


def _is_dear(predicate: Predicate) -> bool:
    return any(isinstance(leaf, Opaque) for leaf in predicate.leaves())


def _ask_where_left(predicate: Opaque, columns: Columns, mask: Mask, rest: Rest) -> None:
    """Evaluate a DuckDB condition. If few rows remain in the mask, only these rows are evaluated."""
    rows = np.flatnonzero(mask)
    if not len(rows):
        return
    if 2 * len(rows) > len(mask):
        mask &= _to_bytes(rest(predicate, columns, len(mask)))
        return
    inputs = {name: pick(columns[name], rows) for name in predicate.columns() if name in columns}
    mask[rows] = _to_bytes(rest(predicate, inputs, len(rows)))


def _compare(op: Op, array: pa.Array, value: pa.Scalar, mask: Mask) -> bool:
    """Narrow the mask by a comparison. Without a compiled pass for the type, returns False and changes nothing."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return False  # the caller compares the dictionary's entries instead
    if pa.types.is_decimal(kind) and kind.scale < 0:
        return False  # the constant may be between two values of the type
    value = _fitted(value, kind)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        constant = value.as_py()
        if math.isnan(constant):
            return False
        values = _values(array, number_dtype(kind))
        kernels.and_float(values, _OPS[op], values.dtype.type(constant), mask)
        return True
    if pa.types.is_string(kind) and op in ("=", "!="):
        target = np.frombuffer(value.as_py().encode(), np.uint8)
        _, offsets, data = array.buffers()
        places = (
            np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
            if len(array)
            else _NO_OFFSETS
        )
        content = np.frombuffer(data, np.uint8) if data is not None else target[:0]
        kernels.and_string(readonly(places), readonly(content), target, op == "=", mask)
        return True
    if op != "!=" or not _is_integral(kind):
        return False
    integers = _values(array, _integer_dtype(kind))
    kernels.and_not_equal(integers, integers.dtype.type(_whole_number(value)), mask)
    return True


_NO_OFFSETS: Final = np.zeros(1, np.int32)


def _fitted(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    """Convert a constant to the type of its column."""
    if value.type == type_:
        return value
    try:
        return value.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError("a filter's constant does not fit its column", expected=type_, found=value) from error


def _is_integral(type_: pa.DataType) -> bool:
    """Return whether values of a type are stored as integers in the same order."""
    if pa.types.is_decimal(type_):
        return bool(type_.bit_width <= 64 and type_.scale >= 0)  # a negative scale would round the constant
    is_time = pa.types.is_date(type_) or pa.types.is_time(type_) or pa.types.is_timestamp(type_)
    return bool(pa.types.is_integer(type_) or is_time or pa.types.is_duration(type_))


def _integer_dtype(type_: pa.DataType) -> np.dtype[Any]:
    """Return the dtype of the integers that store an integral type."""
    return number_dtype(type_) if pa.types.is_integer(type_) else np.dtype(f"<i{type_.bit_width // 8}")


def _whole_number(value: pa.Scalar) -> int:
    """Return the integer that stores a constant of an integral type."""
    if pa.types.is_decimal(value.type):
        return int(value.as_py().scaleb(value.type.scale).to_integral_value())
    return int(value.as_py() if pa.types.is_integer(value.type) else value.value)


def _values(array: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return readonly(np.zeros(len(array), dtype))
    return readonly(np.frombuffer(buffer, dtype)[array.offset : array.offset + len(array)])


def _drop_nulls(array: pa.Array, mask: Mask) -> None:
    if array.null_count:
        kernels.and_valid(readonly(np.frombuffer(array.buffers()[0], np.uint8)), array.offset, mask)


def _ask_dictionary(predicate: Predicate, name: str, array: pa.DictionaryArray, mask: Mask, rest: Rest) -> bool:
    """Narrow the mask by evaluating dictionary entries. Returns False if this would be slower or nulls pass."""
    entries = array.dictionary
    if len(entries) > len(array) or entries.null_count:
        return False
    null = rest(predicate, {name: pa.nulls(1, entries.type)}, 1)
    if null.is_valid()[0].as_py() and null[0].as_py():
        return False
    answers = _to_bytes(rest(predicate, {name: entries}, len(entries)))
    indices = array.indices
    kernels.and_lookup(_values(indices, number_dtype(indices.type)), np.int64(0), readonly(answers), mask)
    _drop_nulls(array, mask)
    return True


def _to_bytes(answer: pa.BooleanArray) -> Mask:
    if answer.null_count:
        answer = answer.fill_null(False)
    mask: Mask = answer.to_numpy(zero_copy_only=False).view(np.uint8)
    return mask


def keep_members(numbers: NDArray[Any], members: NumberSet, values: pa.Array, mask: Mask) -> None:
    """Keep rows whose number is a member.

    Args:
        numbers: An integer for each row, of any width, readonly.
        members: Integers of the same type.
        values: The same members.
        mask: 0 or 1 for each row. Changed in place.
    """
    members.narrow(numbers, mask)
    if members.is_exact:
        return
    rows = np.flatnonzero(mask.view(np.bool_))
    are_members = pc.is_in(pa.array(numbers[rows]), value_set=values)
    mask[rows] = are_members.to_numpy(zero_copy_only=False)
