"""Bounds of zones, which show in which zones some rows may satisfy a query, and in which zones all rows do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, InternalError
from lance_duck.index.query import Among, Between, Except, HasPrefix, Null, Query
from lance_duck.index.zones.values import Values, is_nan, sortable_values

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ZoneBounds:
    """The bounds of the values of each zone.

    Attributes:
        type: Storage type of the values.
        low: Lower bound of all values except NaN. Defined if `values` is set.
        high: Upper bound of all values except NaN. Defined if `values` is set.
        values: Whether the zone may contain values that are neither null nor NaN.
        nans: Whether the zone may contain NaN.
        has_bounds: Whether `low` and `high` are defined.
    """

    type: pa.DataType
    low: Values
    high: Values
    values: Mask
    nans: Mask
    has_bounds: Mask

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        fixed = sum(array.nbytes for array in (self.low, self.high, self.values, self.nans, self.has_bounds))
        objects = self.low.dtype == object
        return fixed + (sum(map(len, self.low)) + sum(map(len, self.high)) + 66 * len(self.low) if objects else 0)


def read_bounds(
    low: pa.Array,
    high: pa.Array,
    nulls: NDArray[np.int64],
    nans: NDArray[np.int64],
    length: NDArray[np.int64],
    where: str,
) -> ZoneBounds:
    """Build bounds from the columns of a file. Each column has one entry per zone.

    Args:
        low: Minimum value. Null or NaN if it is unknown, or if all values are null or NaN.
        high: Maximum value. NaN if the zone contains a NaN. The maximum of the other values is then unknown.
        nulls: Number of nulls.
        nans: Number of NaNs.
        length: Number of offsets that the zone spans.
        where: Path for error messages.

    Raises:
        CorruptError: The minimum of a zone exceeds its maximum.
    """
    no_low, no_high = _missing(low), _missing(high)
    values = ~(no_low & no_high & (nulls + nans >= length))
    least, greatest = sortable_values(low), sortable_values(high)
    has_bounds = ~(no_low | no_high)
    if pa.types.is_floating(low.type):
        least, greatest = np.where(no_low, -np.inf, least), np.where(no_high, np.inf, greatest)
        least, greatest = least.astype(sortable_values(low).dtype), greatest.astype(sortable_values(high).dtype)
        has_bounds = np.ones(len(low), np.bool_)
    if (has_bounds & (least > greatest)).any():
        raise CorruptError("the minimum of a zone is above its maximum", where=where)
    return ZoneBounds(low.type, least, greatest, values, (nans > 0) | is_nan(low) | is_nan(high), has_bounds)


def zone_masks(bounds: ZoneBounds, query: Query) -> tuple[Mask, Mask]:
    """Return two masks: zones in which some row may satisfy a query, and zones whose non-null rows all satisfy it.

    Args:
        bounds: Bounds of the zones.
        query: Query for which `answered_by_bounds` is true. Neither `Null` nor `Except(Null())`.
    """
    if isinstance(query, Except):
        any_match, every = zone_masks(bounds, query.query)
        present = bounds.values | bounds.nans
        return present & ~every, present & ~any_match
    if isinstance(query, Among):
        (any_match, every), nan_inside = _among(bounds, query)
    elif isinstance(query, Between):
        (any_match, every), nan_inside = _between(bounds, query)
    elif isinstance(query, HasPrefix):
        (any_match, every), nan_inside = _starts_with(bounds, query), False
    else:
        raise InternalError("zone bounds cannot evaluate the query", found=query)
    any_match, every = any_match | ~bounds.has_bounds, every & bounds.has_bounds
    may = (bounds.values & any_match) | (bounds.nans if nan_inside else False)
    surely = (~bounds.values | every) & (True if nan_inside else ~bounds.nans)
    return may, may & surely


def answered_by_bounds(query: Query, is_text: bool) -> bool:
    """Return whether bounds restrict the rows that satisfy a query."""
    if isinstance(query, Except):
        return answered_by_bounds(query.query, is_text)
    return isinstance(query, Between | Among | Null) or (isinstance(query, HasPrefix) and is_text)


def _missing(bound: pa.Array) -> Mask:
    is_null: Mask = bound.is_null().to_numpy(zero_copy_only=False)
    return is_null | is_nan(bound)


def _between(bounds: ZoneBounds, query: Between) -> tuple[tuple[Mask, Mask], bool]:
    """Find the zones of a range. NaN is greater than all other values, so a range from NaN on contains only NaN."""
    low, low_nan = _bound(bounds, query.low)
    high, high_nan = _bound(bounds, query.high)
    nan_inside = (high is None and not (high_nan and query.high_open)) and not (low_nan and query.low_open)
    if low_nan:
        nothing = np.zeros(len(bounds.low), np.bool_)
        return (nothing, nothing), nan_inside
    return _range(bounds, low, query.low_open, high, query.high_open), nan_inside


def _range(
    bounds: ZoneBounds, low: Values | None, low_open: bool, high: Values | None, high_open: bool
) -> tuple[Mask, Mask]:
    may = np.ones(len(bounds.low), np.bool_)
    every = may
    if low is not None:
        above = np.greater if low_open else np.greater_equal
        may, every = may & above(bounds.high, low), every & above(bounds.low, low)
    if high is not None:
        below = np.less if high_open else np.less_equal
        may, every = may & below(bounds.low, high), every & below(bounds.high, high)
    return may.astype(np.bool_), every.astype(np.bool_)


def _among(bounds: ZoneBounds, query: Among) -> tuple[tuple[Mask, Mask], bool]:
    values = _fitting(bounds, query.values)
    nan = is_nan(values)
    targets = np.unique(sortable_values(values)[~nan])
    begin = np.searchsorted(targets, bounds.low, side="left")
    may = np.searchsorted(targets, bounds.high, side="right") > begin
    return (may, may & (bounds.low == bounds.high).astype(np.bool_)), bool(nan.any())


def _starts_with(bounds: ZoneBounds, query: HasPrefix) -> tuple[Mask, Mask]:
    """Find the zones of a prefix. Matching strings are at least the prefix, and below the next string without it."""
    prefix = sortable_values(_fitting(bounds, pa.array([query.prefix])))
    stem = bytes(prefix[0]).rstrip(b"\xff")
    after = None
    if stem:
        after = np.empty(1, object)
        after[0] = stem[:-1] + bytes([stem[-1] + 1])
    return _range(bounds, prefix, False, after, True)


def _bound(bounds: ZoneBounds, value: pa.Scalar | None) -> tuple[Values | None, bool]:
    """Return a bound as an array with one value (None if it is NaN or unbounded), and whether it is NaN."""
    if value is None:
        return None, False
    array = _fitting(bounds, pa.array([value]))
    return (None, True) if is_nan(array)[0] else (sortable_values(array), False)


def _fitting(bounds: ZoneBounds, values: pa.Array) -> pa.Array:
    if values.type == bounds.type:
        return values
    try:
        return pc.cast(values, bounds.type)
    except pa.ArrowException as error:
        raise InternalError(
            "the values of the query have the wrong type", expected=bounds.type, found=values.type
        ) from error
