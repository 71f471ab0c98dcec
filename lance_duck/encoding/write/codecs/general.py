"""General compression of chunks that are encoded already, where a field asks for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.arrow.take import slice_block
from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codec import Codec
from lance_duck.encoding.codecs.byte_stream_split import ByteStreamSplit
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.codecs.general import General
from lance_duck.encoding.compressed import ChunkBuffer, MiniBlockValues
from lance_duck.encoding.write.codecs.numbers import even_counts, plain_values
from lance_duck.encoding.write.costs import COMPRESSED_BYTES, SAMPLE, SPLIT_PIECES
from lance_duck.encoding.write.options import EncodingOptions

Picked = tuple[Codec, NDArray[np.int64]]
"""A codec, and the number of values of each chunk."""


def is_compressed(choice: EncodingOptions) -> bool:
    """Return whether the field asks for general compression."""
    return choice.compression in ("zstd", "lz4")


def codec_to_compress(block: FixedWidth, choice: EncodingOptions, max_values: int, value_codec: Picked) -> Picked:
    """Pick the codec that, with general compression, makes a sample smallest."""
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
            buffers = compressed(codec, own, codec.encode_chunks(part, own), choice).buffers
            size += sum(len(data) for data, _ in buffers)
        sizes.append(size)
    return candidates[int(np.argmin(sizes))]


def compressed(
    codec: Codec, counts: NDArray[np.int64], buffers: tuple[ChunkBuffer, ...], choice: EncodingOptions
) -> MiniBlockValues:
    """Return buffers of chunks, with general compression if the field asks for it and they become smaller."""
    plain = MiniBlockValues(codec.to_proto(), counts, buffers)
    size = len(buffers[0][0])
    if not is_compressed(choice) or size < COMPRESSED_BYTES:
        return plain
    assert choice.compression is not None
    general = General(choice.compression, codec, choice.level if choice.compression == "zstd" else None)
    smaller = general.compress_first(buffers)
    return MiniBlockValues(general.to_proto(), counts, smaller) if len(smaller[0][0]) < size else plain


def _pieces(block: FixedWidth) -> list[FixedWidth]:
    """Return pieces of the values, from all over the block."""
    if block.count <= SPLIT_PIECES * SAMPLE:
        return [block]
    starts = np.linspace(0, block.count - SAMPLE, SPLIT_PIECES).astype(np.int64).tolist()
    parts = [slice_block(block, start, start + SAMPLE) for start in starts]
    return [part for part in parts if isinstance(part, FixedWidth)]
