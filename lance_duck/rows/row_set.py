"""Sets of rows, stored as one bitmap of row offsets per fragment.

A row is identified by 64 bits: its address (fragment id * 2^32 + offset), or a stable row id, which is split in the
same way.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap

from lance_duck import lazy
from lance_duck.arrow.join import joined
from lance_duck.kernels.jit import readonly
from lance_duck.rows.costs import DENSE_NAMES

_HIGH = np.uint64(32)
if TYPE_CHECKING:
    from lance_duck.kernels.keys import bits
else:
    bits = lazy.modules(globals(), "lance_duck.kernels.keys", "bits")

_COOKIE: Final = 12346
_ARRAY_MAX: Final = 4096
_CONTAINER_WORDS: Final = 1024


class RowSet:
    """An immutable set of rows.

    Args:
        parts: Offsets by fragment id (upper half of the row id). The set takes ownership and drops empty bitmaps.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: Mapping[int, BitMap]) -> None:
        self._parts = {key: part for key, part in parts.items() if part}

    @classmethod
    def of(cls, rows: NDArray[np.uint64]) -> RowSet:
        """Build a set from rows, in any order and possibly repeated."""
        if not len(rows):
            return cls({})
        dense = dense_parts(rows)
        if dense is not None:
            return cls(dense)
        if not (rows[1:] >= rows[:-1]).all():  # pyroaring takes ten times as long for unsorted numbers
            rows = np.sort(rows)
        keys = rows >> _HIGH
        offsets = rows.astype(np.uint32)  # the lower half
        if keys[0] == keys[-1]:
            return cls({int(keys[0]): _bitmap(offsets)})
        edges = [0, *(np.flatnonzero(keys[1:] != keys[:-1]) + 1).tolist(), len(keys)]
        return cls({int(keys[begin]): _bitmap(offsets[begin:end]) for begin, end in pairwise(edges)})

    @classmethod
    def of_ranges(cls, ranges: Iterable[tuple[int, int, int]]) -> RowSet:
        """Build a set from row ranges (fragment id, start, stop)."""
        parts: dict[int, BitMap] = {}
        for key, start, stop in ranges:
            parts.setdefault(key, BitMap()).add_range(start, stop)
        return cls(parts)

    @classmethod
    def union(cls, sets: Iterable[RowSet]) -> RowSet:
        """Return the union of sets."""
        gathered: dict[int, list[BitMap]] = {}
        for each in sets:
            for key, part in each._parts.items():
                gathered.setdefault(key, []).append(part)
        return cls({key: parts[0] if len(parts) == 1 else BitMap.union(*parts) for key, parts in gathered.items()})

    @property
    def parts(self) -> Mapping[int, BitMap]:
        """Non-empty bitmaps of offsets, by fragment id. Callers must not modify the bitmaps."""
        return MappingProxyType(self._parts)

    @property
    def fragment_ids(self) -> list[int]:
        """Ids of the fragments that contain rows, ascending."""
        return sorted(self._parts)

    def offsets(self, fragment_id: int) -> NDArray[np.int64]:
        """Return the offsets of the rows in one fragment, ascending."""
        part = self._parts.get(fragment_id)
        return np.empty(0, np.int64) if part is None else _values(part).astype(np.int64)

    def rows(self) -> NDArray[np.uint64]:
        """Return all rows, ascending."""
        pieces = [_values(self._parts[key]).astype(np.uint64) | np.uint64(key << 32) for key in self.fragment_ids]
        return joined(pieces, np.uint64)

    def only(self, fragment_ids: Iterable[int]) -> RowSet:
        """Return the rows in the given fragments."""
        fragments = set(fragment_ids)
        return RowSet({key: part for key, part in self._parts.items() if key in fragments})

    def filtered(self, keep: Callable[[int, BitMap], BitMap]) -> RowSet:
        """Call `keep` with the id and offsets of each fragment, and return the set of the rows that it keeps."""
        return RowSet({key: keep(key, part) for key, part in self._parts.items()})

    def __or__(self, other: RowSet) -> RowSet:
        return RowSet.union((self, other))

    def __and__(self, other: RowSet) -> RowSet:
        return RowSet({key: part & other._parts[key] for key, part in self._parts.items() if key in other._parts})

    def __sub__(self, other: RowSet) -> RowSet:
        other_parts = other._parts
        return RowSet(
            {key: part - other_parts[key] if key in other_parts else part for key, part in self._parts.items()}
        )

    def __len__(self) -> int:
        return sum(map(len, self._parts.values()))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowSet) and self._parts == other._parts

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[int]:
        return iter(self.rows().tolist())

    def __repr__(self) -> str:
        return f"<RowSet of {len(self)} rows in {len(self._parts)} fragments>"


def _bitmap(offsets: NDArray[np.uint32]) -> BitMap:
    return BitMap(array("I", offsets.tobytes()))


def _values(part: BitMap) -> NDArray[np.uint32]:
    return np.frombuffer(part.to_array(), np.uint32)


def dense_parts(names: NDArray[np.uint64]) -> dict[int, BitMap] | None:
    """Group row ids by their upper half, with a bit array instead of a sort.

    Returns:
        A bitmap of lower halves for each upper half, or None if the ids are too few or too far apart.
    """
    if len(names) < DENSE_NAMES:
        return None
    names = readonly(names)
    bounds = np.empty(3, np.uint64)
    bits.bounds_of_names(names, bounds)
    least, most, within = (int(bound) for bound in bounds)
    containers = (within >> 16) + 1
    if (most - least + 1) * containers * DENSE_NAMES > len(names):  # otherwise the bits take less memory than the ids
        return None
    words = np.zeros((most - least + 1, containers * _CONTAINER_WORDS), np.uint64)
    bits.set_bits(names, least, words)
    return {least + i: bitmap_of(row) for i, row in enumerate(words)}


def bitmap_of(words: NDArray[np.uint64]) -> BitMap:
    """Build a roaring bitmap from a bit array whose length is a multiple of 1024 words.

    `rows.roaring` describes the bytes of the bitmap. The bitmap does not have run containers.
    """
    rows = words.reshape(-1, _CONTAINER_WORDS)
    counts = np.bitwise_count(rows).sum(axis=1, dtype=np.int64)
    keys = np.flatnonzero(counts)
    counts = counts[keys]
    header = np.stack([keys, counts - 1], axis=1).astype("<u2")
    sizes = np.where(counts > _ARRAY_MAX, 8 * _CONTAINER_WORDS, 2 * counts)
    offsets = 8 + 8 * len(keys) + np.cumsum(sizes) - sizes
    pieces = [np.array([_COOKIE, len(keys)], "<u4").tobytes(), header.tobytes(), offsets.astype("<u4").tobytes()]
    for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
        if count > _ARRAY_MAX:
            pieces.append(rows[key].astype("<u8", copy=False).tobytes())
        else:
            bits = np.unpackbits(rows[key].astype("<u8", copy=False).view(np.uint8), bitorder="little")
            pieces.append(np.flatnonzero(bits).astype("<u2").tobytes())
    return BitMap.deserialize(b"".join(pieces))
