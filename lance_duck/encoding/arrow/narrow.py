"""Fixed-width values in other Arrow types, for consumers that would convert them.

stored                            | returned
decimal128, decimal256            | decimal32, decimal64, decimal128: the low bytes
halffloat                         | float32
fixed_size_binary(2), bfloat16    | float32
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.encoding.block import FixedWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.numbers.narrow import low_words

_HALF_BITS = 16
_FLOAT_BITS = 32

Valid = NDArray[np.bool_] | Bytes | None


def narrow(
    block: FixedWidth, stored: pa.DataType | None, type_: pa.DataType, where: str, valid: Valid = None
) -> FixedWidth:
    """Return values in the layout of `type_`; as they are when there is nothing to convert.

    Args:
        block: Values.
        stored: Type of the values in the file, which tells bfloat16 from halffloat; None for what the width says.
        type_: Type of the result.
        where: Name of the column, for messages.
        valid: A flag for each value, or None when all are valid; the values of nulls need not fit.

    Raises:
        CorruptError: A decimal does not fit.
    """
    if pa.types.is_float32(type_) and block.bits == _HALF_BITS:
        return _widen(block, is_brain=stored is not None and pa.types.is_fixed_size_binary(stored))
    if pa.types.is_decimal(type_) and block.bits > type_.bit_width:
        return _low_bytes(block, type_, where, valid)
    return block


def is_rescaled(stored: pa.DataType, type_: pa.DataType) -> bool:
    """Return whether decimals of a negative scale are returned as decimals of another one: not by their low bytes."""
    both = pa.types.is_decimal(stored) and pa.types.is_decimal(type_)
    return bool(both and stored.scale < 0 and stored != type_)


def _widen(block: FixedWidth, is_brain: bool) -> FixedWidth:
    data = np.ascontiguousarray(block.data[: 2 * block.count])
    if is_brain:
        wide = data.view("<u2").astype("<u4") << np.uint32(_HALF_BITS)
    else:
        wide = data.view("<f2").astype("<f4").view("<u4")
    return FixedWidth(_FLOAT_BITS, wide.view(np.uint8), block.count)


def _low_bytes(block: FixedWidth, type_: pa.DataType, where: str, valid: Valid) -> FixedWidth:
    if block.bits % 64 or type_.bit_width not in (32, 64, 128):
        raise CorruptError("values do not fit the type of the column", where=where, expected=type_, found=block.bits)
    words = np.ascontiguousarray(block.data[: block.count * block.bits // 8]).view("<i8")
    width = type_.bit_width
    out = unset(block.count * max(width // 64, 1), "<i4" if width == _FLOAT_BITS else "<i8")
    overflows = unset(block.count, np.uint8)
    if low_words(readonly(words), block.bits // 64, out, overflows) and (valid is None or overflows[valid != 0].any()):
        raise CorruptError("decimal has more digits than its type", where=where, expected=type_)
    return FixedWidth(width, out.view(np.uint8), block.count)
