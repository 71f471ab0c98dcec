"""LanceOperation, which describes a change to a table, and Transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from lance_duck.arguments import suggest_names
from lance_duck.verbs.public.bases import DatasetBasePath
from lance_duck.verbs.public.fragment_metadata import DataFile, DataOverlayFile, FragmentMetadata
from lance_duck.verbs.public.lance_schema import LanceSchema
from lance_duck.wire.transaction import COMMIT_MESSAGE


@suggest_names
@dataclass
class IndexFile:
    """A file of an index segment, relative to the segment directory."""

    path: str
    size_bytes: int


@suggest_names
@dataclass
class Index:
    """An index segment.

    Attributes:
        uuid: Uuid of the segment.
        name: Name of the index.
        fields: Ids of the indexed fields.
        dataset_version: Table version that the segment was built from.
        fragment_ids: Ids of the covered fragments, or None if unknown.
        index_version: Version of the index format.
        created_at: Build time in UTC, or None if unknown.
        base_id: Id of the directory's base path. None is the table root.
        files: Files of the segment, or None if unknown.
        index_details: Type URL and bytes of the index details.
        covering_fields: Ids of additional fields whose values the segment stores.
    """

    uuid: str
    name: str
    fields: list[int]
    dataset_version: int
    fragment_ids: set[int] | None
    index_version: int
    created_at: datetime | None = None
    base_id: int | None = None
    files: list[IndexFile] | None = None
    index_details: tuple[str, bytes] | None = None
    covering_fields: list[int] = field(default_factory=list)


@suggest_names
class LanceOperation:
    """Operations of transactions. For advanced use: commits do not check their fragments and files."""

    class BaseOperation:
        """Base class of all operations. A direct instance represents an operation of a newer format."""

    @dataclass
    class Append(BaseOperation):
        """Add rows."""

        fragments: Sequence[FragmentMetadata]

    @dataclass
    class Delete(BaseOperation):
        """Delete rows.

        Attributes:
            updated_fragments: Fragments with their new deletion files.
            deleted_fragment_ids: Ids of fragments whose rows are all deleted.
            predicate: Condition of the deletion, as SQL.
        """

        updated_fragments: Sequence[FragmentMetadata]
        deleted_fragment_ids: Sequence[int]
        predicate: str

    @dataclass
    class Overwrite(BaseOperation):
        """Replace all rows and the schema, or create a table.

        Attributes:
            new_schema: The schema with field ids. Fields of an Arrow schema get ids from 0, depth first.
            fragments: All fragments. They get new ids.
            initial_bases: Base paths of a new table.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: Sequence[FragmentMetadata]
        initial_bases: Sequence[DatasetBasePath] | None = None

    @dataclass
    class Update(BaseOperation):
        """Change rows.

        Attributes:
            removed_fragment_ids: Ids of fragments whose rows are all deleted.
            updated_fragments: Fragments with new deletion files, or with new files for columns that changed in place.
            new_fragments: Fragments with rewritten and inserted rows. With stable row ids, `row_id_meta` holds the ids
                of the moved rows; row versions are derived from them.
            fields_modified: Ids of fields that changed in place.
            fields_for_preserving_frag_bitmap: Ids of fields that changed in moved rows.
            update_mode: "rewrite_rows" (default) or "rewrite_columns".
            updated_fragment_offsets: Offsets of rows that changed in place, by fragment, as portable roaring bitmaps.
            inserted_rows: Keys of inserted rows, as a serialized `KeyExistenceFilter`. If two concurrent changes insert
                the same key, only one is committed.
        """

        removed_fragment_ids: Sequence[int] = field(default_factory=list)
        updated_fragments: Sequence[FragmentMetadata] = field(default_factory=list)
        new_fragments: Sequence[FragmentMetadata] = field(default_factory=list)
        fields_modified: Sequence[int] = field(default_factory=list)
        fields_for_preserving_frag_bitmap: Sequence[int] = field(default_factory=list)
        update_mode: str = ""
        updated_fragment_offsets: Mapping[int, bytes] | None = None
        inserted_rows: bytes | None = None

    @dataclass
    class Merge(BaseOperation):
        """Change the columns of fragments.

        Attributes:
            fragments: All fragments of the table.
            schema: The new schema. Columns of an Arrow schema are matched by name.
            preserves_nullability: Whether rows of the old schema are valid in the new one: each new column is nullable.
        """

        fragments: Sequence[FragmentMetadata]
        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

    @dataclass
    class Restore(BaseOperation):
        """Restore an earlier version of the table."""

        version: int

    @dataclass
    class Clone(BaseOperation):
        """Create a table or a branch as a copy of an existing version.

        Attributes:
            is_shallow: Whether the files stay in the source table.
            ref_name: Branch of the source version. None is main.
            ref_version: Number of the source version.
            ref_path: Path or URI of the source table.
            branch_name: The new branch, or None for a new table.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class RewriteGroup:
        """Old fragments, and the new fragments with the same rows."""

        old_fragments: Sequence[FragmentMetadata]
        new_fragments: Sequence[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index segment rewritten for the new addresses of its rows. Ids are UUID strings."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Move rows into other fragments without changing them."""

        groups: Sequence[LanceOperation.RewriteGroup]
        rewritten_indices: Sequence[LanceOperation.RewrittenIndex]

    @dataclass
    class ReserveFragments(BaseOperation):
        """Reserve the next fragment ids."""

        num_fragments: int

    @dataclass
    class CreateIndex(BaseOperation):
        """Add and remove index segments."""

        new_indices: Sequence[Index]
        removed_indices: Sequence[Index]

    @dataclass
    class DataReplacementGroup:
        """A file that replaces a fragment's file with the same fields."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replace data files."""

        replacements: Sequence[LanceOperation.DataReplacementGroup]

    DataOverlayFile = DataOverlayFile  # pylance exports it both here and in fragments

    @dataclass
    class DataOverlayGroup:
        """Overlay files of one fragment. Later files override earlier ones."""

        fragment_id: int
        overlays: Sequence[DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """Add overlay files, whose values override the existing values of some cells."""

        groups: Sequence[LanceOperation.DataOverlayGroup]

    @dataclass
    class Project(BaseOperation):
        """Drop, rename or reorder columns.

        Attributes:
            schema: The new schema. Columns of an Arrow schema are matched by name.
            preserves_nullability: Whether rows written for the old schema are valid under the new one.
        """

        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

    @dataclass
    class UpdateMap:
        """Changes to a map of strings.

        Attributes:
            updates: New values. None removes the key.
            replace: Whether all other keys are removed.
        """

        updates: Mapping[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change table settings, and the metadata of the table, its schema, and its fields by id."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: Mapping[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class UpdateBases(BaseOperation):
        """Add base paths."""

        new_bases: Sequence[DatasetBasePath]


@suggest_names
@dataclass
class Transaction:
    """A change to a table, committed or not.

    Attributes:
        read_version: Version that the change is based on.
        operation: The operation.
        uuid: Unique name of the transaction.
        transaction_properties: Key-value pairs of strings.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)

    @property
    def commit_message(self) -> str | None:
        """The writer's commit message, or None."""
        return (self.transaction_properties or {}).get(COMMIT_MESSAGE)
