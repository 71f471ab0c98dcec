"""The files of a new version: its manifest, its transaction file and the version hint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_duck import lazy
from lance_duck.checksums.sealed import sealed_transaction
from lance_duck.commit.manifest_draft import ManifestDraft
from lance_duck.snapshot import Snapshot
from lance_duck.snapshot.publish import CommitLock, publish_manifest, write_version_hint
from lance_duck.store import Store, local_path
from lance_duck.wire import paths
from lance_duck.wire.fragment import LEGACY
from lance_duck.wire.manifest import Manifest, fragments_within
from lance_duck.wire.manifest_write import manifest_file, stamp_writer
from lance_duck.wire.paths import ManifestName
from lance_duck.wire.pb import transaction_pb2

if TYPE_CHECKING:
    from lance_duck.file.v01 import dictionaries
else:
    dictionaries = lazy.modules(globals(), "lance_duck.file.v01", "dictionaries")


def dictionaries_of(
    draft: ManifestDraft, snapshot_of: Callable[[Manifest], Snapshot], before: Snapshot | None = None
) -> Mapping[int, pa.Array]:
    """Return the dictionaries of a table in file format 0.1, by field id. Its manifest stores them.

    A dictionary is read from the data files, or from the previous version if no file contains the field.

    Args:
        draft: The version.
        snapshot_of: Creates a version from its manifest.
        before: The previous version. Its files have equal dictionaries.

    Raises:
        IncompatibleError: New files have different dictionaries.
    """
    fields = draft.manifest.fields
    if draft.manifest.data_format.version not in ("", LEGACY) or not any(f.HasField("dictionary") for f in fields):
        return {}
    snapshot = snapshot_of(Manifest(f"{draft.manifest.version} (new)", 0, draft.manifest, b""))
    files = [file for fragment in snapshot.fragments for file in fragment.files]
    known = {file.path for fragment in before.fragments for file in fragment.files} if before is not None else set()
    earlier = {} if before is None else {f.id: f for f in before.schema.walk() if f.dictionary is not None}
    result = {
        f.id: earlier[f.id].dictionary
        for f in snapshot.schema.walk()
        if f.id in earlier and f.logical_type == earlier[f.id].logical_type
    }
    return {**result, **dictionaries.shared_dictionaries(snapshot.schema.walk(), files, known, snapshot.data_file)}


def publish(
    store: Store,
    draft: ManifestDraft,
    transaction: transaction_pb2.Transaction,
    name: ManifestName,
    not_before: datetime | None = None,
    values: Mapping[int, pa.Array] = MappingProxyType({}),
    lock: CommitLock | None = None,
    *,
    late: bool = False,
) -> Manifest:
    """Write a built version and make it visible.

    Args:
        store: Root of the branch. It also flushes files written below the base paths.
        draft: The version. This function sets its writer, time and transaction file.
        transaction: Transaction that produced the version.
        name: Version number and manifest naming.
        not_before: Time of the previous version. The new version's time is never earlier, even if clocks differ.
        values: Dictionaries by field id: see `dictionaries_of`.
        lock: Lock that is held while the version is published: see `Location`.
        late: Whether the caller calls `Store.sync` later. Until then, a power failure may lose the version.

    Raises:
        AlreadyExistsError: The version exists already.
        StoreError: The write failed, or its outcome is unknown.
    """
    data, beside = manifest_bytes(store, draft, transaction, not_before, values)
    put_manifest(store, name, data, beside, lock, late=late)
    path, parts = f"{store.uri}/{name.path}", draft.fragment_bytes
    own = None if parts is None else fragments_within(data, draft.manifest, sum(map(len, parts)))
    return Manifest(path, len(data), draft.manifest, data, own)


def put_manifest(
    store: Store,
    name: ManifestName,
    data: bytes,
    beside: Mapping[str, bytes],
    lock: CommitLock | None = None,
    *,
    late: bool = False,
) -> None:
    """Make a version visible, and store the version hint: see `publish_manifest`."""
    if name.naming and local_path(store.uri) is None:
        # The hint is written concurrently, because a second sequential request would double the time. If the manifest
        # cannot be written, the hint names a version that does not exist.
        with ThreadPoolExecutor(1, thread_name_prefix="lance_duck-hint") as pool:
            hint = pool.submit(write_version_hint, store, name.version)
            publish_manifest(store, name, data, beside, lock, late=late)
            hint.result()
    else:
        publish_manifest(store, name, data, beside, lock, late=late)
        if name.naming:
            write_version_hint(store, name.version)


def manifest_bytes(
    store: Store,
    draft: ManifestDraft,
    transaction: transaction_pb2.Transaction,
    not_before: datetime | None = None,
    values: Mapping[int, pa.Array] = MappingProxyType({}),
) -> tuple[bytes, dict[str, bytes]]:
    """Return the manifest file of a built version, and the transaction file by path. See `publish`."""
    file = paths.transaction_name(transaction.read_version, transaction.uuid)
    draft.manifest.transaction_file = file
    now = datetime.now(UTC)
    stamp_writer(draft.manifest, now if not_before is None else max(now, not_before))
    sealed, fragments = store.checksums, draft.fragment_bytes
    data = manifest_file(
        draft.manifest, transaction, draft.segments, dictionaries=values, sealed=sealed, fragments=fragments
    )
    return data, transaction_files(store, transaction)


def transaction_files(store: Store, transaction: transaction_pb2.Transaction) -> dict[str, bytes]:
    """Return the content of the transaction file, by path."""
    message = transaction.SerializeToString()
    path = paths.transaction_file(paths.transaction_name(transaction.read_version, transaction.uuid))
    return {path: sealed_transaction(message) if store.checksums else message}
