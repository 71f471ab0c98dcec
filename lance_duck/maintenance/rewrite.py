"""Rewrites consecutive fragments, in order or sorted. Only live rows and current columns are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.arrow.dictionary_union import with_used_entries
from lance_duck.maintenance.costs import LIMITED_PARTS, SORT_BYTES
from lance_duck.maintenance.dictionaries import has_narrow_dictionaries
from lance_duck.maintenance.options import CompactionOptions
from lance_duck.maintenance.plan import fragments_for
from lance_duck.maintenance.sorting import SortKeys, sorted_batches
from lance_duck.rows import RowIdSequence, VersionSequence
from lance_duck.scan.blobs.copies import MOST_BYTES, kept_blobs, written_batches
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import Fragment
from lance_duck.write import WriteOptions, discard_fragments, write_new_fragments
from lance_duck.write.options import Jsonb, rewritten_version, storage_version

Addresses = NDArray[np.uint64]
_S = TypeVar("_S", RowIdSequence, VersionSequence)


@dataclass(frozen=True)
class RewrittenGroup:
    """A group of fragments, and the fragments that replace them.

    Attributes:
        read_version: Version that the old fragments were read from.
        old: The old fragments, from `read_version`.
        new: The new fragments, without ids, with the stable row ids and row versions of the rows.
        order: Old addresses of the rows in their new order; uint64. None if the rows keep their order.
    """

    read_version: int
    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]
    order: Addresses | None = None

    @property
    def files_removed(self) -> int:
        """Number of data files, overlays and deletion files of the old fragments."""
        return sum(len(f.all_files) + (f.deletion_file is not None) for f in self.old)

    @property
    def files_added(self) -> int:
        """Number of data files of the new fragments."""
        return sum(len(f.files) for f in self.new)


@dataclass(frozen=True)
class RewriteOrder:
    """A group of fragments to rewrite. It can be pickled.

    Attributes:
        version: Version of the table.
        fragments: Ids of the fragments.
        options: Sizes of fragments and files.
        change: Prefix of file names, if several processes write for one change.
    """

    version: int
    fragments: tuple[int, ...]
    options: CompactionOptions
    change: UUID | None = None

    def write(self, snapshot: Snapshot) -> RewrittenGroup:
        """Rewrite the group: see `rewrite`."""
        return rewrite(snapshot, [snapshot.fragment(i) for i in self.fragments], self.options, self.change)


def rewrite(
    snapshot: Snapshot, fragments: Sequence[Fragment], options: CompactionOptions, transaction: UUID | None = None
) -> RewrittenGroup:
    """Write the live rows of fragments into new fragments, in their order or in the order of `options.order_by`.

    Args:
        snapshot: Version that contains the fragments.
        fragments: Neighbouring fragments.
        options: Sizes of fragments and files.
        transaction: Prefix of file names, if several processes write for one change.

    Raises:
        FormatError: A file cannot be read. New files are removed.
        StoreError: A file cannot be written. New files are removed.
    """
    live = sum(snapshot.num_rows(f) for f in fragments)
    if not live:
        return RewrittenGroup(snapshot.version, tuple(fragments), ())
    write_options = _write_options(snapshot, options, -(-live // fragments_for(live, options)))
    write_options = replace(write_options, transaction=transaction)
    addresses: list[Addresses] = []
    rows = _batches(snapshot, fragments, options)
    if options.order_by:
        rows = _sorted(snapshot, rows, options, addresses)
    new = write_new_fragments(snapshot.store, snapshot.schema, rows, write_options)
    try:
        order = np.concatenate(addresses) if options.order_by else None
        lineage = tuple(_with_lineage(snapshot, fragments, new, order))
        return RewrittenGroup(snapshot.version, tuple(fragments), lineage, order)
    except BaseException:
        discard_fragments(snapshot.store, new)
        raise


def target_version(snapshot: Snapshot, options: CompactionOptions) -> str:
    """Return the data file version that a compaction writes. By default, 0.1 and 2.3 become the newest version."""
    if options.data_storage_version is not None or snapshot.manifest.has_legacy_files:
        return storage_version(options.data_storage_version)
    return rewritten_version(snapshot.data_storage_version)


def _write_options(snapshot: Snapshot, options: CompactionOptions, rows: int) -> WriteOptions:
    result = WriteOptions(
        max_rows_per_file=rows,
        max_rows_per_group=options.max_rows_per_group,
        data_storage_version=target_version(snapshot, options),
        blobs=kept_blobs(snapshot),
        jsonb=Jsonb.TRUSTED,
    )
    if options.max_bytes_per_file:
        result = replace(result, max_bytes_per_file=options.max_bytes_per_file)
    limit = options.group_bytes
    return result if limit is None else result.within(limit)


def _batches(snapshot: Snapshot, fragments: Sequence[Fragment], options: CompactionOptions) -> Iterator[pa.RecordBatch]:
    scan = ScanOptions(
        fragments=[f.id for f in fragments],
        batch_size=options.batch_size,
        use_threads=options.num_threads != 1,
        with_row_address=bool(options.order_by),
    )
    batches = _scanned(snapshot, scan, options)
    return map(with_used_entries, batches) if has_narrow_dictionaries(snapshot) else batches


def _scanned(snapshot: Snapshot, scan: ScanOptions, options: CompactionOptions) -> Iterator[pa.RecordBatch]:
    limit = options.group_bytes
    if limit is None:
        yield from written_batches(TableScan(snapshot), scan, binary_json=snapshot.schema.names)
        return
    part = max(1, limit // LIMITED_PARTS)
    scan = replace(scan, batch_size_bytes=part, use_threads=False)
    yield from written_batches(TableScan(snapshot), scan, min(MOST_BYTES, part), snapshot.schema.names)


def _sorted(
    snapshot: Snapshot, rows: Iterator[pa.RecordBatch], options: CompactionOptions, addresses: list[Addresses]
) -> Iterator[pa.RecordBatch]:
    """Yield rows in order without their addresses, which are added to `addresses`."""
    limit = options.group_bytes or SORT_BYTES
    for batch in sorted_batches(rows, SortKeys.of(snapshot.schema, options.orderings), limit):
        addresses.append(batch.column(ROW_ADDRESS).to_numpy())
        yield batch.select(snapshot.schema.names)


def _with_lineage(
    snapshot: Snapshot, old: Sequence[Fragment], new: Sequence[Fragment], order: Addresses | None
) -> Iterable[Fragment]:
    """Return the new fragments with row ids and row versions. These come from the live rows of the old fragments."""
    if not snapshot.has_stable_row_ids:
        return new
    counts = [f.physical_rows for f in new]
    places = None if order is None else _places(snapshot, old, order)
    ids = _pieces(RowIdSequence, [(snapshot.row_ids(f), _live(snapshot, f)) for f in old], counts, places)
    created = _pieces(VersionSequence, [(snapshot.created_at(f), _live(snapshot, f)) for f in old], counts, places)
    updated = _pieces(VersionSequence, [(snapshot.last_updated_at(f), _live(snapshot, f)) for f in old], counts, places)
    return [
        replace(f, row_ids=i, created_at=c, last_updated_at=u)
        for f, i, c, u in zip(new, ids, created, updated, strict=True)
    ]


def _live(snapshot: Snapshot, fragment: Fragment) -> np.ndarray | None:
    deletions = snapshot.deletion_vector(fragment)
    return None if deletions is None else deletions.live_offsets(0, snapshot.physical_rows(fragment))


def _places(snapshot: Snapshot, old: Sequence[Fragment], order: Addresses) -> NDArray[np.int64]:
    """Return the positions of addresses among the live rows of fragments."""
    live = []
    for fragment in old:
        offsets = _live(snapshot, fragment)
        rows = np.arange(snapshot.physical_rows(fragment)) if offsets is None else offsets
        live.append(rows.astype(np.uint64) | np.uint64(fragment.id << 32))
    return np.searchsorted(np.concatenate(live), order)


def _pieces(
    kind: type[_S],
    sequences: Sequence[tuple[_S | None, np.ndarray | None]],
    counts: Sequence[int],
    places: NDArray[np.int64] | None,
) -> list[bytes | None]:
    """Join the living elements of sequences, and split the result into the given counts.

    The results are None if any sequence is unknown. `places` is the order of the result. None keeps the order.
    """
    parts = []
    for sequence, live in sequences:
        if sequence is None:
            return [None] * len(counts)
        parts.append(sequence if live is None else sequence.select(live))
    whole = kind.concat(parts)
    if places is not None:
        values = whole.take(places)
        whole = kind.from_ids(values) if issubclass(kind, RowIdSequence) else kind.from_versions(values)
    if len(counts) == 1:
        return [whole.to_bytes()]
    bounds = np.cumsum([0, *counts]).tolist()
    return [whole.select(np.arange(a, b)).to_bytes() for a, b in pairwise(bounds)]
