"""Values of several parts in 2.0 pages, as `encoding.v20.nested` reads them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_duck.encoding.v20.write.buffers import BuffersOut, no_nulls, value_bytes
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings20_pb2 as pb


def encode_packed(array: pa.StructArray, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    """Encode the rows of a packed struct, back to back.

    Raises:
        UnsupportedError: A struct is null, or a member has neither whole bytes nor is a fixed-size list of such.
    """
    if array.null_count:
        raise _refused(where, "null structs")
    widths = [_row_width(member.type, where, member.name) for member in array.type]
    rows = np.empty((len(array), sum(widths)), np.uint8)
    at = 0
    encoding = pb.PackedStruct()
    for i, width in enumerate(widths):
        member = array.type.field(i)
        rows[:, at : at + width] = _member_bytes(array.field(i), where, member.name).reshape(len(array), width)
        encoding.inner.append(_inner(member.type))
        at += width
    encoding.buffer.CopyFrom(buffers.add(rows.reshape(-1)))
    return pb.ArrayEncoding(packed_struct=encoding)


def _row_width(arrow_type: pa.DataType, where: str, name: str) -> int:
    """Return the number of bytes of a value in a row."""
    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pa.types.is_fixed_size_list(arrow_type) and not pa.types.is_fixed_size_list(arrow_type.value_type):
        return int(arrow_type.list_size) * _row_width(arrow_type.value_type, where, name)
    try:
        bits = int(arrow_type.bit_width)
    except ValueError:
        bits = 0
    if bits == 0 or bits % 8 or pa.types.is_nested(arrow_type) or pa.types.is_dictionary(arrow_type):
        raise _refused(where, f"{name!r} of type {arrow_type}")
    return bits // 8


def _member_bytes(array: pa.Array, where: str, name: str) -> Bytes:
    while isinstance(array, pa.ExtensionArray):
        array = array.storage
    if array.null_count:
        raise _refused(where, f"nulls in {name!r}")
    if pa.types.is_fixed_size_list(array.type):
        return _member_bytes(array.flatten(), where, name)
    return value_bytes(array, array.type.bit_width // 8)


def _inner(arrow_type: pa.DataType) -> pb.ArrayEncoding:
    while isinstance(arrow_type, pa.BaseExtensionType):
        arrow_type = arrow_type.storage_type
    if pa.types.is_fixed_size_list(arrow_type):
        items = pb.FixedSizeList(dimension=arrow_type.list_size, items=_inner(arrow_type.value_type))
        return no_nulls(pb.ArrayEncoding(fixed_size_list=items))
    return no_nulls(pb.ArrayEncoding(flat=pb.Flat(bits_per_value=arrow_type.bit_width, buffer=pb.Buffer())))


def _refused(where: str, found: str) -> UnsupportedError:
    return UnsupportedError(
        "packed struct in a data file of version 2.0",
        where=where,
        expected="values of fixed width, none of them null",
        found=found,
        remedy="write data_storage_version 2.2, or do not pack it",
    )
