"""LanceOperation, by which users state and read what a change does to a table; and Transaction."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from lance_duck.verbs.public.bases import DatasetBasePath
from lance_duck.verbs.public.fragment_metadata import DataFile, DataOverlayFile, FragmentMetadata
from lance_duck.verbs.public.lance_schema import LanceSchema
from lance_duck.wire.transaction import COMMIT_MESSAGE


@dataclass
class IndexFile:
    """A file of an index segment, relative to the directory of the segment."""

    path: str
    size_bytes: int


@dataclass
class Index:
    """An index segment.

    Attributes:
        uuid: Uuid of the segment.
        name: Name of the index.
        fields: Ids of the indexed fields.
        dataset_version: Version of the table that it was built from.
        fragment_ids: Ids of the fragments that it covers; None if unknown.
        index_version: Version of its layout.
        created_at: Time when it was built, UTC; None if unknown.
        base_id: Id of the base path of its directory; None for the root of the table.
        files: Its files; None if unknown.
        index_details: Type url and bytes of its details.
        covering_fields: Ids of fields whose values it holds, too.
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


class LanceOperation:
    """The operations of transactions. For advanced use: a commit trusts their fragments and files."""

    class BaseOperation:
        """Base of all operations; an instance of itself stands for an operation of a newer format."""

    @dataclass
    class Append(BaseOperation):
        """Add rows."""

        fragments: Sequence[FragmentMetadata]

    @dataclass
    class Delete(BaseOperation):
        """Delete rows.

        Attributes:
            updated_fragments: Fragments with their new deletion files.
            deleted_fragment_ids: Ids of the fragments of which no row is left.
            predicate: Condition of the deletion, as SQL.
        """

        updated_fragments: Sequence[FragmentMetadata]
        deleted_fragment_ids: Sequence[int]
        predicate: str

    @dataclass
    class Overwrite(BaseOperation):
        """Replace all rows and the schema, or create a table.

        Attributes:
            new_schema: The schema, with ids of fields; fields of an Arrow schema get ids from 0, depth first.
            fragments: All fragments; they get new ids.
            initial_bases: Base paths of a table that is created.
        """

        new_schema: LanceSchema | pa.Schema
        fragments: Sequence[FragmentMetadata]
        initial_bases: Sequence[DatasetBasePath] | None = None

    @dataclass
    class Update(BaseOperation):
        """Change rows.

        Attributes:
            removed_fragment_ids: Ids of the fragments of which no row is left.
            updated_fragments: Fragments with new deletion files, or new files of columns that changed in place.
            new_fragments: Fragments of rewritten and inserted rows. With stable row ids, `row_id_meta` has those of the
                rows that moved there; row versions follow from them.
            fields_modified: Ids of the fields that changed in place.
            fields_for_preserving_frag_bitmap: Ids of the fields that changed in rows that moved.
            update_mode: "rewrite_rows", which is the default, or "rewrite_columns".
            updated_fragment_offsets: By fragment, the offsets of rows that changed in place, as portable roaring
                bitmaps.
            inserted_rows: Keys of inserted rows, as a serialized `KeyExistenceFilter`: of two changes that insert the
                same key only one is committed.
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
            schema: The new schema; columns of an Arrow schema are matched by name.
            preserves_nullability: Whether rows that were written for the old schema may lack every new column.
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
        """Begin a table or a branch as a copy of a version elsewhere.

        Attributes:
            is_shallow: Whether the files stay where they are.
            ref_name: Branch that the version is of; None for main.
            ref_version: Number of the version.
            ref_path: Path or URI of the table that has it.
            branch_name: Branch that begins here; None for a table.
        """

        is_shallow: bool
        ref_name: str | None
        ref_version: int
        ref_path: str
        branch_name: str | None

    @dataclass
    class RewriteGroup:
        """Old fragments, and the new fragments that hold the same rows."""

        old_fragments: Sequence[FragmentMetadata]
        new_fragments: Sequence[FragmentMetadata]

    @dataclass
    class RewrittenIndex:
        """An index segment that was rewritten for the new addresses of its rows; ids are uuids as texts."""

        old_id: str
        new_id: str
        new_details_type_url: str
        new_details_value: bytes
        new_index_version: int

    @dataclass
    class Rewrite(BaseOperation):
        """Rewrite rows into other fragments, without changing them."""

        groups: Sequence[LanceOperation.RewriteGroup]
        rewritten_indices: Sequence[LanceOperation.RewrittenIndex]

    @dataclass
    class ReserveFragments(BaseOperation):
        """Reserve the next ids of fragments."""

        num_fragments: int

    @dataclass
    class CreateIndex(BaseOperation):
        """Add and remove index segments."""

        new_indices: Sequence[Index]
        removed_indices: Sequence[Index]

    @dataclass
    class DataReplacementGroup:
        """A file that replaces the one of a fragment with the same fields."""

        fragment_id: int
        new_file: DataFile

    @dataclass
    class DataReplacement(BaseOperation):
        """Replace data files."""

        replacements: Sequence[LanceOperation.DataReplacementGroup]

    DataOverlayFile = DataOverlayFile  # as pylance has it here; fragments have it, too

    @dataclass
    class DataOverlayGroup:
        """Overlay files of one fragment, of which each wins over those before it."""

        fragment_id: int
        overlays: Sequence[DataOverlayFile]

    @dataclass
    class DataOverlay(BaseOperation):
        """Give some cells new values, in files beside the data files; they win over all values that are there."""

        groups: Sequence[LanceOperation.DataOverlayGroup]

    @dataclass
    class Project(BaseOperation):
        """Drop, rename or reorder columns.

        Attributes:
            schema: The new schema; columns of an Arrow schema are matched by name.
            preserves_nullability: Whether rows that were written for the old schema fit the new one.
        """

        schema: LanceSchema | pa.Schema
        preserves_nullability: bool = False

    @dataclass
    class UpdateMap:
        """Changes of a map of texts.

        Attributes:
            updates: New values; None removes the key.
            replace: Whether all other keys are removed.
        """

        updates: Mapping[str, str | None]
        replace: bool = False

    @dataclass
    class UpdateConfig(BaseOperation):
        """Change settings of the table, and metadata of the table, its schema, and its fields by their ids."""

        config_updates: LanceOperation.UpdateMap | None = None
        table_metadata_updates: LanceOperation.UpdateMap | None = None
        schema_metadata_updates: LanceOperation.UpdateMap | None = None
        field_metadata_updates: Mapping[int, LanceOperation.UpdateMap] | None = None

    @dataclass
    class UpdateBases(BaseOperation):
        """Add base paths."""

        new_bases: Sequence[DatasetBasePath]


@dataclass
class Transaction:
    """A change of a table, committed or to be committed.

    Attributes:
        read_version: Version that the change was made from.
        operation: The operation.
        uuid: Unique name of the transaction.
        transaction_properties: Texts by name.
    """

    read_version: int
    operation: LanceOperation.BaseOperation
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    transaction_properties: dict[str, str] | None = field(default_factory=dict)

    @property
    def commit_message(self) -> str | None:
        """Message of the writer; None if there is none."""
        return (self.transaction_properties or {}).get(COMMIT_MESSAGE)
