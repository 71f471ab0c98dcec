"""Builds segments from rows or from other segments. A failed build does not leave files behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.catalog import Segment, unsupported
from lance_duck.index.files import SegmentWriter
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.inverted.settings import parameters_for
from lance_duck.index.kind import BuildOptions, Details, IndexKind, MergeInput
from lance_duck.index.names import Follower
from lance_duck.index.search import open_index
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import IndexMetadata, index_from_proto, index_to_proto

Names = NDArray[np.uint64]
Translate = Callable[[Names], tuple[Names, NDArray[np.bool_]]]


def builds_by_row_id(snapshot: Snapshot, kind: IndexKind) -> bool:
    """Return whether new segments of a kind store stable row ids in this table. Otherwise they store row addresses.

    The `ROW` column of a build's input contains these ids or addresses. A B-tree could also store addresses, as in
    pylance 14. However, older versions of Lance cannot read such a segment. When rows move, these versions still add
    the new fragments to the segment's bitmap, as if its entries were stable row ids. Searches would then miss rows.
    """
    return snapshot.has_stable_row_ids and kind.rows_by in ("id", "version")


def check_column(snapshot: Snapshot, path: str, kind: IndexKind) -> None:
    """Check that a column can have an index of a kind.

    Raises:
        InvalidInputError: The column does not exist.
        UnsupportedError: The kind does not support the column's type or nesting.
    """
    reason = unsupported(snapshot, snapshot.schema.by_path(path).id, kind)
    if reason is not None:
        raise UnsupportedError(reason, where=snapshot.uri)


def build_segment(
    snapshot: Snapshot,
    path: str,
    kind: IndexKind,
    rows: pa.RecordBatchReader,
    fragments: Iterable[int],
    *,
    name: str,
    options: BuildOptions | None = None,
    uuid: UUID | None = None,
) -> IndexMetadata:
    """Write a segment for rows of the table. The caller commits it with CreateIndex.

    Args:
        snapshot: Version of the rows.
        path: Dotted path of the column.
        kind: Kind of the index.
        rows: Columns `VALUE` (storage type of the column) and `ROW` (uint64, see `builds_by_row_id`). Exactly the live
            rows of the fragments, in table order.
        fragments: Ids of the fragments that the segment covers.
        name: Name of the index.
        options: Options of the build. The function sets `stable_row_ids`.
        uuid: Uuid of the segment. Random by default.

    Raises:
        InvalidInputError: The column does not exist, or a parameter is invalid.
        UnsupportedError: The column cannot have an index of this kind.
        StoreError: The disk or the service failed.
    """
    check_column(snapshot, path, kind)
    by_row_id = builds_by_row_id(snapshot, kind)
    build_options = replace(options or BuildOptions(), stable_row_ids=by_row_id)
    field = snapshot.schema.by_path(path)
    if kind is INVERTED:
        parameters = parameters_for(build_options.parameters, is_json=field.is_json)
        build_options = replace(build_options, parameters=parameters)

    def write(writer: SegmentWriter) -> Details:
        return kind.build(rows, writer, build_options)

    return _written(snapshot, write, kind, name, field.id, fragments, uuid)


def empty_segment(
    snapshot: Snapshot, path: str, kind: IndexKind, details: bytes, *, name: str, uuid: UUID | None = None
) -> IndexMetadata:
    """Return a segment that stores only the parameters of the index. It does not cover fragments or have files.

    Args:
        snapshot: Version of the table.
        path: Dotted path of the column.
        kind: Kind of the index.
        details: Details message with the parameters.
        name: Name of the index.
        uuid: Uuid of the segment. Random by default.
    """
    check_column(snapshot, path, kind)
    segment_details = Details(kind.versions[-1], details)
    return _written(snapshot, lambda writer: segment_details, kind, name, snapshot.schema.by_path(path).id, (), uuid)


def merge_segments(
    snapshot: Snapshot,
    segments: Sequence[Segment],
    rows: pa.RecordBatchReader | None = None,
    fragments: Iterable[int] = (),
    *,
    translate: Translate | None = None,
    covers: Iterable[int] | None = None,
    takes_entries: bool = True,
    options: BuildOptions | None = None,
    uuid: UUID | None = None,
) -> IndexMetadata:
    """Write a segment with the entries of other segments and of new rows.

    Only entries of live rows in covered fragments are copied. Inverted indexes that store row addresses also keep
    deleted rows, unless rows move, because pylance counts deleted rows in its statistics.

    Args:
        snapshot: Version of the segments and the rows.
        segments: Segments of one index, at least one.
        rows: New rows that no segment contains, with the columns of `build_segment`.
        fragments: Ids of the fragments of the new rows.
        translate: Maps addresses of this version to the new addresses of moved rows, and returns which rows remain.
            The new segment must also store row addresses.
        covers: Ids of the fragments that the new segment covers. By default, the fragments of `segments` and `rows`.
        takes_entries: Whether entries are copied. If not, only the models, such as centroids, are copied.
        options: Options of the build. The function sets `stable_row_ids`.
        uuid: Uuid of the segment. Random by default.

    Raises:
        InvalidInputError: `segments` is empty, or contains segments of several indexes.
        LanceDuckError: A segment is corrupt.
        StoreError: The disk or the service failed.
    """
    first = _first(segments)
    by_row_id = translate is None and builds_by_row_id(snapshot, first.kind)
    keeps_deleted = first.kind is INVERTED and translate is None and not by_row_id
    followers = [
        partial(_follow, snapshot, s, Follower(snapshot, s, keeps_deleted=keeps_deleted), by_row_id, translate)
        for s in segments
    ]
    parts = [
        MergeInput(open_index(snapshot, s), follow, s.metadata.details)
        for s, follow in zip(segments, followers, strict=True)
    ]
    if not takes_entries:
        parts = [replace(part, follow=_leave_out) for part in parts]
        covers = fragments if covers is None else covers
    build_options = replace(options or BuildOptions(), stable_row_ids=by_row_id)
    if covers is None:
        covers = {i for s in segments for i in s.fragments.tolist()} | set(fragments)

    def write(writer: SegmentWriter) -> Details:
        return first.kind.merge(parts, rows, writer, build_options)

    return _written(snapshot, write, first.kind, first.metadata.name, first.field.id, covers, uuid)


def discard_segment(snapshot: Snapshot, metadata: IndexMetadata) -> None:
    """Remove the files of a segment that was not committed. Never raises."""
    with suppress(Exception):  # cleanup removes remaining files
        snapshot.store.delete(f"{metadata.directory}/{name}" for name, _ in metadata.files)


def file_version(snapshot: Snapshot) -> str:
    """Return the data file version for a table's segments."""
    return max(snapshot.data_storage_version, "2.0")


def _first(segments: Sequence[Segment]) -> Segment:
    if not segments:
        raise InvalidInputError("the list of segments is empty")
    first = segments[0]
    if any(
        (s.metadata.name, s.field.id, s.kind) != (first.metadata.name, first.field.id, first.kind) for s in segments
    ):
        raise InvalidInputError("the segments belong to several indexes", found=", ".join(str(s) for s in segments))
    return first


def _follow(
    snapshot: Snapshot,
    segment: Segment,
    follower: Follower,
    by_row_id: bool,
    translate: Translate | None,
    names: Names,
) -> tuple[Names, NDArray[np.bool_]]:
    """Return the new row ids or addresses of a segment's rows, and a mask of the rows that are still entries."""
    addresses, lives = follower.follow(names)
    if by_row_id:
        return (names if segment.by_row_id else _row_ids(snapshot, addresses, lives)), lives
    if translate is not None:
        addresses, living = translate(addresses)
        lives &= living
    return addresses, lives


def _leave_out(names: Names) -> tuple[Names, NDArray[np.bool_]]:
    return names, np.zeros(len(names), np.bool_)


def _row_ids(snapshot: Snapshot, addresses: Names, lives: NDArray[np.bool_]) -> Names:
    row_ids = np.zeros_like(addresses)
    keys = addresses >> np.uint64(32)
    for fragment_id in distinct(keys[lives]).tolist():
        places = np.flatnonzero(lives & (keys == fragment_id))
        ids = snapshot.row_ids(snapshot.fragment(fragment_id))
        if ids is not None:
            row_ids[places] = ids.take(addresses[places].astype(np.uint32))
    return row_ids


def _written(
    snapshot: Snapshot,
    write: Callable[[SegmentWriter], Details],
    kind: IndexKind,
    name: str,
    field_id: int,
    fragments: Iterable[int],
    uuid: UUID | None,
) -> IndexMetadata:
    with SegmentWriter(snapshot.store, file_version(snapshot), uuid) as writer:
        details = write(writer)
        bitmap = roaring_bytes(np.array(sorted(fragments), np.uint32))
        # Without stable row ids, every layout version stores addresses. pylance rejects mixed versions within an index,
        # so the first version is written.
        by_address = kind.rows_by == "version" and not snapshot.has_stable_row_ids
        proto = index_to_proto(
            writer.uuid,
            name,
            field_id,
            snapshot.version,
            bitmap,
            (kind.type_url, details.value),
            0 if by_address else details.version,
            writer.files,
        )
        return index_from_proto(proto, snapshot.uri)
