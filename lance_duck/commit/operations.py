"""Operations of transactions, by Lance's names (Append, Delete, Update, Rewrite and others).

Their messages (`messages`) and the classes in pylance's shape (`verbs.public.lance_operation`, which explains the
fields to users) have the same names and fields. The types of the fields here say how each is converted.

Operations hold fragments and schemas as manifests have them. Ids of new fragments, row ids and row versions are
assigned by the commit, anew in each attempt; in an operation they mean:
    fragment id     ignored for new fragments, but for those of a Rewrite (0: assign one) and of a Merge
    row_ids         None, or the ids of the first rows, which moved here; the other rows get new ones
    created_at      None, or the versions of the rows whose ids are given
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
"""Conversions by the type that a field of an operation has."""

REWRITE_ROWS = "rewrite_rows"
REWRITE_COLUMNS = "rewrite_columns"


class Operation:
    """Base of all operations."""

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
    """Replace all rows and the schema, or create a table; settings and metadata of the table stay.

    Attributes:
        config_upsert_values: Settings to add.
    """

    new_schema: Schema
    fragments: Sequence[Fragment]
    config_upsert_values: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    initial_bases: Sequence[BasePath] = ()


@dataclass(frozen=True)
class Update(Operation):
    """Change rows: by deleting them and writing them anew, or by new files for some of their columns.

    Attributes:
        updated_fragment_offsets: Serialized roaring bitmaps of the rows that changed in place, by fragment id.
    """

    removed_fragment_ids: Sequence[int] = ()
    updated_fragments: Sequence[Fragment] = ()
    new_fragments: Sequence[Fragment] = ()
    fields_modified: Sequence[int] = ()
    fields_for_preserving_frag_bitmap: Sequence[int] = ()
    update_mode: str = REWRITE_ROWS
    inserted_rows: KeyExistenceFilter | None = None
    updated_fragment_offsets: Mapping[int, bytes] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Merge(Operation):
    """Give fragments other columns: holds all fragments of the table, and its new schema."""

    fragments: Sequence[Fragment]
    schema: Schema
    preserves_nullability: bool = False


@dataclass(frozen=True)
class Project(Operation):
    """Drop, rename or reorder columns, or change their nullability; no file is touched."""

    schema: Schema
    preserves_nullability: bool = False


@dataclass(frozen=True)
class RewriteGroup:
    """Fragments that were rewritten together, and the fragments that hold their rows now."""

    old_fragments: Sequence[Fragment]
    new_fragments: Sequence[Fragment]


@dataclass(frozen=True)
class RewrittenIndex:
    """An index segment that was rewritten for the new places of its rows."""

    old_id: UUID
    new_id: UUID
    new_details_type_url: str = ""
    new_details_value: bytes = b""
    new_index_version: int = 0
    new_index_files: Sequence[tuple[str, int]] = ()


@dataclass(frozen=True)
class Rewrite(Operation):
    """Write the same rows into other fragments."""

    groups: Sequence[RewriteGroup]
    rewritten_indices: Sequence[RewrittenIndex] = ()


@dataclass(frozen=True)
class ReserveFragments(Operation):
    """Reserve the next fragment ids; the last of them is the `max_fragment_id` of the resulting version."""

    num_fragments: int


@dataclass(frozen=True)
class Restore(Operation):
    """Restore the table as it was in an earlier version."""

    version: int


@dataclass(frozen=True)
class CreateIndex(Operation):
    """Add and remove index segments."""

    new_indices: Sequence[IndexMetadata]
    removed_indices: Sequence[IndexMetadata] = ()


@dataclass(frozen=True)
class DataReplacementGroup:
    """A file that takes the place of the one with the same fields, or adds fields that no file has."""

    fragment_id: int
    new_file: DataFile


@dataclass(frozen=True)
class DataReplacement(Operation):
    """Replace data files."""

    replacements: Sequence[DataReplacementGroup]


@dataclass(frozen=True)
class DataOverlayGroup:
    """Overlays of one fragment, of which each wins over those before it; the commit sets their versions."""

    fragment_id: int
    overlays: Sequence[Overlay]


@dataclass(frozen=True)
class DataOverlay(Operation):
    """Give some cells new values, in files beside the data files; the rows stay where they are."""

    groups: Sequence[DataOverlayGroup]


@dataclass(frozen=True)
class UpdateMap:
    """Changes of a map of texts; None removes the key."""

    updates: Mapping[str, str | None]
    replace: bool = False


@dataclass(frozen=True)
class UpdateConfig(Operation):
    """Change settings of the table, and metadata of the table, its schema, and its fields by their ids."""

    config_updates: UpdateMap | None = None
    table_metadata_updates: UpdateMap | None = None
    schema_metadata_updates: UpdateMap | None = None
    field_metadata_updates: Mapping[int, UpdateMap] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class Clone(Operation):
    """Begin a table or a branch as a copy of a version elsewhere."""

    is_shallow: bool
    ref_name: str | None
    ref_version: int
    ref_path: str
    branch_name: str | None = None


@dataclass(frozen=True)
class UpdateBases(Operation):
    """Add base paths; the commit assigns ids to those with id 0."""

    new_bases: Sequence[BasePath]


@cache
def field_types(form: type) -> Mapping[str, Any]:
    """Return the types of the fields of an operation, or of a part of one, by name."""
    return get_type_hints(form)


def converted(value: Any, kind: Any, parts: Parts, sequence: Callable[..., Any] = tuple) -> Any:
    """Convert the value of a field.

    Args:
        value: The value.
        kind: Type of the field in `operations`.
        parts: Conversions; values of other types stay as they are.
        sequence: Type of converted sequences.
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
