"""Row sets as bytes, parsed strictly. Inconsistent bytes are rejected before a bitmap is built.

    row address map   u32 number of parts; per part: u32 fragment id, u32 size in bytes, a 32-bit roaring bitmap of
                      offsets; a size of 0 means the whole fragment
    treemap           u64 number of parts; per part: u32 upper half of the values, a 32-bit roaring bitmap of lower
                      halves

All numbers are little-endian. `rows.roaring` describes the bitmaps. Parts are in ascending order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_duck.errors import CorruptError
from lance_duck.rows.roaring import check_roaring, roaring_runs
from lance_duck.rows.row_set import RowSet
from lance_duck.wire.limits import ROW_OFFSETS

_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
_PART: Final = struct.Struct("<II")


def read_row_address_map(data: bytes, where: str, rows_of: Callable[[int], int | None] | None = None) -> RowSet:
    """Parse a row address map.

    Args:
        data: The map, and nothing after it.
        where: Name of the file, for messages.
        rows_of: Returns the physical row count of a fragment, for parts that cover a whole fragment. Without `rows_of`,
            these parts are rejected.

    Raises:
        CorruptError: The bytes are not a valid map, or the row count of a whole fragment is unknown.
    """
    (count,) = _unpack(_U32, data, 0, where)
    at, last, parts = 4, -1, {}
    for _ in range(count):
        key, size = _unpack(_PART, data, at, where)
        at += _PART.size
        last = _ascending(key, last, where)
        if size:
            if at + size > len(data):
                raise _corrupt(where, "it is cut short")
            if check_roaring(data, where, at) != at + size:
                raise _corrupt(where, f"bitmap of part {key} has not {size} bytes")
            parts[key] = BitMap.deserialize(data[at : at + size])
            at += size
        else:
            parts[key] = _whole(key, where, rows_of)
    if at != len(data):
        raise _corrupt(where, f"{len(data) - at} bytes after the last part")
    return RowSet(parts)


def row_address_map(rows: RowSet) -> bytes:
    """Serialize a set of rows as a row address map."""
    pieces = [_U32.pack(len(rows.parts))]
    for key in rows.fragment_ids:
        bitmap = _compact(rows.parts[key])
        pieces += (_PART.pack(key, len(bitmap)), bitmap)
    return b"".join(pieces)


def read_treemap(data: bytes, where: str) -> RowSet:
    """Parse a treemap.

    Args:
        data: The treemap, and nothing after it.
        where: Name of the file, for messages.

    Raises:
        CorruptError: The bytes are not a treemap.
    """
    (count,) = _unpack(_U64, data, 0, where)
    if count > len(data) // _U32.size:
        raise _corrupt(where, f"{count} parts in {len(data)} bytes")
    at, last, parts = 8, -1, {}
    for _ in range(count):
        (key,) = _unpack(_U32, data, at, where)
        last = _ascending(key, last, where)
        at += _U32.size
        end = check_roaring(data, where, at)
        parts[key] = BitMap.deserialize(data[at:end])
        at = end
    if at != len(data):
        raise _corrupt(where, f"{len(data) - at} bytes after the last part")
    return RowSet(parts)


def treemap_runs(data: bytes, where: str) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Parse a treemap into runs of consecutive values. Returns the ascending first values and the lengths of the runs.

    Raises:
        CorruptError: The bytes are not a treemap.
    """
    (count,) = _unpack(_U64, data, 0, where)
    at, last, firsts, lengths = 8, -1, [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for _ in range(count):
        (key,) = _unpack(_U32, data, at, where)
        last = _ascending(key, last, where)
        first, length, at = roaring_runs(data, where, at + _U32.size)
        firsts.append(first.astype(np.uint64) | np.uint64(key << 32))
        lengths.append(length)
    if at != len(data):
        raise _corrupt(where, f"{len(data) - at} bytes after the last part")
    return np.concatenate(firsts), np.concatenate(lengths)


def treemap(rows: RowSet) -> bytes:
    """Serialize a set of rows as a treemap."""
    pieces = [_U64.pack(len(rows.parts))]
    for key in rows.fragment_ids:
        pieces += (_U32.pack(key), _compact(rows.parts[key]))
    return b"".join(pieces)


def _compact(part: BitMap) -> bytes:
    copied = part.copy()  # the set itself may be in use elsewhere, and must not change its form
    copied.run_optimize()
    data: bytes = copied.serialize()
    return data


def _whole(key: int, where: str, rows_of: Callable[[int], int | None] | None) -> BitMap:
    rows = None if rows_of is None else rows_of(key)
    if rows is None or not 0 <= rows <= ROW_OFFSETS:
        raise _corrupt(where, f"all rows of fragment {key}, whose number is not known")
    return BitMap(range(rows))


def _ascending(key: int, last: int, where: str) -> int:
    if key <= last:
        raise _corrupt(where, f"part {key} after part {last}")
    return key


def _unpack(form: struct.Struct, data: bytes, at: int, where: str) -> tuple[int, ...]:
    if at + form.size > len(data):
        raise _corrupt(where, "it is cut short")
    return form.unpack_from(data, at)


def _corrupt(where: str, problem: str) -> CorruptError:
    return CorruptError("the set of rows is corrupt", where=where, found=problem)
