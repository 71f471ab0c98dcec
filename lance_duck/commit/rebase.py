"""Rebasing: applies a change that is based on one version to a newer version.

Precondition: no newer version conflicts with the change (`conflicts`). Fragments are merged: each part that the change
did not modify is copied from the newest version. If the change and newer versions deleted different rows of a fragment,
the deletions are combined into one deletion file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableSequence, Set
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from lance_duck.commit import index_coverage as coverage
from lance_duck.commit.footprint import Footprint
from lance_duck.errors import RetryableError
from lance_duck.rows import DeletionVector
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import fragment_from_proto
from lance_duck.wire.fragment_write import deletion_to_proto
from lance_duck.wire.pb import table_pb2, transaction_pb2
from lance_duck.write.deletions import write_deletions

Affected: TypeAlias = Mapping[int, NDArray[np.uint32]]
Fragments: TypeAlias = Mapping[int, table_pb2.DataFragment]

_SEQUENCES = ("row_id_sequence", "created_at_version_sequence", "last_updated_at_version_sequence")


def rebase(
    transaction: transaction_pb2.Transaction,
    read: Snapshot,
    newest: Snapshot,
    affected: Affected | None,
    report_file: Callable[[str], None],
    winner: Callable[[int], str | None],
    moved: Set[int] = frozenset(),
) -> transaction_pb2.Transaction:
    """Rebase a transaction onto the newest version.

    Args:
        transaction: The original transaction. Not changed.
        read: Version that the transaction is based on.
        newest: Version that the transaction is applied to.
        affected: Offsets of the rows that it deletes or changes, by fragment id. None if unknown.
        report_file: Called with the path of each deletion file that is written.
        winner: Describes the concurrent transaction that changed a fragment.
        moved: Ids of fragments from which rows moved concurrently.

    Raises:
        RetryableError: The transaction and a newer version change the same row, or the files of the same fragment.
    """
    rebased = transaction_pb2.Transaction()
    rebased.CopyFrom(transaction)
    match rebased.WhichOneof("operation"):
        case "delete":
            removed = rebased.delete.deleted_fragment_ids
            merger = _Merger(read, newest, affected, report_file, winner)
            removed_fragments = merger.merge(rebased.delete.updated_fragments, removed)
            _drop(rebased.delete.updated_fragments, removed_fragments)
            removed.extend(removed_fragments)
        case "update":
            merger = _Merger(read, newest, affected, report_file, winner)
            removed_fragments = merger.merge(rebased.update.updated_fragments, rebased.update.removed_fragment_ids)
            _drop(rebased.update.updated_fragments, removed_fragments)
            rebased.update.removed_fragment_ids.extend(removed_fragments)
            fragments = (*rebased.update.new_fragments, *rebased.update.updated_fragments)
            _check_fields_stay((file for fragment in fragments for file in fragment.files), read, newest)
        case "append":
            _check_fields_stay((file for fragment in rebased.append.fragments for file in fragment.files), read, newest)
        case "data_overlay":
            rows = {i: rows for i, rows in Footprint(rebased).overlaid.items() if i in moved}
            _check_rows_stay(rows, read, newest, winner)
            overlays = (overlay for group in rebased.data_overlay.groups for overlay in group.overlays)
            _check_fields_stay((overlay.data_file for overlay in overlays), read, newest)
        case "create_index":
            _narrow(rebased.create_index.new_indices, read, newest)
    return rebased


def _check_fields_stay(files: Iterable[table_pb2.DataFile], read: Snapshot, newest: Snapshot) -> None:
    """Reject data files if all their fields were dropped concurrently. Readers treat these files as corrupt."""
    before, now = ({f.id for f in version.manifest.proto.fields} for version in (read, newest))
    if before <= now:
        return
    for file in files:
        if now.isdisjoint(file.fields) and not before.isdisjoint(file.fields):
            raise RetryableError(
                "all columns of a new data file were dropped concurrently",
                where=f"{newest.uri}: {file.path}",
                remedy="repeat the change on the newest version",
            )


def _check_rows_stay(
    rows: Mapping[int, NDArray[np.uint32]], read: Snapshot, newest: Snapshot, winner: Callable[[int], str | None]
) -> None:
    """Reject new values for rows that may have moved concurrently. The moved rows contain the old values."""
    before, now = _by_id(read), _by_id(newest)
    for fragment_id, offsets in rows.items():
        old, new = before.get(fragment_id), now.get(fragment_id)
        if old is None or new is None or old.deletion_file == new.deletion_file:
            continue
        deleted = newest.deletion_vector(newest.fragment(fragment_id))
        earlier = read.deletion_vector(read.fragment(fragment_id))
        if deleted is None:
            continue
        gone = deleted.contains(offsets)
        if (gone if earlier is None else gone & ~earlier.contains(offsets)).any():
            raise RetryableError(
                f"both commits change the same row of fragment {fragment_id}",
                where=newest.uri,
                found=winner(fragment_id),
                remedy="repeat the change on the newest version",
            )


class _Merger:
    """Merges the fragments that a change updates with the same fragments in the newest version."""

    def __init__(
        self,
        read: Snapshot,
        newest: Snapshot,
        affected: Affected | None,
        report_file: Callable[[str], None],
        winner: Callable[[int], str | None],
    ) -> None:
        self._newest = newest
        self._before, self._now = _by_id(read), _by_id(newest)
        self._affected = affected
        self._written = report_file
        self._winner = winner
        self._where = newest.uri

    def merge(self, fragments: Iterable[table_pb2.DataFragment], empty_ids: Iterable[int]) -> list[int]:
        """Merge `fragments` in place. Returns the ids of fragments without remaining rows."""
        for fragment_id in empty_ids:
            before, now = self._versions(fragment_id)
            if before.deletion_file != now.deletion_file:
                raise self._lost(fragment_id, "both delete rows of")
        return [mine.id for mine in fragments if self._is_empty_after(mine)]

    def _is_empty_after(self, mine: table_pb2.DataFragment) -> bool:
        before, now = self._versions(mine.id)
        if before == now:
            return False
        merged = table_pb2.DataFragment()
        merged.CopyFrom(now)
        if (mine.files, mine.overlays) != (before.files, before.overlays):
            if (now.files, now.overlays) != (before.files, before.overlays):
                raise self._lost(mine.id, "both commits change the files of")
            merged.ClearField("files")
            merged.ClearField("overlays")
            merged.files.MergeFrom(mine.files)
            merged.overlays.MergeFrom(mine.overlays)
        for sequence in _SEQUENCES:
            _take(merged, mine, before, sequence)
        empty = now.deletion_file != before.deletion_file and self._merge_deletions(merged, mine, before, now)
        if now.deletion_file == before.deletion_file:
            merged.ClearField("deletion_file")
            if mine.HasField("deletion_file"):
                merged.deletion_file.CopyFrom(mine.deletion_file)
        mine.CopyFrom(merged)
        return empty

    def _merge_deletions(
        self,
        merged: table_pb2.DataFragment,
        mine: table_pb2.DataFragment,
        before: table_pb2.DataFragment,
        now: table_pb2.DataFragment,
    ) -> bool:
        """Write the deletions of both sides to a file of `merged`. Returns whether all rows are deleted."""
        rows = None if self._affected is None else self._affected.get(mine.id)
        if rows is None:
            raise self._lost(mine.id, "both commits change rows of")
        ours = DeletionVector.of(rows)
        where = f"{self._where}: fragment {mine.id}"
        theirs = self._newest.deletion_vector(fragment_from_proto(now, where)) or DeletionVector.of(rows[:0])
        if ours.intersects(theirs):
            raise self._lost(mine.id, "both commits change the same row of")
        if mine.deletion_file == before.deletion_file:
            return False
        deletions = ours.union(theirs)
        if deletions.count == mine.physical_rows:
            return True
        file = write_deletions(self._newest.store, mine.id, self._newest.version, deletions)
        self._written(file.path(mine.id))
        merged.deletion_file.CopyFrom(deletion_to_proto(file))
        return False

    def _versions(self, fragment_id: int) -> tuple[table_pb2.DataFragment, table_pb2.DataFragment]:
        before, now = self._before.get(fragment_id), self._now.get(fragment_id)
        if before is None or now is None:
            raise self._lost(fragment_id, "a concurrent commit removed")
        return before, now

    def _lost(self, fragment_id: int, what: str) -> RetryableError:
        return RetryableError(
            f"{what} fragment {fragment_id}",
            where=self._where,
            found=self._winner(fragment_id),
            remedy="repeat the change on the newest version",
        )


def _narrow(segments: Iterable[table_pb2.IndexMetadata], read: Snapshot, newest: Snapshot) -> None:
    """Remove fragments from new index segments if the indexed values changed in place since the segments were built."""
    before, now = _by_id(read), _by_id(newest)
    for segment in segments:
        ids = coverage.bitmap_fragments(segment)
        if ids is None or segment.name in coverage.SYSTEM:
            continue
        fields = coverage.family(segment.fields, newest.manifest.proto.fields)
        fragments = [
            i
            for i in ids.tolist()
            if i in before and i in now and _files_of(before[i], fields) != _files_of(now[i], fields)
        ]
        if fragments:
            coverage.withdraw([segment], fragments)


def _files_of(fragment: table_pb2.DataFragment, fields: set[int]) -> set[tuple[int, str]]:
    return {(i, file.path) for file in fragment.files for i in file.fields if i in fields}


def _take(
    merged: table_pb2.DataFragment, mine: table_pb2.DataFragment, before: table_pb2.DataFragment, sequence: str
) -> None:
    """Copy a row id or row version sequence from `mine` to `merged` if it differs from `before`."""
    name, old = mine.WhichOneof(sequence), before.WhichOneof(sequence)
    if name is not None and (name != old or getattr(mine, name) != getattr(before, name)):
        if old is not None:
            merged.ClearField(old)
        merged.MergeFrom(table_pb2.DataFragment(**{name: getattr(mine, name)}))


def _by_id(snapshot: Snapshot) -> Fragments:
    return {f.id: f for f in snapshot.manifest.proto.fragments}


def _drop(fragments: MutableSequence[table_pb2.DataFragment], fragment_ids: Iterable[int]) -> None:
    ids = set(fragment_ids)
    for place in reversed(range(len(fragments))):
        if fragments[place].id in ids:
            del fragments[place]
