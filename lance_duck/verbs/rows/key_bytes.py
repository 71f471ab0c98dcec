"""Row keys encoded as bytes, which are equal if and only if the keys match.

    one column: the bytes of its value. Numbers are little-endian, as in Arrow; strings are UTF-8.
    several: for each column, the length of its bytes (int32, little-endian), then the bytes.

Values are first converted by `keys.comparable_keys`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.verbs.rows.keys import comparable_keys


def key_bytes(columns: Sequence[pa.Array | pa.ChunkedArray], names: Sequence[str]) -> pa.Array:
    """Return the keys of rows, binary. Null if any column of the key is null.

    Args:
        columns: Key columns, of equal length.
        names: Names of the key columns, for messages.

    Raises:
        InvalidInputError: Values of a column's type cannot be keys.
    """
    parts = [_bytes(comparable_keys(column, name)) for column, name in zip(columns, names, strict=True)]
    if len(parts) == 1:
        return parts[0]
    framed = [part for value in parts for part in (_raw(pc.binary_length(value).cast(pa.int32())), value)]
    return pc.binary_join_element_wise(*framed, pa.scalar(b"", pa.binary()), null_handling="emit_null")


def _bytes(array: pa.Array) -> pa.Array:
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        return array.cast(pa.large_binary()).cast(pa.binary())
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    return _raw(array)


def _raw(array: pa.Array) -> pa.Array:
    """Return the bytes of fixed-width values."""
    validity, data = array.buffers()
    width = array.type.bit_width // 8
    texts = pa.Array.from_buffers(pa.binary(width), len(array), [validity, data], offset=array.offset)
    return texts.cast(pa.binary())
