"""Renaming a table's folder.

    dir/a.lance/…  →  dir/b.lance/…

Manifests store paths relative to the table root, so nothing inside the folder changes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from lance_duck.errors import AlreadyExistsError, UnsupportedError
from lance_duck.snapshot import Location, refs
from lance_duck.snapshot.versions import latest_version, load_manifest
from lance_duck.store import local_path
from lance_duck.store.local_write import move_folder
from lance_duck.store.uri import boolean_option


def rename_table(uri: str, target: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Move a table to another path on the same disk, with all its versions, tags and indexes, atomically.

    No other process may change the table meanwhile: a writer that has it open would commit to the old path.

    Args:
        uri: Path or URI of the table.
        target: Its new path or URI.
        storage_options: Store settings.

    Raises:
        NotFoundError: The table does not exist.
        AlreadyExistsError: The new path already exists.
        UnsupportedError: The table is on an object store, which cannot rename folders; uses an external manifest store,
            which records versions by location; or has branches, whose manifests contain the path.
        StoreError: The operating system rejects the rename.
    """
    check_renamable(uri, storage_options)
    start, end = local_path(uri), local_path(target)
    if start is None or end is None:
        raise _refused("a table on an object store", target, "an object store, which cannot rename folders atomically")
    start = start.rstrip(os.sep)
    if start == end:
        return
    differs_by_case = start.lower() == end.lower() and os.path.exists(end) and os.path.samefile(start, end)
    if os.path.lexists(end) and not differs_by_case:  # on some disks, names ignore case
        raise AlreadyExistsError(
            "another table or folder has this name",
            where=target,
            remedy="choose another name, or drop the existing table",
        )
    move_folder(start, end, fsync=boolean_option(storage_options, "fsync", default=True))


def check_renamable(uri: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Check that the folder of a table can be renamed. Raises the errors of `rename_table` about its old path."""
    store = Location.of(uri, storage_options).store()
    load_manifest(store, latest_version(store).path)
    if local_path(uri) is None:
        raise _refused("a table on an object store", uri, "an object store, which cannot rename folders atomically")
    if store.external is not None:
        raise _refused("a table with an external manifest store", uri, "a manifest store that records versions by path")
    if branches := refs.branch_names(store):
        obstacle = f"branches {', '.join(branches)}, whose manifests contain the table's path"
        raise _refused("a table with branches", uri, obstacle)


def _refused(what: str, uri: str, obstacle: str) -> UnsupportedError:
    return UnsupportedError(
        f"{what} cannot be renamed",
        where=uri,
        found=obstacle,
        remedy="copy it with CREATE TABLE new AS FROM old, then DROP TABLE old",
    )
