"""Bounding boxes of geometries in WKB, as ISO and EWKB write it.

u8   byte order: 0 big-endian, 1 little-endian
u32  kind: 1 point, 2 line string, 3 polygon, 4 to 7 collections; plus 1000 for Z, 2000 for M, 3000 for both
EWKB sets 0x80000000 for Z, 0x40000000 for M, and 0x20000000 if a u32 SRID follows
point: ordinates; line string: u32 count, points; polygon: u32 count, line strings without head;
collection: u32 count, geometries with heads
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u8, load_u32, load_u64

_Z, _M, _SRID = 0x80000000, 0x40000000, 0x20000000


@subroutine
def _swapped32(word: Any) -> Any:
    low = ((word & np.uint64(0xFF)) << np.uint64(24)) | ((word & np.uint64(0xFF00)) << np.uint64(8))
    return low | ((word >> np.uint64(8)) & np.uint64(0xFF00)) | ((word >> np.uint64(24)) & np.uint64(0xFF))


@subroutine
def _swapped64(word: Any) -> Any:
    return (_swapped32(word) << np.uint64(32)) | _swapped32(word >> np.uint64(32))


@subroutine
def _number(word: Any) -> Any:
    return np.uint64(word).view(np.float64)


@subroutine
def _count(data: Bytes, at: Any, big: Any) -> Any:
    word = np.uint64(load_u32(data, at))
    return np.int64(_swapped32(word) if big else word)


@subroutine
def _ordinate(data: Bytes, at: Any, big: Any) -> Any:
    word = np.uint64(load_u64(data, at))
    return _number(_swapped64(word)) if big else _number(word)


@subroutine
def _grow(box: NDArray[np.float64], data: Bytes, at: Any, count: Any, step: Any, big: Any) -> Any:
    """Widen a box by points. Returns the number of points with NaN. The caller has checked the range."""
    without = 0
    for i in range(count):
        x, y = _ordinate(data, at + i * step, big), _ordinate(data, at + i * step + 8, big)
        if x == x and y == y:
            box[0] = x if not box[0] <= x else box[0]
            box[1] = y if not box[1] <= y else box[1]
            box[2] = x if not box[2] >= x else box[2]
            box[3] = y if not box[3] >= y else box[3]
        else:
            without += 1
    return without


@subroutine
def _read(data: Bytes, at: Any, end: Any, box: NDArray[np.float64]) -> Any:
    """Widen a box by one geometry with all its parts. Returns a status.

    The box becomes NaN if there is a NaN, or something that DuckDB may refuse: parts with other ordinates than the
    whole, parts of the wrong kind, collections in collections, and trailing bytes.
    """
    left = np.int64(1)
    without = np.int64(0)
    outer, outer_step = np.int64(0), np.int64(0)
    while left > 0:
        if end - at < 5:
            return status.TOO_SHORT
        order = load_u8(data, at)
        if order > 1:
            return status.BAD_VALUE
        big = order == 0
        word = _count(data, at + 1, big)
        at, left = at + 5, left - 1
        if word & _SRID:
            at += 4
        code = word & 0x1FFFFFFF
        kind, form = code % 1000, code // 1000
        has_z = (word & _Z) != 0 or form == 1 or form == 3
        has_m = (word & _M) != 0 or form >= 2
        if form > 3 or kind < 1 or kind > 7:
            return status.BAD_CODE
        step = np.int64(16) + (8 if has_z else 0) + (8 if has_m else 0)
        if outer == 0:
            outer, outer_step = kind, step + (1 if has_m else 0)
        elif outer_step != step + (1 if has_m else 0) or kind > 3 or (outer != 7 and kind != outer - 3):
            without += 1
        if kind == 1:
            if end - at < step:
                return status.TOO_SHORT
            without += _grow(box, data, at, 1, step, big)
            at += step
            continue
        if end - at < 4:
            return status.TOO_SHORT
        count = _count(data, at, big)
        at += 4
        if kind > 3:
            if count > (end - at) // 5:
                return status.TOO_SHORT
            left += count
            continue
        rings = count if kind == 3 else np.int64(1)
        for _ in range(rings):
            if kind == 3:
                if end - at < 4:
                    return status.TOO_SHORT
                count = _count(data, at, big)
                at += 4
            if count > (end - at) // step:
                return status.TOO_SHORT
            without += _grow(box, data, at, count, step, big)
            at += count * step
    if without or at != end:
        box[:] = np.nan
    return status.OK


@kernel
def wkb_boxes(offsets: NDArray[Any], data: Bytes, valid: NDArray[np.bool_], boxes: NDArray[np.float64]) -> int:
    """Compute the bounding boxes of geometries.

    Args:
        offsets: Offsets of the values, int32 or int64 (n + 1).
        data: Bytes of the values.
        valid: bool (n,), whether a value is not null. Others are skipped.
        boxes: float64 (n, 4), output, filled with NaN by the caller: xmin, ymin, xmax, ymax. It stays NaN without
            points, and for geometries that DuckDB may refuse.

    Returns:
        A status, with the number of the value.
    """
    size = len(data)
    for i in range(len(valid)):
        if not valid[i]:
            continue
        at, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        if at < 0 or end < at or end > size:
            return status.BAD_OFFSETS | (i << 8)
        result: int = _read(data, at, end, boxes[i])
        if result != status.OK:
            return result | (i << 8)
    return status.OK
