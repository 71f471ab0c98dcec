"""Open segments, shared by successive versions of a table in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_duck.errors import CorruptError, ForkedError, LanceDuckError
from lance_duck.index.files import SegmentReader
from lance_duck.index.kind import Details, IndexKind
from lance_duck.index.registry import json_path_kind, kind_named, kind_of
from lance_duck.interrupts import Stopped
from lance_duck.kernels.jit import KernelError
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.index import IndexMetadata

_VECTOR_FILE = "index.idx"
_VECTORS = "/lance.index.pb.VectorIndexDetails"
_NOT_OF_BYTES = (KernelError, ImportError, NameError, ForkedError)
_PAGES = "page_lookup.lance"  # `btree.layout`
_BITMAPS = "bitmap_page_lookup.lance"  # `bitmap.layout`
_INVERTED = "metadata.lance"  # see `inverted.layout`; no other kind has this file
_OLD_INVERTED = frozenset({"tokens.lance", "docs.lance", "invert.lance"})  # see `inverted.old_segments`


class OpenedSegment:
    """The result of opening a segment.

    Attributes:
        index: The open `ScalarIndex` or `VectorIndex`, or the error if the segment is corrupt.
    """

    def __init__(self, index: Any) -> None:
        self.index = index

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return 0 if isinstance(self.index, LanceDuckError) else self.index.nbytes


def opened_segment(snapshot: Snapshot, metadata: IndexMetadata, kind: IndexKind, type_: pa.DataType) -> OpenedSegment:
    """Open a segment, or return it if it is already open. Corrupt segments do not raise an error.

    Args:
        snapshot: Version of the table.
        metadata: Metadata of the segment.
        kind: Kind of the index.
        type_: Storage type of the column.
    """

    def open_() -> OpenedSegment:
        details = Details(metadata.version, metadata.details)
        try:
            return OpenedSegment(kind.open(segment_files(snapshot, metadata), type_, details))
        except Stopped:
            raise
        except Exception as error:
            return OpenedSegment(broken(metadata, error))

    opens_as = str(type_) if json_path_kind(kind) is None else ""  # a JSON index finds its type in its files
    key = (metadata.uuid, metadata.base_id, kind.name, metadata.version, opens_as)
    return snapshot.shared(key, open_)


def kind_in_files(snapshot: Snapshot, metadata: IndexMetadata) -> IndexKind | None:
    """Return the kind of a segment whose manifest entry does not declare it. Returns None if its files are ambiguous.

    Writers before 2025 did not declare kinds. Writers that commit segments of other processes may still omit them. The
    file names identify the kinds of that time: B-trees, bitmaps, inverted and vector indexes.
    """
    if len(metadata.keys) != 1:
        return None
    try:
        names = segment_files(snapshot, metadata).names()
    except LanceDuckError:
        return None
    if _VECTOR_FILE in names:
        return kind_of(_VECTORS)
    if names >= _OLD_INVERTED or _INVERTED in names:
        return kind_named("INVERTED")
    if _BITMAPS in names:
        return kind_named("LABEL_LIST" if _is_over_list(snapshot, metadata) else "BITMAP")
    return kind_named("BTREE") if _PAGES in names else None


def _is_over_list(snapshot: Snapshot, metadata: IndexMetadata) -> bool:
    (field_id,) = metadata.keys
    return any(field.id == field_id and field.is_list for field in snapshot.schema.walk())


def broken(metadata: IndexMetadata, error: Exception) -> LanceDuckError:
    """Convert an error to the error of a corrupt segment. A query then scans the rows instead of failing.

    Raises:
        Exception: `error` itself, if corrupt bytes cannot cause it. Examples are a failed kernel compilation and a
            missing library.
    """
    if isinstance(error, _NOT_OF_BYTES):
        raise error
    if isinstance(error, LanceDuckError):
        return error
    return CorruptError("cannot be read", where=segment_name(metadata), found=repr(error))


def segment_name(metadata: IndexMetadata) -> str:
    """Return the name of a segment, for messages."""
    return f"segment {metadata.uuid} of index {metadata.name!r}"


def segment_files(snapshot: Snapshot, metadata: IndexMetadata) -> SegmentReader:
    """Return a reader for the files of a segment, which are in the table or in a base path.

    Raises:
        CorruptError: The table does not have the segment's base path.
    """
    store, base = snapshot.place(metadata.base_id)
    directory = paths.index_directory(metadata.uuid, is_dataset_root=base is None or base.is_dataset_root)
    return SegmentReader(store, directory, dict(metadata.files))
