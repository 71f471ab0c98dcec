"""Parses and serializes many small row address maps at once: all bytes in one buffer, all rows in one array.

`rows.row_set_bytes` describes the layout. This module handles only maps with array containers:

    u32 parts, per part:  u32 fragment id, u32 size in bytes, u32 12346, u32 containers,
                          per container: u16 upper half of its values, u16 number of values - 1
                          per container: u32 offset of its values in the bitmap
                          per container: u16 each value, ascending
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

LARGEST: Final = 4096
_COOKIE: Final = 12346
_HEAD: Final = 16  # size of a part before its containers, in bytes
_LARGEST_BYTES: Final = 1 << 14

_Ints = NDArray[np.int64]
_Names = NDArray[np.uint64]
_Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class _Containers:
    """Containers of maps: index of the map, upper 48 bits of the rows, value count, and offset of the values."""

    map: _Ints
    high: _Names
    card: _Ints
    at: _Ints


def read_array_maps(data: NDArray[np.uint8], offsets: _Ints) -> tuple[_Flags, _Ints, _Names]:
    """Parse maps. Maps with other containers, large maps and corrupt maps are left to `read_row_address_map`.

    Args:
        data: The maps, and possibly other bytes around them.
        offsets: Ascending offsets of the maps in the data, followed by the end of the last map.

    Returns:
        A mask of the maps that were parsed, the row count of each map (0 if it was not parsed), and the rows of all
        maps, map by map. The rows of each map ascend.
    """
    begin, end = offsets[:-1], offsets[1:]
    good = (end - begin >= 4) & (end - begin <= _LARGEST_BYTES)
    remaining = np.zeros(len(begin), np.int64)
    remaining[good] = _u32(data, begin[good])
    good &= remaining * (_HEAD + 8) <= end - begin
    at = begin + 4
    last = np.full(len(begin), -1, np.int64)
    blocks = []
    while True:
        maps = np.flatnonzero(good & (remaining > 0))
        if not len(maps):
            break
        sound, stop, key, containers = _part(data, maps, at[maps], end[maps])
        sound &= key > last[maps]
        good[maps[~sound]] = False
        at[maps], last[maps] = stop, key
        remaining[maps] -= 1
        blocks.append(containers)
    good &= at == end
    counts, rows = _rows(data, blocks, good)
    return good, counts, rows


def array_maps(counts: _Ints, rows: _Names) -> tuple[NDArray[np.uint8], _Ints]:
    """Serialize maps.

    Args:
        counts: Row count of each map, at most `LARGEST`.
        rows: The rows of all maps, map by map. The rows of each map ascend strictly.

    Returns:
        The bytes, and the offsets of the maps, followed by the end of the last map.
    """
    map_of = np.repeat(np.arange(len(counts)), counts)
    first = np.zeros(len(rows), np.bool_)
    first[(np.cumsum(counts) - counts)[counts > 0]] = True
    new_part, new_container = first.copy(), first.copy()
    new_part[1:] |= rows[1:] >> np.uint64(32) != rows[:-1] >> np.uint64(32)
    new_container[1:] |= rows[1:] >> np.uint64(16) != rows[:-1] >> np.uint64(16)
    part_row, container_row = np.flatnonzero(new_part), np.flatnonzero(new_container)
    part_of = np.cumsum(new_part)[container_row] - 1
    containers = np.bincount(part_of, minlength=len(part_row)).astype(np.int64)
    part_rows = np.diff(part_row, append=len(rows))
    part_bytes = _HEAD + 8 * containers + 2 * part_rows
    part_map = map_of[part_row]
    sizes = 4 + np.bincount(part_map, part_bytes, len(counts)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    part_at = np.cumsum(part_bytes) - part_bytes + 4 * (part_map + 1)
    out = np.zeros(int(offsets[-1]) // 2, np.uint16)
    _put(out, offsets[:-1], np.bincount(part_map, minlength=len(counts)))
    _put(out, part_at, rows[part_row] >> np.uint64(32))
    _put(out, part_at + 4, part_bytes - 8)
    _put(out, part_at + 8, np.full(len(part_at), _COOKIE))
    _put(out, part_at + 12, containers)
    card = np.diff(container_row, append=len(rows))
    nth = np.arange(len(container_row)) - (np.cumsum(containers) - containers)[part_of]
    head = part_at[part_of] + _HEAD + 4 * nth
    high = (rows[container_row] >> np.uint64(16)).astype(np.int64) & 0xFFFF
    _put(out, head, high | (card - 1) << 16)
    begin = 8 + 8 * containers[part_of] + 2 * (container_row - part_row[part_of])
    _put(out, head + 4 * containers[part_of], begin)
    values = part_at + _HEAD + 8 * containers - 2 * part_row
    out[(np.repeat(values, part_rows) >> 1) + np.arange(len(rows))] = rows.astype(np.uint16)
    return out.view(np.uint8), offsets


def _part(data: NDArray[np.uint8], maps: _Ints, at: _Ints, end: _Ints) -> tuple[_Flags, _Ints, _Ints, _Containers]:
    """Parse the next part of each given map.

    Returns:
        A mask of the valid parts, the end offset and the fragment id of each part, and the containers of the valid
        parts.
    """
    sound = at + _HEAD <= end
    safe = np.where(sound, at, 0)
    key, size, cookie, count = (np.where(sound, _u32(data, safe + i), 0) for i in (0, 4, 8, 12))
    stop = at + 8 + size
    sound &= (stop <= end) & (cookie == _COOKIE) & (count > 0) & (8 + 8 * count <= size)
    count = np.where(sound, count, 0)
    of = np.repeat(np.arange(len(maps)), count)
    head = (at + _HEAD)[of] + 4 * (np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count))
    word = _u32(data, head)
    high, card = word & 0xFFFF, (word >> 16) + 1
    before = np.cumsum(card) - card
    inside = before - np.repeat(before[(np.cumsum(count) - count)[count > 0]], count[count > 0])
    begin = (at + _HEAD + 8 * count)[of] + 2 * inside
    broken = card > LARGEST
    broken[1:] |= (high[1:] <= high[:-1]) & (of[1:] == of[:-1])
    sound &= 8 + 8 * count + 2 * np.bincount(of, card, len(maps)).astype(np.int64) == size
    sound[of[broken]] = False
    keep = sound[of]
    names = (key[of] << 16 | high).astype(np.uint64)
    return sound, stop, key, _Containers(maps[of[keep]], names[keep], card[keep], begin[keep])


def _rows(data: NDArray[np.uint8], containers: list[_Containers], good: _Flags) -> tuple[_Ints, _Names]:
    """Return the row count of each map, and the rows of all maps. Clears `good` for maps with rows out of order."""
    if not containers:
        return np.zeros(len(good), np.int64), np.empty(0, np.uint64)
    maps, high, card, at = (
        np.concatenate([getattr(piece, name) for piece in containers]) for name in ("map", "high", "card", "at")
    )
    order = np.argsort(maps, kind="stable")
    order = order[good[maps[order]]]
    maps, high, card, at = maps[order], high[order], card[order], at[order]
    place = np.repeat(at - 2 * (np.cumsum(card) - card), card) + 2 * np.arange(int(card.sum()))
    low = data[place].astype(np.uint64) | data[place + 1].astype(np.uint64) << np.uint64(8)
    rows = np.asarray(np.repeat(high << np.uint64(16), card) | low, np.uint64)
    map_of = np.repeat(maps, card)
    broken = (rows[1:] <= rows[:-1]) & (map_of[1:] == map_of[:-1])
    if broken.any():
        good[map_of[1:][broken]] = False
        keep = good[map_of]
        rows, map_of = rows[keep], map_of[keep]
    return np.bincount(map_of, minlength=len(good)).astype(np.int64), rows


def _u32(data: NDArray[np.uint8], at: _Ints) -> _Ints:
    four = (data[at + i].astype(np.int64) << (8 * i) for i in range(4))
    return np.asarray(sum(four, start=np.zeros(len(at), np.int64)))


def _put(out: NDArray[np.uint16], at: _Ints, values: NDArray[np.integer]) -> None:
    words = values.astype(np.uint32)
    out[at >> 1] = words.astype(np.uint16)
    out[(at >> 1) + 1] = (words >> np.uint32(16)).astype(np.uint16)
