"""Encodes an Arrow array as a 2.0 page: its description and its buffers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import number_dtype
from lance_duck.encoding.arrow.jsonb_encode import encode_jsonb
from lance_duck.encoding.v20.write.binary import Compression, encode_binary, encode_texts, encode_values
from lance_duck.encoding.v20.write.buffers import (
    BuffersOut,
    all_nulls,
    bits,
    flat,
    no_nulls,
    some_nulls,
    valid_bytes,
    validity_bits,
    value_bytes,
)
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings20_pb2 as pb

NO_COMPRESSION = Compression()


def encode_array(array: pa.Array, buffers: BuffersOut, compression: Compression, where: str) -> pb.ArrayEncoding:
    """Encode an array that is stored as a single physical column.

    Args:
        array: Values of a storage type.
        buffers: Receives the buffers of the encoding.
        compression: Compression of byte strings.
        where: Name of the column, for messages.

    Raises:
        UnsupportedError: 2.0 files cannot hold the values.
    """
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return encode_array(array.storage, buffers, compression, where)
    if array.null_count == len(array) and not pa.types.is_dictionary(kind) and not pa.types.is_struct(kind):
        return all_nulls()
    if pa.types.is_string(kind):
        return encode_texts(array, buffers, compression)
    if pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return encode_binary(array, buffers, compression)
    if pa.types.is_dictionary(kind):
        return _dictionary(array, buffers, where)
    if pa.types.is_struct(kind):
        return _encode_packed(array, buffers, where)
    if array.null_count == 0:
        return no_nulls(_slots(array, buffers, where))
    validity = flat(buffers, validity_bits(array), 1)
    return some_nulls(validity, _slots(array, buffers, where))


def encode_json(texts: pa.Array, buffers: BuffersOut, compression: Compression, where: str) -> pb.ArrayEncoding:
    """Encode JSON texts as JSONB. Binary values are already JSONB.

    Raises:
        InvalidInputError: A text is not JSON.
    """
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        return encode_binary(texts, buffers, compression)
    valid = valid_bytes(texts) if texts.null_count else None
    plain = NO_COMPRESSION if compression.scheme == "fsst" else compression
    return encode_values(encode_jsonb(texts, where), valid, buffers, plain)


def encode_ends(ends: np.ndarray, null: np.ndarray | None, num_items: int, buffers: BuffersOut) -> pb.ArrayEncoding:
    """Encode list ends, counted in items of the page.

    Args:
        ends: End of each list.
        null: Whether each list is null, or None if all are valid.
        num_items: Total number of items.
        buffers: Receives the ends.
    """
    stored = ends.astype("<u8")
    if null is not None:
        stored = stored + null * np.uint64(num_items + 1)
    encoding = pb.List(null_offset_adjustment=num_items + 1, num_items=num_items)
    encoding.offsets.CopyFrom(no_nulls(flat(buffers, stored.view(np.uint8), 64)))
    return pb.ArrayEncoding(list=encoding)


def _slots(array: pa.Array, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    """Encode the value slots of an array, including null slots."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return flat(buffers, bits(array.buffers()[1], array.offset, len(array)), 1)
    if pa.types.is_fixed_size_list(kind):
        return _lists(array, buffers, where)
    try:
        width = int(kind.bit_width)
    except ValueError:
        width = 0
    if width == 0 or width % 8:
        raise UnsupportedError(
            f"data files of version 2.0 cannot store values of type {kind} in this position",
            where=where,
            remedy="write with data_storage_version='2.2'",
        )
    return flat(buffers, value_bytes(array, width // 8), width)


def _lists(array: pa.FixedSizeListArray, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    size = array.type.list_size
    items = array.values.slice(array.offset * size, len(array) * size)
    if array.null_count and items.null_count == 0 and pa.types.is_struct(items.type):
        raise UnsupportedError(
            "data files of version 2.0 cannot store null fixed-size lists of structs",
            where=where,
            remedy="write with data_storage_version='2.2'",
        )
    encoding = pb.FixedSizeList(dimension=size)
    encoding.items.CopyFrom(encode_array(items, buffers, NO_COMPRESSION, where))
    return pb.ArrayEncoding(fixed_size_list=encoding)


def _dictionary(array: pa.DictionaryArray, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    """Encode the items, and indices from 0 in the width of the index type. Null becomes an extra item."""
    indices, items = array.indices, array.dictionary
    width = indices.type.bit_width // 8
    if indices.null_count == len(indices):
        items = items.slice(0, 0)
    if indices.null_count:
        place = len(items)
        if place > np.iinfo(number_dtype(indices.type)).max:
            raise UnsupportedError(
                "a data file of version 2.0 cannot store nulls in a full dictionary",
                where=where,
                expected=f"fewer than {place} items",
                found=place,
                remedy="use a wider index, or write with data_storage_version='2.2'",
            )
        items = pa.concat_arrays([items, pa.nulls(1, items.type)])
        indices = pc.fill_null(indices, pa.scalar(place, indices.type))
    elif len(items) == 0:
        items = pa.nulls(1, items.type)
    encoding = pb.Dictionary(num_dictionary_items=len(items))
    encoding.indices.CopyFrom(no_nulls(flat(buffers, value_bytes(indices, width), 8 * width)))
    encoding.items.CopyFrom(encode_items(items, buffers, where))
    return pb.ArrayEncoding(dictionary=encoding)


def encode_items(items: pa.Array, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    """Encode the items of a dictionary. The items must not be a dictionary."""
    if pa.types.is_string(items.type):
        return encode_binary(items, buffers, NO_COMPRESSION)
    return encode_array(items, buffers, NO_COMPRESSION, where)


def _encode_packed(array: pa.StructArray, buffers: BuffersOut, where: str) -> pb.ArrayEncoding:
    """Encode the rows of a packed struct back to back. The counterpart of `encoding.v20.nested`.

    Raises:
        UnsupportedError: A struct is null, or a member is neither whole bytes nor a fixed-size list of whole bytes.
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
    """Return the size of a value in a row, in bytes."""
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
        "data files of version 2.0 cannot store this packed struct",
        where=where,
        expected="fixed-width values without nulls",
        found=found,
        remedy="write data_storage_version 2.2, or do not pack it",
    )
