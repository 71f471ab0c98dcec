"""Live rows of covered fragments for which a segment does not have an entry, although they may match a query.

R-trees do not contain geometries with NaN and geometries without points.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from lance_duck.index.catalog import Segment
from lance_duck.index.names import covered_rows
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot


@runtime_checkable
class LeavingOut(Protocol):
    """An open segment that may not have an entry for each row.

    Attributes:
        num_entries: Number of entries.
    """

    @property
    def num_entries(self) -> int: ...  # noqa: D102

    def row_names(self) -> RowSet:
        """Return the ids or addresses of all rows with an entry. Reads all entries."""


def rows_left_out(snapshot: Snapshot, segment: Segment, index: LeavingOut) -> RowSet:
    """Return the addresses of live rows without an entry. Computed once per version.

    If the segment has as many entries as its fragments have rows, nothing is read.

    Raises:
        LanceDuckError: The segment is corrupt.
    """
    return snapshot.derived(("rows left out", segment.uuid), lambda: _left_out(snapshot, segment, index))


def _left_out(snapshot: Snapshot, segment: Segment, index: LeavingOut) -> RowSet:
    fragments = [snapshot.fragment(i) for i in segment.fragments.tolist()]
    sizes = [snapshot.physical_rows(fragment) for fragment in fragments]
    if index.num_entries == sum(sizes):
        return RowSet({})
    rows = RowSet.of_ranges([(f.id, 0, size) for f, size in zip(fragments, sizes, strict=True)])
    rows -= covered_rows(snapshot, segment, index.row_names())
    for fragment in fragments:
        deleted = snapshot.deletion_vector(fragment)
        if deleted is not None:
            rows -= RowSet.of(deleted.deleted.astype(np.uint64) | np.uint64(fragment.id << 32))
    return rows
