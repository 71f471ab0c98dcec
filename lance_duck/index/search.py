"""Asking segments: opened once, masked to the fragments that they answer for, and left alone once they are broken."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from lance_duck.errors import CorruptError, IndexWarning, LanceDuckError
from lance_duck.index.catalog import Segment
from lance_duck.index.complete import check_complete, is_doubtful
from lance_duck.index.files import SegmentReader
from lance_duck.index.kind import Answer, Details, ScalarIndex
from lance_duck.index.names import covered_rows
from lance_duck.index.query import Query
from lance_duck.index.reuse import reuse_entry
from lance_duck.rows.row_set import RowSet
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.index import IndexMetadata

_T = TypeVar("_T")


def search(snapshot: Snapshot, segment: Segment, query: Query) -> Answer | None:
    """Ask a segment.

    Args:
        snapshot: Version of the table.
        segment: Of its catalog.
        query: One that the kind answers on a column of this type.

    Returns:
        Rows by address, all in `segment.fragments`; deleted ones may be among them. None: the segment is broken, and
        what it covers is to be scanned. An IndexWarning has named it, once in this process.
    """
    return ask(snapshot, segment, lambda index: answer(snapshot, segment, index, query))


def answer(snapshot: Snapshot, segment: Segment, index: ScalarIndex, query: Query) -> Answer:
    """Ask a segment that is open, as `search` does.

    Raises:
        LanceDuckError: It is broken.
    """
    found = index.search(query)
    maybe = covered_rows(snapshot, segment, found.maybe)
    if found.is_exact:
        return Answer.exactly(maybe)
    return Answer(covered_rows(snapshot, segment, found.sure) if found.sure else RowSet({}), maybe)


def estimate(snapshot: Snapshot, segment: Segment, query: Query) -> int | None:
    """Return how many rows an answer has at most, without reading pages of rows; None: not known, or broken."""
    return ask(snapshot, segment, lambda index: index.estimate(query))


def ask(snapshot: Snapshot, segment: Segment, do: Callable[[Any], _T]) -> _T | None:
    """Do something with a segment, open. None: it is broken, or was seen to be now, as `search` says."""
    held = _held(snapshot, segment)
    index = held.found
    if not isinstance(index, LanceDuckError):
        try:
            return do(index)
        except Exception as error:
            held.found = index = _broken(segment, error)
    if _NAMED.add(segment.uuid):
        warnings.warn(f"{segment} is not used, its rows are scanned: {index}", IndexWarning, stacklevel=3)
    return None


def wrong_with(snapshot: Snapshot, segment: Segment) -> LanceDuckError | None:
    """Return why a segment is not used; None where nothing is known to be wrong with it."""
    found = _held(snapshot, segment).found
    return found if isinstance(found, LanceDuckError) else None


def open_index(snapshot: Snapshot, segment: Segment) -> ScalarIndex:
    """Return a segment, open; opened once for all versions of the table that followed each other in this process.

    Raises:
        LanceDuckError: It is broken.
    """
    held = _held(snapshot, segment)
    if isinstance(held.found, LanceDuckError):
        raise held.found
    return held.found


def segment_files(snapshot: Snapshot, metadata: IndexMetadata) -> SegmentReader:
    """The files of a segment, wherever they lie.

    Raises:
        CorruptError: In a base path that the table does not have.
    """
    store, base = snapshot.place(metadata.base_id)
    directory = paths.index_directory(metadata.uuid, is_dataset_root=base is None or base.is_dataset_root)
    return SegmentReader(store, directory, dict(metadata.files))


class _Held:
    """What is known of a segment: it, open, or what is wrong with it."""

    def __init__(self, found: ScalarIndex | LanceDuckError) -> None:
        self.found = found

    @property
    def nbytes(self) -> int:
        return 0 if isinstance(self.found, LanceDuckError) else self.found.nbytes


class _Named:
    """Segments of which a warning was given."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._uuids: set[UUID] = set()

    def add(self, uuid: UUID) -> bool:
        """Whether it is a new one."""
        with self._lock:
            is_new = uuid not in self._uuids
            self._uuids.add(uuid)
            return is_new


_NAMED = _Named()


def _held(snapshot: Snapshot, segment: Segment) -> _Held:
    def open_() -> _Held:
        details = Details(segment.metadata.version, segment.metadata.details)
        try:
            return _Held(segment.kind.open(segment_files(snapshot, segment.metadata), segment.type, details))
        except Exception as error:
            return _Held(_broken(segment, error))

    def check() -> _Held:
        try:
            if not isinstance(held.found, LanceDuckError) and is_doubtful(snapshot, segment):
                check_complete(snapshot, segment, held.found)
        except Exception as error:
            return _Held(_broken(segment, error))
        return held

    key = (segment.uuid, segment.metadata.base_id, segment.kind.name, segment.metadata.version, str(segment.type))
    held = snapshot.shared(key, open_)
    if reuse_entry(snapshot.indices) is None:
        return held
    return snapshot.derived(("complete segment", segment.uuid), check)


def _broken(segment: Segment, error: Exception) -> LanceDuckError:
    """What is wrong with a segment. Whatever its bytes provoke, its rows can be scanned."""
    if isinstance(error, LanceDuckError):
        return error
    return CorruptError("cannot be read", where=segment, found=repr(error))
