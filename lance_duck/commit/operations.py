"""Operations of transactions, with Lance's names (Append, Delete, Update, Rewrite and others).

Their messages (`messages`) and pylance's classes (`verbs.public.lance_operation`, which documents the fields for users)
have the same names and fields. The field types determine how each field is converted.

Operations contain fragments and schemas in the form that manifests store. Each commit attempt assigns the ids of new
fragments, the row ids and the row versions. In an operation, these fields mean:
    fragment id     ignored for new fragments, except in a Rewrite (0: assign an id) and in a Merge
    row_ids         None, or the ids of the first rows, which moved to this fragment; the other rows get new ids
    created_at      None, or the versions that created the rows in `row_ids`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, TypeAlias, get_args, get_origin, get_type_hints
from uuid import UUID

from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.index import IndexMetadata
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import transaction_pb2
from lance_duck.wire.schema import Schema

KeyExistenceFilter: TypeAlias = transaction_pb2.Transaction.KeyExistenceFilter
Parts: TypeAlias = Mapping[Any, Callable[[Any], Any]]
"""Conversion functions by field type."""

REWRITE_ROWS = "rewrite_rows"
REWRITE_COLUMNS = "rewrite_columns"


class Operation:
    """Base class of all operations."""

    @property
    def name(self) -> str:
        """Name of the operation, such as "Append"."""
        return type(self).__name__


@dataclass(frozen=True)
class Append(Operation):
    """Add rows."""

    fragments: Sequence[Fragment]


@dataclass(frozen=True)
class Delete(Operation):
    """Delete rows."""

    updated_fragments: Sequence[Fragment]
    deleted_fragment_ids: Sequence[int]
    predicate: str = ""


@dataclass(frozen=True)
class Overwrite(Operation):
    """Replace all rows and the schema, or create a table. Table settings and metadata are kept.

    Attributes:
        config_upsert_values: Settings to add.
    """

    new_schema: Schema
    fragments: Sequence[Fragment]
    config_upsert_values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    initial_bases: Sequence[BasePath] = ()


@dataclass(frozen=True)
class CompactedSsTable:
    """The newest SSTable of a shard of the write-ahead log that is merged into the table. See `snapshot.mem_wal`."""

    shard_id: UUID
    generation: int


@dataclass(frozen=True)
class Update(Operation):
    """Change rows by deleting and rewriting them, or with new files for some columns.

    Attributes:
        updated_fragment_offsets: Offsets of rows that changed in place, by fragment id, as serialized roaring bitmaps.
        compacted_sstables: SSTables of the write-ahead log that this change merges. pylance's class lacks this field.
    """

    removed_fragment_ids: Sequence[int] = ()
    updated_fragments: Sequence[Fragment] = ()
    new_fragments: Sequence[Fragment] = ()
    fields_modified: Sequence[int] = ()
    fields_for_preserving_frag_bitmap: Sequence[int] = ()
    update_mode: str = REWRITE_ROWS
    inserted_rows: KeyExistenceFilter | None = None
    updated_fragment_offsets: Mapping[int, bytes] = field(default_factory=lambda: MappingProxyType({}))
    compacted_sstables: Sequence[CompactedSsTable] = ()


@dataclass(frozen=True)
class Merge(Operation):
    """Change the columns of fragments. The operation contains all fragments of the table, and the new schema."""

    fragments: Sequence[Fragment]
    schema: Schema
    preserves_nullability: bool = False


@dataclass(frozen=True)
class Project(Operation):
    """Drop, rename or reorder columns, or change their nullability. Files do not change."""

    schema: Schema
    preserves_nullability: bool = False


@dataclass(frozen=True)
class RewriteGroup:
    """Fragments that were rewritten together, and the new fragments that contain their rows."""

    old_fragments: Sequence[Fragment]
    new_fragments: Sequence[Fragment]


@dataclass(frozen=True)
class RewrittenIndex:
    """An index segment rewritten for the new addresses of its rows."""

    old_id: UUID
    new_id: UUID
    new_details_type_url: str = ""
    new_details_value: bytes = b""
    new_index_version: int = 0
    new_index_files: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Rewrite(Operation):
    """Move rows into other fragments without changing them."""

    groups: Sequence[RewriteGroup]
    rewritten_indices: Sequence[RewrittenIndex] = ()


@dataclass(frozen=True)
class ReserveFragments(Operation):
    """Reserve the next fragment ids. The last reserved id is the `max_fragment_id` of the new version."""

    num_fragments: int


@dataclass(frozen=True)
class Restore(Operation):
    """Restore an earlier version of the table."""

    version: int


@dataclass(frozen=True)
class CreateIndex(Operation):
    """Add and remove index segments."""

    new_indices: Sequence[IndexMetadata]
    removed_indices: Sequence[IndexMetadata] = ()


@dataclass(frozen=True)
class DataReplacementGroup:
    """A file that replaces a fragment's file with the same fields, or adds fields that no other file contains."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True)
class DataReplacement(Operation):
    """Replace data files."""

    replacements: Sequence[DataReplacementGroup]


@dataclass(frozen=True)
class DataOverlayGroup:
    """Overlays of one fragment. Later overlays override earlier ones. The commit sets their versions."""

    fragment_id: int
    overlays: Sequence[Overlay]


@dataclass(frozen=True)
class DataOverlay(Operation):
    """Add overlays, which contain new values for some cells. The rows do not move."""

    groups: Sequence[DataOverlayGroup]


@dataclass(frozen=True)
class UpdateMap:
    """Changes to a map of strings. A key is removed if its value is None."""

    updates: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True)
class UpdateConfig(Operation):
    """Change table settings, and the metadata of the table, its schema and its fields."""

    config_updates: UpdateMap | None = None
    table_metadata_updates: UpdateMap | None = None
    schema_metadata_updates: UpdateMap | None = None
    field_metadata_updates: Mapping[int, UpdateMap] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Clone(Operation):
    """Create a table or a branch as a copy of an existing version."""

    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None = None


@dataclass(frozen=True)
class UpdateBases(Operation):
    """Add base paths. The commit assigns an id to each base path with id 0."""

    new_bases: Sequence[BasePath]


@cache
def field_types(form: type) -> Mapping[str, Any]:
    """Return the field types of an operation or a nested class, by name."""
    return get_type_hints(form)


def converted(value: Any, kind: Any, parts: Parts, sequence: Callable[..., Any] = tuple) -> Any:
    """Convert a field value.

    Args:
        value: The value.
        kind: The declared type of the field.
        parts: Conversion functions by type. Values of types without a function are returned unchanged.
        sequence: Builds each converted sequence.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Sequence:
        convert = parts.get(inner[0])
        return sequence(value if convert is None else map(convert, value))
    if origin is Mapping:
        return {key: converted(item, inner[1], parts) for key, item in dict(value).items()}
    if NoneType in inner:
        return None if value is None else converted(value, inner[0], parts)
    return parts[kind](value) if kind in parts else value
