"""Indexes that are built in parts, by any processes, and committed once.

A part is a segment over neighbouring fragments. Files of workers that died are found by the uuids of all parts of a
change: see `index.segment_uuids`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from lance_duck.commit import run_again
from lance_duck.index.build import builds_by_row_id
from lance_duck.index.registry import kind_of
from lance_duck.index.segment_uuids import part_uuid, sweep_parts
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.create import IndexWish, build, settle_name
from lance_duck.verbs.indexes.describe import fragment_ids
from lance_duck.verbs.indexes.kinds import check_indexable, kind_asked, one_column
from lance_duck.verbs.indexes.optimize import has_moved_rows
from lance_duck.verbs.indexes.rows import column_path
from lance_duck.verbs.indexes.staged_segments import MadeSegments
from lance_duck.verbs.indexes.vector import is_vector_kind, vector_wish
from lance_duck.wire.index import IndexMetadata


@dataclass(frozen=True)
class PartOrder:
    """A part to build; pickles.

    Attributes:
        version: Of the table.
        path: Dotted path of the column.
        name: Of the index.
        kind: Type url of its kind.
        fragments: Ids; the part covers them.
        change: First half of the uuid.
    """

    version: int
    path: str
    name: str
    kind: str
    fragments: tuple[int, ...]
    change: UUID = field(default_factory=uuid4)

    def build(self, snapshot: Snapshot, parameters: Mapping[str, Any]) -> IndexMetadata:
        """Write the segment, safe on the disk; see `index.build.build_segment`.

        Args:
            snapshot: The version.
            parameters: Of the kind; centroids, bounds and a codebook are the same for all parts.
        """
        kind = kind_of(self.kind)
        assert kind is not None
        wish = IndexWish(self.path, kind, self.name, parameters=parameters)
        made = build(snapshot, self.path, self.name, self.fragments, wish, part_uuid(self.change))
        snapshot.store.sync()
        return made


Build = Callable[[Snapshot, IndexWish, PartOrder], Sequence[IndexMetadata]]


def index_wish(
    snapshot: Snapshot,
    column: Any,
    index_type: Any,
    parameters: Mapping[str, Any],
    name: str | None = None,
    *,
    replace: bool = False,
    train: bool = True,
) -> IndexWish:
    """Return the index of any kind that a user asks for, checked against the table.

    Raises:
        UnknownColumnError, NotIndexableError, InvalidInputError, UnsupportedError: As `create_scalar_index` and
            `create_index` do.
    """
    if is_vector_kind(index_type):
        return vector_wish(snapshot, column, index_type, parameters, name, replace=replace, train=train)
    kind, chosen = kind_asked(index_type, parameters)
    path = column_path(snapshot.schema, one_column(column))
    check_indexable(snapshot, path, kind)
    return IndexWish(path, kind, name, replace, train, chosen)


def create_in_parts(
    snapshot: Snapshot, wish: IndexWish, build_parts: Build, properties: Mapping[str, str] | None = None
) -> tuple[Snapshot, list[IndexMetadata]]:
    """Have an index built in parts, and commit it.

    After a lost race only fragments that are others by now are built again.

    Args:
        snapshot: Version to begin with.
        wish: What is asked for.
        build_parts: Builds an order, cut as it likes: called with the version, the wish, and an order over all
            fragments that are to be covered.
        properties: Kept with the transaction.

    Returns:
        The new version, and the segments.

    Raises:
        IndexExistsError: The name is taken; nothing is built then.
        CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
    """
    change = uuid4()

    def attempt(now: Snapshot) -> tuple[Snapshot, list[IndexMetadata]]:
        path = column_path(now.schema, wish.column)
        check_indexable(now, path, wish.kind)
        name, replaced = settle_name(now, path, wish)
        key = (name, now.schema.by_path(path).id)
        parts = made.holding(now, key)
        wanted = set(now.fragments.ids()) if wish.train else set()
        left = sorted(wanted.difference(*map(fragment_ids, parts)))
        if parts and builds_by_row_id(now, wish.kind) and any(has_moved_rows(now, now.fragment(i)) for i in left):
            made.forget(parts)  # a reader that does not keep each segment to its fragments would find the old values
            parts, left = [], sorted(wanted)
        if left:
            order = PartOrder(now.version, path, name, wish.kind.type_url, tuple(left), change)
            parts += made.keep(now, key, build_parts(now, wish, order))
        elif not parts:
            parts = made.keep(now, key, [build(now, path, name, (), wish, part_uuid(change))])
        return made.commit(now, parts, replaced, properties), parts

    with MadeSegments(snapshot) as made:
        try:
            return run_again(snapshot, attempt)
        finally:
            sweep_parts(snapshot, change, made.uuids)


def runs_of(snapshot: Snapshot, fragments: Iterable[int], count: int) -> list[tuple[int, ...]]:
    """Cut fragments into runs of neighbours with about as many living rows each; at most `count`, none empty."""
    ids = np.array(sorted(fragments), np.int64)
    if not len(ids):
        return []
    of = dict(zip(snapshot.fragments.ids(), snapshot.row_counts(), strict=True))
    ends = np.cumsum([of.get(i, 0) + 1 for i in ids.tolist()])  # those without rows count a little, too
    place = np.minimum((ends - 1) * max(count, 1) // ends[-1], count - 1)
    cuts = np.flatnonzero(np.diff(place)) + 1
    return [tuple(run.tolist()) for run in np.split(ids, cuts)]
