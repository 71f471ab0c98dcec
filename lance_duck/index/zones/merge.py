"""Merges the zones of other segments, and updates the addresses of moved rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lance_duck.encoding.bloom import BLOCK_BYTES, Words
from lance_duck.index.files import INDEX_BLOCK_BYTES, INDEX_BLOCK_ROWS
from lance_duck.index.kind import Follow, Rows
from lance_duck.index.zones.costs import PROBED_ROWS
from lance_duck.index.zones.open import BloomFilterFile
from lance_duck.index.zones.write import FilterWriter
from lance_duck.index.zones.zones import FRAGMENT_BITS, Ints, Mask, Zones, ZoneStatistics, joined_zones, null_counts
from lance_duck.rows.row_set import RowSet


@dataclass(frozen=True, eq=False)
class MovedZones:
    """Zones after their rows moved.

    Attributes:
        zones: The new zones. Each contains rows of a single old zone.
        source: Old zone number of each new zone.
        is_new: Whether the rows of each new zone have moved.
    """

    zones: Zones
    source: Ints
    is_new: Mask


def follow_zones(zones: Zones, follow: Follow) -> MovedZones:
    """Find the current positions of zones. A zone is split if rows of other zones come between its rows.

    Every fragment must be kept, removed, or rewritten as a whole.
    """
    still = np.isin(zones.fragments, _fragments_in_place(zones, follow))
    stays = np.flatnonzero(still)
    goes = np.flatnonzero(~still)
    pieces = [(zones.first[stays], zones.length[stays], stays)]
    total = int(zones.length[goes].sum())
    parts = (range(begin, min(begin + INDEX_BLOCK_ROWS, total)) for begin in range(0, total, INDEX_BLOCK_ROWS))
    pieces.extend(_followed(zones, goes, part, follow) for part in parts)
    first, length, source = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(first, kind="stable")
    return MovedZones(Zones(first[order], length[order]), source[order], np.arange(len(first))[order] >= len(stays))


def follow_rows(rows: RowSet, follow: Follow) -> RowSet:
    """Return the current addresses of a set of rows, without deleted rows."""
    names, lives = follow(rows.rows())
    return RowSet.of(names[lives])


def _fragments_in_place(zones: Zones, follow: Follow) -> Rows:
    """Return the fragments that still exist: at least one of their sampled rows keeps its address."""
    order = zones.fragments
    begins = np.append(0, np.flatnonzero(order[1:] != order[:-1]) + 1) if len(order) else np.empty(0, np.int64)
    last = np.append(begins[1:], len(order))[: len(begins)] - 1
    first = zones.first[begins]
    span = zones.first[last] - first + zones.length[last].astype(np.uint64)
    steps = np.arange(PROBED_ROWS, dtype=np.uint64)
    probes = first[:, None] + (span[:, None] - np.uint64(1)) * steps // np.uint64(PROBED_ROWS - 1)
    names, lives = follow(probes.ravel())
    same = (lives & (names == probes.ravel())).reshape(probes.shape).any(axis=1)
    result: Rows = order[begins][same]
    return result


def _followed(zones: Zones, positions: Ints, part: range, follow: Follow) -> tuple[Rows, Ints, Ints]:
    """Follow a range of the rows of some zones. Returns the first row, length and old zone of each resulting zone."""
    ends = np.cumsum(zones.length[positions])
    place = np.arange(part.start, part.stop)
    zone = np.searchsorted(ends, place, side="right")
    source = positions[zone]
    names, lives = follow(zones.first[source] + (place - (ends - zones.length[positions])[zone]).astype(np.uint64))
    names, source = names[lives], source[lives]
    order = np.argsort(names, kind="stable")
    names, source = names[order], source[order]
    if not len(names):
        return names, np.empty(0, np.int64), source
    cut = (source[1:] != source[:-1]) | (names[1:] >> FRAGMENT_BITS != names[:-1] >> FRAGMENT_BITS)
    begins = np.append(0, np.flatnonzero(cut) + 1)
    last = np.append(begins[1:], len(names)) - 1
    return names[begins], (names[last] - names[begins]).astype(np.int64) + 1, source[begins]


def moved_zones(
    statistics: ZoneStatistics,
    nulls: RowSet,
    follow: Follow,
    rows_per_zone: int,
) -> tuple[ZoneStatistics, RowSet]:
    """Return the statistics of zones, and the null rows, after rows moved.

    Adjacent moved zones are merged if they lie within the same `rows_per_zone` offsets, because small zones would
    otherwise stay small forever.
    """
    moved = follow_zones(statistics.zones, follow)
    new_nulls = follow_rows(nulls, follow)
    zones = statistics.take(moved.source)
    counts = null_counts(new_nulls, moved.zones)
    nans = np.minimum(zones.nans, moved.zones.length)
    result = ZoneStatistics(moved.zones, zones.low, zones.high, counts, nans)
    is_clear = ~(result.low.is_null().to_numpy(zero_copy_only=False) & (counts + nans < moved.zones.length))
    return joined_zones(result, moved.zones.groups(moved.is_new & is_clear, rows_per_zone)), new_nulls


def follow_filters(file: BloomFilterFile, follow: Follow, writer: FilterWriter, rows_per_zone: int) -> RowSet:
    """Write the filters of a segment for the new addresses of its rows. Returns the addresses of its null rows."""
    moved = follow_zones(file.zones, follow)
    nulls = follow_rows(file.nulls, follow)
    groups = moved.zones.groups(moved.is_new, rows_per_zone)
    at_once = max(1, INDEX_BLOCK_BYTES // (file.blocks * BLOCK_BYTES))
    for begin in range(0, len(moved.zones), at_once):
        block = slice(begin, begin + at_once)
        for places, words in file.filters(moved.source[block]):
            positions = begin + places
            zones = followed_rows(moved.zones.first[positions], moved.zones.length[positions], groups[positions])
            has_null = (null_counts(nulls, zones) > 0).tolist()
            joined = joined_filters(words, groups[positions])
            for each in zip(zones.first.tolist(), zones.length.tolist(), has_null, joined, strict=True):
                writer.add(*each)
    return nulls


def joined_filters(words: Words, groups: Ints) -> Words:
    """Merge the filters of each group. Group numbers ascend."""
    begins = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    joined: Words = words if len(begins) == len(groups) else np.bitwise_or.reduceat(words, begins, axis=0)
    return joined


def followed_rows(first: Rows, length: Ints, groups: Ints) -> Zones:
    """Join the adjacent zones of each group into one zone."""
    begins = np.append(0, np.flatnonzero(groups[1:] != groups[:-1]) + 1)
    last = np.append(begins[1:], len(groups)) - 1
    return Zones(first[begins], (first[last] - first[begins]).astype(np.int64) + length[last])
