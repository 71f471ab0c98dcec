"""Compresses blocks and levels to buffers: inspects the values, chooses an encoding, and runs it once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.arrow.take import slice_block
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, VariableWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.encoding.codecs.byte_stream_split import ByteStreamSplit
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.fsst import Fsst
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.codecs.rle import HEAD, Rle
from lance_duck.encoding.codecs.variable import Variable
from lance_duck.encoding.compressed import ChunkBuffer, DictionaryBuffer, MiniBlockValues
from lance_duck.encoding.layouts.levels import LEVEL_BITS
from lance_duck.encoding.write.codecs.dictionary import find_dictionary
from lance_duck.encoding.write.codecs.fixed_shapes import fixed_value_bits, list_codec, struct_codec, value_codec
from lance_duck.encoding.write.codecs.numbers import even_counts, look_at, pick_numbers, plain_values
from lance_duck.encoding.write.codecs.texts import text_bytes, text_codec, text_counts, text_share
from lance_duck.encoding.write.costs import (
    CHUNK_VALUES,
    COMPRESSED_BYTES,
    DICTIONARY_TEXTS,
    SAMPLE,
    SPLIT_BITS,
    SPLIT_PIECES,
    WORTH,
)
from lance_duck.encoding.write.options import CHUNK_BYTES, EncodingOptions
from lance_duck.errors import UnsupportedError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.bitpacking import BLOCK
from lance_duck.kernels.numbers.rle_encode import count_runs
from lance_duck.wire.pb import encodings21_pb2 as pb

_Picked = tuple[Codec, NDArray[np.int64]]
"""A codec, and the value count of each chunk."""


def dictionary_if_smaller(block: Block, choice: EncodingOptions) -> Block:
    """Return the block with a dictionary, if that makes a page clearly smaller. Otherwise, returns the block.

    This precedes the choice of the layout, because dictionary indices are small even if the values are large.
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
        max_values: Maximum number of values in a chunk, a power of two. If it is below 1024, values are not bit-packed.

    Returns:
        Chunks of a few KiB. An empty block gives one empty chunk.

    Raises:
        UnsupportedError: The block cannot be stored as miniblock, or a value is too large for a chunk of 2.1.
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
    """Compress each value separately, for full zip.

    Returns:
        The encoding, and a FixedWidth or VariableWidth block with one value per value of `block`. Offsets keep their
        width.

    Raises:
        UnsupportedError: The block's values cannot be compressed one by one.
    """
    codec = value_codec(block, choice)
    values = codec.encode_values(block)
    if isinstance(block, VariableWidth) and isinstance(values, VariableWidth):
        offsets: NDArray[Any] = values.offsets.astype(block.offsets.dtype, copy=False)
        values = VariableWidth(offsets, values.data)
    return codec.to_proto(), values


def compress_block(block: Block, choice: EncodingOptions) -> tuple[pb.CompressiveEncoding, Bytes]:
    """Compress values to one buffer that is always read as a whole. Used for dictionaries.

    Raises:
        UnsupportedError: The kind of block cannot be a dictionary.
    """
    codec: Codec
    if isinstance(block, VariableWidth):
        codec = Variable(block.offsets.itemsize * 8)
    elif isinstance(block, FixedWidth):
        codec = _block_numbers(block)
    elif isinstance(block, FixedSizeList):
        codec = list_codec(block)
    else:
        raise UnsupportedError("dictionaries of this kind cannot be encoded", where="page", found=type(block).__name__)
    data = codec.encode_block(block)
    scheme = choice.dict_compression or "lz4"
    if "general" in choice.grammar.dictionary and scheme in ("lz4", "zstd") and isinstance(codec, (Variable, Flat)):
        general = General(scheme, codec, choice.dict_level if scheme == "zstd" else None)
        smaller = general.compress(data)
        if len(smaller) < WORTH * len(data):
            return general.to_proto(), smaller
    return codec.to_proto(), data


def _texts_as_dictionary(texts: VariableWidth, choice: EncodingOptions) -> Dictionary | None:
    """Return texts as a dictionary, or None if plain texts or FSST would be smaller."""
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
    """Return a function that computes the compressed size of dictionary items, or None if they stay uncompressed."""
    if "general" not in choice.grammar.dictionary or choice.dict_compression == "none":
        return None
    return lambda items: len(compress_block(items, choice)[1])


def _numbers(block: FixedWidth, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    codec, counts = pick_numbers(block, choice, max_values, look_at(block))
    if _is_compressed(choice) and block.bits in SPLIT_BITS and block.count:
        codec, counts = _codec_to_compress(block, choice, max_values, (codec, counts))
    return _compressed(codec, counts, codec.encode_chunks(block, counts), choice)


def _texts(values: VariableWidth, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    codec = text_codec(values, choice)
    plain = codec.inner if isinstance(codec, Fsst) else codec
    codes = codec.replace(values) if isinstance(codec, Fsst) else values
    counts = text_counts(codes, values.offsets.itemsize, choice.chunk_bytes, max_values)
    buffers = plain.encode_chunks(codes, counts)
    if np.diff(buffers[0][1], prepend=0).max(initial=0) > choice.grammar.max_value_bytes:
        raise UnsupportedError("the value is too large for a chunk", where="miniblock")
    return _compressed(codec, counts, buffers, choice)


def _with_dictionary(block: Dictionary, choice: EncodingOptions, max_values: int) -> MiniBlockValues:
    """Compress the indices of a dictionary as numbers, and its items as a block."""
    if not block.items.count:
        raise UnsupportedError("a dictionary without values cannot be encoded", where="miniblock")
    indices = np.ascontiguousarray(block.indices)
    places = FixedWidth(indices.itemsize * 8, indices.view(np.uint8), len(indices))
    compression = "none" if choice.compression == "none" else None
    plain = replace(choice, compression=compression, rle_threshold=None)
    codec, counts = pick_numbers(places, plain, max_values, look_at(places))
    encoding, data = compress_block(block.items, choice)
    items = DictionaryBuffer(encoding, data, block.items.count)
    return MiniBlockValues(codec.to_proto(), counts, codec.encode_chunks(places, counts), items)


def _block_numbers(block: FixedWidth) -> Codec:
    """Return the codec of a number block: bit packing if that is smaller, otherwise flat."""
    stats = look_at(block)
    if stats is None or stats.packed >= WORTH * stats.plain:
        return Flat(block.bits)
    if block.count <= BLOCK:
        return InlineBitpacking(block.bits)
    return OutOfLineBitpacking(block.bits, max(1, stats.width))


def compress_levels(
    levels: NDArray[Any], ends: NDArray[np.int64], max_level: int, allowed: frozenset[str]
) -> tuple[pb.CompressiveEncoding, Bytes, NDArray[np.int64]]:
    """Compress the repetition or definition levels of chunks.

    Args:
        levels: uint8 or uint16, each <= max_level.
        ends: int64 (k,), end of each chunk in `levels`.
        max_level: Highest possible level.
        allowed: Encodings of levels in this file version: see `write.grammar`.

    Returns:
        The encoding, the joined bytes of all chunks, and the end of each chunk's bytes, int64 (k,).
    """
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    words = levels.astype("<u2")
    block = FixedWidth(LEVEL_BITS, words.view(np.uint8), len(words))
    packed = OutOfLineBitpacking(LEVEL_BITS, max(1, max_level.bit_length()))
    if "rle" in allowed and _run_bytes(words, counts) < WORTH * int(packed.sizes(counts).sum()):
        rle = Rle(LEVEL_BITS)
        return rle.to_proto(), *rle.encode_blocks(block, counts)
    ((data, byte_ends),) = packed.encode_chunks(block, counts)
    return packed.to_proto(), data, byte_ends


def _run_bytes(words: NDArray[np.uint16], counts: NDArray[np.int64]) -> int:
    """Return the run-length encoded size of all chunks' levels, in bytes."""
    runs = np.empty(len(counts), np.int64)
    count_runs(readonly(words), counts, runs)
    return len(counts) * HEAD + int(runs.sum()) * 3


def _is_compressed(choice: EncodingOptions) -> bool:
    """Return whether the field requests general compression."""
    return choice.compression in ("zstd", "lz4")


def _codec_to_compress(block: FixedWidth, choice: EncodingOptions, max_values: int, value_codec: _Picked) -> _Picked:
    """Return the codec that makes a sample smallest after general compression."""
    plain = even_counts(block.count, min(max_values, plain_values(block.bits, choice.chunk_bytes)))
    split = ByteStreamSplit(block.bits), plain
    if choice.bss == "on":
        return split
    candidates = [value_codec, (Flat(block.bits), plain), *([] if choice.bss == "off" else [split])]
    sizes = []
    for codec, counts in candidates:
        size = 0
        for part in _pieces(block):
            own = even_counts(part.count, int(counts[0]))
            buffers = _compressed(codec, own, codec.encode_chunks(part, own), choice).buffers
            size += sum(len(data) for data, _ in buffers)
        sizes.append(size)
    return candidates[int(np.argmin(sizes))]


def _compressed(
    codec: Codec, counts: NDArray[np.int64], buffers: tuple[ChunkBuffer, ...], choice: EncodingOptions
) -> MiniBlockValues:
    """Apply general compression to chunk buffers, if the field requests it and they become smaller."""
    plain = MiniBlockValues(codec.to_proto(), counts, buffers)
    size = len(buffers[0][0])
    if not _is_compressed(choice) or size < COMPRESSED_BYTES:
        return plain
    assert choice.compression is not None
    general = General(choice.compression, codec, choice.level if choice.compression == "zstd" else None)
    smaller = general.compress_first(buffers)
    return MiniBlockValues(general.to_proto(), counts, smaller) if len(smaller[0][0]) < size else plain


def _pieces(block: FixedWidth) -> list[FixedWidth]:
    """Return slices of the values, spread over the whole block."""
    if block.count <= SPLIT_PIECES * SAMPLE:
        return [block]
    starts = np.linspace(0, block.count - SAMPLE, SPLIT_PIECES).astype(np.int64).tolist()
    parts = [slice_block(block, start, start + SAMPLE) for start in starts]
    return [part for part in parts if isinstance(part, FixedWidth)]
