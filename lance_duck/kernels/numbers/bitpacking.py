"""Kernels that unpack FastLanes blocks: 1024 values of T bits, packed to W bits each.

A block is a matrix of T rows and 1024 / T lanes. A row therefore has 1024 bits. The value in row r and lane l has
index ORDER[r // 8] * 16 + (r % 8) * 128 + l. The values of a lane are packed one after the other, lowest bit first,
into W words of T bits. Word j of lane l is word j * 1024 / T + l of the block.

The loops process one row of all lanes at a time: shift, combine with the next word, mask, store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, address, copy, load_u8, load_u16, load_u32, load_u64

BLOCK = 1024
ROW_BYTES = 128
ORDER = np.array([0, 4, 2, 6, 1, 5, 3, 7], np.int64)
Word = TypeVar("Word", np.uint8, np.uint16, np.uint32, np.uint64)


def _row(straddles: bool) -> Any:
    def unpack(
        typing_context: Any, out: Any, place: Any, data: Any, source: Any, shift: Any, width: Any
    ) -> tuple[Any, Callable[..., Any]]:
        bits = out.dtype.bitwidth
        lanes = ROW_BYTES * 8 // bits

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(bits)
            row = ir.VectorType(word, lanes)

            def splat(scalar: Any) -> Any:
                single = builder.insert_element(ir.Constant(row, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
                zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
                return builder.shuffle_vector(single, ir.Constant(row, ir.Undefined), zeros)

            def narrow(number: Any) -> Any:
                return number if bits == 64 else builder.trunc(number, word)

            def load(offset: Any) -> Any:
                return builder.load(address(context, builder, signature.args[2], args[2], offset, row), align=1)

            amount = narrow(args[4])
            values = builder.lshr(load(args[3]), splat(amount))
            if straddles:
                after = load(builder.add(args[3], ir.Constant(ir.IntType(64), ROW_BYTES)))
                rest = builder.sub(ir.Constant(word, bits), amount)
                values = builder.or_(values, builder.shl(after, splat(rest)))
            spare = builder.sub(ir.Constant(word, bits), narrow(args[5]))
            values = builder.and_(values, splat(builder.lshr(ir.Constant(word, -1), spare)))
            target = address(context, builder, signature.args[0], args[0], args[1], row)
            builder.store(values, target, align=1)
            return context.get_dummy_value()

        signature = types.void(out, types.int64, data, types.int64, types.int64, types.int64)
        return signature, generate

    return intrinsic(unpack)


_inner_row = _row(straddles=False)
_straddling_row = _row(straddles=True)


@subroutine
def unpack_block(out: NDArray[Word], place: int, data: Bytes, source: int, width: int) -> None:
    """Unpack the block of `width` * 128 bytes at `source` into out[place : place + 1024].

    Args:
        out: Unsigned words of T bits.
        place: Index of the first value to write. `out` has room for 1024 values.
        data: Buffer that holds the block.
        source: Byte offset of the block.
        width: W, 0 to T.
    """
    size = out.itemsize
    bits = size * 8
    base = place * size
    if width == 0:
        for i in range(BLOCK):
            out[place + i] = 0
        return
    first = 0
    for row in range(bits):
        target = base + (ORDER[row >> 3] * 16 + (row & 7) * 128) * size
        word = first // bits
        shift = first - word * bits
        if shift + width <= bits:
            _inner_row(out, target, data, source + word * ROW_BYTES, shift, width)
        else:
            _straddling_row(out, target, data, source + word * ROW_BYTES, shift, width)
        first += width


def unpack_block_reference(out: NDArray[Word], place: int, data: Bytes, source: int, width: int) -> None:
    """Reference implementation in plain Python, value by value."""
    bits = out.itemsize * 8
    lanes = BLOCK // bits
    packed = data[source : source + width * ROW_BYTES].view(out.dtype).reshape(width, lanes).tolist()
    for lane in range(lanes):
        lane_bits = sum(packed[j][lane] << (j * bits) for j in range(width))
        for row in range(bits):
            value = (lane_bits >> (row * width)) & ((1 << width) - 1)
            out[place + int(ORDER[row // 8]) * 16 + (row % 8) * 128 + lane] = value


@subroutine
def load_word(data: Bytes, source: int, size: int) -> np.uint64:
    """Load a word of 1, 2, 4 or 8 bytes."""
    if size == 1:
        return np.uint64(load_u8(data, source))
    if size == 2:
        return np.uint64(load_u16(data, source))
    if size == 4:
        return np.uint64(load_u32(data, source))
    return np.uint64(load_u64(data, source))


@kernel
def unpack_inline(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[Word],
    scratch: NDArray[Word],
) -> int:
    """Unpack chunks whose blocks each begin with their bit width, stored as a word.

    Args:
        data: Buffer that holds the chunks. Their extents are already checked.
        starts: Byte offset of each chunk.
        sizes: Size of each chunk, in bytes.
        counts: Number of values of each chunk.
        out: counts.sum() words, output.
        scratch: 1024 words of scratch space.

    Returns:
        A status.
    """
    word = out.itemsize
    place = 0
    for i in range(len(starts)):
        source = starts[i]
        end = source + sizes[i]
        rest = counts[i]
        while rest > 0:
            if end - source < word:
                return status.TOO_SHORT | (i << 8)
            stored = load_word(data, source, out.itemsize)
            if stored > np.uint64(word * 8):
                return status.BAD_WIDTH | (i << 8)
            width: Any = np.int64(stored)
            source += word
            if end - source < width * ROW_BYTES:
                return status.TOO_SHORT | (i << 8)
            count = min(rest, BLOCK)
            if count == BLOCK:
                unpack_block(out, place, data, source, width)
            else:
                unpack_block(scratch, 0, data, source, width)
                copy(out, place * word, scratch, 0, count * word)
            source += width * ROW_BYTES
            place += count
            rest -= count
    return status.OK


def unpack_inline_reference(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    out: NDArray[Word],
    scratch: NDArray[Word],
) -> int:
    """Reference implementation in plain Python."""
    word = out.itemsize
    place = 0
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        buffer = data[start : start + size]
        for first in range(0, count, BLOCK):
            if len(buffer) < word:
                return status.TOO_SHORT | (i << 8)
            width = int.from_bytes(buffer[:word].tobytes(), "little")
            if width > word * 8:
                return status.BAD_WIDTH | (i << 8)
            if len(buffer) < word + width * ROW_BYTES:
                return status.TOO_SHORT | (i << 8)
            unpack_block_reference(scratch, 0, np.ascontiguousarray(buffer), word, width)
            length = min(BLOCK, count - first)
            out[place : place + length] = scratch[:length]
            place += length
            buffer = buffer[word + width * ROW_BYTES :]
    return status.OK


@kernel
def unpack_fixed(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    out: NDArray[Word],
    scratch: NDArray[Word],
) -> int:
    """Unpack chunks whose blocks share one bit width. The last values of a chunk may be stored unpacked.

    The tail (count % 1024 values) is stored as raw words if the buffer's size matches exactly. Otherwise, it is a
    padded block.
    Takes the same arguments as `unpack_inline`, and `width`: W, 1 to T. Returns a status.
    """
    word = out.itemsize
    packed = width * ROW_BYTES
    place = 0
    for i in range(len(starts)):
        source = starts[i]
        full = counts[i] // BLOCK
        tail = counts[i] - full * BLOCK
        raw = tail > 0 and sizes[i] == full * packed + tail * word
        if not raw and sizes[i] < (full + (tail > 0)) * packed:
            return status.TOO_SHORT | (i << 8)
        for _ in range(full):
            unpack_block(out, place, data, source, width)
            source += packed
            place += BLOCK
        if raw:
            copy(out, place * word, data, source, tail * word)
        elif tail > 0:
            unpack_block(scratch, 0, data, source, width)
            copy(out, place * word, scratch, 0, tail * word)
        place += tail
    return status.OK


def unpack_fixed_reference(
    data: Bytes,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    counts: NDArray[np.int64],
    width: int,
    out: NDArray[Word],
    scratch: NDArray[Word],
) -> int:
    """Reference implementation in plain Python."""
    word = out.itemsize
    place = 0
    for i, (start, size, count) in enumerate(zip(starts.tolist(), sizes.tolist(), counts.tolist(), strict=True)):
        buffer = np.ascontiguousarray(data[start : start + size])
        full, tail = divmod(count, BLOCK)
        raw = tail > 0 and size == full * width * ROW_BYTES + tail * word
        blocks = full + (tail > 0 and not raw)
        if size < blocks * width * ROW_BYTES:
            return status.TOO_SHORT | (i << 8)
        values = np.zeros(blocks * BLOCK, out.dtype)
        for block in range(blocks):
            unpack_block_reference(values, block * BLOCK, buffer, block * width * ROW_BYTES, width)
        if raw:
            values = np.concatenate([values, buffer[full * width * ROW_BYTES :].view(out.dtype)])
        out[place : place + count] = values[:count]
        place += count
    return status.OK
