"""Casts scanned arrays to exactly the type declared to Spark.

A cast function is created once for a pair of types, and then applied to each array. Vectors become lists, and nested
arrays are rebuilt without copying their values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import decoded_dictionary, is_binary, is_list, is_text
from lance_duck.errors import WrongTypeError
from lance_duck.wire.logical import BFLOAT16, EXTENSION_NAME

Cast = Callable[[pa.Array], pa.Array]

_MICRO: Final = "us"


def cast_of(field: pa.Field, target: pa.DataType, where: str) -> Cast | None:
    """Return the function that converts arrays of a field to a type, or None if conversion is not needed.

    Args:
        field: Field of the scan. Its metadata distinguishes bfloat16 from bytes.
        target: The type, as returned by `spark.io.types.arrow_type`.
        where: Column, for messages.

    Raises:
        WrongTypeError: The types cannot be converted. The returned function raises ArrowException for bad values.
    """
    kind = field.type
    if is_bfloat16(field):
        return _from_bfloat16 if pa.types.is_float32(target) else _after(_from_bfloat16, pa.float32(), target, where)
    if isinstance(kind, pa.BaseExtensionType):
        return _after(lambda array: array.storage, kind.storage_type, target, where)
    if pa.types.is_dictionary(kind):
        return _after(decoded_dictionary, kind.value_type, target, where)
    if pa.types.is_run_end_encoded(kind):
        return _after(pc.run_end_decode, kind.value_type, target, where)
    if pa.types.is_struct(target) and pa.types.is_struct(kind):
        return _struct_cast(kind, target, where)
    if pa.types.is_map(target) and pa.types.is_map(kind):
        return _map_cast(kind, target, where)
    if pa.types.is_list(target) and is_list(kind):
        return _list_cast(kind, target, where)
    if kind == target:
        return None
    return _plain_cast(kind, target, where)


def is_bfloat16(field: pa.Field) -> bool:
    """Return whether a field contains bfloat16 values, which are the upper halves of 32-bit floats."""
    kind = field.type
    name = (field.metadata or {}).get(EXTENSION_NAME.encode(), b"").decode()
    if isinstance(kind, pa.BaseExtensionType):
        name, kind = kind.extension_name, kind.storage_type
    return name == BFLOAT16 and bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == 2)


def _after(first: Cast, source: pa.DataType, target: pa.DataType, where: str) -> Cast:
    then = cast_of(pa.field(where, source), target, where)
    return first if then is None else lambda array: then(first(array))


def _from_bfloat16(array: pa.Array) -> pa.Array:
    """Return float32 values from their upper halves."""
    halves = (
        np.frombuffer(array.buffers()[1], "<u2", len(array), 2 * array.offset) if len(array) else np.empty(0, "<u2")
    )
    floats = (halves.astype(np.uint32) << 16).view(np.float32)
    return pa.array(floats, mask=array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None)


def _struct_cast(kind: pa.StructType, target: pa.StructType, where: str) -> Cast | None:
    names = [kind.field(i).name for i in range(kind.num_fields)]
    missing = [field.name for field in target if field.name not in names]
    if missing:
        raise _mismatch(kind, target, where)
    places = [names.index(field.name) for field in target]
    casts = [
        cast_of(kind.field(place), field.type, f"{where}.{field.name}")
        for place, field in zip(places, target, strict=True)
    ]
    if kind == target and not any(casts) and places == list(range(kind.num_fields)):
        return None

    def cast(array: pa.Array) -> pa.Array:
        parts = [array.field(place) for place in places]
        parts = [part if inner is None else inner(part) for part, inner in zip(parts, casts, strict=True)]
        mask = array.is_null() if array.null_count else None
        if not parts:
            return array.cast(target)
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=mask)

    return cast


def _map_cast(kind: pa.MapType, target: pa.MapType, where: str) -> Cast | None:
    key_cast = cast_of(kind.key_field, target.key_type, f"{where}.key")
    value_cast = cast_of(kind.item_field, target.item_type, f"{where}.value")
    if kind == target and key_cast is None and value_cast is None:
        return None

    def cast(array: pa.Array) -> pa.Array:
        offsets, start, stop = _offsets(array)
        keys, items = array.keys.slice(start, stop - start), array.items.slice(start, stop - start)
        keys = keys if key_cast is None else key_cast(keys)
        items = items if value_cast is None else value_cast(items)
        mask = array.is_null() if array.null_count else None
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, items, type=target, mask=mask)

    return cast


def _list_cast(kind: pa.DataType, target: pa.ListType, where: str) -> Cast | None:
    inner = cast_of(kind.value_field, target.value_type, f"{where}.element")
    if pa.types.is_list(kind) and kind == target and inner is None:
        return None
    plain = pa.list_(target.value_field.with_type(kind.value_type))

    def cast(array: pa.Array) -> pa.Array:
        if not pa.types.is_list(array.type):
            array = array.cast(plain)
        if inner is None and plain == target:
            return array
        offsets, start, stop = _offsets(array)
        items = array.values.slice(start, stop - start)
        items = items if inner is None else inner(items)
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, type=target, mask=mask)

    return cast


def _offsets(array: pa.Array) -> tuple[np.ndarray, int, int]:
    """Return the offsets of lists or maps, starting at 0, and the slice of items that they cover."""
    offsets = array.offsets.to_numpy()
    start, stop = int(offsets[0]), int(offsets[-1])
    return offsets - start, start, stop


def _plain_cast(kind: pa.DataType, target: pa.DataType, where: str) -> Cast:
    if not _may_become(kind, target):
        raise _mismatch(kind, target, where)
    if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
        return lambda array: _without_nanoseconds(array, target)
    if pa.types.is_time(kind) and pa.types.is_integer(target):
        return lambda array: array.cast(pa.time64("ns")).cast(target)
    return lambda array: array.cast(target)


def _without_nanoseconds(array: pa.Array, target: pa.DataType) -> pa.Array:
    """Return timestamps or durations rounded down to microseconds. Negative values are also rounded down."""
    whole = array.cast(pa.int64())
    rest = pc.subtract(whole, pc.multiply(pc.divide(whole, 1000), 1000))
    below = pc.if_else(pc.less(rest, 0), -1, 0).cast(pa.int64())
    return pc.add(pc.divide(whole, 1000), below).cast(target)


def _may_become(kind: pa.DataType, target: pa.DataType) -> bool:
    """Return whether a type can be cast to the target type. Numbers may be widened."""
    is_ = pa.types
    if is_.is_timestamp(kind) and is_.is_timestamp(target):
        return (kind.tz is None) == (target.tz is None)
    if is_.is_floating(kind) and is_.is_floating(target):
        return bool(kind.bit_width <= target.bit_width)
    kinds = (is_.is_integer, is_.is_date, is_.is_time, is_.is_duration, is_.is_decimal, is_text, is_binary)
    if any(holds(kind) and holds(target) for holds in kinds):
        return True
    if is_.is_integer(kind):
        return bool(is_.is_decimal(target) or is_.is_float64(target))
    return bool(is_.is_time(kind) and is_.is_int64(target)) or bool(is_.is_null(kind))


def _mismatch(kind: pa.DataType, target: pa.DataType, where: str) -> WrongTypeError:
    return WrongTypeError(
        "the column cannot be converted to the requested type",
        where=f"column {where!r}",
        expected=target,
        found=kind,
        remedy="leave out .schema(…), and use the table's type",
    )
