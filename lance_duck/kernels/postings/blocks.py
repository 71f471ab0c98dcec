"""Kernels for posting blocks. `index.inverted.codecs.blocks` describes their bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, as_readonly, load_u32, store_u8, store_u32
from lance_duck.kernels.postings.lanes import unpack_lanes, unpack_sums
from lance_duck.kernels.postings.packing import bits_of, pack_lanes, read_varint, varint_size, write_varint

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]

LARGE: Final = 256
"""Size of a large block, in documents. Large blocks do not store a score, and list high frequencies separately."""
MOST_EXCEPTIONS: Final = 31


@kernel
def decode_postings(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    limit: int,
    ids: UInt32s,
    frequencies: UInt32s,
) -> int:
    """Decode the postings of terms, concatenated in the order of the terms.

    Args:
        data: Bytes of all blocks.
        offsets: Byte offset of each block, and the end of the last one.
        lists: (terms + 1,), first block of each term, and the total block count.
        lengths: Number of documents of each term.
        block_size: 128 or 256.
        is_varint: Whether the numbers in a term's last block are varints. If False, they are 32-bit words.
        limit: Number of documents of the partition. All ids are smaller.
        ids: (lengths.sum(),), output: document ids, ascending for each term.
        frequencies: (lengths.sum(),), output: at least 1.

    Returns:
        A status with the index of a term.
    """
    size, place = len(data), 0
    for term in range(len(lengths)):
        first, last, rest = lists[term], lists[term + 1], lengths[term]
        if first < 0 or last < first or last >= len(offsets) or rest > (last - first) * block_size:
            return status.BAD_LENGTH | (term << 8)
        if rest <= (last - first - 1) * block_size or rest < 0 or place + rest > len(ids):
            return status.BAD_LENGTH | (term << 8)
        previous = np.int64(-1)
        for block in range(first, last):
            count = min(rest, block_size)
            begin, end = offsets[block], offsets[block + 1]
            if begin < 0 or end < begin or end > size:
                return status.BAD_OFFSETS | (term << 8)
            code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, place)
            if code != status.OK:
                return int(code | (term << 8))
            for i in range(place, place + count):
                if np.int64(ids[i]) <= previous or np.int64(ids[i]) >= limit or frequencies[i] == 0:
                    return status.BAD_VALUE | (term << 8)
                previous = np.int64(ids[i])
            place += count
            rest -= count
    return status.OK


@kernel
def bound_documents(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    limit: int,
    last: Int64s,
) -> int:
    """Write an upper bound of each block's last document. It is one less than the next block's first document.

    Args:
        data: See `decode_postings`.
        offsets: See `decode_postings`.
        lists: See `decode_postings`.
        lengths: See `decode_postings`.
        block_size: See `decode_postings`.
        is_varint: See `decode_postings`.
        limit: See `decode_postings`.
        last: (blocks,), output.

    Returns:
        A status with the index of a term.
    """
    for term in range(len(lengths)):
        first, stop = lists[term], lists[term + 1]
        if first < 0 or stop < first or stop >= len(offsets) or stop > len(last):
            return status.BAD_LENGTH | (term << 8)
        bound = np.int64(limit - 1)
        for block in range(stop - 1, first - 1, -1):
            last[block] = bound
            begin, end = offsets[block], offsets[block + 1]
            if begin < 0 or end < begin or end > len(data):
                return status.BAD_OFFSETS | (term << 8)
            is_full = lengths[term] >= (block - first + 1) * block_size
            document = _first_document(data, _first_byte(begin, block_size), end, is_full or not is_varint)
            if document < 0 or document > bound:
                return status.BAD_VALUE | (term << 8)
            bound = document - 1
    return status.OK


@subroutine
def _first_document(data: Any, at: Any, end: Any, is_word: Any) -> Any:
    """Return a block's first document, stored as a word or a varint. Returns -1 if the block is too short."""
    if is_word:
        return np.int64(load_u32(data, at)) if end - at >= 4 else np.int64(-1)
    document, at = read_varint(data, at, end)
    return np.int64(document) if at >= 0 else np.int64(-1)


@subroutine
def decode_block(
    data: Any,
    begin: Any,
    end: Any,
    count: Any,
    block_size: Any,
    is_varint: Any,
    ids: Any,
    frequencies: Any,
    place: Any,
) -> Any:
    """Decode the `count` documents of a block, and write them from `place` on. Returns a status without an index.

    Ids are sums modulo 2**32. The caller checks that they ascend.
    """
    if count < block_size:
        return _decode_tail(data, _first_byte(begin, block_size), end, count, is_varint, ids, frequencies, place)
    at, code = _decode_full(data, begin, end, block_size, ids, place)
    if code != status.OK:
        return code
    if block_size == LARGE:
        return _decode_patched(data, at, end, frequencies, place)
    lanes, width = block_size >> 5, np.int64(data[at])
    if width > 32:
        return status.BAD_WIDTH
    if end - at != width * lanes * 4 + 1:
        return status.BAD_LENGTH
    unpack_lanes(data, at + 1, width, lanes, frequencies, place)
    return status.OK


@subroutine
def decode_documents(
    data: Any, begin: Any, end: Any, count: Any, block_size: Any, is_varint: Any, ids: Any, frequencies: Any
) -> Any:
    """Decode a block's documents. Also decodes its frequencies if the block is not full. See `decode_block`."""
    if count < block_size:
        return _decode_tail(data, _first_byte(begin, block_size), end, count, is_varint, ids, frequencies, 0)
    return _decode_full(data, begin, end, block_size, ids, 0)[1]


@subroutine
def frequency_in(data: Any, begin: Any, end: Any, i: Any) -> Any:
    """Return a document's frequency in a full block of 128 documents, or 0 if the block is corrupt."""
    at = begin + 9 + np.int64(data[begin + 8]) * 16
    width = np.int64(data[at])
    if width == 0 or width > 32 or end - at != width * 16 + 1:
        return np.uint32(0)
    bit = (i >> 2) * width
    at += 1 + (bit >> 5) * 16 + (i & 3) * 4
    shift = bit & 31
    value = np.uint32(load_u32(data, at) >> np.uint32(shift))
    if shift + width > 32:
        value |= np.uint32(load_u32(data, at + 16) << np.uint32(32 - shift))
    return np.uint32(value & (np.uint32(0xFFFFFFFF) >> np.uint32(32 - width)))


@subroutine
def _first_byte(begin: Any, block_size: Any) -> Any:
    """Return the start of a block's data. It follows the score, if the block stores one."""
    return begin if block_size == LARGE else begin + 4


@subroutine
def _decode_full(data: Any, begin: Any, end: Any, block_size: Any, ids: Any, place: Any) -> Any:
    """Decode the documents of a full block. Returns (start of its frequencies, status without an index)."""
    at, lanes = _first_byte(begin, block_size), block_size >> 5
    if end - at < 6:
        return at, status.TOO_SHORT
    value, width = np.uint32(load_u32(data, at)), np.int64(data[at + 4])
    at += 5
    if width > 32:
        return at, status.BAD_WIDTH
    if end - at < width * lanes * 4 + 1:
        return at, status.TOO_SHORT
    unpack_sums(value, data, at, width, lanes, ids, place)
    return at + width * lanes * 4, status.OK


@subroutine
def _decode_tail(
    data: Any, at: Any, end: Any, count: Any, is_varint: Any, ids: Any, frequencies: Any, place: Any
) -> Any:
    if not is_varint:
        if end - at != count * 8:
            return status.BAD_LENGTH
        for i in range(count):
            ids[place + i] = load_u32(data, at + i * 4)
            frequencies[place + i] = load_u32(data, at + (count + i) * 4)
        return status.OK
    previous = np.int64(0)
    for i in range(count):
        value, at = read_varint(data, at, end)
        previous += value
        if at < 0 or previous > 0xFFFFFFFF:
            return status.TOO_SHORT
        ids[place + i] = np.uint32(previous)
    for i in range(count):
        value, at = read_varint(data, at, end)
        if at < 0 or value > 0xFFFFFFFF:
            return status.TOO_SHORT
        frequencies[place + i] = np.uint32(value)
    return status.OK if at == end else status.TRAILING


@subroutine
def _decode_patched(data: Any, at: Any, end: Any, frequencies: Any, place: Any) -> Any:
    if end - at < 2:
        return status.TOO_SHORT
    width, exceptions = np.int64(data[at]), np.int64(data[at + 1])
    at += 2
    if width > 32:
        return status.BAD_WIDTH
    if end - at < width * 32:
        return status.TOO_SHORT
    unpack_lanes(data, at, width, 8, frequencies, place)
    at += width * 32
    for _ in range(exceptions):
        if at >= end:
            return status.TOO_SHORT
        index = np.int64(data[at])
        value, at = read_varint(data, at + 1, end)
        if at < 0 or width + bits_of(value) > 32:
            return status.TOO_SHORT
        frequencies[place + index] |= np.uint32(value << width)
    return status.OK if at == end else status.TRAILING


@kernel
def encode_postings(
    bounds: Int64s,
    ids: UInt32s,
    frequencies: UInt32s,
    scores: NDArray[np.float32],
    block_size: int,
    is_varint: bool,
    out: Bytes,
    offsets: Int64s,
    scratch: UInt32s,
) -> int:
    """Encode postings as blocks.

    Args:
        bounds: First posting of each term, and the end of the last term; ascending, within `ids`.
        ids: (postings,), document ids, ascending for each term.
        frequencies: (postings,), at least 1.
        scores: Upper bound of each block's score. Not read for blocks of 256.
        block_size: 128 or 256.
        is_varint: Whether to write the numbers in a term's last block as varints. If False, they are 32-bit words.
        out: Output. 10 bytes for each posting, and 10 for each block, are enough.
        offsets: Output: byte offset of each block, and the end of the last one.
        scratch: (256,), scratch space.

    Returns:
        Number of bytes written, or -1 if `out` or `offsets` is too small.
    """
    at, block = np.int64(0), 0
    words = scores.view(np.uint32)
    for term in range(len(bounds) - 1):
        for place in range(bounds[term], bounds[term + 1], block_size):
            count = min(block_size, bounds[term + 1] - place)
            if len(out) - at < 10 * (count + 1) or block + 1 >= len(offsets):
                return -1
            offsets[block] = at
            if block_size != LARGE:
                store_u32(out, at, words[block])
                at += 4
            if count < block_size:
                at = _encode_tail(ids, frequencies, place, count, is_varint, out, at)
            else:
                at = _encode_full(ids, frequencies, place, block_size, out, at, scratch)
            block += 1
    offsets[block] = at
    return int(at)


@subroutine
def _encode_tail(ids: Any, frequencies: Any, place: Any, count: Any, is_varint: Any, out: Any, at: Any) -> Any:
    if not is_varint:
        for i in range(count):
            store_u32(out, at + i * 4, ids[place + i])
            store_u32(out, at + (count + i) * 4, frequencies[place + i])
        return at + count * 8
    previous = np.int64(0)
    for i in range(place, place + count):
        at = write_varint(out, at, np.int64(ids[i]) - previous)
        previous = np.int64(ids[i])
    for i in range(place, place + count):
        at = write_varint(out, at, np.int64(frequencies[i]))
    return at


@subroutine
def _encode_full(ids: Any, frequencies: Any, place: Any, block_size: Any, out: Any, at: Any, scratch: Any) -> Any:
    lanes = block_size >> 5
    store_u32(out, at, ids[place])
    together = np.uint32(0)
    scratch[0] = np.uint32(0)
    for i in range(1, block_size):
        delta = np.uint32(ids[place + i] - ids[place + i - 1])
        scratch[i] = delta
        together |= delta
    width = bits_of(together)
    store_u8(out, at + 4, np.uint8(width))
    pack_lanes(as_readonly(scratch), 0, width, lanes, out, at + 5)
    at += 5 + width * lanes * 4
    if block_size == LARGE:
        return _encode_patched(frequencies, place, out, at, scratch)
    together = np.uint32(0)
    for i in range(place, place + block_size):
        together |= frequencies[i]
    width = bits_of(together)
    store_u8(out, at, np.uint8(width))
    pack_lanes(frequencies, place, width, lanes, out, at + 1)
    return at + 1 + width * lanes * 4


@subroutine
def _encode_patched(frequencies: Any, place: Any, out: Any, at: Any, scratch: Any) -> Any:
    best, best_size = np.int64(32), np.int64(1 << 40)
    for width in range(33):
        size, exceptions = np.int64(width * 32), 0
        for i in range(place, place + LARGE):
            high = np.int64(frequencies[i]) >> width
            if high:
                size += 1 + varint_size(high)
                exceptions += 1
        if exceptions <= MOST_EXCEPTIONS and size < best_size:
            best, best_size = np.int64(width), size
    mask = np.int64((1 << best) - 1)
    exceptions = 0
    for i in range(LARGE):
        value = np.int64(frequencies[place + i])
        scratch[i] = np.uint32(value & mask)
        exceptions += int(value > mask)
    store_u8(out, at, np.uint8(best))
    store_u8(out, at + 1, np.uint8(exceptions))
    pack_lanes(as_readonly(scratch), 0, best, 8, out, at + 2)
    at += 2 + best * 32
    for i in range(LARGE):
        high = np.int64(frequencies[place + i]) >> best
        if high:
            store_u8(out, at, np.uint8(i))
            at = write_varint(out, at + 1, high)
    return at
