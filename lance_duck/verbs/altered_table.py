"""Operations on one table that are committed as one operation.

Row changes and metadata are one row operation, whose commit also sets the metadata. Several column changes without new
values are one Project. All other mixtures are one Merge, with all fragments and the last schema. Its manifest is the
one that the single operations produce in memory, with these changes:

    version                                 the version after the base version
    created_at, last_updated_at             this version, for rows of versions in memory
    deletion files of versions in memory    written again under the base version

The Merge has the transaction property `lance_duck.changes_rows`, because Merges of other writers only change columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.commit.committer import DEFAULT_RETRIES, Amend, draft_of, new_transaction
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.commit.operations import (
    REWRITE_ROWS,
    Append,
    Delete,
    Merge,
    Operation,
    Project,
    Update,
    UpdateConfig,
    UpdateMap,
)
from lance_duck.commit.table_metadata import apply_config, apply_field_metadata
from lance_duck.errors import IncompatibleError, UnsupportedError
from lance_duck.rows import read_versions
from lance_duck.snapshot import Snapshot, mem_wal
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.wire import paths
from lance_duck.wire.fragment import Fragment, fragment_from_proto
from lance_duck.wire.fragment_write import deletion_to_proto
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.transaction import CHANGES_ROWS
from lance_duck.write.deletions import write_deletions

_COLLECTABLE: Final = (Append, Delete, Merge, Project, Update, UpdateConfig)
_ROW_VERSIONS: Final = ("inline_created_at_versions", "inline_last_updated_at_versions")


@dataclass(frozen=True)
class FoldedChanges:
    """Several operations as one.

    Attributes:
        operation: The operation to commit.
        amend: See `commit.committer.commit`.
        properties: More properties of the transaction.
        retries: 0 if no version of another writer may come between the base version and the commit.
    """

    operation: Operation
    amend: Amend | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    retries: int = DEFAULT_RETRIES


def is_schema_change(operation: Operation) -> bool:
    """Return whether an operation changes columns."""
    return isinstance(operation, Merge | Project)


def check_collectable(operation: Operation) -> None:
    """Check that a transaction can commit an operation together with others. Raises UnsupportedError."""
    if isinstance(operation, UpdateConfig) and not _is_metadata(operation):
        found = "UpdateConfig of settings, of schema metadata, or of all keys"
    elif isinstance(operation, Update) and (operation.update_mode != REWRITE_ROWS or operation.fields_modified):
        found = "Update of columns in place"
    elif isinstance(operation, _COLLECTABLE):
        return
    else:
        found = operation.name
    raise UnsupportedError(
        "this change cannot be combined with other changes in a transaction",
        expected="a change of rows, columns, or metadata of the table or its fields",
        found=found,
        remedy="COMMIT or ROLLBACK first",
    )


def folded_columns(
    base: Snapshot, current: Snapshot, operations: Sequence[Operation], draft: UncommittedFiles
) -> FoldedChanges:
    """Fold operations of which at least one changes columns.

    Args:
        base: The version that the operations start from.
        current: The version that they produce, in memory.
        operations: The operations, in order.
        draft: Records the files that are written.
    """
    if len(operations) == 1:
        return FoldedChanges(operations[0])
    projects = [operation for operation in operations if isinstance(operation, Project)]
    metadata = joined_metadata(operations)
    if len(projects) + sum(isinstance(operation, UpdateConfig) for operation in operations) == len(operations):
        preserves = all(project.preserves_nullability for project in projects)
        table = None if metadata is None else replace(metadata, field_metadata_updates={})
        amend_table = None if table is None else amend_metadata(base, table)
        return FoldedChanges(Project(current.schema, preserves), amend_table)
    manifest = _dated_manifest(base, current, draft)
    segments = draft_of(current).segments

    def amend(newest: Snapshot, built: ManifestDraft, report_file: object) -> None:
        built.manifest.CopyFrom(manifest)
        built.segments[:] = segments

    preserves = all(op.preserves_nullability for op in operations if isinstance(op, Merge | Project))
    fragments = tuple(fragment_from_proto(proto, current.uri) for proto in manifest.fragments)
    rows = [op for op in operations if isinstance(op, Append | Delete | Update)]
    if any(not isinstance(op, Append) for op in rows):
        mem_wal.warn_of_waiting_rows(base, Merge.__name__)
    properties = {CHANGES_ROWS: "true"} if rows else {}
    return FoldedChanges(Merge(fragments, current.schema, preserves), amend, properties, retries=0)


def joined_metadata(operations: Iterable[Operation]) -> UpdateConfig | None:
    """Return all changes of metadata as one operation, or None if there are none."""
    updates = [operation for operation in operations if isinstance(operation, UpdateConfig)]
    if len(updates) < 2:
        return updates[0] if updates else None
    table: dict[str, str | None] = {}
    fields: dict[int, dict[str, str | None]] = {}
    for update in updates:
        table |= update.table_metadata_updates.updates if update.table_metadata_updates else {}
        for field_id, values in update.field_metadata_updates.items():
            fields.setdefault(field_id, {}).update(values.updates)
    return UpdateConfig(
        table_metadata_updates=UpdateMap(table) if table else None,
        field_metadata_updates={field_id: UpdateMap(values) for field_id, values in fields.items()},
    )


def amend_metadata(base: Snapshot, metadata: UpdateConfig) -> Amend:
    """Return the `amend` of `commit` that changes the metadata of the table and its fields.

    It raises IncompatibleError if another writer changed the same metadata since `base`, or dropped a field.
    """
    message = new_transaction(0, metadata, None).update_config

    def amend(newest: Snapshot, draft: ManifestDraft, report_file: object) -> None:
        if _changed_values(base, metadata) != _changed_values(newest, metadata):
            raise IncompatibleError(
                "another writer changed the same metadata",
                where=newest.uri,
                found=f"version {newest.version}",
                remedy="nothing was committed: run the transaction again",
            )
        apply_config(draft.manifest, message)
        apply_field_metadata(draft.manifest, message)

    return amend


def _changed_values(snapshot: Snapshot, metadata: UpdateConfig) -> list[str | None]:
    """Return the values that a version has for the keys that a change of metadata sets or removes."""
    table = metadata.table_metadata_updates.updates if metadata.table_metadata_updates else ()
    fields = {field.id: field for field in snapshot.schema.walk()}
    values = [snapshot.metadata.get(key) for key in table]
    for field_id, update in metadata.field_metadata_updates.items():
        values += [fields[field_id].metadata.get(key) for key in update.updates] if field_id in fields else ["dropped"]
    return values


def new_files(before: Snapshot, fragments: Iterable[Fragment]) -> list[Fragment]:
    """Return the fragments that have data files which a version does not list, with only these files."""
    known = {file.path for fragment in before.fragments for file in fragment.all_files}
    found = ((each, tuple(file for file in each.files if file.path not in known)) for each in fragments)
    return [replace(each, files=files) for each, files in found if files]


def _is_metadata(operation: UpdateConfig) -> bool:
    """Return whether an operation only sets and removes single keys of the table's or the fields' metadata."""
    maps = [operation.table_metadata_updates, *operation.field_metadata_updates.values()]
    is_other = operation.config_updates is not None or operation.schema_metadata_updates is not None
    return not is_other and not any(values is not None and values.replace for values in maps)


def _dated_manifest(base: Snapshot, current: Snapshot, draft: UncommittedFiles) -> table_pb2.Manifest:
    """Return the manifest of a version in memory as the manifest of the version after `base`."""
    manifest = table_pb2.Manifest()
    manifest.CopyFrom(current.manifest.proto)
    manifest.version = base.version + 1
    before = {proto.id: proto for proto in base.manifest.proto.fragments}
    for place, proto in enumerate(manifest.fragments):
        if before.get(proto.id) == proto:
            continue
        for name in _ROW_VERSIONS:
            if proto.HasField(name):
                setattr(proto, name, _dated(getattr(proto, name), manifest.version))
        if proto.HasField("deletion_file") and paths.is_detached(proto.deletion_file.read_version):
            vector = current.deletion_vector(current.fragments[place])
            assert vector is not None
            file = write_deletions(base.store, proto.id, base.version, vector)
            draft.note(file.path(proto.id))
            proto.deletion_file.CopyFrom(deletion_to_proto(file))
    return manifest


def _dated(data: bytes, version: int) -> bytes:
    """Return row versions in which the versions in memory are replaced."""

    def change(versions: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.where(versions >= np.uint64(paths.detached_version(0)), np.uint64(version), versions)

    return read_versions(data, "row versions of a transaction").with_versions(change).to_bytes()
