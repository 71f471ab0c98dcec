"""Orders to write segments, for this or another process. Orders and their results can be pickled.

Each change chooses the first half of the UUIDs of all segments that other processes write for it. This half identifies
the files of dead processes: see `index.segment_uuids`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID

import numpy as np
import pyarrow as pa

from lance_duck.arrow.memory import release_unused
from lance_duck.errors import (
    FormatError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    NotIndexableError,
    UnsupportedError,
)
from lance_duck.index.build import build_segment, builds_by_row_id, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import BuildOptions, Details, IndexKind
from lance_duck.index.opened import segment_files
from lance_duck.index.registry import json_path_kind, kind_of
from lance_duck.index.search import open_index
from lance_duck.index.segment_uuids import part_uuid
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.layout import RECALL_FILE
from lance_duck.scan.nearest.covered import CoveredVectors
from lance_duck.scan.nearest.options import vector_column
from lance_duck.scan.nearest.settings.segment_curves import measured_at_build
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.verbs.indexes.kinds import IndexSpec, Progress
from lance_duck.verbs.indexes.rows import index_rows, rows_of
from lance_duck.wire.index import IndexMetadata, index_from_proto


@dataclass(frozen=True)
class SegmentOrder:
    """A segment to build from the rows of fragments, to merge from other segments, or both.

    Attributes:
        version: Table version.
        path: Dotted path of the column.
        name: Name of the index.
        kind: Type URL of the index kind.
        fragments: Ids of the fragments to read. Merged segments do not cover them.
        merged: UUIDs of segments to merge. If empty, the segment is built from rows alone.
        takes_entries: Whether entries of merged segments are reused, rather than only their parameters.
        may_skip: Whether to skip an index that cannot be written instead of raising an error.
        change: First half of the UUID, for other processes. None if the segment is written here.
        uuid: The whole UUID. None generates one.
        details: Details that belong to the kind: the path and target of a JSON index.
        memory_limit: Memory limit in bytes. None is the default of `BuildOptions`.
    """

    version: int
    path: str
    name: str
    kind: str
    fragments: tuple[int, ...]
    merged: tuple[UUID, ...] = ()
    takes_entries: bool = True
    may_skip: bool = False
    change: UUID | None = None
    uuid: UUID | None = None
    details: bytes = b""
    memory_limit: int | None = None

    def write(
        self, snapshot: Snapshot, parameters: Mapping[str, Any], progress: Callable[[int], Any] | None = None
    ) -> IndexMetadata | SkippedIndex:
        """Write the segment. Other processes also sync it to disk. See `index.build`.

        Args:
            snapshot: The version.
            parameters: Parameters of the kind. Centroids, bounds and codebook are shared by all segments of the index.
            progress: Called with the number of rows read so far.
        """
        try:
            options = BuildOptions(parameters, progress=progress)
            if self.memory_limit is not None:
                options = replace(options, memory_limit=self.memory_limit)
            try:
                segment = self._written(snapshot, options)
            finally:
                release_unused()
        except (FormatError, NotFoundError) as error:
            is_broken = bool(self.merged) and self.takes_entries
            if not self.may_skip or not (is_broken or isinstance(error, UnsupportedError)):
                raise
            return SkippedIndex(str(error))
        except InvalidInputError as error:  # too few vectors to train with
            if not self.may_skip or kind_of(self.kind) is not VECTOR:
                raise
            return SkippedIndex(str(error))
        segment = _with_recall(snapshot, self.path, segment)
        if self.change is not None:
            snapshot.store.sync()
        return segment

    def _written(self, snapshot: Snapshot, options: BuildOptions) -> IndexMetadata:
        kind = kind_of(self.kind, self.details)
        assert kind is not None
        uuid = self.uuid if self.change is None else part_uuid(self.change)
        if not self.merged:
            with index_rows(snapshot, self.path, kind, self.fragments) as rows:
                return build_segment(
                    snapshot, self.path, kind, rows, self.fragments, name=self.name, options=options, uuid=uuid
                )
        segments = {s.uuid: s for index in catalog(snapshot).named(self.name) for s in index.segments}
        sources = [segments[uuid] for uuid in self.merged]
        if json_path_kind(kind) is not None:
            return _merged_values(snapshot, self, kind, sources, options, uuid)

        def merge(rows: pa.RecordBatchReader | None = None) -> IndexMetadata:
            return merge_segments(
                *(snapshot, sources, rows, self.fragments),
                takes_entries=self.takes_entries,
                options=options,
                uuid=uuid,
            )

        if not self.fragments and self.takes_entries:
            return merge()
        with index_rows(snapshot, self.path, kind, self.fragments) as rows:
            return merge(rows)


def _merged_values(
    snapshot: Snapshot,
    order: SegmentOrder,
    kind: IndexKind,
    sources: Sequence[Segment],
    options: BuildOptions,
    uuid: UUID | None,
) -> IndexMetadata:
    """Write a segment over a JSON path from other segments and new rows.

    Segments without values have the type string. If the types differ, all rows are read again.
    """
    opened: list[Any] = [open_index(snapshot, source) for source in sources]
    types = {index.type for index in opened}
    if len(types) == 1:
        (type_,) = types
        try:
            with index_rows(snapshot, order.path, kind, order.fragments, type_) as rows:
                return merge_segments(snapshot, sources, rows, order.fragments, options=options, uuid=uuid)
        except NotIndexableError:
            if not pa.types.is_string(type_):
                raise
    fragments = sorted({*order.fragments, *(i for source in sources for i in source.fragments.tolist())})
    with index_rows(snapshot, order.path, kind, fragments) as rows:
        return build_segment(snapshot, order.path, kind, rows, fragments, name=order.name, options=options, uuid=uuid)


@dataclass(frozen=True)
class SkippedIndex:
    """The reason why an index is skipped."""

    reason: str


class Workers(Protocol):
    """Processes that write segments."""

    def runs(self, now: Snapshot, fragments: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Split fragments into runs of neighbours, one per segment. Empty without fragments."""

    def write(
        self, now: Snapshot, orders: Sequence[tuple[SegmentOrder, IndexSpec | None]]
    ) -> Iterable[IndexMetadata | SkippedIndex]:
        """Execute orders. Orders with a spec use its parameters, which are trained once per index."""


class Here:
    """This process as the only worker. It writes one segment per index, sequentially.

    Args:
        progress: Called with the number of rows read so far and the total, over all indexes.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def runs(self, now: Snapshot, fragments: Sequence[int]) -> Sequence[tuple[int, ...]]:
        """Return all fragments as one run."""
        return [tuple(sorted(fragments))] if fragments else []

    def write(
        self, now: Snapshot, orders: Sequence[tuple[SegmentOrder, IndexSpec | None]]
    ) -> Iterator[IndexMetadata | SkippedIndex]:
        """Write the segment of each order lazily."""
        progress, before = self._progress, 0
        rows = [0 if progress is None else rows_of(now, order.fragments) for order, _ in orders]
        total = sum(rows)
        if progress is not None and (total or not orders[0][0].may_skip):
            progress(0, total)
        for (order, spec), count in zip(orders, rows, strict=True):
            parameters = {} if spec is None else spec.parameters
            yield order.write(now, parameters, None if progress is None else _from(progress, before, total))
            before += count


def _from(progress: Progress, before: int, total: int) -> Callable[[int], Any]:
    """Return a segment's progress callback that reports the rows of all segments."""
    return lambda rows: progress(min(before + rows, total), total)


def _with_recall(snapshot: Snapshot, path: str, metadata: IndexMetadata) -> IndexMetadata:
    """Measure the recall of a segment and store it as a file of the segment. Returns the metadata with that file.

    If the measurement fails, the metadata is returned unchanged: searches do not need the file.

    Args:
        snapshot: Version that the segment was built from.
        path: Dotted path of the column.
        metadata: Metadata of the segment, which is not committed yet.
    """
    names = {name for name, _ in metadata.files}
    if metadata.details_type != VECTOR.type_url or not names or RECALL_FILE in names:
        return metadata
    with suppress(LanceDuckError):
        data = _measured(snapshot, path, metadata)
        if data is not None:
            snapshot.store.put(f"{metadata.directory}/{RECALL_FILE}", data)
            metadata.proto.files.add(path=RECALL_FILE, size_bytes=len(data))
            return index_from_proto(metadata.proto, snapshot.uri)
    return metadata


def _measured(snapshot: Snapshot, path: str, metadata: IndexMetadata) -> bytes | None:
    """Return the content of the recall file, or None. The segment is not cached, since it may never be committed."""
    field = snapshot.schema.by_path(path)
    column = vector_column(TableScan(snapshot), path)  # rejects multivectors
    index = VECTOR.open(
        segment_files(snapshot, metadata), field.storage_type, Details(metadata.version, metadata.details)
    )
    present = snapshot.fragments.id_set
    fragments = np.array([i for i in sorted(fragment_ids(metadata)) if i in present], np.uint32)
    by_row_id = builds_by_row_id(snapshot, VECTOR)
    segment = Segment(metadata, VECTOR, field, path, field.storage_type, fragments, by_row_id)
    rows = CoveredVectors(snapshot, segment, index)
    return measured_at_build(TableScan(snapshot), column, segment, index, rows)
