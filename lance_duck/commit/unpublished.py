"""Versions that are only in memory: the table as it would be after an operation that is not committed."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from lance_duck.commit.committer import dictionaries_of, draft_of, new_transaction
from lance_duck.commit.manifest_builder import build_manifest
from lance_duck.commit.operations import Operation
from lance_duck.commit.row_lineage import recall_created_at
from lance_duck.snapshot import Snapshot
from lance_duck.wire import paths
from lance_duck.wire.manifest import Manifest
from lance_duck.wire.manifest_write import manifest_file, stamp_writer


def unpublished(snapshot: Snapshot, operation: Operation) -> Snapshot:
    """Return a version as an operation makes it, without writing a manifest.

    The number of the version is that of a detached one: no version of the table has it.

    Args:
        snapshot: The previous version, which may be such a version itself.
        operation: The change. All files that it names are written.

    Raises:
        InvalidInputError: The operation makes no sense for the table.
    """
    transaction = new_transaction(snapshot.version, operation, None)
    if transaction.HasField("update") and snapshot.has_stable_row_ids:
        recall_created_at(transaction, snapshot)
    version = paths.detached_version(secrets.randbits(63))
    draft = build_manifest(draft_of(snapshot), transaction, version)
    stamp_writer(draft.manifest, max(datetime.now(UTC), snapshot.timestamp))
    values = dictionaries_of(draft, snapshot.sharing_files, snapshot)
    data = manifest_file(draft.manifest, transaction, draft.segments, dictionaries=values)
    after = snapshot.sharing_files(Manifest(f"{snapshot.store.uri} (not committed)", len(data), draft.manifest, data))
    after.base = snapshot.base or snapshot
    return after
