"""Intrinsics that unpack lane-packed numbers, four at a time. `kernels.postings.packing` describes the bytes.

When the compiler vectorizes a Python loop, it widens 32-bit words to 64 bits. The loops of this module use vectors of
four words instead, and unpack twice as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.memory import address

ROWS: Final = 32
_INDEX: Final = ir.IntType(64)
_WORD: Final = ir.IntType(32)
_FOUR: Final = ir.VectorType(_WORD, 4)
_ZEROS: Final = ir.Constant(_FOUR, [0, 0, 0, 0])


@subroutine
def unpack_lanes(data: Any, source: Any, width: Any, lanes: Any, out: Any, place: Any) -> None:
    """Unpack a group of `32 * lanes` values of up to 32 bits into `out[place:]`. The caller has checked the bounds."""
    if width == 0:
        for i in range(place, place + ROWS * lanes):
            out[i] = np.uint32(0)
        return
    _unpack(data, source, width, lanes, out, place)


@subroutine
def unpack_sums(first: Any, data: Any, source: Any, width: Any, lanes: Any, out: Any, place: Any) -> None:
    """Unpack a group like `unpack_lanes`, and write `first` plus the running sums of the values, modulo 2**32."""
    if width == 0:
        for i in range(place, place + ROWS * lanes):
            out[i] = first
        return
    _add_up(data, source, width, lanes, out, place, first)


def _vector(value: int) -> Any:
    return ir.Constant(_FOUR, [value] * 4)


def _spread(builder: Any, word: Any) -> Any:
    """Return a vector with four copies of a word."""
    single = builder.insert_element(ir.Constant(_FOUR, ir.Undefined), word, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(single, ir.Constant(_FOUR, ir.Undefined), _ZEROS)


def _shifted(builder: Any, vector: Any, places: list[int]) -> Any:
    """Return a vector's words in the given order. Index 4 yields 0."""
    return builder.shuffle_vector(vector, _ZEROS, ir.Constant(_FOUR, places))


def _four_words(builder: Any, arguments: Any, pointer: Callable[[Any], Any], i: Any) -> Any:
    """Return values `4 * i` to `4 * i + 3` of a group, as a vector.

    If a value straddles two words, its lower bits are in the first word. The code never reads past the last word.
    """
    source, width, lanes = arguments
    more = builder.lshr(lanes, ir.Constant(_INDEX, 3))  # 1 for eight lanes: each row is two vectors
    bit = builder.mul(builder.lshr(i, more), width)
    word, shift = builder.lshr(bit, ir.Constant(_INDEX, 5)), builder.and_(bit, ir.Constant(_INDEX, 31))
    half = builder.add(source, builder.shl(builder.and_(i, more), ir.Constant(_INDEX, 4)))
    stride = builder.shl(lanes, ir.Constant(_INDEX, 2))
    after, last = builder.add(word, ir.Constant(_INDEX, 1)), builder.sub(width, ir.Constant(_INDEX, 1))
    after = builder.select(builder.icmp_signed("<", after, last), after, last)
    low, high = (builder.load(pointer(builder.add(half, builder.mul(each, stride))), align=1) for each in (word, after))
    right = builder.trunc(shift, _WORD)
    left = builder.sub(ir.Constant(_WORD, 31), right)
    low = builder.lshr(low, _spread(builder, right))
    high = builder.shl(builder.shl(high, _vector(1)), _spread(builder, left))  # a shift by 32 takes two steps
    mask = builder.lshr(
        ir.Constant(_WORD, 0xFFFFFFFF), builder.sub(ir.Constant(_WORD, 32), builder.trunc(width, _WORD))
    )
    return builder.and_(builder.or_(low, high), _spread(builder, mask))


def _loop(is_sum: bool) -> Callable[..., Any]:
    """Return the code generator of the loop over a group, for values or for running sums."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data, source, width, lanes, out, place = args[:6]
        data_type, out_type = signature.args[0], signature.args[4]
        variable: Any = cgutils.alloca_once_value
        carry = variable(builder, _spread(builder, args[6])) if is_sum else None

        def pointer(offset: Any) -> Any:
            return address(context, builder, data_type, data, offset, _FOUR)

        count = builder.shl(lanes, ir.Constant(_INDEX, 3))
        with cgutils.for_range(builder, count, intp=_INDEX) as loop:
            values = _four_words(builder, (source, width, lanes), pointer, loop.index)
            if carry is not None:
                values = builder.add(values, _shifted(builder, values, [4, 0, 1, 2]))
                values = builder.add(values, _shifted(builder, values, [4, 4, 0, 1]))
                values = builder.add(values, builder.load(carry))
                builder.store(_shifted(builder, values, [3, 3, 3, 3]), carry)
            item = builder.add(place, builder.shl(loop.index, ir.Constant(_INDEX, 2)))
            target = address(context, builder, out_type, out, builder.shl(item, ir.Constant(_INDEX, 2)), _FOUR)
            builder.store(values, target, align=4)
        return context.get_dummy_value()

    return generate


def _unpacker(
    typing_context: Any, data: Any, source: Any, width: Any, lanes: Any, out: Any, place: Any
) -> tuple[Any, Callable[..., Any]]:
    return types.void(data, types.int64, types.int64, types.int64, out, types.int64), _loop(False)


def _adder(
    typing_context: Any, data: Any, source: Any, width: Any, lanes: Any, out: Any, place: Any, first: Any
) -> tuple[Any, Callable[..., Any]]:
    return types.void(data, types.int64, types.int64, types.int64, out, types.int64, types.uint32), _loop(True)


_unpack: Any = intrinsic(_unpacker)
_add_up: Any = intrinsic(_adder)
