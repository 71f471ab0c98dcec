"""Geometries in WKB, and tables of geoarrow columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa

Point = tuple[float, ...]


def point(x: float, y: float, order: str = "<") -> bytes:
    """Return a point in WKB."""
    return _head(1, order) + struct.pack(f"{order}dd", x, y)


def line(points: Sequence[Point], order: str = "<", kind: int = 2) -> bytes:
    """Return a line string in WKB. Points with more ordinates need another kind."""
    return _head(kind, order) + _points(points, order)


def polygon(rings: Sequence[Sequence[Point]], order: str = "<") -> bytes:
    """Return a polygon in WKB."""
    return _head(3, order) + struct.pack(f"{order}I", len(rings)) + b"".join(_points(ring, order) for ring in rings)


def collection(parts: Sequence[bytes], order: str = "<", kind: int = 7) -> bytes:
    """Return a collection in WKB."""
    return _head(kind, order) + struct.pack(f"{order}I", len(parts)) + b"".join(parts)


def wkb_table(values: Sequence[bytes | None]) -> pa.Table:
    """Return a table with ids and a column of type geoarrow.wkb."""
    return _table(pa.array(values, pa.binary()), "geoarrow.wkb")


def point_table(points: Sequence[tuple[float, float] | None]) -> pa.Table:
    """Return a table with ids and a column of type geoarrow.point."""
    type_ = pa.struct([pa.field("x", pa.float64(), nullable=False), pa.field("y", pa.float64(), nullable=False)])
    return _table(pa.array([None if p is None else {"x": p[0], "y": p[1]} for p in points], type_), "geoarrow.point")


def _table(values: pa.Array, name: str) -> pa.Table:
    metadata = {"ARROW:extension:name": name, "ARROW:extension:metadata": "{}"}
    fields = [pa.field("id", pa.int64()), pa.field("g", values.type, metadata=metadata)]
    return pa.table([pa.array(range(len(values)), pa.int64()), values], schema=pa.schema(fields))


def _head(kind: int, order: str) -> bytes:
    return struct.pack(f"{order}BI", order == "<", kind)


def _points(points: Sequence[Point], order: str) -> bytes:
    return struct.pack(f"{order}I", len(points)) + b"".join(struct.pack(f"{order}{len(p)}d", *p) for p in points)
