"""Least and greatest values of zones, computed from rows, from pieces of zones, and from zones that moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.types import number_dtype
from lance_duck.index.kind import VALUE, Rows
from lance_duck.index.zones.costs import LONG_ZONE, WAITING_ZONES
from lance_duck.index.zones.index import null_counts
from lance_duck.index.zones.moved import follow_rows, follow_zones
from lance_duck.index.zones.ordering import is_nan
from lance_duck.index.zones.zones import Ints, Mask, Zones, cut_batches
from lance_duck.rows.row_set import RowSet


@dataclass(frozen=True, eq=False)
class ZoneStatistics:
    """The statistics of zones, in the form of files.

    Attributes:
        zones: Extents of the zones.
        low: Least value of each zone; null if there is none or it is unknown, NaN if there are no other values.
        high: Greatest value of each zone; NaN if it has a NaN.
        nulls: Number of nulls of each zone.
        nans: Number of NaN of each zone.
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
        """Return the statistics of the zones at some places."""
        zones = Zones(self.zones.first[places], self.zones.length[places])
        indices = pa.array(places)
        return ZoneStatistics(
            zones, self.low.take(indices), self.high.take(indices), self.nulls[places], self.nans[places]
        )


def collect(
    rows: pa.RecordBatchReader, rows_per_zone: int, progress: Callable[[int], None] | None = None
) -> tuple[ZoneStatistics, RowSet]:
    """Return the statistics of the zones of rows in table order, and the rows that are null."""
    type_ = rows.schema.field(VALUE).type
    statistics = _PieceStatistics(type_)
    nulls: list[RowSet] = []
    for piece in cut_batches(rows, rows_per_zone, nulls, progress):
        statistics.add(*_pieces(*piece))
    return statistics.finish(), RowSet.union(nulls)


def moved_zones(
    statistics: ZoneStatistics,
    nulls: RowSet,
    follow: Callable[[Rows], tuple[Rows, Mask]],
    rows_per_zone: int,
) -> tuple[ZoneStatistics, RowSet]:
    """Return the statistics of zones, and the nulls, after their rows got new names.

    Zones that moved are joined if they lie together in a stretch of the usual length: small ones would otherwise stay
    small forever.
    """
    moved = follow_zones(statistics.zones, follow)
    new_nulls = follow_rows(nulls, follow)
    zones = statistics.take(moved.source)
    counts = null_counts(new_nulls, moved.zones)
    nans = np.minimum(zones.nans, moved.zones.length)
    result = ZoneStatistics(moved.zones, zones.low, zones.high, counts, nans)
    is_clear = ~(result.low.is_null().to_numpy(zero_copy_only=False) & (counts + nans < moved.zones.length))
    return _joined(result, moved.zones.groups(moved.is_new & is_clear, rows_per_zone)), new_nulls


class _PieceStatistics:
    """A collector of statistics of pieces, in the order of their rows, that joins the pieces of a zone."""

    def __init__(self, type_: pa.DataType) -> None:
        self._type = type_
        self._pieces: list[ZoneStatistics] = []
        self._groups: list[Ints] = []
        self._waiting = 0

    def add(self, pieces: ZoneStatistics, groups: Ints) -> None:
        self._pieces.append(pieces)
        self._groups.append(groups)
        self._waiting += len(groups)
        if self._waiting > WAITING_ZONES and len(self._pieces) > 1:
            self._join()

    def finish(self) -> ZoneStatistics:
        if not self._pieces:
            nothing = pa.array([], self._type)
            none = np.empty(0, np.int64)
            return ZoneStatistics(Zones(np.empty(0, np.uint64), none), nothing, nothing, none, none)
        self._join()
        return self._pieces[0]

    def _join(self) -> None:
        groups = np.concatenate(self._groups)
        self._pieces = [_joined(ZoneStatistics.concat(self._pieces), groups)]
        self._groups = [distinct(groups)]
        self._waiting = 0


def _pieces(values: pa.Array, rows: Rows, starts: Ints, groups: Ints) -> tuple[ZoneStatistics, Ints]:
    """Return the statistics of consecutive pieces of rows."""
    last = np.append(starts[1:], len(rows)) - 1
    zones = Zones(rows[starts], (rows[last] - rows[starts]).astype(np.int64) + 1)
    nans = is_nan(values)
    numbers = _without(values, nans)
    low, high = _extremes(numbers, numbers, starts)
    is_null = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else np.empty(0, np.bool_)
    return _finished(zones, low, high, _counted(is_null, starts), _counted(nans, starts)), groups


def _joined(pieces: ZoneStatistics, groups: Ints) -> ZoneStatistics:
    """Return one zone for the pieces of each group; groups ascend."""
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
    """Return statistics with the extremes that files have: of floats, -0.0 is below 0.0, and NaN above all.

    A zone with only NaN has NaN as its least value, too: without one, some readers take it for a zone of nulls.
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
    """Return the number of marked values of each piece; an empty mask marks none."""
    if not mask.any():
        return np.zeros(len(starts), np.int64)
    return np.add.reduceat(mask.astype(np.int64), starts)


def _extremes(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Return the least value of each piece of `low`, and the greatest of each piece of `high`, an array as long."""
    form = _form(low.type)
    find = _extremes_one_by_one if len(low) >= LONG_ZONE * len(starts) else _extremes_at_once
    least, greatest = find(_viewed(low, form), _viewed(high, form), starts)
    return _viewed(least, low.type), _viewed(greatest, low.type)


def _extremes_one_by_one(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Compute the extremes of one piece after another: fast for long pieces."""
    pieces = [*zip(starts.tolist(), [*starts[1:].tolist(), len(low)], strict=True)]
    of_low = [pc.min_max(low.slice(begin, stop - begin)) for begin, stop in pieces]
    of_high = of_low if high is low else [pc.min_max(high.slice(begin, stop - begin)) for begin, stop in pieces]
    return pa.array([each["min"] for each in of_low], low.type), pa.array([each["max"] for each in of_high], low.type)


def _extremes_at_once(low: pa.Array, high: pa.Array, starts: Ints) -> tuple[pa.Array, pa.Array]:
    """Compute the extremes of all pieces at once: fast for short pieces."""
    groups = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(low))))
    table = pa.table({"group": groups, "low": low, "high": high})
    extremes = table.group_by("group", use_threads=False).aggregate([("low", "min"), ("high", "max")])
    return extremes.column("low_min").combine_chunks(), extremes.column("high_max").combine_chunks()


def _form(type_: pa.DataType) -> pa.DataType:
    """Return the type that values of a type are cast to for their extremes; Arrow does not have those of all types."""
    if pa.types.is_float16(type_):
        return pa.float32()
    return pa.int64() if pa.types.is_duration(type_) else type_


def _viewed(values: pa.Array, form: pa.DataType) -> pa.Array:
    return values if values.type == form else values.cast(form)
