"""The index catalog of a version: its indexes, their segments and their coverage, according to the manifest.

For segments that store row addresses in tables with stable row ids, the manifest is not sufficient: see `reach`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from uuid import UUID

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import difference_of, distinct, union_of
from lance_duck.arrow.join import joined
from lance_duck.errors import LanceDuckError, warn_of_index
from lance_duck.index.json_path import JsonPath
from lance_duck.index.kind import IndexKind
from lance_duck.index.opened import kind_in_files, opened_segment
from lance_duck.index.query import Query
from lance_duck.index.reach import needs_reach, reached
from lance_duck.index.registry import json_path_kind, kind_of, name_of, own_details, unknown_reason
from lance_duck.index.reuse import reuse_of
from lance_duck.rows import roaring_values
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.overlays import without_overlaid
from lance_duck.wire.below_lists import listed_field
from lance_duck.wire.column_path import join_path
from lance_duck.wire.fragment import TOMBSTONE, Fragment
from lance_duck.wire.index import SYSTEM, IndexMetadata
from lance_duck.wire.schema import Field, Schema

FragmentIds = NDArray[np.uint32]

_MOST_FRAGMENTS = 1 << 24
_TRUSTED_LISTS = (0, 8, 15)  # older writers listed fragments whose rows a segment does not contain
_BFLOAT16 = "lance.bfloat16"
_RTREE = "RTree"
_GEOMETRIES = ("geoarrow.point", "geoarrow.wkb")


@dataclass(frozen=True, eq=False)
class Segment:
    """A segment that can be searched.

    Attributes:
        metadata: Entry of the segment in the manifest.
        kind: Kind of the index.
        field: The column.
        path: Dotted path of the column. Names are quoted with backticks if necessary.
        type: Storage type of the column. Null for a JSON path, because only the files have the type of the values.
        fragments: Ids of the covered fragments that exist in this version, ascending.
        by_row_id: Whether the segment stores stable row ids instead of row addresses.
    """

    metadata: IndexMetadata
    kind: IndexKind
    field: Field
    path: str
    type: pa.DataType
    fragments: FragmentIds
    by_row_id: bool

    @property
    def uuid(self) -> UUID:
        """Uuid of the segment."""
        return self.metadata.uuid

    @cached_property
    def fragment_ids(self) -> frozenset[int]:
        """Ids of the covered fragments that exist in this version."""
        return frozenset(self.fragments.tolist())

    def __str__(self) -> str:
        return f"segment {self.uuid} of index {self.metadata.name!r}"


@dataclass(frozen=True)
class IgnoredSegment:
    """A segment that cannot be searched. Queries scan the fragments that it covers.

    Attributes:
        metadata: Entry of the segment in the manifest.
        reason: The reason, for messages.
    """

    metadata: IndexMetadata
    reason: str


@dataclass(frozen=True, eq=False)
class ColumnIndex:
    """The segments of one name, column and kind.

    Attributes:
        name: Name of the index.
        path: Path of the column. None if all segments are ignored because their field was dropped, or because they
            cover several fields.
        kind: Kind of the segments. None if all are ignored.
        segments: Searchable segments. Their fragments are disjoint.
        ignored: Segments that cannot be searched.
    """

    name: str
    path: str | None
    kind: IndexKind | None
    segments: tuple[Segment, ...]
    ignored: tuple[IgnoredSegment, ...]

    @cached_property
    def fragments(self) -> FragmentIds:
        """Ids of the fragments that the searchable segments cover, ascending."""
        return _union(s.fragments for s in self.segments)

    def answers(self, query: Query) -> bool:
        """Return whether the segments can answer a query on the column."""
        return bool(self.segments) and self.segments[0].kind.answers(query, self.segments[0].type)


@dataclass(frozen=True, eq=False)
class IndexCatalog:
    """The indexes of one version.

    Attributes:
        indexes: All indexes in manifest order, without the table's system indexes.
        schema: Columns of the table.
        value_type: Returns the type of the values of a segment over a JSON path, or None if it cannot be read.
    """

    indexes: tuple[ColumnIndex, ...]
    schema: Schema
    value_type: Callable[[Segment], pa.DataType | None] = lambda _: None

    def over(self, path: str) -> tuple[ColumnIndex, ...]:
        """Return the searchable indexes over a column's values. Returns () for an unknown column."""
        return tuple(index for index in self._by_path(path) if index.segments and json_path_kind(index.kind) is None)

    def over_json(self, path: str, inner: JsonPath, type_: pa.DataType) -> tuple[tuple[ColumnIndex, ...], str]:
        """Return the searchable indexes over the values at a path of JSON documents.

        Args:
            path: Dotted path of the column.
            inner: Path in the documents.
            type_: Type of the values. Segments with values of a different type are left out. Files are read.

        Returns:
            The indexes, with `type_` as the type of their segments, and the reason why there is none.
        """
        found, others, types = [], [], set()
        for index in self._by_path(path):
            over_path = json_path_kind(index.kind)
            if over_path is None or not index.segments:
                continue
            if over_path.path != inner:
                others.append(f"index {index.name!r} is over {over_path.text!r}")
                continue
            stored = [self.value_type(segment) for segment in index.segments]
            types |= {str(each) for each in stored if each not in (None, type_)}
            pairs = zip(index.segments, stored, strict=True)
            segments = tuple(replace(segment, type=type_) for segment, each in pairs if each in (None, type_))
            if segments:
                found.append(replace(index, segments=segments))
        if types:
            return tuple(found), f"the index over it has values of type {' and '.join(sorted(types))}, not {type_}"
        return tuple(found), "; ".join(others)

    def ignored_over(self, path: str) -> tuple[IgnoredSegment, ...]:
        """Return the segments over a column that cannot be searched, with the reasons."""
        return tuple(ignored for index in self._by_path(path) for ignored in index.ignored)

    def named(self, name: str) -> tuple[ColumnIndex, ...]:
        """Return the indexes with a name, or () if the name is unknown.

        Several indexes have the same name only if a writer did not check for duplicates.
        """
        return tuple(index for index in self.indexes if index.name == name)

    def __iter__(self) -> Iterator[ColumnIndex]:
        return iter(self.indexes)

    def __len__(self) -> int:
        return len(self.indexes)

    def _by_path(self, path: str) -> Sequence[ColumnIndex]:
        """Return the indexes over a column. Results for indexed columns are cached."""
        known = self._known.get(path)
        if known is not None or not self.indexes:
            return known or ()
        try:
            column_path = field_path(self.schema, self.schema.by_path(path).id)
        except LanceDuckError:
            return ()
        over = tuple(index for index in self.indexes if index.path == column_path and column_path is not None)
        if over:  # caches only indexed columns, under each path that a caller used
            self._known[path] = over
        return over

    @cached_property
    def _known(self) -> dict[str, Sequence[ColumnIndex]]:
        return {}


def catalog(snapshot: Snapshot) -> IndexCatalog:
    """Return the index catalog of a version, computed once. Reads only the manifest, unless `index.reach` needs more.

    If an entry does not declare the kind of its segment, the names of the segment's files determine it. Segments that
    cannot be used are listed as ignored, each with a reason. If the index section of the manifest cannot be read, the
    catalog is empty, and an IndexWarning is issued.
    """
    return snapshot.derived("index catalog", lambda: _catalog(snapshot))


def names_rows_by_id(kind: IndexKind, version: int, snapshot: Snapshot) -> bool:
    """Return whether segments of a kind and layout version store stable row ids in this table."""
    return snapshot.has_stable_row_ids and (kind.rows_by == "id" or (kind.rows_by == "version" and version == 0))


def field_path(schema: Schema, field_id: int) -> str | None:
    """Return the dotted path of a field. Returns None for an unknown field."""
    names: list[str] = []
    while field_id >= 0:
        try:
            field = schema.by_id(field_id)
        except LanceDuckError:
            return None
        names.append(field.name)
        field_id = field.parent_id
    return join_path(reversed(names)) if names else None


def _catalog(snapshot: Snapshot) -> IndexCatalog:
    present = np.array(sorted(snapshot.fragments.ids()), np.uint32)
    grouped: dict[tuple[str, str | None], list[Segment | IgnoredSegment]] = {}
    for metadata in _listed(snapshot):
        if metadata.name in SYSTEM:
            continue
        path = field_path(snapshot.schema, metadata.keys[0]) if len(metadata.keys) == 1 else None
        segment = _segment(snapshot, metadata, path, present)
        grouped.setdefault((metadata.name, path), []).append(segment)
    indexes = tuple(i for (name, path), all_ in grouped.items() for i in _indexes(name, path, all_))
    return IndexCatalog(indexes, snapshot.schema, partial(_value_type, snapshot))


def _value_type(snapshot: Snapshot, segment: Segment) -> pa.DataType | None:
    index = opened_segment(snapshot, segment.metadata, segment.kind, segment.type).index
    return None if isinstance(index, LanceDuckError) else index.type


def _listed(snapshot: Snapshot) -> tuple[IndexMetadata, ...]:
    try:
        return snapshot.indices
    except LanceDuckError as error:
        warn_of_index(f"the table is read without indexes: {error}")
        return ()


def _indexes(name: str, path: str | None, entries: list[Segment | IgnoredSegment]) -> Iterator[ColumnIndex]:
    """Yield the indexes with one name over one column: one for each kind."""
    ignored = tuple(each for each in entries if isinstance(each, IgnoredSegment))
    kinds: dict[tuple[str, bytes], list[Segment]] = {}
    for each in entries:
        if isinstance(each, Segment):
            kinds.setdefault((each.kind.name, own_details(each.kind)), []).append(each)
    if not kinds:
        yield ColumnIndex(name, path, None, (), ignored)
    for segments in kinds.values():
        yield ColumnIndex(name, path, segments[0].kind, _disjoint(segments), ignored)
        ignored = ()


def _disjoint(segments: list[Segment]) -> tuple[Segment, ...]:
    """Return segments without overlaps. A fragment stays with the first segment that covers it."""
    if len(segments) < 2:
        return tuple(segments)
    covered = np.empty(0, np.uint32)
    disjoint = []
    for segment in segments:
        disjoint.append(replace(segment, fragments=difference_of(segment.fragments, covered)))
        covered = union_of(covered, segment.fragments)
    return tuple(disjoint)


def _segment(
    snapshot: Snapshot, metadata: IndexMetadata, path: str | None, present: FragmentIds
) -> Segment | IgnoredSegment:
    if metadata.details_type is None:
        kind = kind_in_files(snapshot, metadata)
    else:
        kind = kind_of(metadata.details_type, metadata.details)
    reason = _unreadable(metadata, kind) or _unfitting(snapshot, metadata, path, kind)
    if reason is not None or kind is None or path is None:
        return IgnoredSegment(metadata, reason or "cannot be used")
    is_moved = metadata.base_id is not None and metadata.base_id in snapshot.moved
    by_row_id = not is_moved and names_rows_by_id(kind, metadata.version, snapshot)
    try:
        covered = roaring_values(metadata.fragment_bitmap or b"", "list of fragments", _MOST_FRAGMENTS)
        reuse = None if by_row_id or is_moved else reuse_of(snapshot)
        covered = covered if reuse is None else reuse.coverage(covered)
    except LanceDuckError as error:
        return IgnoredSegment(metadata, str(error))
    field = snapshot.schema.by_id(metadata.keys[0])
    fragments = _without_rewritten(snapshot, field, np.intersect1d(covered, present, assume_unique=True))
    fragments = without_overlaid(snapshot, {each.id for each in field.walk()}, metadata.dataset_version, fragments)
    if not is_moved and needs_reach(snapshot, kind, metadata.version):
        fragments = reached(snapshot, metadata, kind, field.storage_type, fragments)
    type_ = field.storage_type if json_path_kind(kind) is None else pa.null()
    return Segment(metadata, kind, field, path, type_, fragments, by_row_id)


def _unreadable(metadata: IndexMetadata, kind: IndexKind | None) -> str | None:
    """Return the reason why a segment's manifest entry shows that it cannot be read. Returns None if it can be read."""
    if kind is None and metadata.details_type is None:
        return "its entry does not store an index kind"
    if kind is None:
        return unknown_reason(str(metadata.details_type), metadata.details)
    if metadata.version not in kind.versions:
        name = name_of(metadata.details_type or kind.type_url, metadata.details) or kind.name
        return f"version {metadata.version} of index kind {name} is not supported"
    if metadata.fragment_bitmap is None:
        return "its entry does not store the covered fragments"
    return None


def _unfitting(snapshot: Snapshot, metadata: IndexMetadata, path: str | None, kind: IndexKind | None) -> str | None:
    """Return the reason why a segment does not match the table. Returns None if it matches."""
    if len(metadata.keys) != 1:
        return f"it covers {len(metadata.keys)} fields"
    if path is None:
        return f"it covers field {metadata.keys[0]}, which does not exist in the table"
    if _is_old(snapshot.manifest.writer):
        return "its list of covered fragments was written before Lance 0.8.15 and may be wrong"
    if metadata.base_id is not None and metadata.base_id not in snapshot.base_paths:
        return f"its files are in base path {metadata.base_id}, which the table does not have"
    return None if kind is None else unsupported(snapshot, metadata.keys[0], kind)


def _is_old(writer: tuple[str, str] | None) -> bool:
    if writer is None:
        return True
    library, version = writer
    numbers = tuple(int(n) for n in re.findall(r"[0-9]{1,9}", version)[:3])
    return library == "lance" and numbers < _TRUSTED_LISTS


def unsupported(snapshot: Snapshot, field_id: int, kind: IndexKind) -> str | None:
    """Return the reason why a field cannot have an index of a kind. Returns None if it can."""
    schema = snapshot.schema
    field = schema.by_id(field_id)
    over_path = json_path_kind(kind)
    refusal = None if over_path is None else over_path.refusal(stable_row_ids=snapshot.has_stable_row_ids)
    if refusal is not None:
        return refusal
    parent = field.parent_id
    while parent >= 0:
        above = schema.by_id(parent)
        is_way = above.logical_type == "struct" or (kind.reaches_into_lists and above.is_list)
        if not is_way or above.blob_version:
            return f"column {field.name!r} is nested in a {above.logical_type}"
        parent = above.parent_id
    if field.is_json and listed_field(schema, field).below:
        return f"column {field.name!r} is JSON inside a list"
    special = "a blob" if field.blob_version else None
    if field.is_json and not kind.supports(field.arrow_type):
        special = "JSON"
    if kind.name == _RTREE and field.extension_name not in _GEOMETRIES:
        special = f"not of type {' or '.join(_GEOMETRIES)}"
    if field.extension_name == _BFLOAT16:
        special = "bfloat16"
    if special is not None:
        return f"index kind {kind.name} does not support column {field.name!r}, which is {special}"
    try:
        type_ = field.storage_type
    except LanceDuckError as error:
        return str(error)
    if not field.is_json and not kind.supports(type_):
        return f"index kind {kind.name} does not support column {field.name!r} of type {type_}"
    return None


def _union(pieces: Iterable[FragmentIds]) -> FragmentIds:
    return distinct(joined(pieces, np.uint32))


def _without_rewritten(snapshot: Snapshot, field: Field, fragments: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return fragments, except those whose nested values may have been rewritten although segments still cover them.

    When pylance rewrites lists in place, it records that the items changed, but keeps the fragment in every segment
    over the list. The file order of a fragment reveals the rewrite: the file of the items follows a file with
    dropped fields.

    Args:
        snapshot: Version of the table.
        field: Field of a segment.
        fragments: Ids of fragments that exist in this version.
    """
    if not field.children:
        return fragments
    below = {child.id for child in field.walk()}
    is_current = [not _may_be_rewritten(snapshot.fragment(i), below) for i in fragments.tolist()]
    return fragments[np.array(is_current, np.bool_)]


def _may_be_rewritten(fragment: Fragment, below: set[int]) -> bool:
    dropped = False
    for file in fragment.files:
        if not below.isdisjoint(file.fields):
            return dropped
        dropped |= TOMBSTONE in file.fields
    return False
