"""Descriptions of a version's indexes and of their coverage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypedDict

import numpy as np

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.arrow.distinct import difference_of
from lance_duck.errors import IndexNotFoundError, LanceDuckError
from lance_duck.index.catalog import Segment, catalog, field_path, names_rows_by_id
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.inverted.settings import shown_settings
from lance_duck.index.kind import IndexKind
from lance_duck.index.reach import needs_reach, reached
from lance_duck.index.registry import json_path_kind, kind_of, name_of
from lance_duck.index.reuse import reuse_of
from lance_duck.index.search import open_index
from lance_duck.index.vector.details import shown_details
from lance_duck.index.vector.kind import VECTOR
from lance_duck.markup import rows_html, size_text
from lance_duck.rows import fragments_in_bitmap
from lance_duck.snapshot import Snapshot
from lance_duck.wire.index import SYSTEM, IndexMetadata

_DETAILS: Final = "IndexDetails"
_UNKNOWN: Final = "Unknown"
_NONE: Final = "N/A"

INDEX_HEAD: Final = ("index", "kind", "columns", "rows covered", "size")
"""Column headings for `index_cells`."""


class IndexInformation(TypedDict):
    """One segment of an index.

    `type` is the index kind, `fields` are column paths, and `version` is the table version that the segment was built
    from. `fragment_ids` are the fragments that the segment lists, even if they no longer exist. `base_id` is the id of
    the files' base path; None is the table root.
    """

    name: str
    type: str
    uuid: str
    fields: list[str]
    version: int
    fragment_ids: set[int]
    base_id: int | None


@dataclass(frozen=True)
class IndexSegmentDescription:
    """One segment of an index.

    Attributes:
        uuid: Uuid of the segment.
        dataset_version_at_last_update: Table version that the segment was built from.
        fragment_ids: Ids of the fragments that the segment lists, even if they no longer exist.
        index_version: Version of the index format.
        created_at: Build time in UTC, or None if unknown.
        size_bytes: Total file size, or None if unknown.
        base_id: Id of the files' base path. None is the table root.
        covering_fields: Ids of additional fields whose values the segment stores.
    """

    uuid: str
    dataset_version_at_last_update: int
    fragment_ids: set[int]
    index_version: int
    created_at: datetime | None = None
    size_bytes: int | None = None
    base_id: int | None = None
    covering_fields: list[int] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class IndexDescription:
    """An index.

    Attributes:
        name: Name of the index.
        type_url: Type URL of the index details.
        index_type: Index kind, such as "BTree".
        num_rows_indexed: Number of rows in covered fragments that still exist.
        fields: Ids of the indexed fields.
        field_names: Paths of the indexed fields.
        segments: Segments of the index.
        details: Known build parameters.
        total_size_bytes: Total size of all files, or None if unknown.
    """

    name: str
    type_url: str
    index_type: str
    num_rows_indexed: int
    fields: list[int]
    field_names: list[str]
    segments: list[IndexSegmentDescription]
    details: dict[str, Any] = field(default_factory=dict)
    total_size_bytes: int | None = None

    def __repr__(self) -> str:
        size = "" if self.total_size_bytes is None else f", total_size_bytes={self.total_size_bytes}"
        names = ", ".join(f'"{name}"' for name in self.field_names)
        return (
            f"IndexDescription(name={self.name!r}, type_url={self.type_url!r}, num_rows_indexed={self.num_rows_indexed}"
            f", fields={self.fields}, field_names=[{names}], num_segments={len(self.segments)}{size})"
        )


class IndexList(list[IndexDescription]):
    """The indexes of a table. Notebooks display them as a table."""

    def _repr_html_(self) -> str:
        """Return an HTML table with one row per index."""
        return rows_html(INDEX_HEAD, (index_cells(index, None) for index in self))


class SegmentList(list[IndexInformation]):
    """The index segments of a table. Notebooks display them as a table."""

    def _repr_html_(self) -> str:
        """Return an HTML table with one row per segment."""
        rows = (
            (
                entry["name"],
                entry["type"],
                ", ".join(entry["fields"]),
                entry["uuid"][:8],
                str(entry["version"]),
                f"{len(entry['fragment_ids']):,}",
            )
            for entry in self
        )
        return rows_html(("index", "kind", "columns", "segment", "of version", "fragments"), rows)


def describe_indices(snapshot: Snapshot) -> list[IndexDescription]:
    """Describe all indexes, ordered by name, from the manifest. Includes system indexes and unknown kinds."""
    rows = _row_counts(snapshot)
    described = (_described(snapshot, name, segments, rows) for name, segments in sorted(_by_name(snapshot).items()))
    return IndexList(described)


def list_indices(snapshot: Snapshot) -> list[IndexInformation]:
    """Describe all segments of all indexes, ordered by index name."""
    return SegmentList(
        {
            "name": index.name,
            "type": index.index_type,
            "uuid": segment.uuid,
            "fields": index.field_names,
            "version": segment.dataset_version_at_last_update,
            "fragment_ids": segment.fragment_ids,
            "base_id": segment.base_id,
        }
        for index in describe_indices(snapshot)
        for segment in index.segments
    )


def index_cells(index: IndexDescription, rows: int | None) -> tuple[str, ...]:
    """Return the cells of an index for a table of indexes.

    Args:
        index: The index.
        rows: Row count of the version, or None if unknown.
    """
    share = f" of {rows:,}" if rows is not None else ""
    size = "" if index.total_size_bytes is None else size_text(index.total_size_bytes)
    columns = ", ".join(index.field_names)
    if "path" in index.details:
        columns += f" at {index.details['path']}"
    return index.name, index.index_type, columns, f"{index.num_rows_indexed:,}{share}", size


def index_statistics(snapshot: Snapshot, name: str) -> dict[str, Any]:
    """Return the statistics of an index.

    Returns:
        The same keys as pylance's scalar index statistics: index_type, name, num_indices and num_segments, indices and
        segments (one dict per segment: {} if nothing is known, {"error"} if it is corrupt), num_indexed_fragments,
        num_indexed_rows, num_unindexed_fragments, num_unindexed_rows, num_indexed_rows_per_delta,
        updated_at_timestamp_ms. Only live rows are counted.

    Raises:
        IndexNotFoundError: The index does not exist.
    """
    segments = segments_named(snapshot, name)
    rows = _row_counts(snapshot)
    coverage = [listed_fragments(snapshot, s) for s in segments]
    all_ = set().union(*coverage) & rows.keys()
    figures = _figures(snapshot, name, segments)
    times = [s.created_at for s in segments if s.created_at is not None]
    indexed = sum(rows[i] for i in all_)
    return {
        "index_type": next((_kind_name(snapshot, s) for s, ids in zip(segments, coverage, strict=True) if ids), _NONE),
        "name": name,
        "num_indices": len(segments),
        "num_segments": len(segments),
        "indices": figures,
        "segments": [dict(f) for f in figures],
        "num_indexed_fragments": len(all_),
        "num_indexed_rows": indexed,
        "num_unindexed_fragments": len(rows) - len(all_),
        "num_unindexed_rows": sum(rows.values()) - indexed,
        "num_indexed_rows_per_delta": [sum(rows[i] for i in ids & rows.keys()) for ids in coverage],
        "updated_at_timestamp_ms": round(max(times).timestamp() * 1000) if times else None,
    }


def segments_named(snapshot: Snapshot, name: str) -> list[IndexMetadata]:
    """Return the segments of an index, in manifest order.

    Raises:
        IndexNotFoundError: The index does not exist.
    """
    by_name = _by_name(snapshot)
    if name not in by_name:
        remedy = did_you_mean(name, by_name)
        expected = known_names(sorted(by_name))
        raise IndexNotFoundError(f"no index {name!r}", where=snapshot.uri, expected=expected, remedy=remedy)
    return by_name[name]


def listed_fragments(snapshot: Snapshot, segment: IndexMetadata) -> set[int]:
    """Return the ids of the fragments that a segment lists, even if compactions removed them.

    Excludes fragments whose rows the segment does not contain.
    """
    ids = fragment_ids(segment)
    kind = kind_of(segment.details_type or "", segment.details)
    if kind and needs_reach(snapshot, kind, segment.version):
        return ids - _not_reached(snapshot, segment, kind, ids)
    if not ids or segment.name in SYSTEM or (kind and names_rows_by_id(kind, segment.version, snapshot)):
        return ids
    reuse = reuse_of(snapshot)
    return ids if reuse is None else set(reuse.coverage(np.array(sorted(ids), np.uint32)).tolist())


def _not_reached(snapshot: Snapshot, segment: IndexMetadata, kind: IndexKind, ids: set[int]) -> set[int]:
    present = np.array(sorted(ids.intersection(snapshot.fragments.ids())), np.uint32)
    try:
        type_ = snapshot.schema.by_id(segment.fields[0]).storage_type
    except (LanceDuckError, IndexError):  # a missing field
        return set()
    return set(difference_of(present, reached(snapshot, segment, kind, type_, present)).tolist())


def fragment_ids(segment: IndexMetadata) -> set[int]:
    """Return the ids of the fragments that a segment lists, even if they no longer exist. May be empty.

    Raises:
        CorruptError: The list is damaged.
    """
    if segment.fragment_bitmap is None:
        return set()
    where = f"fragments of index {segment.name!r}"
    return set(fragments_in_bitmap(segment.fragment_bitmap, where).tolist())


def _by_name(snapshot: Snapshot) -> dict[str, list[IndexMetadata]]:
    result: dict[str, list[IndexMetadata]] = {}
    for segment in snapshot.indices:
        result.setdefault(segment.name, []).append(segment)
    return result


def _row_counts(snapshot: Snapshot) -> Mapping[int, int]:
    return dict(zip(snapshot.fragments.ids(), snapshot.row_counts(), strict=True))


def _described(
    snapshot: Snapshot, name: str, metadata: Sequence[IndexMetadata], rows: Mapping[int, int]
) -> IndexDescription:
    first = metadata[0]
    segments = [_described_segment(snapshot, s) for s in metadata]
    coverage = set().union(*(s.fragment_ids for s in segments)) & rows.keys()
    sizes = [s.size_bytes for s in segments]
    return IndexDescription(
        name,
        first.details_type or "",
        _kind_name(snapshot, first),
        sum(rows[i] for i in coverage),
        list(first.fields),
        [field_path(snapshot.schema, i) or str(i) for i in first.fields],
        segments,
        _shown(first),
        total_size_bytes=None if None in sizes else sum(size for size in sizes if size is not None),
    )


def _shown(segment: IndexMetadata) -> dict[str, Any]:
    """Return the parameters stored in a segment's details."""
    kind = kind_of(segment.details_type or "", segment.details)
    if kind is VECTOR:
        return shown_details(segment.details)
    over_path = json_path_kind(kind)
    if over_path is not None:
        return over_path.shown
    return shown_settings(segment.details) if kind is INVERTED else {}


def _described_segment(snapshot: Snapshot, segment: IndexMetadata) -> IndexSegmentDescription:
    return IndexSegmentDescription(
        str(segment.uuid),
        segment.dataset_version,
        listed_fragments(snapshot, segment),
        segment.version,
        segment.created_at,
        sum(size for _, size in segment.files) if segment.files else None,
        segment.base_id,
        list(segment.proto.covering_fields),
    )


def _kind_name(snapshot: Snapshot, segment: IndexMetadata) -> str:
    if segment.details_type is None:
        return _kind_in_files(snapshot, segment) or _UNKNOWN
    kind = name_of(segment.details_type, segment.details) or _kind_in_files(snapshot, segment)
    if kind is not None:
        return kind
    return segment.details_type.rpartition("/")[2].rpartition(".")[2].removesuffix(_DETAILS) or _UNKNOWN


def _kind_in_files(snapshot: Snapshot, segment: IndexMetadata) -> str | None:
    """Return the kind of a vector index from its files, if its details do not store it."""
    usable = (s for index in catalog(snapshot).named(segment.name) for s in index.segments if s.uuid == segment.uuid)
    kind = next(usable, None)
    if kind is None:
        return None
    return str(_figures_of(snapshot, kind).get("index_type", kind.kind.name))


def _figures(snapshot: Snapshot, name: str, segments: Iterable[IndexMetadata]) -> list[dict[str, Any]]:
    usable = {s.uuid: s for index in catalog(snapshot).named(name) for s in index.segments}
    return [_figures_of(snapshot, usable.get(s.uuid)) if fragment_ids(s) else {} for s in segments]


def _figures_of(snapshot: Snapshot, segment: Segment | None) -> dict[str, Any]:
    if segment is None:
        return {}
    try:
        figures = open_index(snapshot, segment).statistics()
    except LanceDuckError as error:
        return {"error": str(error)}
    if "uri" in figures and segment.metadata.base_id is None:
        figures["uri"] = f"{snapshot.uri}/{figures['uri']}"
    return figures
