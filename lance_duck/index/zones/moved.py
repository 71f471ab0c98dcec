"""Zones of rows that moved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.kind import Rows
from lance_duck.index.zones.costs import PROBED_ROWS
from lance_duck.index.zones.zones import Ints, Mask, Zones
from lance_duck.rows.row_set import RowSet

_HIGH = np.uint64(32)


@dataclass(frozen=True, eq=False)
class MovedZones:
    """Zones after rows got new names.

    Attributes:
        zones: Pieces of the old zones.
        source: Number of the old zone of each piece.
        is_new: Whether each piece lies elsewhere than before.
    """

    zones: Zones
    source: Ints
    is_new: Mask


def follow_zones(zones: Zones, follow: Callable[[Rows], tuple[Rows, Mask]]) -> MovedZones:
    """Follow the rows of zones: a zone becomes one piece for each stretch of its rows without other rows between them.

    A fragment stays, is removed, or is rewritten as a whole.
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


def follow_rows(rows: RowSet, follow: Callable[[Rows], tuple[Rows, Mask]]) -> RowSet:
    """Return the new names of a set of rows, without rows that are gone."""
    names, lives = follow(rows.rows())
    return RowSet.of(names[lives])


def _fragments_in_place(zones: Zones, follow: Callable[[Rows], tuple[Rows, Mask]]) -> Rows:
    """Return the fragments in which some row still has its name."""
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


def _followed(
    zones: Zones, positions: Ints, part: range, follow: Callable[[Rows], tuple[Rows, Mask]]
) -> tuple[Rows, Ints, Ints]:
    """Return the first row, length and old zone of each piece, for a part of the rows of some zones."""
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
    cut = (source[1:] != source[:-1]) | (names[1:] >> _HIGH != names[:-1] >> _HIGH)
    begins = np.append(0, np.flatnonzero(cut) + 1)
    last = np.append(begins[1:], len(names)) - 1
    return names[begins], (names[last] - names[begins]).astype(np.int64) + 1, source[begins]
