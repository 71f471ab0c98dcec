"""Updates by data overlay: new values of some columns are written to separate files, and the rows do not move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.commit.operations import DataOverlay, DataOverlayGroup
from lance_duck.encoding.arrow.gather import as_batches
from lance_duck.errors import RetryableError, UnsupportedError
from lance_duck.rows import roaring_bytes, split_addresses
from lance_duck.scan.blobs.copies import kept_blobs
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot, derived
from lance_duck.verbs.rows.assignments import Assignments
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.find import find_rows, joined_batches
from lance_duck.verbs.rows.update import readable_columns
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import LEGACY, DataFile, Fragment
from lance_duck.wire.schema import Field, Schema
from lance_duck.write.files import write_columns
from lance_duck.write.options import WriteOptions, storage_version

Offsets = NDArray[np.uint32]


def overlay_rows(
    snapshot: Snapshot,
    updates: Mapping[str, str],
    where: FilterLike | None,
    data_storage_version: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[Snapshot, int]:
    """Update rows and commit. Writes one overlay per fragment with matching rows.

    Args:
        snapshot: The version to start from.
        updates: SQL expressions by column.
        where: Row condition. None updates all rows.
        data_storage_version: Version of the new files. None is the table's version.
        properties: Properties of the transaction.

    Returns:
        The new version, and the number of updated rows.

    Raises:
        InvalidInputError: The condition is invalid, or a value cannot be computed or does not fit.
        UnsupportedError: A column is a struct or contains blobs, or the table uses file format 0.1.
        RetryableError: Another change to one of the rows, or to values of its fragment, was committed first.
    """
    assignments = Assignments(snapshot.schema, updates)
    options = _options(snapshot, assignments, data_storage_version)
    schema = Schema(tuple(column.field for column in assignments.columns), snapshot.schema.metadata)
    assignments.over(TableScan(snapshot))
    derived.warn_of_computed(snapshot, updates)
    rows = _NewValues(snapshot, assignments, where)
    groups: list[DataOverlayGroup] = []
    with UncommittedFiles(snapshot) as draft:
        for fragment_id, batches in rows.by_fragment():
            offsets: list[Offsets] = []
            file = write_columns(snapshot.store, schema, _noted(batches, offsets), None, options)
            draft.note_fragments([_holder(file)])
            overlay = Overlay(file, (roaring_bytes(np.concatenate(offsets)),), 0, is_shared=True)
            groups.append(DataOverlayGroup(fragment_id, [overlay]))
        guard = _RowGuard(snapshot, rows.addresses)
        return draft.commit(DataOverlay(groups), guard=guard, properties=properties), rows.count


def _options(snapshot: Snapshot, assignments: Assignments, version: str | None) -> WriteOptions:
    for column in assignments.columns:
        _refuse_unfit(column.field)
    version = snapshot.data_storage_version if version is None else storage_version(version)
    if LEGACY in (version, snapshot.data_storage_version):
        raise UnsupportedError(
            "tables of version 0.1 do not support data overlays",
            where=snapshot.uri,
            remedy="call optimize.compact_files() first",
        )
    return WriteOptions(data_storage_version=version, committed_here=True, blobs=kept_blobs(snapshot))


def _refuse_unfit(field: Field) -> None:
    """Reject columns whose overlay values some readers would misread.

    pylance 14 reads values of lists of packed structs in an overlay as null.

    Raises:
        UnsupportedError: The column contains blobs or packed structs, or is a struct, whose nulls in the data file
            cannot be overridden.
    """
    if any(each.blob_version for each in field.walk()):
        what = "blob with values in an overlay"
    elif any(each.is_packed for each in field.walk()):
        what = "packed struct with values in an overlay"
    elif field.logical_type == "struct":
        what = "struct with values in an overlay, which has none for its nulls"
    else:
        return
    raise UnsupportedError(what, where=f"column {field.name!r}", remedy='use update_mode="rewrite_rows"')


def _noted(batches: Iterator[tuple[Offsets, pa.RecordBatch]], offsets: list[Offsets]) -> Iterator[pa.RecordBatch]:
    for rows, batch in batches:
        offsets.append(rows)
        yield batch


def _holder(file: DataFile) -> Fragment:
    return Fragment(0, (file,), None, 0, None, None, None)


class _NewValues:
    """Stream of the new values, fragment by fragment. The row addresses are available when it ends."""

    def __init__(self, snapshot: Snapshot, assignments: Assignments, where: FilterLike | None) -> None:
        self.addresses: list[NDArray[np.uint64]] = []
        self._fields = [field for field in snapshot.schema.fields if field.name in assignments.reads]
        self._assignments = assignments
        self._reader = find_rows(snapshot, where, list(dict.fromkeys([*assignments.reads, ROW_ADDRESS])))

    @property
    def count(self) -> int:
        """Number of rows so far."""
        return sum(map(len, self.addresses))

    def by_fragment(self) -> Iterator[tuple[int, Iterator[tuple[Offsets, pa.RecordBatch]]]]:
        """Yield each fragment, with the ascending offsets and new values of its rows."""
        for fragment_id, pieces in groupby(self._pieces(), key=lambda piece: piece[0]):
            yield fragment_id, ((offsets, batch) for _, offsets, batch in pieces)

    def _pieces(self) -> Iterator[tuple[int, Offsets, pa.RecordBatch]]:
        for batch in joined_batches(self._reader):
            if not batch.num_rows:
                continue
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            addresses = columns[ROW_ADDRESS].to_numpy()
            self.addresses.append(addresses)
            values = self._assignments.values(readable_columns(self._fields, columns), batch.num_rows)
            new = pa.table({name: values[name] for name in self._assignments.names})
            fragments, offsets = split_addresses(addresses)
            bounds = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), len(addresses)]
            for start, stop in pairwise(bounds):
                for part in as_batches(new.slice(start, stop - start)):
                    stop = start + part.num_rows
                    yield int(fragments[start]), offsets[start:stop].astype(np.uint32), part
                    start = stop


class _RowGuard:
    """Checks that the inputs of the new values have not changed: see `commit.committer.commit`."""

    def __init__(self, base: Snapshot, addresses: Sequence[NDArray[np.uint64]]) -> None:
        self._base = base
        owners, offsets = split_addresses(np.concatenate([np.array([], np.uint64), *addresses]))
        self._rows = {int(i): offsets[owners == i] for i in distinct(owners)}

    def __call__(self, newer: Snapshot) -> None:
        """Compare the fragments with a newer version.

        Raises:
            RetryableError: One of the rows was deleted, or values of its fragment changed in place.
        """
        present = newer.fragments.id_set
        for fragment_id, offsets in self._rows.items():
            if fragment_id not in present or self._differs(newer, fragment_id, offsets):
                raise RetryableError(
                    f"a concurrent commit changed rows of fragment {fragment_id}",
                    where=f"{newer.uri} version {newer.version}",
                    remedy="run the update again",
                )

    def _differs(self, newer: Snapshot, fragment_id: int, offsets: NDArray[np.integer]) -> bool:
        before, now = self._base.fragment(fragment_id), newer.fragment(fragment_id)
        if (now.files, now.overlays) != (before.files, before.overlays):
            return True
        deletions = newer.deletion_vector(now)
        return deletions is not None and bool(deletions.contains(offsets).any())
