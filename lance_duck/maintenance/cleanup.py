"""Removes old versions and the files that only they refer to.

Manifests are deleted before files, so that a version with a manifest is always complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from lance_duck.arguments import suggest_names
from lance_duck.errors import InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.maintenance.cleanup_plan import CleanupCandidateFile, CleanupPolicy, old_versions, removable
from lance_duck.maintenance.costs import DELETED_AT_ONCE
from lance_duck.maintenance.staged import StagedChanges
from lance_duck.snapshot import Snapshot, refs, versions
from lance_duck.store import Entry, Store, local_path
from lance_duck.wire import flags, paths
from lance_duck.wire.fragment import ExternalFile, Fragment
from lance_duck.wire.manifest import Manifest

_MANIFEST: Final = "manifest"
_OWN: Final[frozenset[int | None]] = frozenset({None})


@suggest_names
@dataclass(frozen=True)
class CleanupStats:
    """Counts of the versions, files and bytes that a cleanup removed, or would remove."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0


@suggest_names
@dataclass(frozen=True)
class CleanupReferencedBranch:
    """A branch that borrows files from the table.

    Attributes:
        name: Name of the branch.
        referenced_version: Version from which the branch was created. It is kept.
        cleanup_candidate: Whether the version would be removed if the branch did not exist.
    """

    name: str
    referenced_version: int
    cleanup_candidate: bool


@suggest_names
@dataclass(frozen=True)
class CleanupExplanation:
    """Preview of a cleanup, without removals.

    Attributes:
        read_version: Version that the handle reads.
        stats: Counts of everything that would be removed.
        candidate_files: The files that would be removed, at most `candidate_file_limit`.
        candidate_files_truncated: Whether there are more such files.
        candidate_file_limit: Maximum number of files in the list.
        referenced_branches: Branches that borrow files from the table.
        warnings: Warnings about the plan.
    """

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile]
    candidate_files_truncated: bool
    candidate_file_limit: int
    referenced_branches: list[CleanupReferencedBranch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def cleanup(
    snapshot: Snapshot,
    policy: CleanupPolicy,
    delete_rate_limit: int | None = None,
    delete_concurrency: int | None = None,
    current: int | None = None,
    remove: Callable[[Sequence[str]], int] | None = None,
) -> CleanupStats:
    """Remove old versions, and the files that only they refer to.

    Args:
        snapshot: Any version of the branch. It is kept.
        policy: Policy that selects the old versions.
        delete_rate_limit: Maximum number of files to delete per second. Default: unlimited.
        delete_concurrency: Validated, but without effect: the store decides how many deletions run concurrently.
        current: Version to keep. Default: the snapshot's version.
        remove: Function that deletes files, except manifests, and returns how many could not be deleted. It may use
            other processes. Default: this process deletes the files.

    Raises:
        ReferencedError: A tagged version would be removed, and the policy forbids that.
        UnsupportedError: A version has unknown writer flags, so the files that it needs are unknown.
    """
    for name, value in (("delete_rate_limit", delete_rate_limit), ("delete_concurrency", delete_concurrency)):
        if value is not None and value < 1:
            raise InvalidInputError(f"{name} must be greater than 0", where="cleanup", found=value)
    old, files, _ = _plan(snapshot, policy, snapshot.version if current is None else current)
    store = snapshot.store
    here = [f.path for f in _manifests_first(files)]
    elsewhere: list[str] = []
    if remove is not None:
        count = sum(f.kind == _MANIFEST for f in files)
        here, elsewhere = here[:count], here[count:]
    try:
        failed = sum(delete_files(store, batch) for batch in _batches(here, delete_rate_limit))
        if remove is not None and elsewhere:
            failed += remove(elsewhere)
    finally:
        snapshot.forget_files([*here, *elsewhere])
    return _stats(old, files, failed)


def explain_cleanup(snapshot: Snapshot, policy: CleanupPolicy, max_files: int | None = 1000) -> CleanupExplanation:
    """Return what `cleanup` would remove, without removing it.

    Args:
        snapshot: Any version of the branch.
        policy: Policy that selects the old versions.
        max_files: Maximum number of files to list. None lists no files.
    """
    old, files, branches = _plan(snapshot, policy, snapshot.version)
    candidates = sorted(files, key=lambda f: f.path)[: max_files or 0]
    stats = _stats(old, files, 0)
    return CleanupExplanation(
        snapshot.version, stats, candidates, max_files is not None and len(files) > max_files, max_files or 0, branches
    )


def _plan(
    snapshot: Snapshot, policy: CleanupPolicy, current: int
) -> tuple[list[int], list[CleanupCandidateFile], list[CleanupReferencedBranch]]:
    if snapshot.collect is not None:
        raise UnsupportedError(
            "a table of an open transaction cannot be cleaned up", where=snapshot.uri, remedy="commit the transaction"
        )
    now = datetime.now(UTC)
    store = snapshot.store
    # Files are listed before manifests are read, so the list does not contain files of later versions.
    entries = [e for folder in _folders() for e in store.walk(folder)]
    manifests = {m.version: m for m in versions.load_all(store)}
    detached = list(_detached(store))
    for manifest in (*manifests.values(), *detached):
        flags.check_writable(manifest.writer_flags, manifest.path)  # the version may use unknown kinds of files
    branches = _children(snapshot)
    paths_in_use: dict[int, list[str]] = {}
    for name, tag in snapshot.tags().items():
        if (tag.branch or refs.MAIN) == (snapshot.branch or refs.MAIN):
            paths_in_use.setdefault(tag.version, []).append(name)
    for branch in branches.values():
        paths_in_use.setdefault(branch.parent_version, [])
    staged = StagedChanges.beside(snapshot)
    old = old_versions({v: m.timestamp for v, m in manifests.items()}, paths_in_use, current, policy, now)
    old = [version for version in old if version not in staged.versions]
    old_set = set(old)
    in_use = set().union(*(_references(m) for v, m in manifests.items() if v not in old_set), _borrowed(snapshot))
    in_use |= set().union(*map(_references, detached), *(_of_fragment(each, _OWN) for each in staged.fragments))
    old_references = set().union(*(_references(manifests[v]) for v in old))
    files = removable(entries, in_use, old_references, policy.delete_unverified, now)
    files += _manifest_files(entries, manifests, old_set)
    referenced_branches = [
        CleanupReferencedBranch(n, b.parent_version, b.parent_version in old_set) for n, b in branches.items()
    ]
    return old, files, referenced_branches


def _folders() -> tuple[str, ...]:
    return paths.DATA, paths.DELETIONS, paths.TRANSACTIONS, paths.INDICES, paths.VERSIONS, paths.TAGS, paths.BRANCHES


def _children(snapshot: Snapshot) -> dict[str, refs.Branch]:
    """Return the branches that were created from this branch."""
    mine = snapshot.branch or refs.MAIN
    return {name: b for name, b in snapshot.branches().items() if (b.parent_branch or refs.MAIN) == mine}


def _borrowed(snapshot: Snapshot) -> set[str]:
    """Return the files below the root of this branch that versions of other branches refer to."""
    result: set[str] = set()
    root = snapshot.location.root
    for name in [refs.MAIN, *snapshot.branches()]:
        if name == (snapshot.branch or refs.MAIN):
            continue
        store = snapshot.location.at(refs.branch_uri(root.uri, name)).store()
        try:
            manifests = versions.load_all(store)
        except NotFoundError:
            continue
        for manifest in manifests:
            here = _place(snapshot.uri)
            bases: frozenset[int | None] = frozenset(
                b.id for b in manifest.base_paths.values() if _place(b.path) == here
            )
            if bases:
                result |= _references(manifest, bases)
    return result


def _place(uri: str) -> str:
    return (local_path(uri) or uri).rstrip("/")


def _detached(store: Store) -> Iterator[Manifest]:
    for name in store.names(paths.VERSIONS):
        manifest_name = paths.parse_manifest_name(name)
        if manifest_name is not None and manifest_name.naming == 0:
            yield versions.load_manifest(store, manifest_name.path)


def _manifest_files(
    entries: Iterable[Entry], manifests: dict[int, Manifest], old: set[int]
) -> Iterator[CleanupCandidateFile]:
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        manifest_name = paths.parse_manifest_name(name) if folder == paths.VERSIONS else None
        if manifest_name is not None and manifest_name.naming and manifest_name.version in old:
            yield CleanupCandidateFile(entry.path, _MANIFEST, False, entry.size)


def _manifests_first(files: Sequence[CleanupCandidateFile]) -> list[CleanupCandidateFile]:
    return sorted(files, key=lambda f: f.kind != _MANIFEST)


def _batches(names: Sequence[str], rate: int | None) -> Iterator[Sequence[str]]:
    size = min(rate or DELETED_AT_ONCE, DELETED_AT_ONCE)
    for start in range(0, len(names), size):
        began = time.monotonic()
        yield names[start : start + size]
        if rate is not None and start + size < len(names):
            time.sleep(max(0.0, size / rate - (time.monotonic() - began)))


def delete_files(store: Store, names: Sequence[str]) -> int:
    """Delete files, and return how many could not be deleted."""
    try:
        store.delete(names)
    except LanceDuckError:
        return sum(store.exists(name) for name in names)
    return 0


def _stats(old: Sequence[int], files: Sequence[CleanupCandidateFile], failed: int) -> CleanupStats:
    def count(*kinds: str) -> int:
        return sum(f.kind in kinds for f in files)

    return CleanupStats(
        sum(f.size_bytes for f in files),
        len(old),
        count("data"),
        count("transaction"),
        count("index"),
        count("deletion"),
        failed,
    )


def _references(manifest: Manifest, base_ids: frozenset[int | None] = _OWN) -> set[str]:
    """Return the files and directories below the root of a table that a manifest refers to.

    A directory is given by its path with a trailing slash. A data file includes its blobs, in the directory named after
    its stem. An index includes its whole directory.

    Args:
        manifest: Manifest of the table, or of a branch or clone that borrows from it.
        base_ids: Base paths of the manifest that refer to the given root. None is the manifest's own root.
    """
    result = set(_of_indices(manifest, base_ids))
    for place in range(len(manifest.fragments)):  # by position, because fragments of a broken version may share an id
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
