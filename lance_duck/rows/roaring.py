"""Portable 32-bit roaring bitmaps with a strict parser, which rejects inconsistent bytes.

    cookie      u32: 12346, then u32 number of containers; or 12347 | (containers - 1) << 16
    run flags   only after 12347: one bit per container, least significant first, padded to whole bytes
    header      per container: u16 upper half of its values, u16 number of values - 1
    offsets     after 12346, or with at least 4 containers: one u32 per container; sequential reads do not need them
    containers  runs: u16 count, count x (u16 first, u16 length - 1)
                up to 4096 values: u16 each, ascending
                more: 8192 bytes, one bit per value, least significant first

All numbers are little-endian. pyroaring trusts the value counts in the header. Bitmaps from files are therefore passed
to pyroaring only after `check_roaring` has validated them.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_duck.errors import CorruptError
from lance_duck.wire.limits import FRAGMENT_IDS

_PLAIN_COOKIE = 12346
_RUN_COOKIE = 12347
_OFFSETS_FROM = 4
_ARRAY_MAX = 4096
_BITSET_BYTES = 8192

_U16 = np.dtype("<u2")
_Values = NDArray[np.uint32]


def fragments_in_bitmap(data: bytes, where: str) -> NDArray[np.uint32]:
    """Return the ascending fragment ids of a bitmap. Raises the errors of `roaring_values`."""
    return roaring_values(data, where, FRAGMENT_IDS)


def roaring_values(data: bytes, where: str, limit: int) -> _Values:
    """Return the values of a bitmap, uint32, strictly ascending.

    Args:
        data: The bitmap, and nothing after it.
        where: Name of the file, for messages.
        limit: Maximum value count. Larger bitmaps are rejected before their values are expanded.

    Raises:
        CorruptError: The bytes are not a valid bitmap.
    """
    reader = _RoaringReader(data, where)
    count, is_run, has_offsets = reader.containers()
    header = reader.array(2 * count).reshape(count, 2).astype(np.uint32)
    keys, cards = header[:, 0], header[:, 1] + 1
    total = int(cards.sum(dtype=np.int64))
    if total > limit:
        raise reader.corrupt(f"bitmap has {total} values, at most {limit} make sense")
    if count > 1 and not np.all(keys[1:] > keys[:-1]):
        raise reader.corrupt("containers out of order")
    if has_offsets:
        reader.take(4 * count)
    values = np.empty(total, np.uint32)
    end = 0
    for key, card, run in zip(keys.tolist(), cards.tolist(), is_run.tolist(), strict=True):
        low = reader.runs(card) if run else reader.plain(card)
        values[end : end + card] = low
        values[end : end + card] += np.uint32(key << 16)
        end += card
    return values


def check_roaring(data: bytes, where: str, start: int = 0) -> int:
    """Validate a bitmap without expanding its values. Afterwards, pyroaring can read it safely.

    Args:
        data: Bytes that contain a bitmap, and possibly other bytes around it.
        where: Name of the file, for messages.
        start: Offset of the bitmap.

    Returns:
        Offset of the bitmap's end.

    Raises:
        CorruptError: The bytes are not a valid bitmap.
    """
    reader = _RoaringReader(data, where, start)
    cards, _, is_run = reader.header()
    if not is_run.any() and (cards <= _ARRAY_MAX).all():
        reader.check_arrays(cards)
        return reader.at
    for card, run in zip(cards.tolist(), is_run.tolist(), strict=True):
        reader.check(card, run)
    return reader.at


def roaring_runs(data: bytes, where: str, start: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Return a bitmap as runs of consecutive values. Memory use depends on its size, not on its value count.

    Args:
        data: Bytes that contain a bitmap, and possibly other bytes around it.
        where: Name of the file, for messages.
        start: Offset of the bitmap.

    Returns:
        The first value and the length of each run, ascending, and the end offset of the bitmap. Between two runs, at
        least one value is missing.

    Raises:
        CorruptError: The bytes are not a valid bitmap.
    """
    reader = _RoaringReader(data, where, start)
    cards, keys, is_run = reader.header()
    pieces = [
        reader.run_ends(card) if run else _runs(reader.plain(card).astype(np.int64))
        for card, run in zip(cards.tolist(), is_run.tolist(), strict=True)
    ]
    if not pieces:
        return np.empty(0, np.int64), np.empty(0, np.int64), reader.at
    first = np.concatenate([low + (key << 16) for (low, _), key in zip(pieces, keys.tolist(), strict=True)])
    length = np.concatenate([length for _, length in pieces])
    begins = np.flatnonzero(np.concatenate(([True], first[1:] != first[:-1] + length[:-1])))
    return first[begins], np.add.reduceat(length, begins), reader.at


def _runs(values: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    begins = np.flatnonzero(np.concatenate(([True], np.diff(values) != 1)))
    return values[begins], np.diff(np.append(begins, len(values)))


def roaring_bytes(values: NDArray[np.uint32]) -> bytes:
    """Build a bitmap from values in any order."""
    bitmap = BitMap(array("I", values.astype(np.uint32).tobytes()))  # an array is added in a single step
    bitmap.run_optimize()
    data: bytes = bitmap.serialize()
    return data


class _RoaringReader:
    def __init__(self, data: bytes, where: str, start: int = 0) -> None:
        self._data = data
        self._where = where
        self.at = start

    def corrupt(self, what: str) -> CorruptError:
        return CorruptError("the roaring bitmap is corrupt", where=self._where, found=what)

    def take(self, size: int) -> bytes:
        piece = self._data[self.at : self.at + size]
        if len(piece) != size:
            raise self.corrupt("it is cut short")
        self.at += size
        return piece

    def array(self, count: int) -> NDArray[np.uint16]:
        return np.frombuffer(self.take(2 * count), _U16)

    def containers(self) -> tuple[int, NDArray[np.bool_], bool]:
        cookie = int.from_bytes(self.take(4), "little")
        if cookie == _PLAIN_COOKIE:
            count = int.from_bytes(self.take(4), "little")
            if count > 1 << 16:
                raise self.corrupt(f"{count} containers")
            return count, np.zeros(count, np.bool_), True
        if cookie & 0xFFFF != _RUN_COOKIE:
            raise self.corrupt(f"cookie {cookie}")
        count = (cookie >> 16) + 1
        flags = np.frombuffer(self.take((count + 7) // 8), np.uint8)
        is_run = np.unpackbits(flags, bitorder="little")[:count].astype(np.bool_)
        return count, is_run, count >= _OFFSETS_FROM

    def header(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the value count of each container, the upper half of its values, and whether it stores runs."""
        count, is_run, has_offsets = self.containers()
        header = self.array(2 * count).astype(np.int64)
        keys = header[0::2]
        if count > 1 and not (keys[1:] > keys[:-1]).all():
            raise self.corrupt("containers out of order")
        if has_offsets:
            self.take(4 * count)
        return header[1::2] + 1, keys, is_run

    def plain(self, card: int) -> NDArray[np.integer]:
        if card > _ARRAY_MAX:
            bits = np.unpackbits(np.frombuffer(self.take(_BITSET_BYTES), np.uint8), bitorder="little")
            values = np.flatnonzero(bits)
            if len(values) != card:
                raise self.corrupt(f"{len(values)} bits in a container of {card} values")
            return values
        low = self.array(card)
        if not np.all(low[1:] > low[:-1]):
            raise self.corrupt("values out of order")
        return low

    def check_arrays(self, cards: NDArray[np.int64]) -> None:
        """Skip consecutive array containers, and check that their values ascend."""
        low = self.array(int(cards.sum()))
        rises = low[1:] > low[:-1]
        rises[np.cumsum(cards)[:-1] - 1] = True
        if not rises.all():
            raise self.corrupt("values out of order")

    def check(self, card: int, run: bool) -> None:
        """Skip a container, and check that it contains `card` values in order."""
        if run:
            self.run_ends(card)
        elif card > _ARRAY_MAX:
            cardinality = int(np.bitwise_count(np.frombuffer(self.take(_BITSET_BYTES), np.uint64)).sum())
            if cardinality != card:
                raise self.corrupt(f"{cardinality} bits in a container of {card} values")
        else:
            self.plain(card)

    def runs(self, card: int) -> NDArray[np.integer]:
        first, length = self.run_ends(card)
        before = np.cumsum(length) - length
        return np.repeat(first - before, length) + np.arange(card)

    def run_ends(self, card: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first value and length of each run of a container, checked to contain `card` values."""
        count = int.from_bytes(self.take(2), "little")
        pairs = self.array(2 * count).reshape(count, 2).astype(np.int64)
        first, length = pairs[:, 0], pairs[:, 1] + 1
        end = first + length
        if int(length.sum()) != card or np.any(end > 1 << 16) or np.any(first[1:] < end[:-1]):
            raise self.corrupt("runs overlap or miss the number of values")
        return first, length
