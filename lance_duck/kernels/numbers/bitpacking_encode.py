"""Kernels that pack FastLanes blocks and collect the statistics for choosing a number encoding.

`kernels/numbers/bitpacking.py` describes the layout of the blocks.

The loops process one word of all lanes at a time. They combine rows in a register, and store the register when it is
full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, address, as_readonly, copy, store_u8, store_u16, store_u32, store_u64
from lance_duck.kernels.numbers.bitpacking import BLOCK, ORDER, ROW_BYTES, Word


def _row(left: bool, fresh: bool) -> Any:
    """Return an intrinsic for one step: out[target] (0 if `fresh`) | words of a row, shifted left or right."""

    def pack(
        typing_context: Any, out: Any, target: Any, words: Any, source: Any, shift: Any
    ) -> tuple[Any, Callable[..., Any]]:
        bits = words.dtype.bitwidth
        lanes = ROW_BYTES * 8 // bits

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            word = ir.IntType(bits)
            row = ir.VectorType(word, lanes)
            amount = args[4] if bits == 64 else builder.trunc(args[4], word)
            undefined = ir.Constant(row, ir.Undefined)
            single = builder.insert_element(undefined, amount, ir.Constant(ir.IntType(32), 0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
            amounts = builder.shuffle_vector(single, undefined, zeros)
            values = builder.load(address(context, builder, signature.args[2], args[2], args[3], row), align=1)
            values = builder.shl(values, amounts) if left else builder.lshr(values, amounts)
            place = address(context, builder, signature.args[0], args[0], args[1], row)
            if not fresh:
                values = builder.or_(values, builder.load(place, align=1))
            builder.store(values, place, align=1)
            return context.get_dummy_value()

        return types.void(out, types.int64, words, types.int64, types.int64), generate

    return intrinsic(pack)


_begin_word = _row(left=True, fresh=True)
_add_to_word = _row(left=True, fresh=False)
_begin_with_rest = _row(left=False, fresh=True)


@subroutine
def pack_block(out: Bytes, place: int, words: NDArray[Word], first: int, width: int) -> None:
    """Pack words[first : first + 1024] into `width` * 128 bytes at out[place:]. Words have up to `width` bits."""
    size = words.itemsize
    bits = size * 8
    bit = 0
    for row in range(bits if width else 0):
        source = (first + ORDER[row >> 3] * 16 + (row & 7) * 128) * size
        word = bit // bits
        shift = bit - word * bits
        target = place + word * ROW_BYTES
        if shift == 0:
            _begin_word(out, target, words, source, shift)
        else:
            _add_to_word(out, target, words, source, shift)
        if shift + width > bits:
            _begin_with_rest(out, target + ROW_BYTES, words, source, bits - shift)
        bit += width


def pack_block_reference(out: Bytes, place: int, words: NDArray[Word], first: int, width: int) -> None:
    """Reference implementation in plain Python, value by value."""
    bits = words.itemsize * 8
    lanes = BLOCK // bits
    packed = np.zeros((width, lanes), words.dtype)
    for lane in range(lanes):
        rows = [int(words[first + int(ORDER[row // 8]) * 16 + (row % 8) * 128 + lane]) for row in range(bits)]
        joined = sum(value << (row * width) for row, value in enumerate(rows))
        for j in range(width):
            packed[j, lane] = (joined >> (j * bits)) & ((1 << bits) - 1)
    out[place : place + width * ROW_BYTES] = packed.reshape(-1).view(np.uint8)


@kernel
def bit_width(words: NDArray[Word], first: int, count: int) -> int:
    """Return the bit width of the widest word in words[first : first + count], or 0 if all words are 0."""
    bits = words[first] & words.dtype.type(0)
    for i in range(count):
        bits |= words[first + i]
    width = 0
    rest = np.uint64(bits)
    while rest > np.uint64(0):
        rest >>= np.uint64(1)
        width += 1
    return width


def bit_width_reference(words: NDArray[Word], first: int, count: int) -> int:
    """Reference implementation in plain Python."""
    return max((int(word).bit_length() for word in words[first : first + count]), default=0)


@subroutine
def _store_width(out: Bytes, place: int, size: int, width: int) -> None:
    if size == 1:
        store_u8(out, place, np.uint8(width))
    elif size == 2:
        store_u16(out, place, np.uint16(width))
    elif size == 4:
        store_u32(out, place, np.uint32(width))
    else:
        store_u64(out, place, np.uint64(width))


@kernel
def pack_inline(
    words: NDArray[Word], counts: NDArray[np.int64], scratch: NDArray[Word], out: Bytes, ends: NDArray[np.int64]
) -> int:
    """Pack chunks into blocks that begin with their bit width. A partial last block is zero-padded.

    Args:
        words: counts.sum() values.
        counts: Number of values of each chunk.
        scratch: 1024 words of scratch space.
        out: 1025 words for each block, output.
        ends: int64, output: end of each chunk's bytes in `out`.

    Returns:
        Number of bytes written.
    """
    size = words.itemsize
    place = 0
    first = 0
    for i in range(len(counts)):
        rest = counts[i]
        while rest > 0:
            count = min(rest, BLOCK)
            width = bit_width(words, first, count)
            _store_width(out, place, size, width)
            if count == BLOCK:
                pack_block(out, place + size, words, first, width)
            else:
                scratch[:] = 0
                copy(scratch, 0, words, first * size, count * size)
                pack_block(out, place + size, as_readonly(scratch), 0, width)
            place += size + width * ROW_BYTES
            first += count
            rest -= count
        ends[i] = place
    return place


def pack_inline_reference(
    words: NDArray[Word], counts: NDArray[np.int64], scratch: NDArray[Word], out: Bytes, ends: NDArray[np.int64]
) -> int:
    """Reference implementation in plain Python."""
    size = words.itemsize
    place = first = 0
    for i, count in enumerate(counts.tolist()):
        for start in range(first, first + count, BLOCK):
            block = words[start : min(start + BLOCK, first + count)]
            width = bit_width_reference(block, 0, len(block))
            padded = np.concatenate([block, np.zeros(BLOCK - len(block), words.dtype)])
            out[place : place + size] = np.frombuffer(width.to_bytes(size, "little"), np.uint8)
            pack_block_reference(out, place + size, padded, 0, width)
            place += size + width * ROW_BYTES
        first += count
        ends[i] = place
    return place


@kernel
def pack_fixed(words: NDArray[Word], counts: NDArray[np.int64], width: int, scratch: NDArray[Word], out: Bytes) -> None:
    """Pack chunks into blocks of one bit width.

    The last values of a chunk stay unpacked unless a packed block is smaller.

    Args:
        words: counts.sum() values of up to `width` bits.
        counts: Number of values of each chunk.
        width: Bit width, at least 1.
        scratch: 1024 words of scratch space.
        out: Output: exactly the number of bytes that all chunks take.
    """
    size = words.itemsize
    packed = width * ROW_BYTES
    place = 0
    first = 0
    for i in range(len(counts)):
        full = counts[i] // BLOCK
        tail = counts[i] - full * BLOCK
        for _ in range(full):
            pack_block(out, place, words, first, width)
            place += packed
            first += BLOCK
        if 0 < tail * size <= packed:
            copy(out, place, words, first * size, tail * size)
            place += tail * size
        elif tail > 0:
            scratch[:] = 0
            copy(scratch, 0, words, first * size, tail * size)
            pack_block(out, place, as_readonly(scratch), 0, width)
            place += packed
        first += tail


def pack_fixed_reference(
    words: NDArray[Word], counts: NDArray[np.int64], width: int, scratch: NDArray[Word], out: Bytes
) -> None:
    """Reference implementation in plain Python."""
    place = first = 0
    for count in counts.tolist():
        for start in range(first, first + count, BLOCK):
            block = words[start : min(start + BLOCK, first + count)]
            raw = block.view(np.uint8)
            if len(block) == BLOCK or len(raw) > width * ROW_BYTES:
                raw = np.empty(width * ROW_BYTES, np.uint8)
                padded = np.concatenate([block, np.zeros(BLOCK - len(block), words.dtype)])
                pack_block_reference(raw, 0, padded, 0, width)
            out[place : place + len(raw)] = raw
            place += len(raw)
        first += count


@kernel
def collect_number_stats(words: NDArray[Any], bits_out: NDArray[np.uint64]) -> int:
    """Count runs, and find which bits each block of 1024 values uses.

    Args:
        words: Unsigned numbers.
        bits_out: Output: for each block, the bitwise OR of its values.

    Returns:
        Number of runs of equal values.
    """
    runs = 0
    count = len(words)
    for block in range(len(bits_out)):
        first = block * BLOCK
        last = min(first + BLOCK, count)
        bits = words[first]
        changes: Any = 1 if first == 0 else np.int64(words[first] != words[first - 1])
        for i in range(first + 1, last):
            bits |= words[i]
            changes += np.int64(words[i] != words[i - 1])
        bits_out[block] = bits
        runs += changes
    return runs


def look_reference(words: NDArray[Any], bits_out: NDArray[np.uint64]) -> int:
    """Reference implementation in plain Python."""
    for block in range(len(bits_out)):
        bits_out[block] = np.bitwise_or.reduce(words[block * BLOCK : (block + 1) * BLOCK])
    return min(len(words), 1) + int(np.count_nonzero(words[1:] != words[:-1]))
