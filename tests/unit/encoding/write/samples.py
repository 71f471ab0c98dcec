"""Blocks to encode, and their decoded values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.codec import Chunks, Codec
from lance_duck.encoding.codecs.registry import codec_from_proto
from lance_duck.encoding.compressed import ChunkBuffer, MiniBlockValues

SIZES = [1, 7, 1023, 1024, 1025, 2500]
BITS = [8, 16, 32, 64]


def numbers(values: NDArray[Any]) -> FixedWidth:
    """A block of the array's numbers."""
    return FixedWidth(values.itemsize * 8, values.view(np.uint8), len(values))


def flags(values: Sequence[int]) -> FixedWidth:
    """A block of bits."""
    return FixedWidth(1, np.array(values, np.uint8), len(values))


def texts(values: Sequence[bytes], skip: int = 0, width: int = 4) -> VariableWidth:
    """A block of values of any length, `skip` bytes into its data."""
    offsets = np.cumsum([skip, *map(len, values)]).astype(f"i{width}")
    return VariableWidth(offsets, np.frombuffer(b"\xff" * skip + b"".join(values) + b"\xfe", np.uint8))


def drawn(bits: int, width: int, count: int, seed: int = 0) -> NDArray[Any]:
    """Random unsigned numbers that use `width` bits."""
    raw = np.random.default_rng(seed).integers(0, 1 << 64, count, np.uint64, endpoint=False)
    return (raw >> np.uint64(64 - width) if width else raw * np.uint64(0)).astype(f"u{bits // 8}")


def plain(block: Block) -> list[Any]:
    """The values of a block."""
    match block:
        case FixedWidth(bits, data, count):
            size = max(1, bits // 8)
            return [data[i * size : (i + 1) * size].tobytes() for i in range(count)]
        case VariableWidth(offsets, data):
            return [data[a:b].tobytes() for a, b in pairwise(offsets.tolist())]
        case Dictionary(indices, items):
            values = plain(items)
            return [values[i] for i in indices.tolist()]
        case FixedSizeList(dimension, items, validity, count):
            values = plain(items)
            if validity is not None:
                values = [value if valid else None for value, valid in zip(values, validity.tolist(), strict=True)]
            return [values[i * dimension : (i + 1) * dimension] for i in range(count)]
        case PackedStruct(fields, _):
            return list(zip(*map(plain, fields), strict=True))
    raise AssertionError(block)


def chunks_of(buffers: Sequence[ChunkBuffer], counts: NDArray[np.int64]) -> Chunks:
    """The buffers as a reader finds them."""
    starts, sizes, base = [], [], 0
    for data, ends in buffers:
        assert len(ends) == len(counts)
        assert int(ends[-1]) == len(data)
        begins = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        starts.append(base + begins)
        sizes.append(ends - begins)
        base += len(data)
    joined = np.concatenate([data for data, _ in buffers])
    return Chunks(joined, np.array(starts), np.array(sizes), counts)


def again(codec: Codec) -> Codec:
    """The codec that a reader makes of its description."""
    return codec_from_proto(codec.to_proto())


def through_chunks(codec: Codec, block: Block, counts: Sequence[int]) -> list[Any]:
    """The values, encoded to chunks and decoded."""
    numbers = np.array(counts, np.int64)
    buffers = codec.encode_chunks(block, numbers)
    reader = again(codec)
    assert reader.num_buffers == len(buffers)
    return plain(reader.decode_chunks(chunks_of(buffers, numbers)))


def through_block(codec: Codec, block: Block) -> list[Any]:
    """The values, encoded to one buffer and decoded."""
    return plain(again(codec).decode_block(codec.encode_block(block), block.count))


def through_values(codec: Codec, block: Block) -> list[Any]:
    """The values, encoded one by one and decoded."""
    return plain(again(codec).decode_values(codec.encode_values(block)))


def read_back(values: MiniBlockValues) -> list[Any]:
    """The values of a page."""
    assert all(count & (count - 1) == 0 for count in values.counts[:-1].tolist())
    codec = codec_from_proto(values.encoding)
    assert codec.num_buffers == values.num_buffers
    block = codec.decode_chunks(chunks_of(values.buffers, values.counts))
    if values.dictionary is not None:
        assert isinstance(block, FixedWidth)
        items = codec_from_proto(values.dictionary.encoding)
        found = items.decode_block(values.dictionary.data, values.dictionary.count)
        block = Dictionary(block.data.view(f"u{block.bits // 8}"), found)
    return plain(block)
