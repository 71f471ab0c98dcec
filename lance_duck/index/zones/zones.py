"""Zones, which are the row ranges that a file summarizes, and their statistics. A zone lies within one fragment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import number_dtype
from lance_duck.index.kind import Rows
from lance_duck.index.zones.costs import LONG_ZONE
from lance_duck.index.zones.values import is_nan
from lance_duck.rows.row_set import RowSet
from lance_duck.wire.limits import OFFSET_MASK

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
FRAGMENT_BITS = np.uint64(32)
OFFSET_BITS = np.uint64(OFFSET_MASK)


@dataclass(frozen=True, eq=False)
class Zones:
    """The extents of zones. Methods expect the zones in ascending order of their first rows.

    Attributes:
        first: Address of the first row of each zone.
        length: Number of offsets that each zone spans, at least 1.
    """

    first: Rows
    length: Ints

    def __len__(self) -> int:
        return len(self.first)

    @property
    def fragments(self) -> Rows:
        """Fragment id of each zone."""
        return self.first >> FRAGMENT_BITS

    @property
    def offsets(self) -> Rows:
        """Offset of the first row of each zone."""
        return self.first & OFFSET_BITS

    def groups(self, joinable: Mask, rows_per_zone: int) -> Ints:
        """Return the group number of each zone. Adjacent zones that can be merged have the same number.

        Args:
            joinable: bool: whether each zone may be merged with others.
            rows_per_zone: Maximum number of offsets that a merged zone spans.
        """
        offsets = self.offsets.astype(np.int64)
        cell = offsets // rows_per_zone
        inside = joinable & ((offsets + self.length - 1) // rows_per_zone == cell)
        first, last = slice(None, -1), slice(1, None)
        touches = self.first[first] + self.length[first].astype(np.uint64) == self.first[last]
        same = touches & inside[first] & inside[last] & (cell[first] == cell[last])
        same &= self.fragments[first] == self.fragments[last]
        return np.cumsum(np.append(0, ~same)) if len(self) else np.empty(0, np.int64)

    @cached_property
    def overlapping(self) -> frozenset[int]:
        """Ids of fragments with overlapping zones. The summaries of these zones may be wrong for some rows.

        When a writer merges segments, it may keep outdated zones of a fragment whose column was rewritten.
        """
        ends = self.first + self.length.astype(np.uint64)
        crossing = np.flatnonzero(self.first[1:] < np.maximum.accumulate(ends)[:-1])
        return frozenset((self.first[crossing + 1] >> FRAGMENT_BITS).tolist())

    def rows(self, mask: Mask) -> RowSet:
        """Return the rows of the marked zones."""
        first, length = self.first[mask], self.length[mask]
        if not len(first):
            return RowSet({})
        ends = np.maximum.accumulate(first + length.astype(np.uint64))
        keys = first >> FRAGMENT_BITS
        begins = np.flatnonzero(np.append(True, (first[1:] > ends[:-1]) | (keys[1:] != keys[:-1])))
        starts = (first[begins] & OFFSET_BITS).tolist()
        last = np.append(begins[1:], len(first)) - 1
        stops = (ends[last] - (keys[last] << FRAGMENT_BITS)).tolist()
        return RowSet.of_ranges(zip(keys[begins].tolist(), starts, stops, strict=True))

    def count(self, mask: Mask) -> int:
        """Return the number of offsets that the marked zones span."""
        return int(self.length[mask].sum())

    def row_bound(self, fragment_id: int) -> int | None:
        """Return one more than the largest offset of a fragment's zones. Returns None for fragments without zones."""
        in_fragment = self.fragments == np.uint64(fragment_id)
        ends = (self.first[in_fragment] & OFFSET_BITS).astype(np.int64) + self.length[in_fragment]
        return int(ends.max()) if len(ends) else None


def null_counts(nulls: RowSet, zones: Zones) -> Ints:
    """Return the number of nulls in each zone. A null in overlapping zones counts in each of them."""
    counts = np.zeros(len(zones), np.int64)
    starts = zones.offsets.astype(np.int64)
    for fragment_id, part in nulls.parts.items():
        places = np.flatnonzero(zones.fragments == np.uint64(fragment_id))
        stops = starts[places] + zones.length[places]
        cardinalities = map(part.range_cardinality, starts[places].tolist(), stops.tolist())
        counts[places] = np.fromiter(cardinalities, np.int64, len(places))
    return counts


@dataclass(frozen=True, eq=False)
class ZoneStatistics:
    """The statistics of zones, as stored in files.

    Attributes:
        zones: Extents of the zones.
        low: Minimum of each zone. Null if it is unknown or does not exist, NaN if all values are null or NaN.
        high: Maximum of each zone. NaN if the zone contains a NaN.
        nulls: Number of nulls of each zone.
        nans: Number of NaNs of each zone.
    """

    zones: Zones
    low: pa.Array
    high: pa.Array
    nulls: Ints
    nans: Ints

    @classmethod
    def concat(cls, pieces: Sequence[ZoneStatistics]) -> ZoneStatistics:
        """Concatenate statistics."""
        first = np.concatenate([piece.zones.first for piece in pieces])
        length = np.concatenate([piece.zones.length for piece in pieces])
        return cls(
            Zones(first, length),
            pa.concat_arrays([piece.low for piece in pieces]),
            pa.concat_arrays([piece.high for piece in pieces]),
            np.concatenate([piece.nulls for piece in pieces]),
            np.concatenate([piece.nans for piece in pieces]),
        )

    def take(self, places: Ints) -> ZoneStatistics:
        """Return the statistics of the zones at the given positions."""
        zones = Zones(self.zones.first[places], self.zones.length[places])
        indices = pa.array(places)
        return ZoneStatistics(
            zones, self.low.take(indices), self.high.take(indices), self.nulls[places], self.nans[places]
        )


def pieces_of(values: pa.Array, rows: Rows, starts: Ints, groups: Ints) -> tuple[ZoneStatistics, Ints]:
    """Return the statistics of the row ranges that begin at `starts`, and `groups` unchanged."""
    last = np.append(starts[1:], len(rows)) - 1
    zones = Zones(rows[starts], (rows[last] - rows[starts]).astype(np.int64) + 1)
    nans = is_nan(values)
    numbers = _without(values, nans)
    low, high = _extremes(numbers, numbers, starts)
    is_null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else np.empty(0, np.bool_)
    return _finished(zones, low, high, _counted(is_null, starts), _counted(nans, starts)), groups


def joined_zones(pieces: ZoneStatistics, groups: Ints) -> ZoneStatistics:
    """Merge the row ranges of each group into one zone. Group numbers ascend."""
    begins = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1) if len(groups) else groups
    if len(begins) == len(groups):
        return pieces
    zones = pieces.zones
    last = np.append(begins[1:], len(groups)) - 1
    ends = (zones.first[last] - zones.first[begins]).astype(np.int64) + zones.length[last]
    low, high = (_without(bound, is_nan(bound)) for bound in (pieces.low, pieces.high))
    low, high = _extremes(low, high, begins)
    nulls, nans = (np.add.reduceat(each, begins) for each in (pieces.nulls, pieces.nans))
    return _finished(Zones(zones.first[begins], ends), low, high, nulls, nans)


def _finished(zones: Zones, low: pa.Array, high: pa.Array, nulls: Ints, nans: Ints) -> ZoneStatistics:
    """Apply the rules of the file to the minimums and maximums of floats.

    A minimum of zero becomes -0.0, and a maximum of zero becomes 0.0. The maximum of a zone that contains NaN becomes
    NaN. If all its values are null or NaN, its minimum also becomes NaN, because some readers take a null minimum for a
    zone of nulls.
    """
    if pa.types.is_floating(low.type):
        minus_zero, zero, nan = pa.array(np.array([-0.0, 0.0, np.nan], number_dtype(low.type)))
        low = pc.if_else(_is_zero(low), minus_zero, low)
        high = pc.if_else(_is_zero(high), zero, high)
        high = pc.if_else(pa.array(nans > 0), nan, high)
        low = pc.if_else(pc.and_(low.is_null(), pa.array(nans > 0)), nan, low)
    return ZoneStatistics(zones, low, high, nulls, nans)


def _is_zero(values: pa.Array) -> pa.Array:
    return pc.fill_null(pc.equal(values.cast(pa.float64()), 0.0), False)


def _without(values: pa.Array, mask: NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(mask), pa.scalar(None, values.type), values) if mask.any() else values


def _counted(mask: Mask, starts: Ints) -> Ints:
    """Return the number of marked values in each range. With an empty mask, all counts are 0."""
    if not mask.any():
        return np.zeros(len(starts), np.int64)
    return np.add.reduceat(mask.astype(np.int64), starts)


def _extremes(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Return the minimum of `low` and the maximum of `high` in each range."""
    form = _form(low.type)
    find = _extremes_one_by_one if len(low) >= LONG_ZONE * len(starts) else _extremes_at_once
    least, greatest = find(_viewed(low, form), _viewed(high, form), starts)
    return _viewed(least, low.type), _viewed(greatest, low.type)


def _extremes_one_by_one(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Compute the minimums and maximums range by range. Fast for long ranges."""
    pieces = [*zip(starts.tolist(), [*starts[1:].tolist(), len(low)], strict=True)]
    of_low = [pc.min_max(low.slice(begin, stop - begin)) for begin, stop in pieces]
    of_high = of_low if high is low else [pc.min_max(high.slice(begin, stop - begin)) for begin, stop in pieces]
    return pa.array([each["min"] for each in of_low], low.type), pa.array([each["max"] for each in of_high], low.type)


def _extremes_at_once(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Compute the minimums and maximums of all ranges at once. Fast for short ranges."""
    groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(low))))
    table = pa.table({"group": groups, "low": low, "high": high})
    extremes = table.group_by("group", use_threads=False).aggregate([("low", "min"), ("high", "max")])
    return extremes.column("low_min").combine_chunks(), extremes.column("high_max").combine_chunks()


def _form(type_: pa.DataType) -> pa.DataType:
    """Return a type that Arrow's min and max support, and to which values of the given type can be cast."""
    if pa.types.is_float16(type_):
        return pa.float32()
    return pa.int64() if pa.types.is_duration(type_) else type_


def _viewed(values: pa.Array, form: pa.DataType) -> pa.Array:
    return values if values.type == form else values.cast(form)
