"""Writes byte strings of 2.0 pages. The counterpart of `encoding.v20.binary` and `encoding.v20.dictionary`.

A compressed buffer begins with the raw length (u64 for ZSTD, u32 for LZ4). The ZSTD frame or LZ4 block follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import has_wide_offsets
from lance_duck.encoding.block import VariableWidth
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.v20.write.buffers import BuffersOut, flat, no_nulls, uint64s, valid_bytes, value_bytes
from lance_duck.encoding.write.codecs.texts import text_bytes, text_codec
from lance_duck.encoding.write.costs import DICTIONARY_VALUES, SYMBOL_BYTES
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.memory import Bytes
from lance_duck.wire.pb import encodings20_pb2 as pb

MOST_ITEMS: Final = 255
"""Maximum number of distinct texts in a dictionary. Its indices have 8 bits."""

_SAMPLE: Final = 4096
_CODECS: Final = {"zstd": ("zstd", "<u8"), "lz4": ("lz4_raw", "<u4")}
_FSST: Final = EncodingOptions(compression="fsst")
_NONE: Final = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Compression:
    """The compression that a field requests for its byte strings.

    Attributes:
        scheme: "zstd", "lz4" or "fsst"; any other value turns compression off.
        level: Compression level, or None for the scheme's default.
    """

    scheme: str | None = None
    level: int | None = None

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> Compression:
        """Return the compression that a field's metadata requests. A level that is not a number is ignored."""
        level = metadata.get("lance-encoding:compression-level", "").strip()
        scheme = metadata.get("lance-encoding:compression", "").strip().lower()
        return cls(scheme, int(level) if level.isdecimal() else None)


def encode_texts(array: pa.Array, buffers: BuffersOut, compression: Compression) -> pb.ArrayEncoding:
    """Encode texts, as a dictionary if few are distinct."""
    dictionary = _few_distinct(array)
    if dictionary is None:
        return encode_binary(array, buffers, compression)
    indices = dictionary.indices
    if indices.null_count:
        indices = indices.fill_null(-1)
    places = (value_bytes(indices, 4).view("<i4") + 1).astype(np.uint8)
    encoding = pb.Dictionary(num_dictionary_items=len(dictionary.dictionary))
    encoding.indices.CopyFrom(no_nulls(flat(buffers, places, 8)))
    encoding.items.CopyFrom(encode_binary(dictionary.dictionary, buffers, Compression()))
    return pb.ArrayEncoding(dictionary=encoding)


def encode_binary(array: pa.Array, buffers: BuffersOut, compression: Compression) -> pb.ArrayEncoding:
    """Encode byte strings as ends and bytes. large_string and large_binary never use FSST, because pylance cannot."""
    if compression.scheme == "fsst" and not (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        compression = Compression()
    return encode_values(_values(array), valid_bytes(array) if array.null_count else None, buffers, compression)


def encode_values(
    block: VariableWidth, valid: Bytes | None, buffers: BuffersOut, compression: Compression
) -> pb.ArrayEncoding:
    """Encode byte strings: their ends, then their joined bytes.

    Args:
        block: The values. The bytes of nulls are also stored.
        valid: uint8, 0 or 1 for each value, or None if all are valid.
        buffers: Buffers of the page.
        compression: Compression of the bytes.
    """
    if compression.scheme == "fsst":
        codec = text_codec(block, _FSST) if text_bytes(block) >= SYMBOL_BYTES else None
        if isinstance(codec, Fsst):
            codes = encode_values(codec.replace(block), valid, buffers, Compression())
            table = codec.to_proto().fsst.symbol_table
            return pb.ArrayEncoding(fsst=pb.Fsst(binary=codes, symbol_table=table))
    first, last = int(block.offsets[0]), int(block.offsets[-1])
    ends = block.offsets[1:].astype(np.uint64) - np.uint64(first)
    adjustment = last - first + 1
    if valid is not None:
        ends += np.where(valid == 0, np.uint64(adjustment), np.uint64(0))
    encoding = pb.Binary(null_adjustment=adjustment)
    encoding.indices.CopyFrom(uint64s(buffers, ends))
    data, scheme = _compressed(block.data[first:last], compression)
    encoding.bytes.CopyFrom(flat(buffers, data, 8, scheme))
    return pb.ArrayEncoding(binary=encoding)


def _values(array: pa.Array) -> VariableWidth:
    _, offsets, data = array.buffers()
    is_large = has_wide_offsets(array.type)
    raw = _NONE if data is None else np.frombuffer(data, np.uint8)
    if offsets is None or len(array) == 0:
        return VariableWidth(np.zeros(1, np.int32), raw)
    ends: NDArray[Any] = np.frombuffer(offsets, np.int64 if is_large else np.int32)
    return VariableWidth(ends[array.offset : array.offset + len(array) + 1], raw)


def _few_distinct(array: pa.Array) -> pa.DictionaryArray | None:
    """Return the array as a dictionary. Returns None if a dictionary would not be smaller."""
    if len(array) < DICTIONARY_VALUES or pc.count_distinct(array.slice(0, _SAMPLE)).as_py() > MOST_ITEMS:
        return None
    dictionary = pc.dictionary_encode(array)
    if not 0 < len(dictionary.dictionary) <= MOST_ITEMS or len(dictionary.dictionary) * 2 > len(array):
        return None
    return dictionary


def _compressed(data: Bytes, compression: Compression) -> tuple[Bytes, pb.Compression | None]:
    if compression.scheme not in _CODECS:
        return data, None
    name, raw_length = _CODECS[compression.scheme]
    codec = pa.Codec(name) if compression.level is None else pa.Codec(name, compression_level=compression.level)
    head = np.array([len(data)], raw_length).view(np.uint8)
    packed = np.frombuffer(codec.compress(data), np.uint8)
    return np.concatenate((head, packed)), pb.Compression(scheme=compression.scheme)
