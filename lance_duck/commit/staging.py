"""Changes that are staged first and published later, possibly by another process, exactly once.

`stage` rebases a change onto the newest version. `publish_staged` makes the next version from it, or finds the version
that another process made from it. `take_back` ends a staged change: afterwards it is not published, or its version is
undone, unless other writers have built on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from lance_duck.commit.committer import CommitAttempts, Guard, commit, manifest_of_next
from lance_duck.commit.conflicts import MAKE_AGAIN
from lance_duck.commit.counted import CountedCommit, operation_name
from lance_duck.commit.operations import Operation, Restore, UpdateConfig
from lance_duck.commit.races import newest_of_same_table
from lance_duck.commit.rebase import Affected
from lance_duck.commit.version_files import put_manifest, transaction_files
from lance_duck.errors import AlreadyExistsError, IncompatibleError, NotFoundError, RetryableError, StoreError
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Snapshot, versions
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName
from lance_duck.wire.pb import transaction_pb2

_RETRIES: Final = 200


@dataclass(frozen=True)
class StagedCommit:
    """A change that is ready to be published.

    Attributes:
        base: The newest version when the change was staged.
        transaction: The change, rebased onto `base`.
        manifest: The manifest file of the version after `base`. None if the change may be rebased onto later versions.
        files: Deletion files that the rebase wrote, relative to the table root.
    """

    base: Snapshot
    transaction: transaction_pb2.Transaction
    manifest: bytes | None = None
    files: tuple[str, ...] = ()


def stage(attempts: CommitAttempts, *, whole: bool) -> StagedCommit:
    """Rebase a change onto the newest version, without publishing it.

    Args:
        attempts: The change.
        whole: Whether no other version may come between the newest version and this change.

    Raises:
        CommitConflictError: A newer version conflicts with the change.
    """
    name, _ = attempts.catch_up()
    transaction = transaction_pb2.Transaction()
    transaction.CopyFrom(attempts.rebased())
    base = attempts.newest
    transaction.read_version = base.version
    manifest = manifest_of_next(attempts, transaction, name.naming) if whole else None
    return StagedCommit(base, transaction, manifest, tuple(attempts.written))


def publish_staged(staged: StagedCommit, affected: Affected | None, guard: Guard) -> Snapshot:
    """Publish a staged change, unless it is published already.

    Args:
        staged: The change.
        affected: Offsets of the rows that it deletes or changes, by fragment of `base`.
        guard: Called with the newest version before the change is applied to a version other than `base`. Raises an
            error to stop.

    Returns:
        The version.

    Raises:
        CommitConflictError: Another version conflicts with the change. It can never be published.
        StoreError: The store failed, or all attempts lost a race. The change may be published later.
    """
    with CountedCommit(operation_name(staged.transaction), staged.base.uri):
        return _published_staged(staged, affected, guard)


def _published_staged(staged: StagedCommit, affected: Affected | None, guard: Guard) -> Snapshot:
    if staged.manifest is not None:
        return _publish_manifest(staged, staged.manifest, guard)
    attempts = CommitAttempts(staged.base, staged.transaction)
    attempts.affected, attempts.guard = affected, guard
    try:
        return RetryPolicy(_RETRIES).run(attempts.attempt, AlreadyExistsError)
    except AlreadyExistsError as error:
        raise StoreError(
            "other writers were faster in all attempts", where=staged.base.uri, remedy="run the statement again"
        ) from error


def _publish_manifest(staged: StagedCommit, data: bytes, guard: Guard) -> Snapshot:
    base, store = staged.base, staged.base.store
    latest = newest_of_same_table(base)
    if latest.version == base.version:
        name = ManifestName(base.version + 1, latest.naming)
        with suppress(AlreadyExistsError):
            put_manifest(store, name, data, transaction_files(store, staged.transaction), base.location.commit_lock)
            return base.followed_by(versions.load_version(store, name.version))
    newest = base.checkout()
    found = version_of(newest, base.version, staged.transaction.uuid)
    if found is None:
        guard(newest)
        raise RetryableError(
            f"Commit conflict for version {base.version + 1}: the change may only follow version {base.version}",
            where=base.uri,
            found=f"version {newest.version}",
            remedy=MAKE_AGAIN,
        )
    return base.followed_by(versions.load_version(store, found))


def version_of(newest: Snapshot, base: int, transaction: str) -> int | None:
    """Return the version after `base` and up to `newest` that a transaction made, or None.

    Versions that were removed are skipped.
    """
    return next((each for each in range(newest.version, base, -1) if _made(newest, each, transaction)), None)


def version_before(newest: Snapshot, base: int, transactions: Collection[str]) -> int | None:
    """Return the version before the first one after `base` that one of these transactions made, or None."""
    found = (version for version in range(base + 1, newest.version + 1) if _made(newest, version, *transactions))
    first = next(found, None)
    return None if first is None else first - 1


def _made(snapshot: Snapshot, version: int, *transactions: str) -> bool:
    """Return whether one of these transactions made a version. False if the version was removed."""
    try:
        name = versions.load_version(snapshot.store, version).transaction_name
    except NotFoundError:
        return False
    return name is not None and any(paths.is_transaction(name, each) for each in transactions)


def take_back(table: Snapshot, base: int, transaction: str, undo: str, properties: Mapping[str, str]) -> int | None:
    """Undo a staged change, or prevent that it is published later.

    If the change is not published, a version without changes follows the newest version. A writer that still tries to
    publish it meets this version and calls its guard.

    Args:
        table: A version of the table.
        base: The version that the change was staged for.
        transaction: UUID of the change.
        undo: UUID of the transaction that undoes it. The same for all processes that undo it.
        properties: Properties of that transaction.

    Returns:
        None if the change is not visible any more. Its version if other writers have built on it. 0 if that is not
        known, because other writers have removed versions. Then it is not published later either.

    Raises:
        StoreError: The store failed, or all attempts lost a race.
    """

    def attempt(_: int) -> int | None:
        newest = table.checkout()
        if newest.version < base or version_of(newest, base, undo) is not None:
            return None
        present = {name.version for name in versions.all_versions(newest.store)}
        published = version_of(newest, base, transaction)
        if published is not None and (published < newest.version or published - 1 not in present):
            return published
        if published is None and not present.issuperset(range(base + 1, newest.version)):
            return 0
        operation: Operation = UpdateConfig() if published is None else Restore(published - 1)
        commit(newest, operation, properties=properties, retries=0, transaction_uuid=undo)
        return None

    try:
        return RetryPolicy(_RETRIES).run(attempt, RetryableError)
    except (NotFoundError, IncompatibleError):  # the table was dropped, or replaced
        return None
    except RetryableError as error:
        raise StoreError(
            "other writers were faster in all attempts", where=table.uri, remedy="run the statement again"
        ) from error
