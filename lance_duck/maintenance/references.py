"""The files below the root of a table that a manifest refers to.

A file is named by its path, a directory by its path with a slash at the end. A data file includes its blobs, which lie
in the directory of its stem; an index includes its whole directory.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_duck.wire import paths
from lance_duck.wire.fragment import ExternalFile, Fragment
from lance_duck.wire.manifest import Manifest


def references(manifest: Manifest, base_ids: frozenset[int | None] = frozenset({None})) -> set[str]:
    """Return the files and directories that a manifest refers to.

    Args:
        manifest: Manifest of the table, or of a branch or clone that borrows from it.
        base_ids: Base paths of the manifest that mean the root in question; None is the manifest's own.
    """
    result = set(_of_indices(manifest, base_ids))
    for place in range(len(manifest.fragments)):  # also of a version whose fragments share an id
        result.update(_of_fragment(manifest.fragments[place], base_ids))
    if None in base_ids and manifest.transaction_name is not None:
        result.add(paths.transaction_file(manifest.transaction_name))
    return result


def _of_fragment(fragment: Fragment, base_ids: frozenset[int | None]) -> Iterator[str]:
    for file in fragment.all_files:
        if file.base_id in base_ids:
            yield paths.data_file(file.path)
            yield paths.blob_directory(file.path)
    deletion = fragment.deletion_file
    if deletion is not None and deletion.base_id in base_ids:
        yield deletion.path(fragment.id)
    if None in base_ids:
        for sequence in (fragment.row_ids, fragment.created_at, fragment.last_updated_at):
            if isinstance(sequence, ExternalFile):
                yield sequence.path


def _of_indices(manifest: Manifest, base_ids: frozenset[int | None]) -> Iterator[str]:
    for index in manifest.indices:
        if index.base_id in base_ids:
            yield f"{index.directory}/"
