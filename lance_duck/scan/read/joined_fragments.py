"""Neighbouring fragments of few rows, read as one: opening each by itself takes longer than decoding its rows.

`FragmentReader` is the plain reference: it reads fragments that cannot be joined, and those whose joined read failed,
so that errors are its own.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa

from lance_duck.file.column import Rows
from lance_duck.rows import DeletionVector
from lance_duck.scan.costs import JOINED_FILE_BYTES
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.arrays import keep
from lance_duck.scan.projection import Read
from lance_duck.scan.read.fragment_reader import Columns, FragmentReader
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.joined import is_local, joined_files
from lance_duck.store.request import Request, gather, is_watched
from lance_duck.wire.fragment import Fragment


class JoinedFragments:
    """Reads rows of several fragments as if they were one. Safe to use from several threads.

    Args:
        snapshot: The version.
        readers: The fragments, in order; all with the same `shape_of`.

    Attributes:
        num_rows: Physical rows of all of them.
    """

    def __init__(self, snapshot: Snapshot, readers: Sequence[FragmentReader]) -> None:
        self._readers = readers
        rows = [reader.num_rows for reader in readers]
        self._bounds = [*accumulate(rows, initial=0)]
        self.num_rows = self._bounds[-1]
        self._files = joined_files(snapshot, [reader.fragment for reader in readers], rows)

    @cached_property
    def deletions(self) -> DeletionVector | None:
        """Deleted rows; None if there are none."""
        vectors = [(reader.deletions, base) for reader, base in zip(self._readers, self._bounds, strict=False)]
        deleted = [vector.deleted + np.uint32(base) for vector, base in vectors if vector is not None]
        return DeletionVector(np.concatenate(deleted)) if deleted else None

    @property
    def live_rows(self) -> list[int]:
        """Rows of each fragment that are not deleted."""
        return [reader.num_live_rows for reader in self._readers]

    def read(self, columns: Sequence[Read], rows: Rows) -> Request[Columns]:
        """Read columns; the request returns their arrays by name."""
        readers = [self._files.column(read.key, read.field, read.arrow_type) for read in columns]
        arrays = yield from gather([reader.read(slice(0, self.num_rows)) for reader in readers])
        if not isinstance(rows, slice):
            mask = np.zeros(self.num_rows, np.bool_)
            mask[rows] = True
            selected = pa.array(mask)
            arrays = [keep(array, selected) for array in arrays]
        elif rows.stop - rows.start < self.num_rows:
            arrays = [array.slice(rows.start, rows.stop - rows.start) for array in arrays]
        return {read.name: array for read, array in zip(columns, arrays, strict=True)}

    def hidden(self, name: str, rows: Rows, row_offset: int) -> pa.Array:
        """Read a hidden column: see `FragmentReader.hidden`."""
        offsets = np.arange(rows.start, rows.stop, dtype=np.int64) if isinstance(rows, slice) else rows
        cuts = np.searchsorted(offsets, self._bounds).tolist()
        pieces = []
        for place, reader in enumerate(self._readers):
            in_fragment = offsets[cuts[place] : cuts[place + 1]] - self._bounds[place]
            pieces.append(reader.hidden(name, in_fragment, row_offset))
            row_offset += reader.num_live_rows
        return pa.concat_arrays(pieces)


def may_join(plan: ScanPlan) -> bool:
    """Return whether fragments of a plan may be read together.

    They may not if a column holds blobs, which lie elsewhere, or dictionaries, which may differ among fragments, or
    while reads are counted, each of which must count by itself.
    """
    reads = (*plan.first_reads, *plan.later_reads)
    fields = [field for read in reads for field in read.field.walk()]
    if plan.include_deleted or is_watched() or any(field.blob_version for field in fields):
        return False
    return not any(_has_dictionary(read.arrow_type) for read in reads)


def shape_of(snapshot: Snapshot) -> Callable[[Fragment], Hashable | None]:
    """Return a function from a fragment to a key that joined fragments have in common; None for a large fragment."""
    local: dict[int | None, bool] = {}

    def shape(fragment: Fragment) -> Hashable | None:
        parts = []
        if fragment.overlays:
            return None
        for file in fragment.files:
            if not file.column_indices or not file.file_size or file.file_size > JOINED_FILE_BYTES:
                return None
            if file.base_id not in local:
                local[file.base_id] = is_local(snapshot, file)
            if not local[file.base_id]:
                return None
            parts.append((file.fields, file.column_indices, file.file_version))
        return tuple(parts) or None

    return shape


def _has_dictionary(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return True
    return any(_has_dictionary(type_.field(place).type) for place in range(type_.num_fields))
