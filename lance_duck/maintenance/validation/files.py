"""Compares the files of a version with their checksums. See `checksums`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from os import cpu_count
from typing import Final

from lance_duck.checksums.container import Checksums
from lance_duck.checksums.sealed import check_json, unsealed_deletions, unsealed_transaction
from lance_duck.errors import CorruptError, NotFoundError, UnsupportedError
from lance_duck.file.reader import LanceFile, open_file, sidecar_checksums
from lance_duck.index.vector.layout import RECALL_FILE
from lance_duck.scan.nearest.settings.stored import is_intact
from lance_duck.snapshot import Snapshot
from lance_duck.store import Store, join_uri, run
from lance_duck.store.checked import CheckedSource, sidecar_source
from lance_duck.wire import paths
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.index import IndexMetadata

_BROKEN: Final = (CorruptError, NotFoundError)
SOUND, DAMAGED, NONE = "sound", "damaged", "none"
_CONTAINERS: Final = (".lance", ".idx")
"""Suffixes of index files in the Lance file format. Other index files do not have checksums."""


@dataclass(frozen=True)
class FileCheck:
    """A file of a version, compared with its checksums.

    Attributes:
        file: Path below the root of the table, or below its base path.
        kind: "manifest", "transaction", "data", "blobs" (sidecars with digests in the data file), "deletions" or
            "index"; also "tag" or "branch" if all versions are checked.
        size: Size of the file in bytes, or None if unknown.
        checksums: "sound", "damaged", or "none" if the file does not have checksums that this package supports.
        damage: A description of each damaged part. Empty if the file is not damaged.
        is_open: Whether the file could be opened.
    """

    file: str
    kind: str
    size: int | None
    checksums: str
    damage: tuple[str, ...] = ()
    is_open: bool = True


def check_files(snapshot: Snapshot) -> list[FileCheck]:
    """Compare all bytes of a version's files with their checksums, even if storage options turn verification off.

    A missing file counts as damaged, except for a transaction file, because the manifest repeats its contents. The
    manifest is not checked again, because opening the version already did.
    """
    checks: list[Callable[[], list[FileCheck]]] = [
        partial(_fragment, snapshot, fragment) for fragment in snapshot.fragments
    ]
    checks += [partial(check_segment, snapshot, segment) for segment in snapshot.indices]
    manifest = snapshot.manifest
    state = SOUND if manifest.is_sealed else NONE
    with ThreadPoolExecutor(cpu_count() or 1, thread_name_prefix="lance_duck-check") as pool:
        parts = pool.map(lambda check: check(), checks)
        files = [file for part in parts for file in part]
    transaction = check_transaction(snapshot)
    own = [FileCheck(manifest.path, "manifest", manifest.size, state), *((transaction,) if transaction else ())]
    return [*own, *files, *_refs(snapshot)]


def check_data_file(snapshot: Snapshot, file: DataFile) -> FileCheck:
    """Compare a data file with its checksums."""
    store, base = snapshot.place(file.base_id)
    path = paths.data_file(file.path, is_dataset_root=base is None or base.is_dataset_root)
    return _container(store, path, "data", file.exact_size)


def check_sidecars(snapshot: Snapshot, file: DataFile) -> Iterator[FileCheck]:
    """Compare each sidecar of a data file with its digests. Sidecars without digests are skipped."""
    store, base = snapshot.place(file.base_id)
    is_root = base is None or base.is_dataset_root
    checksums: Mapping[int, Checksums] = {}
    with suppress(*_BROKEN, UnsupportedError):  # `check_data_file` reports these errors
        content = run(open_file(store.open(paths.data_file(file.path, is_dataset_root=is_root), file.exact_size)))
        if content.sidecars is not None:
            checksums = sidecar_checksums(content, content.sidecars)
    for blob_id, sums in checksums.items():
        path = paths.blob_file(file.path, blob_id, is_dataset_root=is_root)
        try:
            source = sidecar_source(store.open(path), sums)
            damage = tuple(f"{size:,} bytes at {offset:,}" for offset, size in source.damaged())
        except _BROKEN as error:
            yield FileCheck(path, "blobs", None, DAMAGED, (str(error),), is_open=False)
            continue
        yield FileCheck(path, "blobs", source.size, DAMAGED if damage else SOUND, damage)


def check_deletions(snapshot: Snapshot, fragment: Fragment) -> FileCheck | None:
    """Compare a fragment's deletion file with its seal. Returns None if the fragment does not have a deletion file."""
    file = fragment.deletion_file
    if file is None:
        return None
    store, _ = snapshot.place(file.base_id)
    path = file.path(fragment.id)
    try:
        data = store.get(path)
        _, is_sealed = unsealed_deletions(data, file.suffix, join_uri(store.uri, path))
    except _BROKEN as error:
        return FileCheck(path, "deletions", None, DAMAGED, (str(error),), is_open=False)
    return FileCheck(path, "deletions", len(data), SOUND if is_sealed else NONE)


def check_segment(snapshot: Snapshot, segment: IndexMetadata) -> list[FileCheck]:
    """Compare the files of an index segment with their checksums."""
    store, base = snapshot.place(segment.base_id)
    directory = paths.index_directory(segment.uuid, is_dataset_root=base is None or base.is_dataset_root)
    names = dict(segment.files)
    if not names and store.can_list:
        names = {entry.path.rpartition("/")[2]: entry.size for entry in store.entries(directory)}
    return [_index_file(store, f"{directory}/{name}", size) for name, size in names.items()]


def check_transaction(snapshot: Snapshot) -> FileCheck | None:
    """Compare a version's transaction file with its seal. Returns None if the version does not have one."""
    name = snapshot.manifest.transaction_name
    if name is None:
        return None
    path = paths.transaction_file(name)
    return _small(snapshot.store, path, "transaction", lambda data, where: unsealed_transaction(data, where)[1])


def _fragment(snapshot: Snapshot, fragment: Fragment) -> list[FileCheck]:
    files = [check_data_file(snapshot, file) for file in fragment.all_files]
    files += [check for file in fragment.all_files for check in check_sidecars(snapshot, file)]
    deletions = check_deletions(snapshot, fragment)
    return files if deletions is None else [*files, deletions]


def _refs(snapshot: Snapshot) -> Iterator[FileCheck]:
    """Yield checks of tags and branches, which are stored at the root of the main branch."""
    store = snapshot.location.root.store()
    for kind, folder in (("tag", paths.TAGS), ("branch", paths.BRANCHES)) if store.can_list else ():
        for name in sorted(store.names(folder)):
            check = _small(store, f"{folder}/{name}", kind, check_json) if paths.ref_name(name) is not None else None
            if check is not None:
                yield check


def _small(store: Store, path: str, kind: str, check: Callable[[bytes, str], bool]) -> FileCheck | None:
    """Check a file that is read whole. Returns None if it does not exist."""
    try:
        data = store.get(path)
        is_sealed = check(data, join_uri(store.uri, path))
    except NotFoundError:
        return None
    except CorruptError as error:
        return FileCheck(path, kind, None, DAMAGED, (str(error),), is_open=False)
    return FileCheck(path, kind, len(data), SOUND if is_sealed else NONE)


def _index_file(store: Store, path: str, size: int | None) -> FileCheck:
    if path.endswith(_CONTAINERS):
        return _container(store, path, "index", size)
    if not path.endswith(f"/{RECALL_FILE}"):
        return FileCheck(path, "index", size, NONE)
    try:
        data = store.get(path)
    except NotFoundError as error:
        return FileCheck(path, "index", size, DAMAGED, (str(error),), is_open=False)
    if is_intact(data):
        return FileCheck(path, "index", len(data), SOUND)
    return FileCheck(path, "index", len(data), DAMAGED, ("what was measured of its recall is measured again",))


def _container(store: Store, path: str, kind: str, size: int | None) -> FileCheck:
    try:
        source = store.open(path, size or None)
        file = run(open_file(source))
        if not isinstance(file.source, CheckedSource):
            return FileCheck(path, kind, source.size, NONE)
        damage = tuple(_damage(file, file.source))
    except UnsupportedError:
        return FileCheck(path, kind, size, NONE)
    except _BROKEN as error:
        return FileCheck(path, kind, size, DAMAGED, (str(error),), is_open=False)
    return FileCheck(path, kind, source.size, DAMAGED if damage else SOUND, damage)


def _damage(file: LanceFile, source: CheckedSource) -> Iterator[str]:
    """Yield a description of each damaged page or other part of a file."""
    for offset, size in source.damaged():
        where = f"{size:,} bytes at {offset:,}"
        pages = [
            f"column {number}, page {i}, rows {page.first_row:,} to {page.first_row + page.num_rows - 1:,}: {where}"
            for number in range(file.num_columns)
            for i, page in enumerate(file.column(number).pages)
            if any(start < offset + size and offset < start + length for start, length in page.buffers)
        ]
        yield from pages or [where]
