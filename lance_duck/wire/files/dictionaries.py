"""Dictionary values in file format 0.1: one page, in each data file and in each manifest of a table.

    kind of values            page, at Field.dictionary.offset with Field.dictionary.length values
    numbers                   little-endian
    texts, bytes              int64 (length + 1): file offsets of the values; the bytes lie before the page

All data files of a table share one dictionary per field, because some readers use the manifest's dictionary for every
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import is_bytes, is_text, number_dtype
from lance_duck.errors import UnsupportedError
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import Field, Schema

_OFFSET = np.dtype("<i8")


def check_values(type_: pa.DataType, where: str) -> None:
    """Check that 0.1 dictionaries support a value type: string, binary or integer.

    Raises:
        UnsupportedError: The type is not supported.
    """
    if not (is_text(type_) or is_bytes(type_) or pa.types.is_integer(type_)):
        raise UnsupportedError(
            f"data files of version 0.1 cannot store dictionaries of {type_}",
            where=where,
            expected="strings, bytes or integers",
            remedy="cast the column to its values, or write version 2.2",
        )


def values_page(values: pa.Array, position: int) -> tuple[bytes, int]:
    """Return the bytes of values, and the file position where their page begins.

    Args:
        values: Strings, binary values or integers, without nulls.
        position: File position of the bytes.
    """
    if pa.types.is_integer(values.type):
        dtype = number_dtype(values.type)
        return values.to_numpy(zero_copy_only=False).astype(dtype.newbyteorder("<")).tobytes(), position
    wide = values.cast(pa.large_binary())
    _, offsets, data = wide.buffers()
    ends = np.frombuffer(offsets, _OFFSET, len(wide) + 1, wide.offset * _OFFSET.itemsize)
    text = memoryview(data)[ends[0] : ends[-1]].tobytes() if data is not None else b""
    return text + (ends - ends[0] + position).astype(_OFFSET).tobytes(), position + len(text)


def values_of(data: bytes, offset: int, length: int, type_: pa.DataType) -> pa.Array | None:
    """Return the values of a page, or None if the page is invalid for the type.

    Args:
        data: Bytes of the whole file.
        offset: Position where the page begins.
        length: Number of values.
        type_: Type of the values.
    """
    if pa.types.is_integer(type_):
        dtype = number_dtype(type_).newbyteorder("<")
        if not 0 <= offset <= len(data) - length * dtype.itemsize:
            return None
        return pa.array(np.frombuffer(data, dtype, length, offset), type_)
    if not (is_text(type_) or is_bytes(type_)) or not 0 <= offset <= len(data) - (length + 1) * _OFFSET.itemsize:
        return None
    ends = np.frombuffer(data, _OFFSET, length + 1, offset)
    if ends[0] < 0 or ends[-1] > len(data) or (np.diff(ends) < 0).any():
        return None
    text = data[ends[0] : ends[-1]]
    array = pa.Array.from_buffers(
        pa.large_binary(), length, [None, pa.py_buffer((ends - ends[0]).tobytes()), pa.py_buffer(text)]
    )
    try:
        return array.cast(type_)
    except pa.ArrowInvalid:  # strings that are not UTF-8
        return None


def with_dictionaries(schema: Schema, protos: Iterable[file_pb2.Field], data: bytes) -> Schema:
    """Return the schema of a manifest with the dictionary values that the manifest file stores.

    Args:
        schema: Schema of the manifest.
        protos: Messages of the fields.
        data: Bytes of the manifest file.
    """
    extents = {p.id: (p.dictionary.offset, p.dictionary.length) for p in protos if p.dictionary.length > 0}
    return Schema(tuple(_with_values(f, extents, data) for f in schema.fields), schema.metadata)


def _with_values(f: Field, extents: Mapping[int, tuple[int, int]], data: bytes) -> Field:
    children = tuple(_with_values(child, extents, data) for child in f.children)
    values = None
    if f.id in extents and f.is_dictionary:
        with suppress(UnsupportedError):  # other columns remain readable despite an unknown type
            values = values_of(data, *extents[f.id], f.storage_type.value_type)
    return replace(f, children=children, dictionary=values)
