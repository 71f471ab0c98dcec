"""Checks that a segment contains all rows of the fragments in its bitmap.

pylance 14 can write segments that do not. Suppose that a compaction moves the rows of a B-tree, full-text or n-gram
index, and a fragment reuse index records their new addresses. When the rows move again, pylance 14 may rewrite the
segment: it lists the new fragments, but its entries keep the original addresses, which no longer exist. The manifest
does not reveal this. A B-tree has an entry for each row, so this module counts its entries. Full-text and n-gram
indexes do not contain texts without words, so their entries cannot be counted. Their segments are corrupt if the reuse
index maps some of their entries to a fragment that no longer exists.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment
from lance_duck.index.query import Except, Null
from lance_duck.index.registry import files_kind
from lance_duck.index.reuse import FragmentIds, Reuse, reuse_of
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot

_COUNTED: Final = "BTree"
_KINDS: Final = (_COUNTED, "Inverted", "NGram", "RTree")
_REMEDY: Final = "create the index again: a rewrite of it did not follow rows that had moved"


def is_doubtful(snapshot: Snapshot, segment: Segment) -> bool:
    """Return whether `check_complete` must run before a segment is searched. Reads only the manifest.

    Raises:
        LanceDuckError: The fragment reuse index cannot be read.
    """
    return bool(len(_doubtful(snapshot, segment)))


def check_complete(snapshot: Snapshot, segment: Segment, index: Any) -> None:
    """Check the rows of a segment whose coverage is doubtful.

    Args:
        snapshot: The version of the table.
        segment: The segment.
        index: The segment, open.

    Raises:
        CorruptError: Some rows are missing.
    """
    reuse = reuse_of(snapshot)
    if files_kind(segment.kind).name != _COUNTED:
        if reuse is not None:
            _check_followed(snapshot, segment, reuse, index.row_names())
        return
    rows = index.search(Null()).maybe | index.search(Except(Null())).maybe
    if reuse is not None:
        rows = reuse.follow_rows(rows)
    for fragment_id in _doubtful(snapshot, segment).tolist():
        fragment = snapshot.fragment(fragment_id)
        named_rows = rows.only([fragment_id])
        deleted = snapshot.deletion_vector(fragment)
        if deleted is not None:
            named_rows -= RowSet.of(deleted.deleted.astype(np.uint64) | np.uint64(fragment_id << 32))
        if len(named_rows) != snapshot.num_rows(fragment):
            raise CorruptError(
                f"the index does not contain all rows of fragment {fragment_id}",
                where=segment,
                expected=snapshot.num_rows(fragment),
                found=len(named_rows),
                remedy=_REMEDY,
            )


def _check_followed(snapshot: Snapshot, segment: Segment, reuse: Reuse, names: RowSet) -> None:
    """Reject a segment with rows that moved to a fragment that no longer exists."""
    rows = names.rows()
    addresses, lives = reuse.follow(rows)
    moved = RowSet.of(addresses[lives & (addresses != rows)])
    gone = moved.parts.keys() - snapshot.fragments.id_set
    if gone:
        raise CorruptError(
            "the index contains rows of removed fragments",
            where=segment,
            expected="none",
            found=sorted(gone)[0],
            remedy=_REMEDY,
        )


def _doubtful(snapshot: Snapshot, segment: Segment) -> FragmentIds:
    """Return the covered fragments that are newer than a compaction that the segment may have missed."""
    nothing = segment.fragments[:0]
    reuse = reuse_of(snapshot)
    if reuse is None or segment.by_row_id or files_kind(segment.kind).name not in _KINDS:
        return nothing
    moves = [
        new
        for version in reuse.versions
        if segment.metadata.dataset_version <= version.dataset_version
        for _, new in version.moved.groups
    ]
    first = min((int(new.min()) for new in moves if len(new)), default=None)
    if first is None:
        return nothing
    reached: set[int] = set()
    for version in reuse.versions:
        for old, new in version.moved.groups:
            if all(i <= first or i in reached for i in old.tolist()):  # otherwise `new` may contain lost rows
                reached.update(new.tolist())
    later = segment.fragments[segment.fragments > first]
    return later[[i not in reached for i in later.tolist()]]
