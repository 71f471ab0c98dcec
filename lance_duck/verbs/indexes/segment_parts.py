"""Full-text segments that several processes write as parts with one UUID. One process then joins the parts.

_indices/{uuid}/staging/{files of the parts}     see `index.inverted.layout`; removed once the parts are joined
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID, uuid4

from lance_duck.errors import InvalidInputError, LanceDuckError, NotFoundError
from lance_duck.index.build import builds_by_row_id, file_version
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted.kind import INVERTED, settings_of
from lance_duck.index.inverted.layout import METADATA, STAGING, part_number
from lance_duck.index.inverted.open import open_segment
from lance_duck.index.inverted.parts import PART_SHIFT, build_part, join_parts
from lance_duck.index.inverted.settings import parameters_for
from lance_duck.index.kind import BuildOptions
from lance_duck.index.opened import kind_in_files, segment_files
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.create import free_uuid, settled
from lance_duck.verbs.indexes.kinds import IndexSpec, Progress
from lance_duck.verbs.indexes.rows import checked_fragments, index_rows, rows_of
from lance_duck.verbs.public.lance_operation import Index
from lance_duck.wire import flags, paths
from lance_duck.wire.index import IndexMetadata, index_from_proto
from lance_duck.wire.pb import table_pb2

_SUFFIX: Final = ".lance"


def write_part(snapshot: Snapshot, spec: IndexSpec, fragments: Iterable[int]) -> Index:
    """Write a part of a full-text segment, with the rows of some fragments.

    An existing part that starts with the same fragment, left by an earlier attempt, is replaced.

    Returns:
        Metadata of the segment, with its UUID and only these fragments. Do not commit it before its parts are joined.

    Raises:
        InvalidInputError: The kind is not full-text, no fragments are given, one does not exist, or the segment with
            this UUID is already joined.
    """
    if spec.kind is not INVERTED:
        raise InvalidInputError(
            "fragment_ids",
            where="create_scalar_index",
            expected="an INVERTED index",
            found=spec.kind.name,
            remedy="call create_index_uncommitted(…, fragment_ids=…)",
        )
    flags.check_writable(snapshot.manifest.writer_flags, snapshot.uri)
    path, name, _ = settled(snapshot, spec)
    ids = checked_fragments(snapshot, fragments)
    if not ids:
        raise InvalidInputError(
            "fragment_ids", where="create_scalar_index", expected="one fragment or more", found="[]"
        )
    uuid = free_uuid(snapshot, spec.uuid) or uuid4()
    if snapshot.store.exists(f"{paths.index_directory(uuid)}/{METADATA}"):
        raise InvalidInputError(
            f"index segment {uuid} is already merged", where=snapshot.uri, remedy="build it with a new uuid"
        )
    field = snapshot.schema.by_path(path)
    options = BuildOptions(
        parameters_for(spec.parameters, is_json=field.is_json),
        stable_row_ids=builds_by_row_id(snapshot, spec.kind),
        progress=_progress(spec, rows_of(snapshot, ids)),
    )
    rows = index_rows(snapshot, path, spec.kind, ids if spec.train else [])
    with rows, SegmentWriter(snapshot.store, file_version(snapshot), uuid, STAGING) as writer:
        build_part(rows, writer, ids[0], options)
        _remove_older(snapshot, writer, ids[0])
    snapshot.store.sync()
    return Index(str(uuid), name, [field.id], snapshot.version, set(ids), 0)


def join_segment(snapshot: Snapshot, uuid: UUID, progress: Progress | None = None) -> None:
    """Join the parts of a full-text segment without committing it. Does nothing if they are already joined.

    Args:
        snapshot: A version of the table.
        uuid: Uuid of the segment.
        progress: Called with (0, n) at the start and (n, n) at the end. n is the total document count of the parts.

    Raises:
        InvalidInputError: No parts exist, or two of them contain the same row.
        UnsupportedError: The parts were built with different parameters.
        LanceDuckError: A part is damaged.
    """
    flags.check_writable(snapshot.manifest.writer_flags, snapshot.uri)
    directory = paths.index_directory(uuid)
    files = SegmentReader(snapshot.store, f"{directory}/{STAGING}")
    names = _names(files)
    if snapshot.store.exists(f"{directory}/{METADATA}") and _is_joined(snapshot, directory, names):
        snapshot.store.delete(f"{files.directory}/{name}" for name in names)
        return
    options = BuildOptions(stable_row_ids=builds_by_row_id(snapshot, INVERTED))
    with SegmentWriter(snapshot.store, file_version(snapshot), uuid) as writer:
        join_parts(names, files, writer, options, progress)
    snapshot.store.sync()
    snapshot.store.delete(f"{files.directory}/{name}" for name in names)


def completed(snapshot: Snapshot, segment: IndexMetadata) -> IndexMetadata:
    """Complete a user's full-text segment before a commit: adds missing details and file sizes.

    Raises:
        InvalidInputError: Its parts are not joined yet.
        LanceDuckError: The segment is corrupt.
    """
    if segment.details_type is not None or segment.base_id is not None:
        return segment
    files = segment_files(snapshot, segment)
    names = _names(files)
    if METADATA not in names and _names(SegmentReader(snapshot.store, f"{files.directory}/{STAGING}")):
        raise InvalidInputError(
            f"index segment {segment.uuid} is not merged yet",
            where=snapshot.uri,
            remedy="call merge_index_metadata(index_uuid, 'INVERTED') first",
        )
    if METADATA not in names or kind_in_files(snapshot, segment) is not INVERTED:
        return segment
    details = settings_of(open_segment(files)).details()
    proto = table_pb2.IndexMetadata()
    proto.CopyFrom(segment.proto)
    proto.index_version = details.version
    proto.index_details.type_url, proto.index_details.value = INVERTED.type_url, details.value
    if not proto.files:
        proto.files.extend(table_pb2.IndexFile(path=name, size_bytes=files.size(name)) for name in names)
    return index_from_proto(proto, str(segment.uuid))


def _names(files: SegmentReader) -> list[str]:
    """Return the sorted names of the data files in a folder. Empty if it does not exist."""
    try:
        return sorted(name for name in files.names() if name.endswith(_SUFFIX))
    except NotFoundError:
        return []


def _is_joined(snapshot: Snapshot, directory: str, parts: list[str]) -> bool:
    """Return whether the segment directory already contains the data of all parts.

    The directory may contain a segment without rows, although the parts have rows.
    """
    if not parts:
        return True
    try:
        return bool(open_segment(SegmentReader(snapshot.store, directory)).partitions)
    except LanceDuckError:
        return False


def _remove_older(snapshot: Snapshot, writer: SegmentWriter, fragment_id: int) -> None:
    """Remove leftovers of a part from an earlier attempt with more partitions."""
    written = {name for name, _ in writer.files}
    older = []
    for name in _names(SegmentReader(snapshot.store, writer.directory)):
        number = part_number(name)
        if number is not None and number >> PART_SHIFT == fragment_id and name not in written:
            older.append(f"{writer.directory}/{name}")
    snapshot.store.delete(older)


def _progress(spec: IndexSpec, total: int) -> Callable[[int], None] | None:
    progress = spec.progress
    if progress is None:
        return None
    progress(0, total)
    return lambda rows: progress(min(rows, total), total)
