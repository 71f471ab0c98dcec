"""Bounding boxes of geometry columns: geoarrow.point as structs of x and y, and geoarrow.wkb as bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.arrow.types import is_bytes
from lance_duck.errors import InvalidInputError
from lance_duck.index.rtree.layout import Boxes
from lance_duck.kernels import status
from lance_duck.kernels.shapes.wkb import wkb_boxes

_PROBLEMS: Final = {
    status.TOO_SHORT: "it ends too early",
    status.BAD_VALUE: "its byte order is neither 0 nor 1",
    status.BAD_CODE: "its kind of geometry is unknown",
}


def is_geometry(type_: pa.DataType) -> bool:
    """Return whether a storage type can hold geometries: bytes, or a struct with the doubles x and y."""
    if is_bytes(type_) and not pa.types.is_binary_view(type_):
        return True
    if not pa.types.is_struct(type_):
        return False
    places = [type_.get_field_index(name) for name in ("x", "y")]
    return all(place >= 0 and type_.field(place).type == pa.float64() for place in places)


def boxes_of(geometries: pa.Array, rows: pa.Array) -> Boxes:
    """Return the bounding box of each geometry. It is NaN for null geometries, and without points or with a NaN.

    Args:
        geometries: Values of a storage type that `is_geometry` accepts.
        rows: Their row ids or addresses, for messages.

    Raises:
        InvalidInputError: A value is not WKB.
    """
    if pa.types.is_struct(geometries.type):
        return _of_points(geometries)
    boxes = np.full((len(geometries), 4), np.nan)
    width = np.int64 if pa.types.is_large_binary(geometries.type) else np.int32
    _, offsets, data = geometries.buffers()
    if not len(geometries) or offsets is None:
        return boxes
    first = geometries.offset
    starts = np.frombuffer(offsets, width)[first : first + len(geometries) + 1]
    content = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    valid = geometries.is_valid().to_numpy(zero_copy_only=False)
    result = wkb_boxes(starts, content, valid, boxes)
    if result != status.OK:
        raise InvalidInputError(
            "a value of the geometry column is not WKB",
            expected="a point, line string, polygon or collection",
            found=f"{_PROBLEMS.get(result & 0xFF, status.text(result))}, in the row with _rowid {rows[result >> 8]}",
        )
    return boxes


def _of_points(points: Any) -> Boxes:
    x, y = (points.field(name).to_numpy(zero_copy_only=False) for name in ("x", "y"))
    boxes = np.stack([x, y, x, y], axis=1)
    without = np.isnan(boxes).any(axis=1) | points.is_null().to_numpy(zero_copy_only=False)
    boxes[without] = np.nan
    return boxes


def hilbert(boxes: Boxes, total: Boxes) -> Any:
    """Return the place of each box's centre on a Hilbert curve over a grid of 2^16 by 2^16 cells, uint32 (n,).

    Args:
        boxes: The boxes.
        total: The box around all boxes, (4,).
    """
    with np.errstate(invalid="ignore", over="ignore"):
        centre = (boxes[:, :2] + boxes[:, 2:]) / 2
        extent = total[2:] - total[:2]
        cells = np.floor((centre - total[:2]) / np.where(extent > 0, extent, 1) * 0xFFFF)
    x, y = np.nan_to_num(cells, nan=0, posinf=0xFFFF, neginf=0).clip(0, 0xFFFF).astype(np.uint32).T
    place = np.zeros(len(boxes), np.uint32)
    for bit in range(15, -1, -1):
        side = np.uint32(1 << bit)
        right, top = (x & side) > 0, (y & side) > 0
        place += side * side * ((3 * right.astype(np.uint32)) ^ top)
        turn = ~top & right
        x, y = np.where(turn, np.uint32(0xFFFF) - x, x), np.where(turn, np.uint32(0xFFFF) - y, y)
        x, y = np.where(top, x, y), np.where(top, y, x)
    return place
