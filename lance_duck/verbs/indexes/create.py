"""Creating and dropping indexes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from uuid import UUID

import numpy as np

from lance_duck.arguments import is_unicode
from lance_duck.commit import commit, run_again
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import IndexExistsError, InvalidInputError
from lance_duck.index.build import build_segment, empty_segment
from lance_duck.index.kind import BuildOptions, IndexKind
from lance_duck.index.registry import kind_of
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.describe import segments_named
from lance_duck.verbs.indexes.kinds import Progress, check_indexable
from lance_duck.verbs.indexes.rows import column_path, index_rows
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.wire.index import SYSTEM, IndexMetadata

_SUFFIX: Final = "_idx"


@dataclass(frozen=True)
class IndexWish:
    """An index that a user asks for.

    Attributes:
        column: Its dotted path.
        name: None: made from the path.
        replace: Take the place of an index of this name.
        train: Build it of all rows; False: it covers nothing yet.
        parameters: Of the kind.
        uuid: Of the segment; None: a new one.
        progress: Called with the rows that are taken in, and all rows.
        untrained: Details of a segment that covers nothing, where such a one has no files; None: the kind builds it.
    """

    column: str
    kind: IndexKind
    name: str | None = None
    replace: bool = True
    train: bool = True
    parameters: Mapping[str, Any] = field(default_factory=dict)
    uuid: UUID | None = None
    progress: Progress | None = None
    untrained: bytes | None = None


def create_index(snapshot: Snapshot, wish: IndexWish, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Build an index of all rows, and commit it.

    Raises:
        UnknownColumnError, NotIndexableError: The column is not there, or cannot have such an index.
        IndexExistsError: The name is taken.
        CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
    """

    def attempt(now: Snapshot) -> Snapshot:
        path = column_path(now.schema, wish.column)
        check_indexable(now, path, wish.kind)
        name, replaced = settle_name(now, path, wish)
        fragments = now.fragments.ids() if wish.train else []
        key = (name, now.schema.by_path(path).id)
        segment = made.get(now, key, lambda: build(now, path, name, fragments, wish))
        return made.commit(now, [segment], replaced, properties)

    with MadeSegments(snapshot) as made:
        return run_again(snapshot, attempt)


def drop_index(snapshot: Snapshot, name: str, properties: Mapping[str, str] | None = None) -> Snapshot:
    """Remove an index of any kind from the table; its files stay for older versions.

    Raises:
        IndexNotFoundError: There is none of this name.
    """
    return run_again(
        snapshot,
        lambda now: commit(now, CreateIndex((), tuple(segments_named(now, name))), properties=properties),
    )


def build(
    snapshot: Snapshot, path: str, name: str, fragments: Iterable[int], wish: IndexWish, uuid: UUID | None = None
) -> IndexMetadata:
    """Write a segment over fragments."""
    wanted = sorted(set(fragments))
    if not wanted and wish.untrained is not None:
        return empty_segment(snapshot, path, wish.kind, wish.untrained, name=name, uuid=_free(snapshot, wish.uuid))
    options = BuildOptions(wish.parameters, progress=_rows_told(snapshot, wanted, wish.progress))
    rows = index_rows(snapshot, path, wish.kind, wanted)
    with rows:
        return build_segment(
            snapshot, path, wish.kind, rows, wanted, name=name, options=options, uuid=uuid or _free(snapshot, wish.uuid)
        )


def settle_name(snapshot: Snapshot, path: str, wish: IndexWish) -> tuple[str, list[IndexMetadata]]:
    """Return the name of a new index, and the segments whose place it takes.

    A name that is not given is "{path}_idx", with a number where an index over another column, or of another kind, has
    that one.

    Raises:
        IndexExistsError: The name is taken: by an index over another column, or by any unless it may be replaced.
        InvalidInputError: The name is empty, no text that can be stored, or one that the format keeps for itself.
    """
    field_id = snapshot.schema.by_path(path).id
    found = [s for s in snapshot.indices if s.name not in SYSTEM]
    name = wish.name
    if name is None:
        name = next(n for n in _numbered(f"{path}{_SUFFIX}") if _suits(found, n, field_id, wish.kind))
    elif not isinstance(name, str) or not name or name in SYSTEM or not is_unicode(name):
        raise InvalidInputError("name of an index", found=repr(name))
    taken = [s for s in found if s.name == name]
    if any(s.fields != (field_id,) for s in taken):
        raise IndexExistsError(
            f"index {name!r} is there already, over another column", where=snapshot.uri, remedy="give another name"
        )
    if taken and not wish.replace:
        raise IndexExistsError(
            f"index {name!r} is there already", where=snapshot.uri, remedy="give another name, or replace=True"
        )
    return name, taken


def rows_of(snapshot: Snapshot, fragments: Iterable[int]) -> int:
    """Return number of living rows of fragments that are there."""
    wanted = np.fromiter(fragments, np.int64)
    ids, rows = np.array(snapshot.fragments.ids(), np.int64), np.array(snapshot.row_counts(), np.int64)
    return int(rows[np.isin(ids, wanted)].sum())


def _rows_told(snapshot: Snapshot, fragments: Sequence[int], progress: Progress | None) -> Any:
    if progress is None:
        return None
    total = rows_of(snapshot, fragments)
    progress(0, total)
    return lambda done: progress(done, total)


def _free(snapshot: Snapshot, uuid: UUID | None) -> UUID | None:
    """Refuse a uuid that is taken: files of a segment never change."""
    if uuid is not None and any(s.uuid == uuid for s in snapshot.indices):
        raise InvalidInputError(f"uuid {uuid} is that of an index segment", where=snapshot.uri)
    return uuid


def _numbered(name: str) -> Iterable[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))


def _suits(found: Sequence[IndexMetadata], name: str, field_id: int, kind: IndexKind) -> bool:
    """Return whether a name is free, or that of an index of this kind over this column."""
    taken = [s for s in found if s.name == name]
    return all(s.fields == (field_id,) and kind_of(s.details_type or "") is kind for s in taken)
