"""The rows that a version inserted, for readers that follow the changes of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from lance_duck.errors import NotFoundError
from lance_duck.snapshot import Snapshot
from lance_duck.wire.transaction import UNKNOWN

DELETE: Final = "Delete"

_SAME_ROWS: Final = {
    "CreateIndex",
    "Merge",
    "Project",
    "ReserveFragments",
    "Rewrite",
    "UpdateBases",
    "UpdateConfig",
    "UpdateMemWalState",
}


@dataclass(frozen=True)
class Arrivals:
    """The rows that a version inserted.

    Attributes:
        version: Number of the version.
        operation: Name of its operation. "Unknown" if the transaction is missing or not recognized.
        fragments: Ids of the fragments that contain only new rows, in table order.
        changed: Whether older rows were deleted or updated. If they were replaced, `fragments` is empty, since new and
            old rows cannot be distinguished.
    """

    version: int
    operation: str
    fragments: tuple[int, ...] = ()
    changed: bool = False


def arrivals(now: Snapshot) -> Arrivals:
    """Find the rows that a version inserted. Compactions, indexes, settings and new columns insert nothing.

    The previous version is read only if the transaction is not sufficient.
    """
    transaction = now.transaction()
    operation = UNKNOWN if transaction is None else transaction.operation
    if operation in _SAME_ROWS and not (transaction is not None and transaction.changes_rows):
        return Arrivals(now.version, operation)
    tell = _TELL.get(operation)
    arrived = _compared(now) if tell is None or transaction is None else tell(transaction.message, now)
    return Arrivals(now.version, operation, *(((), True) if arrived is None else (arrived, False)))


def unchanged_fragments(fragments: Mapping[int, tuple[str, ...]], now: Snapshot) -> frozenset[int]:
    """Return the ids of fragments that a version contains with unchanged data files and without deleted rows."""
    there = ((f.id, f) for f in now.manifest.proto.fragments if f.id in fragments and not f.HasField("deletion_file"))
    return frozenset(i for i, f in there if tuple(file.path for file in f.files) == fragments[i])


_NewFragments = tuple[int, ...] | None


def _appended(message: Any, now: Snapshot) -> _NewFragments:
    return _with_files(now, message.fragments)


def _updated(message: Any, now: Snapshot) -> _NewFragments:
    if message.removed_fragment_ids or message.updated_fragments:
        return None
    return _with_files(now, message.new_fragments)


def _deleted(message: Any, now: Snapshot) -> _NewFragments:
    return None if message.updated_fragments or message.deleted_fragment_ids else ()


def _overwritten(message: Any, now: Snapshot) -> _NewFragments:
    before = _before(now)
    was_empty = now.version == 1 if before is None else not len(before.fragments)
    return tuple(now.fragments.ids()) if was_empty else None


def _cloned(message: Any, now: Snapshot) -> _NewFragments:
    return tuple(now.fragments.ids())


def _merged(message: Any, now: Snapshot) -> _NewFragments:
    return _compared(now, _deletions)


def _changed(message: Any, now: Snapshot) -> _NewFragments:
    return None


_TELL: Final[dict[str, Callable[[Any, Snapshot], _NewFragments]]] = {
    "Append": _appended,
    "Clone": _cloned,
    "DataOverlay": _changed,
    "DataReplacement": _changed,
    DELETE: _deleted,
    "Merge": _merged,
    "Overwrite": _overwritten,
    "Restore": _changed,
    "Update": _updated,
}


def _before(now: Snapshot) -> Snapshot | None:
    try:
        return None if now.version == 1 else now.checkout(now.version - 1)
    except NotFoundError:
        return None


def _with_files(now: Snapshot, fragments: Iterable[Any]) -> tuple[int, ...]:
    """Return the ids that the commit assigned to written fragments. New fragments are at the end of the table."""
    paths = {fragment.files[0].path for fragment in fragments if fragment.files}
    result: list[int] = []
    for fragment in reversed(now.manifest.proto.fragments):
        if len(result) == len(paths):
            break
        if fragment.files and fragment.files[0].path in paths:
            result.append(fragment.id)
    return tuple(reversed(result))


def _rows(fragment: Any) -> tuple[list[str], bytes]:
    files = [*fragment.files, *(overlay.data_file for overlay in fragment.overlays)]
    return [f.path for f in files], fragment.deletion_file.SerializeToString()


def _deletions(fragment: Any) -> object:
    return fragment.deletion_file.SerializeToString()


def _compared(now: Snapshot, rows: Callable[[Any], object] = _rows) -> _NewFragments:
    """Return the new fragments, or None if an older fragment changed.

    Args:
        now: The version.
        rows: Returns the properties of a fragment that change with its rows.
    """
    before = _before(now)
    if before is None:
        return None
    present = {f.id: f for f in now.manifest.proto.fragments}
    before_by_id = {f.id: f for f in before.manifest.proto.fragments}
    intact = all(i in present and rows(present[i]) == rows(f) for i, f in before_by_id.items())
    return tuple(i for i in present if i not in before_by_id) if intact else None
