"""Compression of blocks to buffers: the values are inspected, an encoding is chosen, and run once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.compressed import DictionaryBuffer, MiniBlockValues
from lance_duck.encoding.write.codecs.dictionary import find_dictionary
from lance_duck.encoding.write.codecs.fixed_shapes import fixed_value_bits, list_codec, struct_codec, value_codec
from lance_duck.encoding.write.codecs.general import codec_to_compress, compressed, is_compressed
from lance_duck.encoding.write.codecs.levels import compress_levels
from lance_duck.encoding.write.codecs.numbers import even_counts, look_at, pick_numbers, plain_values
from lance_duck.encoding.write.codecs.texts import text_bytes, text_codec, text_counts, text_share
from lance_duck.encoding.write.costs import CHUNK_VALUES, DICTIONARY_TEXTS, SPLIT_BITS, WORTH
from lance_duck.encoding.write.options import CHUNK_BYTES, EncodingOptions
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.bitpacking import BLOCK
from lance_duck.wire.pb import encodings21_pb2 as pb

__all__ = ["compress_block", "compress_levels", "compress_mini_block", "compress_values", "dictionary_if_smaller"]


def dictionary_if_smaller(block: Block, choice: EncodingOptions) -> Block:
    """Return the block with its distinct values in a dictionary, if that makes a page clearly smaller; else the block.

    This comes before the choice of the layout: indices into a dictionary are small, however large the values are.
    """
    if isinstance(block, VariableWidth) and block.count:
        return _texts_as_dictionary(block, choice) or block
    if isinstance(block, FixedWidth) and block.count and block.bits in choice.grammar.dictionary_bits:
        stats = look_at(block)
        least, runs = (stats.least, stats.runs) if stats else (len(block.data), block.count)
        dictionary = find_dictionary(block, choice, least, runs, _items_compressor(choice))
        return dictionary[0] if dictionary else block
    return block


def compress_mini_block(block: Block, choice: EncodingOptions, max_values: int = CHUNK_VALUES) -> MiniBlockValues:
    """Cut values into chunks, and compress them.

    Args:
        block: The value slots of a page.
        choice: Encoding options of the field.
        max_values: Most values of a chunk, a power of two; with fewer than 1024, values are not bit-packed.

    Returns:
        Chunks of a few KiB. A block without values gives one chunk without values.

    Raises:
        UnsupportedError: The block has no miniblock form, or a value is too large for a chunk of 2.1.
    """
    if isinstance(block, Dictionary):
        return _with_dictionary(block, choice, max_values)
    if isinstance(block, FixedWidth):
        return _numbers(block, choice, max_values)
    if isinstance(block, VariableWidth):
        return _texts(block, choice, max_values)
    codec: Codec = list_codec(block) if isinstance(block, FixedSizeList) else struct_codec(block)
    counts = even_counts(block.count, min(max_values, plain_values(fixed_value_bits(block), CHUNK_BYTES)))
    return MiniBlockValues(codec.to_proto(), counts, codec.encode_chunks(block, counts))


def compress_values(block: Block, choice: EncodingOptions) -> tuple[pb.CompressiveEncoding, Block]:
    """Compress each value by itself, for full zip.

    Returns:
        The encoding, and FixedWidth or VariableWidth with one value for each of `block`; offsets are as wide as before.

    Raises:
        UnsupportedError: The block has no per-value form.
    """
    codec = value_codec(block, choice)
    values = codec.encode_values(block)
    if isinstance(block, VariableWidth) and isinstance(values, VariableWidth):
        offsets: NDArray[Any] = values.offsets.astype(block.offsets.dtype, copy=False)
        values = VariableWidth(offsets, values.data)
    return codec.to_proto(), values


def compress_block(block: Block, choice: EncodingOptions) -> tuple[pb.CompressiveEncoding, Bytes]:
    """Compress values to one buffer that is always read as a whole: a dictionary.

    Raises:
        UnsupportedError: The block has no block form.
    """
    codec: Codec
    if isinstance(block, VariableWidth):
        codec = Variable(block.offsets.itemsize * 8)
    elif isinstance(block, FixedWidth):
        codec = _block_numbers(block)
    elif isinstance(block, FixedSizeList):
        codec = list_codec(block)
    else:
        raise UnsupportedError("dictionary of this kind", where="page", found=type(block).__name__)
    data = codec.encode_block(block)
    scheme = choice.dict_compression or "lz4"
    if "general" in choice.grammar.dictionary and scheme in ("lz4", "zstd") and isinstance(codec, (Variable, Flat)):
        general = General(scheme, codec, choice.dict_level if scheme == "zstd" else None)
        smaller = general.compress(data)
        if len(smaller) < WORTH * len(data):
            return general.to_proto(), smaller
    return codec.to_proto(), data


def _texts_as_dictionary(texts: VariableWidth, choice: EncodingOptions) -> Dictionary | None:
    """Return texts with a dictionary, if that is also smaller than FSST symbols make them; else None."""
    offsets = texts.count * texts.offsets.itemsize
    plain = text_bytes(texts) + offsets
    result = find_dictionary(texts, choice, plain, texts.count, _items_compressor(choice))
    if result is None:
        return None
    dictionary, size = result
    if size > DICTIONARY_TEXTS * plain:
        coded = text_share(texts, choice) * text_bytes(texts) + offsets
        return dictionary if size <= coded * choice.dict_size_ratio else None
    return dictionary


def _items_compressor(choice: EncodingOptions) -> Callable[[Block], int] | None:
    """Return a function for the compressed size of a dictionary's items; None when they are not compressed."""
    if "general" not in choice.grammar.dictionary or choice.dict_compression == "none":
        return None
    return lambda items: len(compress_block(items, choice)[1])


def _numbers(block: FixedWidth, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    codec, counts = pick_numbers(block, choice, max_values, look_at(block))
    if is_compressed(choice) and block.bits in SPLIT_BITS and block.count:
        codec, counts = codec_to_compress(block, choice, max_values, (codec, counts))
    return compressed(codec, counts, codec.encode_chunks(block, counts), choice)


def _texts(values: VariableWidth, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    codec = text_codec(values, choice)
    plain = codec.inner if isinstance(codec, Fsst) else codec
    codes = codec.replace(values) if isinstance(codec, Fsst) else values
    counts = text_counts(codes, values.offsets.itemsize, choice.chunk_bytes, max_values)
    buffers = plain.encode_chunks(codes, counts)
    if np.diff(buffers[0][1], prepend=0).max(initial=0) > choice.grammar.max_value_bytes:
        raise UnsupportedError("a value too large for a chunk", where="miniblock")
    return compressed(codec, counts, buffers, choice)


def _with_dictionary(block: Dictionary, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    """Compress the indices of a dictionary as numbers, and its items as a block."""
    if not block.items.count:
        raise UnsupportedError("dictionary without values", where="miniblock")
    indices = np.ascontiguousarray(block.indices)
    places = FixedWidth(indices.itemsize * 8, indices.view(np.uint8), len(indices))
    compression = "none" if choice.compression == "none" else None
    plain = replace(choice, compression=compression, rle_threshold=None)
    codec, counts = pick_numbers(places, plain, max_values, look_at(places))
    encoding, data = compress_block(block.items, choice)
    items = DictionaryBuffer(encoding, data, block.items.count)
    return MiniBlockValues(codec.to_proto(), counts, codec.encode_chunks(places, counts), items)


def _block_numbers(block: FixedWidth) -> Codec:
    """Return the codec of a block of numbers: bit packing if that is smaller, else flat."""
    stats = look_at(block)
    if stats is None or stats.packed >= WORTH * stats.plain:
        return Flat(block.bits)
    if block.count <= BLOCK:
        return InlineBitpacking(block.bits)
    return OutOfLineBitpacking(block.bits, max(1, stats.width))
