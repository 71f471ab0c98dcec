"""Choice of encodings for fixed-size lists, packed structs, and values compressed one by one."""

from __future__ import annotations

import numpy as np

from lance_duck.encoding.block import Block, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs import packed_struct as packed
from lance_duck.encoding.codecs.constant import Constant
from lance_duck.encoding.codecs.fixed_size_list import FixedSizeListCodec
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.write.codecs.texts import text_bytes, text_codec
from lance_duck.encoding.write.costs import ALONE_BYTES, SAMPLE, SAMPLE_PIECES, WORTH
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.errors import UnsupportedError


def value_codec(block: Block, choice: EncodingOptions) -> Codec:
    """Return the codec for values that are compressed one by one.

    Raises:
        UnsupportedError: This file version cannot compress the block's values one by one.
    """
    if isinstance(block, FixedWidth):
        return Flat(block.bits)
    if isinstance(block, FixedSizeList):
        return list_codec(block)
    if isinstance(block, VariableWidth):
        return _single_texts(block, choice)
    if isinstance(block, PackedStruct):
        if not choice.grammar.has_variable_packed_structs:
            remedy = "write with data_storage_version='2.2'"
            raise UnsupportedError(
                "data files of version 2.1 cannot store packed structs with variable-width fields", remedy=remedy
            )
        return packed.VariablePackedStruct(tuple(_packed_field(field, choice) for field in block.fields))
    raise UnsupportedError("values of this kind cannot be encoded", where="full zip", found=type(block).__name__)


def list_codec(block: FixedSizeList) -> FixedSizeListCodec:
    """Return the codec for fixed-size lists of numbers, at any nesting depth.

    Raises:
        UnsupportedError: The innermost items are not numbers.
    """
    items: Codec
    if isinstance(block.items, FixedSizeList):
        items = list_codec(block.items)
    elif isinstance(block.items, FixedWidth):
        items = Flat(block.items.bits) if block.items.bits else Constant()
    else:
        raise UnsupportedError(
            "items of this kind cannot be encoded", where="fixed size list", found=type(block.items).__name__
        )
    return FixedSizeListCodec(block.dimension, block.validity is not None, items)


def struct_codec(block: PackedStruct) -> packed.PackedStructCodec:
    """Return the codec for packed structs of numbers.

    Raises:
        UnsupportedError: The width of a field is not a whole number of bytes.
    """
    widths = [field.bits // 8 if isinstance(field, FixedWidth) and field.bits % 8 == 0 else 0 for field in block.fields]
    if not all(widths):
        raise UnsupportedError("packed structs with variable-width fields cannot be encoded", where="miniblock")
    return packed.PackedStructCodec(tuple(widths), Flat(8 * sum(widths)))


def fixed_value_bits(block: Block) -> int:
    """Return the bits of a fixed-width value, including the validity of items."""
    if isinstance(block, FixedSizeList):
        own = block.dimension if block.validity is not None else 0
        return own + block.dimension * fixed_value_bits(block.items)
    if isinstance(block, PackedStruct):
        return sum(fixed_value_bits(field) for field in block.fields)
    assert isinstance(block, FixedWidth)
    return block.bits


def _packed_field(field: Block, choice: EncodingOptions) -> packed.PackedField:
    codec = value_codec(field, choice)
    if isinstance(field, VariableWidth):
        return packed.PackedField(0, field.offsets.itemsize, codec)
    if isinstance(codec, FixedSizeListCodec):
        return packed.PackedField(codec.value_bytes, 0, codec)
    if not isinstance(field, FixedWidth) or field.bits % 8:
        raise UnsupportedError(
            "packed structs cannot contain fields of this kind", where="full zip", found=type(field).__name__
        )
    return packed.PackedField(field.bits // 8, 0, codec)


def _single_texts(values: VariableWidth, choice: EncodingOptions) -> Codec:
    plain = Variable(values.offsets.itemsize * 8)
    if choice.compression in ("zstd", "lz4"):
        # Nulls store zero bytes, which pylance takes for a broken LZ4 block.
        return General("zstd", plain, choice.level)
    if choice.compression is None and values.count and int(np.diff(values.offsets).max()) > ALONE_BYTES:
        zstd = General("zstd", plain, choice.level)
        sample = _beginnings(values)
        shrinks = len(zstd.encode_values(sample).data) < WORTH * text_bytes(sample)
        return zstd if shrinks else plain
    return text_codec(values, choice)


def _beginnings(values: VariableWidth) -> VariableWidth:
    """Return the first bytes of a sample of values, which is spread over the whole block."""
    positions = np.unique(np.linspace(0, values.count - 1, SAMPLE_PIECES).astype(np.int64))
    starts, ends = values.offsets[positions].tolist(), values.offsets[positions + 1].tolist()
    parts = [values.data[a : min(b, a + SAMPLE)] for a, b in zip(starts, ends, strict=True)]
    offsets = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    return VariableWidth(offsets, np.concatenate(parts))
