"""Unaligned loads and stores at byte offsets, for kernels.

`array` is a C-contiguous array of any dtype, and `offset` is a byte offset into it. Bounds are not checked.

    load_u8 … load_u64(array, offset) -> uint8 … uint64
    store_u8 … store_u64(array, offset, value)
    trailing_zeros(word) -> int64                                 zero bits below the lowest one; 64 for 0
    copy(target, target_offset, source, source_offset, size)      memcpy: the ranges do not overlap
    as_readonly(array) -> array                                   the same array, with a read-only type
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]

BYTE = ir.IntType(8)


def address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, pointee: Any) -> Any:
    """Return an LLVM pointer to `pointee` at `offset` bytes into the array."""
    struct = context.make_array(array_type)(context, builder, array)
    base = builder.bitcast(struct.data, BYTE.as_pointer())
    return builder.bitcast(builder.gep(base, [offset]), pointee.as_pointer())


def _loader(word: Any) -> Any:
    def load(typing_context: Any, array: Any, offset: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointee = ir.IntType(word.bitwidth)
            place = address(context, builder, signature.args[0], args[0], args[1], pointee)
            return builder.load(place, align=1)

        return word(array, types.int64), generate

    return intrinsic(load)


def _storer(word: Any) -> Any:
    def store(typing_context: Any, array: Any, offset: Any, value: Any) -> tuple[Any, Callable[..., Any]]:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointee = ir.IntType(word.bitwidth)
            place = address(context, builder, signature.args[0], args[0], args[1], pointee)
            builder.store(args[2], place, align=1)
            return context.get_dummy_value()

        return types.void(array, types.int64, word), generate

    return intrinsic(store)


def _trailing_zeros(typing_context: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


def _copy(
    typing_context: Any, target: Any, target_offset: Any, source: Any, source_offset: Any, size: Any
) -> tuple[Any, Callable[..., Any]]:
    """Copy `size` bytes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to = address(context, builder, signature.args[0], args[0], args[1], BYTE)
        origin = address(context, builder, signature.args[2], args[2], args[3], BYTE)
        memcpy: Any = cgutils.raw_memcpy
        memcpy(builder, to, origin, args[4], itemsize=1)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64, types.int64), generate


def _as_readonly(typing_context: Any, array: Any) -> tuple[Any, Callable[..., Any]]:
    """Make the array's type read-only. A subroutine is then compiled once for read-only and writable arrays."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return args[0]

    return array.copy(readonly=True)(array), generate


load_u8 = _loader(types.uint8)
load_u16 = _loader(types.uint16)
load_u32 = _loader(types.uint32)
load_u64 = _loader(types.uint64)
store_u8 = _storer(types.uint8)
store_u16 = _storer(types.uint16)
store_u32 = _storer(types.uint32)
store_u64 = _storer(types.uint64)
trailing_zeros: Any = intrinsic(_trailing_zeros)
copy: Any = intrinsic(_copy)
as_readonly: Any = intrinsic(_as_readonly)
