"""Copies of versions at another location: shallow clones, deep clones and branches.

The first version of a clone has the number of the copied version, and a Clone transaction. A shallow clone refers to
the original files through a base path. A deep clone has copies of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lance_duck.commit import Clone, create_clone
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from lance_duck.redact import has_secrets, shown
from lance_duck.snapshot import Location, Snapshot
from lance_duck.snapshot.versions import latest_version
from lance_duck.store import Store, copy_bytes, local_path, new_folder
from lance_duck.wire import flags, paths


def clone(
    source: Snapshot,
    target: Location,
    *,
    shallow: bool,
    branch: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Snapshot:
    """Clone a version to a location without a table.

    Args:
        source: The version.
        target: Location of the clone.
        shallow: Whether to refer to the original files instead of copying them.
        branch: Name of the new branch, or None for a separate table.
        properties: Properties of the transaction.

    Raises:
        AlreadyExistsError: The location already contains a table.
    """
    if shallow and has_secrets(source.uri):
        raise InvalidInputError(
            "the table's URI contains credentials, which the clone would store in plain text",
            where=source.uri,
            remedy="open the table without credentials in the URI, and pass them as storage_options",
        )
    store = target.store()
    refuse_existing(store)
    flags.check_writable(source.manifest.writer_flags, source.uri)
    _copy_files(_external(source) if shallow else _files(source), store)
    operation = Clone(shallow, source.branch, source.version, shown(source.uri), branch)
    return create_clone(target, source, operation, properties=properties)


def _copy_files(files: Iterable[tuple[Store, str, str]], target: Store) -> None:
    """Copy files to a new table. After an error, removes the copies."""
    copied: list[str] = []
    with new_folder(local_path(target.uri)):
        try:
            for store, path, place in files:
                copied.append(place)
                copy_bytes(store.open(path), target.create(place))
        except BaseException:
            target.delete(copied)
            raise


def refuse_existing(store: Store) -> None:
    """Raise AlreadyExistsError if a location contains a table."""
    try:
        latest_version(store)
    except NotFoundError:
        return
    raise AlreadyExistsError(
        "dataset already exists", where=store.uri, remedy="choose another path, or drop the existing table"
    )


def _files(source: Snapshot) -> Iterator[tuple[Store, str, str]]:
    """Yield all files of a version: store, path in the store, and path in a deep clone."""
    files: dict[str, int | None] = {}
    for fragment in source.fragments:
        for file in fragment.all_files:
            if file.path in files and files[file.path] != file.base_id:
                raise InvalidInputError("two data files in different base paths have the same name", found=file.path)
            if file.path not in files:
                files[file.path] = file.base_id
                yield from _data_file(source, file.path, file.base_id)
        if fragment.deletion_file is not None:
            store, _ = source.place(fragment.deletion_file.base_id)
            path = fragment.deletion_file.path(fragment.id)
            yield store, path, path
    for index in source.indices:
        store, _ = source.place(index.base_id)
        yield from ((store, entry.path, entry.path) for entry in store.walk(index.directory))
    yield from _managed_blobs(source, {None, *files.values()})
    yield from _external(source)


def _managed_blobs(source: Snapshot, base_ids: Iterable[int | None]) -> Iterator[tuple[Store, str, str]]:
    """Yield all blobs shared by data files under the same root."""
    if not source.manifest.reader_flags & flags.MANAGED_BLOBS:
        return
    for base_id in base_ids:
        store, _ = source.place(base_id)
        if store.can_list:
            yield from ((store, entry.path, entry.path) for entry in store.walk(paths.MANAGED_BLOBS))


def _data_file(source: Snapshot, name: str, base_id: int | None) -> Iterator[tuple[Store, str, str]]:
    """Yield a data file and its blob sidecars."""
    store, base = source.place(base_id)
    is_root = base is None or base.is_dataset_root
    yield store, paths.data_file(name, is_dataset_root=is_root), paths.data_file(name)
    if store.can_list:
        inner, outer = paths.blob_directory(name, is_dataset_root=is_root), paths.blob_directory(name)
        yield from ((store, e.path, f"{outer}{e.path.removeprefix(inner)}") for e in store.walk(inner))


def _external(source: Snapshot) -> Iterator[tuple[Store, str, str]]:
    """Yield the files of row ids and row versions, which cannot be referenced through a base path."""
    sequences: Iterable[object] = (
        part for f in source.fragments for part in (f.row_ids, f.created_at, f.last_updated_at)
    )
    for path in sorted({path for part in sequences if isinstance(path := getattr(part, "path", None), str)}):
        yield source.store, path, path
