"""Converts long lists of constants to one Arrow array, without a Python object for each constant.

A list is converted at once or in blocks. If the result could differ from a conversion of each constant, the constants
of the block are converted one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_text
from lance_duck.scan.sql.compare import scalars_for
from lance_duck.scan.sql.literals import EXACT_INT, MAX_DIGITS, Literal, NotSimpleError, numeric

_NUMBER: Final = r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TEXT: Final = r"'[^']*+(?:''[^']*+)*+'"
_NULL: Final = r"[nN][uU][lL][lL]"
_TEXTS: Final = re.compile(f"{_TEXT}|{_NULL}")
_LIST: Final = re.compile(
    r"\s*(?:"
    + "|".join(rf"(?:{item})(?:\s*,\s*(?:{item}))*+(?=\s*[)\]])" for item in (f"{_NUMBER}|{_NULL}", f"{_TEXT}|{_NULL}"))
    + ")"
)
_MARKS: Final = re.compile(r"\s*\?(?:\s*,\s*\?)*+(?=\s*[)\]])")
_BLOCK: Final = 4096
_NONE: Final = Literal("value", None)


def constants_end(text: str, at: int) -> int:
    """Return the end offset of the list of numbers, strings and nulls that begins at `at`, or -1 without a list."""
    match = _LIST.match(text, at)
    return match.end() if match else -1


def marks_end(text: str, at: int) -> int:
    """Return the end offset of the list of question marks that begins at `at`, or -1 without a list."""
    match = _MARKS.match(text, at)
    return match.end() if match else -1


def written_values(run: str, type_: pa.DataType) -> pa.Array:
    """Return the constants of an SQL list in the column's type, in order.

    Constants that the type cannot represent are dropped.

    Args:
        run: Text of a list, up to the offset from `constants_end`.
        type_: Type of the column.

    Raises:
        NotSimpleError: A constant cannot be compared exactly.
    """
    items = _TEXTS.findall(run) if "'" in run else [item.strip() for item in run.split(",")]
    return _in_blocks(items, type_, _written, _literal)


def bound_values(values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    """Return bound values in the column's type, like `written_values`.

    Raises:
        NotSimpleError: A value cannot be compared exactly.
    """
    return _in_blocks(values, type_, _bound, lambda value: Literal("value", value))


def listed_values(values: Any, type_: pa.DataType) -> pa.Array:
    """Return the values of a list that is bound as one parameter. Nulls are dropped, because they never match.

    Raises:
        NotSimpleError: The parameter is not a list or is empty. It contains values of several kinds, which DuckDB would
            cast to one kind. A value cannot be compared exactly.
    """
    if not isinstance(values, list | tuple) or {*map(type, values)} - {type(None)} not in ({int}, {float}, {str}):
        raise NotSimpleError
    return bound_values([value for value in values if value is not None], type_)


def _in_blocks(
    items: Sequence[Any],
    type_: pa.DataType,
    at_once: Callable[[Sequence[Any], pa.DataType], pa.Array | None],
    literal: Callable[[Any], Literal],
) -> pa.Array:
    arrays = []
    for start in range(0, len(items), _BLOCK):
        block = items[start : start + _BLOCK]
        try:
            array = at_once(block, type_)
        except (pa.ArrowException, ValueError, OverflowError):
            array = None
        arrays.append(pa.array(scalars_for(map(literal, block), type_), type_) if array is None else array)
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _literal(item: str) -> Literal:
    if item[0] == "'":
        return Literal("text", item[1:-1].replace("''", "'"))
    return _NONE if item[0] in "nN" else numeric(item)


def _written(items: Sequence[str], type_: pa.DataType) -> pa.Array | None:
    array = pa.array(items, pa.string())
    first = pc.utf8_slice_codeunits(array, 0, 1)
    array = pc.if_else(pc.is_in(first, pa.array(["n", "N"])), None, array)
    if is_text(type_):
        if pc.any(pc.not_equal(first, "'").filter(array.is_valid())).as_py():
            return None
        texts = pc.replace_substring(pc.utf8_slice_codeunits(array, 1, -1), "''", "'")
        return _texts(texts, type_)
    if pa.types.is_integer(type_):
        return _integers(array.cast(pa.int64()), type_)
    if pa.types.is_decimal128(type_):
        return None if _any(pc.match_substring(array, "e", ignore_case=True)) else array.cast(type_)
    if type_ in (pa.float32(), pa.float64()):
        return _numbers(array, type_)
    return None


def _numbers(array: pa.StringArray, type_: pa.DataType) -> pa.Array | None:
    """Parse numbers: doubles with an exponent, integers and short decimals. Returns None for others."""
    doubles = pc.match_substring(array, "e", ignore_case=True)
    digits = pc.utf8_length(pc.replace_substring_regex(array, r"[-.]", ""))
    if _any(pc.and_(pc.invert(doubles), pc.greater(digits, MAX_DIGITS))):
        return None
    values = array.cast(pa.float64())
    if not pc.all(pc.is_finite(values)).as_py():
        return None
    if type_ == pa.float64():
        return values
    whole = pc.and_(pc.equal(pc.floor(values), values), pc.less_equal(pc.abs(values), EXACT_INT["float"]))
    return _singles(values) if pc.all(pc.or_(doubles, whole)).as_py() else None


def _singles(values: pa.DoubleArray) -> pa.FloatArray | None:
    """Return doubles as float32, or None if the conversion is not exact."""
    with np.errstate(over="ignore"):
        singles = values.cast(pa.float32(), safe=False)
    same = pc.or_(pc.is_nan(values), pc.equal(singles.cast(pa.float64()), values))
    return singles if pc.all(same).as_py() else None


def _bound(values: Sequence[Any], type_: pa.DataType) -> pa.Array | None:
    kinds = {*map(type, values)} - {type(None)}
    if kinds == {str} and is_text(type_):
        return _texts(pa.array(values, pa.string()), type_)
    if kinds == {int} and pa.types.is_integer(type_):
        return _integers(pa.array(values, pa.int64()), type_)
    if kinds == {float} and type_ in (pa.float32(), pa.float64()):
        doubles = pa.array(values, pa.float64())
        return doubles if type_ == pa.float64() else _singles(doubles)
    if kinds == {Decimal} and pa.types.is_decimal128(type_) and all(v is None or v.is_finite() for v in values):
        return pa.array(values, type_)
    return None


def _texts(texts: pa.StringArray, type_: pa.DataType) -> pa.Array | None:
    return None if _any(pc.match_substring(texts, "\0")) else texts.cast(type_)


def _integers(values: pa.Int64Array, type_: pa.DataType) -> pa.Array | None:
    """Return integers in the column's type. Returns None if they contain -2^63, which cannot be negated."""
    return None if _any(pc.equal(values, -(2**63))) else values.cast(type_)


def _any(answers: Iterable[Any]) -> bool:
    return bool(pc.any(answers).as_py())
