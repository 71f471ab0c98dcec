"""The versions of a table, and the paths of their manifests.

The names of manifests determine the newest version, and claims in an external manifest store also count. The hint file
is only needed on web servers, which do not support listings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime
from itertools import islice
from typing import Any

from lance_duck.errors import InvalidInputError, LanceDuckError, NotFoundError
from lance_duck.snapshot.publish import finish_claimed
from lance_duck.snapshot.seen_versions import version_directory
from lance_duck.store import Store, did_you_mean_path, local_path
from lance_duck.wire import paths
from lance_duck.wire.manifest import Manifest, read_manifest
from lance_duck.wire.paths import ManifestName

_PAGE = 1000  # names per page of a listing, as in object stores
_READERS = 16  # number of threads that read manifests
_RANGES_NAMED = 8  # number of ranges in a message
_TABLES_NAMED = 3  # number of tables in a message


def latest_version(store: Store) -> ManifestName:
    """Return the newest version of the table in a store.

    Raises:
        NotFoundError: The table does not exist.
    """
    if not store.can_list:
        return _probe(store)
    claimed = finish_claimed(store)
    name = _listed(store)
    if name is None and claimed is None:
        raise _no_table(store)
    return max((name for name in (claimed, name) if name is not None), key=lambda name: name.version)


def all_versions(store: Store) -> list[ManifestName]:
    """Return all versions of the table, oldest first.

    Raises:
        NotFoundError: The table does not exist.
    """
    finish_claimed(store)
    names = {n.version: n for n in sorted(_attached(store), key=lambda n: (n.version, n.naming))}
    if not names:
        raise _no_table(store)
    return list(names.values())


def load_version(store: Store, version: int) -> Manifest:
    """Read the manifest of a version.

    Raises:
        NotFoundError: The version or the table does not exist.
        FormatError: The manifest cannot be read.
    """
    candidates = paths.manifest_candidates(version) if 0 < version <= paths.MAX_VERSION else ()
    for path in candidates:
        try:
            return load_manifest(store, path)
        except NotFoundError:
            continue
    if candidates and (claimed := finish_claimed(store, version)) is not None:
        return load_manifest(store, claimed.path)
    present = [name.version for name in all_versions(store)] if store.can_list else [latest_version(store).version]
    raise NotFoundError(
        f"no version {version}",
        where=store.uri,
        expected=f"one of {_ranges(present)}" if store.can_list else f"a version up to {present[0]}",
        remedy="it may have been cleaned up; versions() lists the existing versions",
    )


def is_present(store: Store, manifest: Manifest) -> bool | None:
    """Return whether a version still exists. A new table at the same URI may have the same version number.

    Transaction files have unique names, and one lookup is usually sufficient. If the writer did not store a transaction
    file, the manifest is read again.

    Returns:
        True if the version exists, False if the version belongs to a different table, None if the number does not
        exist.
    """
    name = manifest.transaction_name
    if name is not None and store.exists(paths.transaction_file(name)):
        return True
    try:
        now = load_version(store, manifest.version)
    except NotFoundError:
        return None
    return now.transaction_name == name and now.head.timestamp == manifest.head.timestamp


def seems_newest(store: Store, manifest: Manifest) -> bool:
    """Return whether a version seems to be the newest, without a listing. Only for local disks.

    The time of a listing grows with the number of versions. `benchmarks/appends.py --only "by handle"` measures appends
    with this function. The result is wrong only if writers without hints created several versions and removed the
    first of them. Commits list all versions and detect this case.
    """
    if local_path(store.uri) is None or store.external is not None or _hinted(store) != manifest.version:
        return False
    followers = paths.manifest_candidates(manifest.version + 1)
    return not any(map(store.exists, followers)) and is_present(store, manifest) is True


def load_manifest(store: Store, path: str) -> Manifest:
    """Read the manifest at a path in a store."""
    return read_manifest(store.get(path), f"{store.uri}/{path}")


def load_all(store: Store) -> list[Manifest]:
    """Read the manifests of all versions, oldest first. Versions removed in the meantime are skipped."""
    names = all_versions(store)

    def load(name: ManifestName) -> Manifest | None:
        try:
            return load_manifest(store, name.path)
        except NotFoundError:
            return None

    with ThreadPoolExecutor(_READERS) as pool:
        return [manifest for manifest in pool.map(load, names) if manifest is not None]


def load_asof(store: Store, moment: datetime | date | str) -> Manifest:
    """Read the manifest of the newest version committed before a time.

    Args:
        store: Root of the table.
        moment: A datetime or ISO string. Without a time zone, it is local time.

    Raises:
        NotFoundError: The table does not exist, or was created later.
        InvalidInputError: The value is not a valid time.
    """
    cutoff = to_moment(moment)
    for name in reversed(all_versions(store)):
        manifest = load_manifest(store, name.path)
        if manifest.timestamp < cutoff:
            return manifest
    raise NotFoundError(
        f"{cutoff.isoformat()} is earlier than the first version of this dataset",
        where=store.uri,
        remedy="versions() lists the existing versions",
    )


def to_moment(moment: datetime | date | str) -> datetime:
    """Convert a time to a datetime with a time zone, by default the local time zone. Raises InvalidInputError."""
    if isinstance(moment, str):
        try:
            moment = datetime.fromisoformat(moment.strip())
        except ValueError:
            raise InvalidInputError(
                "not a timestamp", where=f"asof {moment!r}", expected="for example '2026-01-31 12:00:00'"
            ) from None
    if isinstance(moment, datetime):
        return moment.astimezone()
    if isinstance(moment, date):
        return datetime(moment.year, moment.month, moment.day).astimezone()
    raise InvalidInputError(
        "not a timestamp", where="asof", expected="a datetime or a string", found=type(moment).__name__
    )


def describe_version(manifest: Manifest) -> dict[str, Any]:
    """Describe a version like pylance: "version", "timestamp" (naive local time) and "metadata" (counts as strings)."""
    local = manifest.timestamp.astimezone().replace(tzinfo=None)
    return {"version": manifest.version, "timestamp": local, "metadata": manifest.summary()}


def _ranges(numbers: Sequence[int]) -> str:
    """Format ascending numbers, with consecutive numbers as ranges. If there are many ranges, the first are omitted."""
    ends = [n for i, n in enumerate(numbers) if i + 1 == len(numbers) or numbers[i + 1] != n + 1]
    starts = [n for i, n in enumerate(numbers) if i == 0 or numbers[i - 1] != n - 1]
    texts = [f"{a}" if a == b else f"{a} to {b}" for a, b in zip(starts, ends, strict=True)]
    return ", ".join([*(("…",) if len(texts) > _RANGES_NAMED else ()), *texts[-_RANGES_NAMED:]])


def _listed(store: Store) -> ManifestName | None:
    directory = version_directory(store)
    if directory is not None and (known := directory.newest()) is not None:
        return known
    before = None if directory is None else directory.state()
    listed = store.names_at_once(paths.VERSIONS)
    if listed is not None:
        newest = paths.newest_manifest(listed)
        if directory is not None and newest is not None:
            directory.note_listed(before, newest)
        return newest
    names = store.names(paths.VERSIONS)
    page = list(islice(names, _PAGE))
    newest = paths.newest_manifest(page)
    # Naming 2 sorts the newest version first, and one page of an object store's listing is sufficient.
    if newest is None or newest.naming != 2:
        newest = paths.newest_manifest([*page, *names])
    return newest


def _attached(store: Store) -> Iterator[ManifestName]:
    parsed = map(paths.parse_manifest_name, store.names(paths.VERSIONS))
    return (name for name in parsed if name is not None and name.naming)


def _probe(store: Store) -> ManifestName:
    hinted = _hinted(store)
    before = max(hinted - 1, 1)  # after a failed commit, the hint is one too high
    newest = next(filter(None, (_existing(store, version) for version in dict.fromkeys((hinted, before, 1)))), None)
    if newest is None:
        raise _no_table(store)
    while (after := _existing(store, newest.version + 1)) is not None:
        newest = after
    return newest


def _existing(store: Store, version: int) -> ManifestName | None:
    for naming in (2, 1):
        name = ManifestName(version, naming)
        if store.exists(name.path):
            return name
    return None


def _hinted(store: Store) -> int:
    try:
        version = json.loads(store.get(paths.VERSION_HINT))["version"]
    except (LanceDuckError, ValueError, KeyError, TypeError, RecursionError):
        return 1
    return version if isinstance(version, int) and 0 < version < paths.MAX_VERSION else 1


def _no_table(store: Store) -> NotFoundError:
    tables = _tables_below(store)
    remedy = (
        f"the folder contains tables: open {' or '.join(tables)}, or all with lance_duck.connect" if tables else None
    )
    path = local_path(store.uri)
    if path is not None and os.path.isfile(path):
        remedy = (
            "this is a file: read it with pyarrow, pandas or DuckDB, and store its rows with lance_duck.write_dataset"
        )
    return NotFoundError(
        "Lance table not found",
        where=store.uri,
        expected=f"a directory with manifests in {paths.VERSIONS}",
        remedy=remedy or did_you_mean_path(store.uri) or "check the path; a Lance table is a directory",
    )


def _tables_below(store: Store) -> list[str]:
    """Return the first tables in a local directory that may have been mistaken for a table. Empty for object stores."""
    if local_path(store.uri) is None:
        return []
    try:
        return [name for name in store.folders() or () if name.endswith(paths.TABLE_SUFFIX)][:_TABLES_NAMED]
    except LanceDuckError:
        return []
