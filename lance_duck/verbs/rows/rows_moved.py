"""Fragments with deleted rows, or with rows rewritten to other fragments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lance_duck.rows import DeletionVector, RowIdSequence, VersionSequence
from lance_duck.rows.roaring import roaring_bytes, roaring_values
from lance_duck.scan.read.ordered import map_ordered
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.costs import REQUESTS_AT_ONCE
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.wire.fragment import Fragment
from lance_duck.write.deletions import write_deletions

Addresses = NDArray[np.uint64]


@dataclass(frozen=True)
class RowDeletion:
    """Rows that a change deletes from their fragments, possibly to rewrite them elsewhere.

    Attributes:
        updated: Fragments with their new deletion files.
        removed: Ids of fragments whose rows are all deleted.
        affected: Ascending offsets of the rows, by fragment.
    """

    updated: tuple[Fragment, ...]
    removed: tuple[int, ...]
    affected: Mapping[int, NDArray[np.uint32]]

    @property
    def count(self) -> int:
        """Number of rows."""
        affected = self.affected
        return affected.count if isinstance(affected, Offsets) else sum(map(len, affected.values()))

    @property
    def packed(self) -> RowDeletion:
        """Return the same rows in a form that pickles to few bytes."""
        return replace(self, affected=Offsets.of(self.affected))

    @classmethod
    def joined(cls, parts: Iterable[RowDeletion]) -> RowDeletion:
        """Combine several deletions with disjoint fragments."""
        parts = list(parts)
        return cls(
            tuple(fragment for part in parts for fragment in part.updated),
            tuple(fragment_id for part in parts for fragment_id in part.removed),
            Offsets.joined(Offsets.of(part.affected) for part in parts),
        )


class Offsets(Mapping[int, NDArray[np.uint32]]):
    """Row offsets by fragment id. They are pickled as bitmaps.

    Args:
        offsets: Ascending offsets by fragment, or their count and bitmap, which is decoded lazily.
    """

    def __init__(self, offsets: Mapping[int, NDArray[np.uint32] | tuple[int, bytes]]) -> None:
        self._offsets = dict(offsets)

    @classmethod
    def of(cls, offsets: Mapping[int, NDArray[np.uint32]]) -> Offsets:
        """Return the mapping as `Offsets`."""
        return offsets if isinstance(offsets, Offsets) else cls(offsets)

    @classmethod
    def joined(cls, parts: Iterable[Offsets]) -> Offsets:
        """Combine several mappings with disjoint fragments."""
        return cls({fragment_id: offsets for part in parts for fragment_id, offsets in part._offsets.items()})

    @classmethod
    def united(cls, parts: Iterable[Offsets]) -> tuple[Offsets, int | None]:
        """Combine several mappings. Also returns the address of a row that occurs twice, or None."""
        by_fragment: dict[int, list[NDArray[np.uint32] | tuple[int, bytes]]] = {}
        for part in parts:
            for fragment_id, offsets in part._offsets.items():
                by_fragment.setdefault(fragment_id, []).append(offsets)
        result, repeated = {}, None
        for fragment_id, pieces in sorted(by_fragment.items()):
            result[fragment_id] = pieces[0]
            if len(pieces) == 1:
                continue
            rows, counts = np.unique(np.concatenate(list(cls(dict(enumerate(pieces))).values())), return_counts=True)
            result[fragment_id] = rows
            if counts.max(initial=0) > 1 and repeated is None:
                repeated = fragment_id << 32 | int(rows[counts > 1][0])
        return cls(result), repeated

    def only(self, fragments: Iterable[int]) -> Offsets:
        """Return the offsets of these fragments only."""
        return Offsets({fragment_id: self._offsets[fragment_id] for fragment_id in fragments})

    @property
    def count(self) -> int:
        """Total number of rows."""
        return sum(rows[0] if isinstance(rows, tuple) else len(rows) for rows in self._offsets.values())

    def __getitem__(self, fragment_id: int) -> NDArray[np.uint32]:
        rows = self._offsets[fragment_id]
        if not isinstance(rows, tuple):
            return rows
        return roaring_values(rows[1], f"rows of fragment {fragment_id}", rows[0])

    def __iter__(self) -> Iterator[int]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)

    def __reduce__(self) -> tuple[type[Offsets], tuple[dict[int, tuple[int, bytes]]]]:
        bitmaps = {
            fragment_id: rows if isinstance(rows, tuple) else (len(rows), roaring_bytes(rows))
            for fragment_id, rows in self._offsets.items()
        }
        return Offsets, (bitmaps,)


def delete_addresses(snapshot: Snapshot, addresses: Addresses, draft: UncommittedFiles) -> RowDeletion:
    """Write the deletion files of live rows.

    Args:
        snapshot: The version of the rows.
        addresses: Distinct addresses, in any order.
        draft: Records the files, and deletes them if the change fails.
    """
    return delete_offsets(snapshot, offsets_by_fragment(addresses), draft)


def delete_offsets(
    snapshot: Snapshot, affected: Mapping[int, NDArray[np.uint32]], draft: UncommittedFiles
) -> RowDeletion:
    """Write the deletion files of live rows.

    Args:
        snapshot: The version of the rows.
        affected: Ascending, distinct row offsets, by fragment id.
        draft: Records the files, and deletes them if the change fails.
    """

    def write(item: tuple[int, NDArray[np.uint32]]) -> Fragment | None:
        fragment = snapshot.fragment(item[0])
        before = snapshot.deletion_vector(fragment)
        deletions = DeletionVector(item[1])
        vector = deletions if before is None else before.union(deletions)
        if vector.count >= snapshot.physical_rows(fragment):
            return None
        file = write_deletions(snapshot.store, fragment.id, snapshot.version, vector)
        path = file.path(fragment.id)
        draft.note(path)
        snapshot.keep_deletions(file, path, vector)
        return replace(fragment, deletion_file=file)

    workers = 1 if local_path(snapshot.uri) is not None else REQUESTS_AT_ONCE
    fragments = list(map_ordered(write, affected.items(), workers=workers))
    empty_ids = [fragment_id for fragment_id, fragment in zip(affected, fragments, strict=True) if fragment is None]
    return RowDeletion(tuple(fragment for fragment in fragments if fragment is not None), tuple(empty_ids), affected)


def offsets_by_fragment(addresses: Addresses) -> dict[int, NDArray[np.uint32]]:
    """Return ascending row offsets by fragment id, in id order."""
    if not bool(np.all(addresses[1:] >= addresses[:-1])):
        addresses = np.sort(addresses)
    offsets: dict[int, NDArray[np.uint32]] = {}
    start = 0
    while start < len(addresses):
        fragment_id = int(addresses[start]) >> 32
        last = np.uint64(fragment_id << 32 | 0xFFFFFFFF)
        stop = int(np.searchsorted(addresses, last, side="right"))
        offsets[fragment_id] = addresses[start:stop].astype(np.uint32)  # the lower half of an address is the offset
        start = stop
    return offsets


def moved_rows(
    fragments: Sequence[Fragment], row_ids: NDArray[np.uint64], created_at: NDArray[np.uint64]
) -> tuple[Fragment, ...]:
    """Return new fragments with the stable row ids of the rows that moved into them.

    Args:
        fragments: The written fragments, in order.
        row_ids: Row ids of the first rows; uint64. The following rows are new.
        created_at: Creation versions of these rows; uint64.
    """
    result, start = [], 0
    for fragment in fragments:
        stop = start + fragment.physical_rows
        ids, versions = row_ids[start:stop], created_at[start:stop]
        start = stop
        if len(ids):
            fragment = replace(
                fragment,
                row_ids=RowIdSequence.from_ids(ids).to_bytes(),
                created_at=VersionSequence.from_versions(versions).to_bytes(),
            )
        result.append(fragment)
    return tuple(result)
