"""The rows that a version changed, identified by stable row id if available, otherwise by row address.

Addresses do not follow moved rows, so an update then appears as a deletion and an insertion. Rows that a compaction
moved do not count as changed. The version's transaction identifies compactions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import UnsupportedError
from lance_duck.rows import VersionSequence
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.columns.files import live_rows
from lance_duck.wire.fragment import TOMBSTONE, Fragment

UInt64s = NDArray[np.uint64]
_NO_ROWS: Final = np.empty(0, np.uint64)
_UNKNOWN: Final = np.uint64(0)


@dataclass(frozen=True)
class ChangedRows:
    """Deleted, inserted or updated rows.

    Attributes:
        ids: Stable row ids, or addresses if the table does not have them; uint64, shape (n,).
        before: Addresses in the older version, or None for inserted rows; uint64, shape (n,).
        after: Addresses in the newer version, or None for deleted rows; uint64, shape (n,).
        fields: Field ids. Only the rows with a new value in one of these fields were updated. None if every row was
            updated, inserted or deleted.
    """

    ids: UInt64s
    before: UInt64s | None
    after: UInt64s | None
    fields: frozenset[int] | None = None


def changed_rows(older: Snapshot | None, newer: Snapshot) -> Iterator[ChangedRows]:
    """Yield the rows that a version deleted, then the updated rows, then the inserted rows.

    Args:
        older: The previous version, or None.
        newer: The version.

    Raises:
        UnsupportedError: The table does not have stable row ids, and the transaction was not kept.
        NotFoundError: A file is missing.
        CorruptError: A file is damaged.
    """
    transaction = newer.transaction()
    operation = None if transaction is None or transaction.message is None else transaction.operation
    if operation == "Rewrite":
        return
    if older is None or operation == "Overwrite":
        yield from () if older is None else _whole(older, older.fragments, deleted=True)
        yield from _whole(newer, newer.fragments, deleted=False)
    elif older.has_stable_row_ids and newer.has_stable_row_ids:
        yield from _changed_by_id(older, newer, operation)
    else:
        yield from _changed_by_address(older, newer, operation)


def _whole(snapshot: Snapshot, fragments: Sequence[Fragment], *, deleted: bool) -> Iterator[ChangedRows]:
    """Yield all rows of fragments, one fragment at a time."""
    for fragment in fragments:
        rows = _FragmentRows.of(snapshot, [fragment])
        if len(rows.ids):
            yield ChangedRows(rows.ids, rows.addresses if deleted else None, None if deleted else rows.addresses)


@dataclass(frozen=True)
class _FragmentRows:
    """Live rows of some fragments.

    Attributes:
        ids: Stable row ids, or addresses.
        addresses: Row addresses.
        created, updated: Creation and last update version of each row; 0 if unknown.
    """

    ids: UInt64s
    addresses: UInt64s
    created: UInt64s
    updated: UInt64s

    @classmethod
    def of(cls, snapshot: Snapshot, fragments: Sequence[Fragment]) -> _FragmentRows:
        parts: list[tuple[UInt64s, UInt64s, UInt64s, UInt64s]] = [(_NO_ROWS,) * 4]
        for fragment in fragments:
            live = live_rows(snapshot, fragment)
            offsets = np.arange(snapshot.physical_rows(fragment)) if live is None else live
            addresses = offsets.astype(np.uint64) | np.uint64(fragment.id << 32)
            sequence = snapshot.row_ids(fragment)
            created = _versions(snapshot.created_at(fragment), offsets)
            updated = _versions(snapshot.last_updated_at(fragment), offsets)
            parts.append((addresses if sequence is None else sequence.take(offsets), addresses, created, updated))
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _versions(sequence: VersionSequence | None, offsets: NDArray[np.int64]) -> UInt64s:
    return np.full(len(offsets), _UNKNOWN) if sequence is None else sequence.take(offsets)


def _changed_by_id(older: Snapshot, newer: Snapshot, operation: str | None) -> Iterator[ChangedRows]:
    by_id = {fragment.id: fragment for fragment in newer.fragments}
    same = {f.id for f in older.fragments if f.id in by_id and _is_same(f, by_id[f.id])}
    old = [fragment for fragment in older.fragments if fragment.id not in same]
    new = [fragment for fragment in newer.fragments if fragment.id not in same]
    if not old or not new:
        yield from _whole(older, old, deleted=True)
        yield from _whole(newer, new, deleted=False)
        return
    before, after = _FragmentRows.of(older, old), _FragmentRows.of(newer, new)
    _, at, now = np.intersect1d(before.ids, after.ids, assume_unique=True, return_indices=True)
    if operation == "Restore":  # earlier overwrites may have assigned the id to another row
        is_row = before.created[at] == after.created[now]
        at, now = at[is_row], now[is_row]
    is_lost, is_new = np.ones(len(before.ids), np.bool_), np.ones(len(after.ids), np.bool_)
    is_lost[at] = is_new[now] = False
    yield from _given(ChangedRows(before.ids[is_lost], before.addresses[is_lost], None))
    yield from _updated_by_id(before, after, at, now, _replaced(older, newer), operation)
    yield from _given(ChangedRows(after.ids[is_new], None, after.addresses[is_new]))


def _updated_by_id(
    before: _FragmentRows,
    after: _FragmentRows,
    at: NDArray[np.int64],
    now: NDArray[np.int64],
    new_fields: dict[int, frozenset[int]],
    operation: str | None,
) -> Iterator[ChangedRows]:
    """Yield the updated rows present in both versions, based on row versions or on new column files."""
    first, then = before.updated[at], after.updated[now]
    is_kept = (first != _UNKNOWN) & (then != _UNKNOWN)
    is_updated = is_kept & (first != then)
    old, new = before.addresses[at], after.addresses[now]
    if operation in ("Merge", "Project"):  # pylance may count changes of columns as updates of all rows
        is_updated &= old != new
    yield from _given(ChangedRows(before.ids[at][is_updated], old[is_updated], new[is_updated]))
    if not new_fields:
        return
    fragments = np.array(sorted(new_fields), np.uint64)
    in_place = ~is_updated & (old == new) & np.isin(new >> np.uint64(32), fragments)
    fields = frozenset().union(*new_fields.values())
    yield from _given(ChangedRows(before.ids[at][in_place], old[in_place], new[in_place], fields))


def _changed_by_address(older: Snapshot, newer: Snapshot, operation: str | None) -> Iterator[ChangedRows]:
    by_id = {fragment.id: fragment for fragment in newer.fragments}
    pairs = [(f, by_id[f.id]) for f in older.fragments if f.id in by_id and _holds_same_rows(f, by_id[f.id], operation)]
    ids = {fragment.id for fragment, _ in pairs}
    old_fragments = [fragment for fragment in older.fragments if fragment.id not in ids]
    new_fragments = [fragment for fragment in newer.fragments if fragment.id not in ids]
    if operation is None and old_fragments and new_fragments:
        raise UnsupportedError(
            f"the changes of version {newer.version} cannot be determined",
            where=newer.uri,
            found="moved rows without stable row ids, and no transaction file",
            remedy="compare the versions directly: FROM t AT (VERSION => …) EXCEPT FROM t AT (VERSION => …)",
        )
    differences = [(f, g) for f, g in pairs if not _is_same(f, g)]
    before = [_FragmentRows.of(older, [fragment]).addresses for fragment, _ in differences]
    after = [_FragmentRows.of(newer, [fragment]).addresses for _, fragment in differences]
    for old, new in zip(before, after, strict=True):
        lost = np.setdiff1d(old, new, assume_unique=True)
        yield from _given(ChangedRows(lost, lost, None))
    yield from _whole(older, old_fragments, deleted=True)
    new_fields = _replaced(older, newer)
    for (fragment, _), old, new in zip(differences, before, after, strict=True):
        if fragment.id in new_fields:
            both = np.intersect1d(old, new, assume_unique=True)
            yield from _given(ChangedRows(both, both, both, new_fields[fragment.id]))
    for old, new in zip(before, after, strict=True):
        returned = np.setdiff1d(new, old, assume_unique=True)
        yield from _given(ChangedRows(returned, None, returned))
    yield from _whole(newer, new_fragments, deleted=False)


def _given(rows: ChangedRows) -> Iterator[ChangedRows]:
    if len(rows.ids):
        yield rows


def _is_same(before: Fragment, after: Fragment) -> bool:
    """Return whether a fragment is unchanged."""
    return (
        before.all_files == after.all_files
        and before.deletion_file == after.deletion_file
        and before.row_ids == after.row_ids
        and before.last_updated_at == after.last_updated_at
    )


def _holds_same_rows(before: Fragment, after: Fragment, operation: str | None) -> bool:
    """Return whether two fragments with the same id hold the same rows. Overwrites reassign ids."""
    if operation not in (None, "Restore"):
        return True
    paths = {(file.base_id, file.path) for file in before.files}
    return not paths.isdisjoint((file.base_id, file.path) for file in after.files)


def _replaced(older: Snapshot, newer: Snapshot) -> dict[int, frozenset[int]]:
    """Return the ids of fields whose files changed, for each fragment that exists in both versions."""
    by_id = {fragment.id: fragment for fragment in newer.fragments}
    common = {field.id for field in older.schema.walk()} & {field.id for field in newer.schema.walk()}
    new_fields = {}
    for fragment in older.fragments:
        now = by_id.get(fragment.id)
        if now is None or now.all_files == fragment.all_files:
            continue
        before, after = _places(fragment), _places(now)
        fields = {field for field in common & after.keys() if field in before and before[field] != after[field]}
        if fields:
            new_fields[fragment.id] = frozenset(fields)
    return new_fields


def _places(fragment: Fragment) -> dict[int, list[tuple[int | None, str]]]:
    """Return the files of each field, including overlays."""
    places: dict[int, list[tuple[int | None, str]]] = {}
    for file in fragment.all_files:
        for field in file.fields:
            if field != TOMBSTONE:
                places.setdefault(field, []).append((file.base_id, file.path))
    return places
