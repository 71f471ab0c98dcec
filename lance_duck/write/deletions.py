"""Deletion files: _deletions/{fragment}-{read version}-{random 64-bit id}.{arrow|bin}. See `rows.deletion`."""

from __future__ import annotations

import secrets

from lance_duck.checksums.sealed import seal_deletions
from lance_duck.rows import DeletionVector
from lance_duck.store import Store
from lance_duck.wire.fragment import DeletionFile


def write_deletions(store: Store, fragment_id: int, read_version: int, vector: DeletionVector) -> DeletionFile:
    """Write all deleted rows of a fragment: the deletion file replaces the one before.

    The file is safe once a commit names it, or `sync` has been called.

    Args:
        store: Root of the table.
        fragment_id: The fragment.
        read_version: Version of the table that the change started from.
        vector: At least one row.

    Raises:
        StoreError: The disk or the service failed. The file was removed.
    """
    file = DeletionFile(vector.suffix, read_version, secrets.randbits(64), vector.count, None)
    data = vector.to_bytes()
    with store.create(file.path(fragment_id), late=True) as sink:
        sink.write(seal_deletions(data, file.suffix) if store.checksums else data)
    return file
