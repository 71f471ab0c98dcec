"""The first version of a table or a branch."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from lance_duck.commit.committer import draft_of, new_transaction
from lance_duck.commit.counted import CountedCommit, operation_name
from lance_duck.commit.manifest_builder import first_manifest
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.commit.operations import Clone, Overwrite
from lance_duck.commit.version_files import dictionaries_of, publish
from lance_duck.errors import AlreadyExistsError, LanceDuckError, NotFoundError, StoreError
from lance_duck.snapshot import Location, Snapshot, versions
from lance_duck.store import Store
from lance_duck.wire import flags, paths
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.paths import ManifestName
from lance_duck.wire.pb import table_pb2, transaction_pb2

DEFAULT_STORAGE_VERSION = "2.2"


def create_table(
    location: Location,
    operation: Overwrite,
    *,
    properties: Mapping[str, str] | None = None,
    data_storage_version: str = DEFAULT_STORAGE_VERSION,
    stable_row_ids: bool = False,
    v2_manifest_paths: bool = True,
    transaction_uuid: str | None = None,
) -> Snapshot:
    """Create a table with version 1.

    Args:
        location: Location of the table.
        operation: Schema and fragments. Their files are already written.
        properties: Key-value pairs of strings, stored in the transaction.
        data_storage_version: Data file version, for a table that is created without data files.
        stable_row_ids: Whether rows keep their `_rowid` when they move.
        v2_manifest_paths: Whether manifest names sort in descending order of versions.
        transaction_uuid: UUID of the transaction. None generates one.

    Raises:
        AlreadyExistsError: The table already exists.
        InvalidInputError: The operation is invalid.
        StoreError: The disk or the service failed. See `commit`.
    """
    _refuse_present(location)
    transaction = new_transaction(0, operation, properties, transaction_uuid)
    draft = first_manifest(transaction.overwrite, data_storage_version, stable_row_ids=stable_row_ids)
    return _publish_first(location, draft, transaction, ManifestName(1, 2 if v2_manifest_paths else 1))


def create_clone(
    location: Location, source: Snapshot, operation: Clone, *, properties: Mapping[str, str] | None = None
) -> Snapshot:
    """Create a table or a branch as a copy of an existing version, with the same version number.

    Args:
        location: Location of the new table or branch.
        source: The version to copy. For a deep clone, its files already exist at the new location under the same names.
            For a shallow clone, only its files of row ids and row versions already exist there.
        operation: Whether the clone is shallow or deep, and its branch.
        properties: Key-value pairs of strings, stored in the transaction.

    Raises:
        AlreadyExistsError: The table already exists.
        UnsupportedError: The source requires writer features that are unknown here.
        StoreError: The disk or the service failed. See `commit`.
    """
    flags.check_writable(source.manifest.writer_flags, source.uri)
    _refuse_present(location)
    transaction = new_transaction(source.version, operation, properties)
    draft = clone_manifest(draft_of(source), operation, source.uri)
    return _publish_first(location, draft, transaction, ManifestName(source.version, 2))


def clone_manifest(source: ManifestDraft, operation: Clone, source_uri: str) -> ManifestDraft:
    """Build the first version of a clone.

    Args:
        source: The version that is cloned. Not changed.
        operation: Whether the clone is shallow or deep, and its branch.
        source_uri: Root of the source. A shallow clone reads the source's files without a base path from there.
    """
    draft = source.copied()
    manifest = draft.manifest
    manifest.ClearField("branch")
    manifest.ClearField("tag")
    if operation.branch_name is not None:
        manifest.branch = operation.branch_name
    if not operation.is_shallow:
        _own_all(draft)
        return draft
    base_ids = {b.id for b in manifest.base_paths}
    base_id = max(base_ids) + 1 if base_ids else 0
    base = manifest.base_paths.add(id=base_id, is_dataset_root=True, path=operation.ref_path or source_uri)
    if operation.ref_name is not None:
        base.name = operation.ref_name
    for fragment in manifest.fragments:
        for file in _files(fragment):
            if not file.HasField("base_id"):
                file.base_id = base_id
        if fragment.HasField("deletion_file") and not fragment.deletion_file.HasField("base_id"):
            fragment.deletion_file.base_id = base_id
    for segment in draft.segments:
        if not segment.HasField("base_id"):
            segment.base_id = base_id
    manifest.reader_feature_flags |= flags.BASE_PATHS
    manifest.writer_feature_flags |= flags.BASE_PATHS
    return draft


def _own_all(draft: ManifestDraft) -> None:
    manifest = draft.manifest
    manifest.ClearField("base_paths")
    manifest.reader_feature_flags &= ~flags.BASE_PATHS
    manifest.writer_feature_flags &= ~flags.BASE_PATHS
    for fragment in manifest.fragments:
        for file in _files(fragment):
            file.ClearField("base_id")
        if fragment.HasField("deletion_file"):
            fragment.deletion_file.ClearField("base_id")
    for segment in draft.segments:
        segment.ClearField("base_id")


def _files(fragment: table_pb2.DataFragment) -> list[table_pb2.DataFile]:
    return [*fragment.files, *(overlay.data_file for overlay in fragment.overlays)]


def _refuse_present(location: Location) -> None:
    try:
        version = versions.latest_version(location.store())
    except NotFoundError:
        return
    raise AlreadyExistsError(
        "a table already exists at this path",
        where=location.uri,
        found=f"version {version.version}",
        remedy="append to it, or overwrite it",
    )


def _publish_first(
    location: Location, draft: ManifestDraft, transaction: transaction_pb2.Transaction, name: ManifestName
) -> Snapshot:
    with CountedCommit(operation_name(transaction), location.uri):
        return _published_first(location, draft, transaction, name)


def _published_first(
    location: Location, draft: ManifestDraft, transaction: transaction_pb2.Transaction, name: ManifestName
) -> Snapshot:
    try:
        values, lock = dictionaries_of(draft, lambda manifest: Snapshot(location, manifest)), location.commit_lock
        return Snapshot(location, publish(_store(location, draft), draft, transaction, name, values=values, lock=lock))
    except (AlreadyExistsError, StoreError) as error:
        own = _own_version(location, transaction, name)
        if own is not None:
            return own
        if isinstance(error, StoreError):
            raise
        with suppress(LanceDuckError):
            file = paths.transaction_name(transaction.read_version, transaction.uuid)
            location.store().delete([paths.transaction_file(file)])
        raise AlreadyExistsError(
            "another writer created the table first", where=location.uri, remedy="append to it, or overwrite it"
        ) from error


def _store(location: Location, draft: ManifestDraft) -> Store:
    bases = [BasePath(b.id, None, b.is_dataset_root, b.path) for b in draft.manifest.base_paths]
    return location.store(allowed=tuple(location.base_uri(base) for base in bases))


def _own_version(location: Location, transaction: transaction_pb2.Transaction, name: ManifestName) -> Snapshot | None:
    """Return the version that this transaction committed before the response was lost, or None."""
    try:
        snapshot = Snapshot(location, versions.load_manifest(location.store(), name.path))
        theirs = snapshot.transaction()
    except (NotFoundError, StoreError):
        return None
    return snapshot if theirs is not None and theirs.uuid == transaction.uuid else None
