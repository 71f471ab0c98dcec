"""Maps from the old to the new addresses of rewritten rows, stored as runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct, union_of
from lance_duck.errors import CorruptError
from lance_duck.rows.costs import LISTED_SHARE
from lance_duck.rows.row_positions import Slots
from lance_duck.wire.limits import OFFSET_MASK

Addresses = NDArray[np.uint64]
FragmentIds = NDArray[np.uint32]

_HIGH = np.uint64(32)
_LOW = np.uint64(OFFSET_MASK)
_GONE = np.uint64(0xFFFFFFFFFFFFFFFF)


@dataclass(frozen=True, eq=False)
class MovedGroup:
    """Fragments that were rewritten together.

    Attributes:
        old: Ids of the fragments that no longer exist.
        new: Id and row count of each fragment that replaced them.
        first: Old start address of each surviving run, in new row order.
        length: Row count of each run.
    """

    old: tuple[int, ...]
    new: tuple[tuple[int, int], ...]
    first: Addresses
    length: NDArray[np.int64]


class AddressMap:
    """A map from old to new row addresses, for fragments that were rewritten together. Immutable.

    Attributes:
        groups: Old and new fragment ids of each group.

    Args:
        groups: Disjoint groups of fragments.
        where: Name of the file or table, for messages.

    Raises:
        CorruptError: A group's row counts before and after differ, or a run lies outside the group's old fragments.
    """

    def __init__(self, groups: Sequence[MovedGroup], where: str = "") -> None:
        self.groups = tuple((_ids(group.old), _ids(i for i, _ in group.new)) for group in groups)
        pieces = [_run_targets(group, where) for group in groups]
        first, length, target = (np.concatenate(column) for column in zip(*pieces, strict=True)) if pieces else _NOTHING
        order = np.argsort(first, kind="stable")
        self._first, self._length, self._target = first[order], length[order].astype(np.uint64), target[order]
        self._old = distinct(_ids(i for group in groups for i in group.old)).astype(np.uint64)
        self._slots = self._places()

    def follow(self, addresses: Addresses) -> tuple[Addresses, NDArray[np.bool_]]:
        """Return the new address of each row, and a mask of the rows that still exist.

        Rows of other fragments keep their addresses. The address returned for a removed row is meaningless.
        """
        # For many addresses, a list of all moved rows is faster than a search among the runs. The list takes a few
        # times the memory of the addresses.
        if len(addresses) * LISTED_SHARE >= self._slots.total:
            return self._follow_many(addresses)
        is_moved = np.isin(addresses >> _HIGH, self._old)
        if not len(self._first):
            return addresses, ~is_moved
        run = np.searchsorted(self._first, addresses, side="right") - 1
        within = addresses - self._first[run]  # wraps around before the first run, beyond any length
        moved = within < self._length[run]
        return np.where(moved, self._target[run] + within, addresses), moved | ~is_moved

    def _follow_many(self, addresses: Addresses) -> tuple[Addresses, NDArray[np.bool_]]:
        if not self._slots.total:
            return addresses, ~np.isin(addresses >> _HIGH, self._old)
        place, within, moved = self._slots.find(addresses)
        targets = self._targets()[place]
        lives = ~moved | (within & (targets != _GONE))
        return np.where(moved, targets, addresses), lives

    def _targets(self) -> Addresses:
        """Return an array with the new address of each old row, indexed by the row's position in `_slots`."""
        length = self._length.astype(np.int64)
        inside = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        first, _, _ = self._slots.find(self._first)
        targets = np.full(self._slots.total, _GONE)
        targets[np.repeat(first, length) + inside] = np.repeat(self._target, length) + inside.astype(np.uint64)
        return targets

    def coverage(self, fragment_ids: FragmentIds) -> FragmentIds:
        """Return the ascending ids of the fragments that now contain the rows of the given fragments.

        If `fragment_ids` lacks some old fragments of a group, the group's new fragments are left out, because they also
        contain rows of the missing fragments.
        """
        result = fragment_ids
        for old, new in self.groups:
            inside = np.isin(old, result)
            if inside.any():
                result = difference_of(result, old)
            if inside.any() and inside.all():
                result = union_of(result, new)
        return result

    @property
    def old(self) -> FragmentIds:
        """Ascending ids of the fragments that no longer exist."""
        return self._old.astype(np.uint32)

    def _places(self) -> Slots:
        """Assign a position to each row of the old fragments, up to the last surviving row of each fragment."""
        sizes = np.zeros(len(self._old), np.int64)
        ends = np.searchsorted(self._first, self._old << _HIGH | _LOW, side="right")
        begins = np.searchsorted(self._first, self._old << _HIGH)
        has = np.flatnonzero(ends > begins)
        last = ends[has] - 1
        sizes[has] = ((self._first[last] + self._length[last]) - (self._old[has] << _HIGH)).astype(np.int64)
        return Slots(self._old, sizes)

    @cached_property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        groups = sum(old.nbytes + new.nbytes for old, new in self.groups)
        return self._first.nbytes + self._length.nbytes + self._target.nbytes + groups


def live_runs(
    fragment_id: int, physical_rows: int, deleted: NDArray[np.integer]
) -> tuple[Addresses, NDArray[np.int64]]:
    """Return the first address and the length of each run of live rows.

    Args:
        fragment_id: Id of the fragment.
        physical_rows: Row count of the fragment, including deleted rows.
        deleted: Offsets of deleted rows, strictly ascending.
    """
    edges = np.concatenate(([-1], deleted.astype(np.int64), [physical_rows]))
    first, length = edges[:-1] + 1, np.diff(edges) - 1
    is_live = length > 0
    return first[is_live].astype(np.uint64) | np.uint64(fragment_id << 32), length[is_live]


_NOTHING = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.uint64)


def _ids(fragment_ids: Iterable[int]) -> FragmentIds:
    return np.fromiter(fragment_ids, np.uint32)


def _run_targets(group: MovedGroup, where: str) -> tuple[Addresses, NDArray[np.int64], Addresses]:
    """Split a group's runs at the boundaries of its new fragments.

    Returns:
        The old start address, the length and the new start address of each run.
    """
    rows = np.array([count for _, count in group.new], np.int64)
    ends, new_ends = np.cumsum(group.length), np.cumsum(rows)
    before = int(ends[-1]) if len(ends) else 0
    after = int(new_ends[-1]) if len(new_ends) else 0
    if before != after:
        raise CorruptError("wrong row count of rewritten fragments", where=where, expected=before, found=after)
    if not np.isin(group.first >> _HIGH, np.array(group.old, np.uint64)).all():
        raise CorruptError(
            "row addresses belong to another fragment", where=where, expected=f"fragments {list(group.old)}"
        )
    begins, cuts = ends - group.length, distinct(new_ends - rows)
    near = np.searchsorted(begins, cuts)
    new = (cuts < before) & (np.append(begins, before)[near] != cuts)
    bounds = np.insert(begins, near[new], cuts[new])
    length = np.diff(np.append(bounds, before))
    run = np.searchsorted(ends, bounds, side="right")
    place = np.searchsorted(new_ends, bounds, side="right")
    first = group.first[run] + (bounds - begins[run]).astype(np.uint64)
    ids = np.array([i for i, _ in group.new], np.uint64)
    target = ids[place] << _HIGH | (bounds - (new_ends - rows)[place]).astype(np.uint64)
    return first, length, target


def join_runs(
    runs: Iterable[tuple[Addresses, NDArray[np.int64]]],
) -> tuple[Addresses, NDArray[np.int64]]:
    """Concatenate runs, given as first addresses and lengths."""
    pieces = list(runs)
    if not pieces:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.concatenate([first for first, _ in pieces]), np.concatenate([length for _, length in pieces])
