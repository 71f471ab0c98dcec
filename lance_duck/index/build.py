"""Building of segments from rows or from other segments; a failure leaves no files."""

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
    """Return whether new segments of a kind name rows of this table by stable row id; else by address.

    The column `ROW` of the rows that segments are built from holds these names. A B-tree could name rows by address,
    too, as those of pylance 14 do. But cores before 14 do not read such a segment, and yet carry its bitmap along to
    the fragments that rows move to, as if its entries were stable row ids: rows would be lost.
    """
    return snapshot.has_stable_row_ids and kind.rows_by in ("id", "version")


def check_column(snapshot: Snapshot, path: str, kind: IndexKind) -> None:
    """Refuse a column that cannot have an index of a kind.

    Raises:
        InvalidInputError: There is no such column.
        UnsupportedError: The column has a type, or a place, that the kind does not support.
    """
    reason = unsupported(snapshot.schema, snapshot.schema.by_path(path).id, kind)
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
    """Write a segment of rows of the table, to be committed by CreateIndex.

    Args:
        snapshot: Version of the rows.
        path: Dotted path of the column.
        kind: Kind of the index.
        rows: Columns `VALUE` (storage type of the column) and `ROW` (uint64: see `builds_by_row_id`), of all living
            rows of the fragments and no others, in table order.
        fragments: Ids of the fragments that the segment covers.
        name: Name of the index.
        options: Options of the build; `stable_row_ids` is set here.
        uuid: Uuid of the segment; None for a new one.

    Raises:
        InvalidInputError: There is no such column, or a parameter makes no sense.
        UnsupportedError: The column cannot have such an index.
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
    """Return a segment that covers nothing and has no files, with only the parameters of the index.

    Args:
        snapshot: Version of the table.
        path: Dotted path of the column.
        kind: Kind of the index.
        details: Message with the parameters.
        name: Name of the index.
        uuid: Uuid of the segment; None for a new one.
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
    """Write a segment with the entries of other segments, and of new rows.

    Only entries of live rows in the fragments that a segment answers for are copied; in inverted indexes that name rows
    by address deleted rows stay, too, unless rows move: the statistics of pylance count them.

    Args:
        snapshot: Version of the segments and the rows.
        segments: Segments of one index, at least one.
        rows: New rows, as for `build_segment`, that none of the segments has.
        fragments: Ids of the fragments of the new rows.
        translate: From addresses of this version to the new addresses of rows that move, and whether each row stays.
            Only for segments that name rows by address, whose new segment does so, too.
        covers: Ids of the fragments that the new segment covers; None for those of segments and new rows.
        takes_entries: Whether entries are copied; if not, only the models of the segments: centroids and the like.
        options: Options of the build; `stable_row_ids` is set here.
        uuid: Uuid of the segment; None for a new one.

    Raises:
        InvalidInputError: There are no segments, or segments of several indexes.
        LanceDuckError: A segment is broken.
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
    with suppress(Exception):  # cleanup removes whatever is left
        snapshot.store.delete(f"{metadata.directory}/{name}" for name, _ in metadata.files)


def file_version(snapshot: Snapshot) -> str:
    """Return the version of the data files that segments of a table are written in."""
    return max(snapshot.data_storage_version, "2.0")


def _first(segments: Sequence[Segment]) -> Segment:
    if not segments:
        raise InvalidInputError("no segments to merge")
    first = segments[0]
    if any(
        (s.metadata.name, s.field.id, s.kind) != (first.metadata.name, first.field.id, first.kind) for s in segments
    ):
        raise InvalidInputError("segments of several indexes", found=", ".join(str(s) for s in segments))
    return first


def _follow(
    snapshot: Snapshot,
    segment: Segment,
    follower: Follower,
    by_row_id: bool,
    translate: Translate | None,
    names: Names,
) -> tuple[Names, NDArray[np.bool_]]:
    """Return the new names of the rows of a segment, and whether each is still an entry."""
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
        # Without stable row ids any version names rows by address, and pylance, which mixes none, takes the first.
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
