"""Publishes a version: puts its manifest if absent.

This is sufficient if the store supports put-if-absent. Otherwise, an external manifest store decides which writer wins,
in four steps. If a writer stops after step 2, any process can finish the version with the same result:

    1. stage    write {manifest}-{uuid}
    2. claim (table, version) → the staged path, if the version is free; only one writer succeeds
    3. copy     copy to {manifest}, the name that all readers use
    4. record   (table, version) → {manifest}; delete the staged file
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TypeAlias

from lance_duck import interrupts
from lance_duck.errors import AlreadyExistsError, LanceDuckError, NotFoundError, StoreError
from lance_duck.store import ExternalManifestStore, Store, local_path
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName

CommitLock: TypeAlias = Callable[[int], AbstractContextManager[object]]
"""Called with a version number. Its context manager is held while that version is written."""


def publish_manifest(
    store: Store,
    name: ManifestName,
    data: bytes,
    beside: Mapping[str, bytes] | None = None,
    lock: CommitLock | None = None,
    *,
    late: bool = False,
) -> None:
    """Make a version visible. All files that the manifest names must be written. They are flushed first (`Store.sync`).

    Args:
        store: Root of the table.
        name: Version and naming. A detached version (naming 0) is never the latest.
        data: The manifest file.
        beside: Small files referenced by the manifest, by path. They are put first.
        lock: Held during the put. Its exceptions are not caught.
        late: Whether the version may need a later `Store.sync` to survive a power failure.

    Raises:
        AlreadyExistsError: The version is taken. This call itself may have taken it, if a response was lost.
        StoreError: The write failed, or its outcome is unknown. Read the newest version to find out.
    """
    interrupts.check_last()
    with contextlib.nullcontext() if lock is None else lock(name.version):
        _publish(store, name, data, beside, late=late)


def _publish(store: Store, name: ManifestName, data: bytes, beside: Mapping[str, bytes] | None, *, late: bool) -> None:
    external = store.external
    if external is None or name.naming == 0:
        store.put_if_absent(name.path, data, beside, late=late)
        return
    for path, content in (beside or {}).items():
        store.put(path, content)
    store.sync()
    if store.exists(name.path):  # written by a writer that does not use the external store
        raise AlreadyExistsError(f"version {name.version} already exists", where=store.uri)
    staged = paths.staged_manifest(name, uuid.uuid4())
    store.put(staged, data)
    store.sync()
    key = external_key(store)
    try:
        external.put_if_not_exists(key, name.version, staged)
    except AlreadyExistsError:
        # This call itself may have claimed the version, if a response was lost and the call was repeated.
        if external.get(key, name.version) != staged:
            with contextlib.suppress(LanceDuckError):
                store.delete([staged])
            raise
    _finish(store, external, name.version, staged)


def finish_claimed(store: Store, version: int | None = None) -> ManifestName | None:
    """Finish a version that was claimed in an external manifest store. By default, finish the newest claimed version.

    Returns:
        The name of the version's manifest. None if no version is claimed.

    Raises:
        StoreError: The staged manifest could not be copied.
        NotFoundError: The manifest does not exist.
    """
    external = store.external
    if external is None:
        return None
    if version is None:
        claim = external.get_latest(external_key(store))
    else:
        path = external.get(external_key(store), version)
        claim = None if path is None else (version, path)
    if claim is None:
        return None
    name = paths.parse_manifest_path(claim[1])
    return _finish(store, external, *claim) if name is None or name.version != claim[0] else name


def write_version_hint(store: Store, version: int) -> None:
    """Store the newest version for readers that cannot list files. The hint may be outdated or missing."""
    content = f'{{"version":{version}}}'.encode()
    with contextlib.suppress(LanceDuckError):
        store.put(paths.VERSION_HINT, content, safe=False)


def forget_table(store: Store) -> None:
    """Delete the claims of a dropped table or branch. Raises StoreError."""
    if store.external is not None:
        store.external.delete(external_key(store))


def external_key(store: Store) -> str:
    """Return the key of a table in an external manifest store."""
    path = local_path(store.uri)
    return store.uri if path is None else os.path.realpath(path)


def _finish(store: Store, external: ExternalManifestStore, version: int, staged: str) -> ManifestName:
    """Execute steps 3 and 4 for a claimed version. Only the copy must succeed."""
    name = paths.parse_staged_manifest(staged)
    if name is None or name.version != version:
        raise StoreError(
            f"the manifest store has an unexpected path for version {version}", where=store.uri, found=staged
        )
    try:
        store.copy(staged, name.path)
        store.sync()
    except NotFoundError:  # another process has finished the version
        if not store.exists(name.path):
            raise NotFoundError(
                f"version {version} is claimed in the manifest store, but its manifest does not exist",
                where=store.uri,
                remedy="if the table was deleted, delete its rows there",
            ) from None
    with contextlib.suppress(LanceDuckError):
        external.put_if_exists(external_key(store), version, name.path)
        store.delete([staged])
    return name
