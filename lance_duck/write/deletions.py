"""Deletion files: _deletions/{fragment}-{read version}-{random 64-bit id}.{arrow|bin}. See `rows.deletion`."""

from __future__ import annotations

import secrets

from lance_duck.checksums.sealed import seal_deletions
from lance_duck.rows import DeletionVector
from lance_duck.store import Store
from lance_duck.wire.fragment import DeletionFile


def write_deletions(store: Store, fragment_id: int, read_version: int, vector: DeletionVector) -> DeletionFile:
    """Write a deletion file with all deleted rows of a fragment. It replaces the previous deletion file.

    The file survives a power failure after a commit that names it, or after `sync`.

    Args:
        store: Root of the table.
        fragment_id: The fragment.
        read_version: Version of the table that the change is based on.
        vector: The deleted rows, at least one.

    Raises:
        StoreError: The disk or the service failed. The incomplete file was removed.
    """
    file = DeletionFile(vector.suffix, read_version, secrets.randbits(64), vector.count, None)
    data = vector.to_bytes()
    with store.create(file.path(fragment_id), late=True) as sink:
        sink.write(seal_deletions(data, file.suffix) if store.checksums else data)
    return file
