"""Retries of changes that lost a race: from the newest version, but never on a table that replaced the original."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final, TypeVar

from lance_duck.errors import (
    CommitConflictError,
    DerivedDataWarning,
    IncompatibleError,
    InvalidInputError,
    MemWalWarning,
    NotFoundError,
    RetryableError,
    StoreError,
    UnsupportedError,
)
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Snapshot, versions
from lance_duck.store import local_path
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName

REFUSALS: Final = (
    CommitConflictError,
    InvalidInputError,
    UnsupportedError,
    MemWalWarning,
    DerivedDataWarning,
)
"""Commit errors that guarantee that no version was created. After other errors, the outcome is unknown."""

_T = TypeVar("_T")


def run_again(
    snapshot: Snapshot, attempt: Callable[[Snapshot], _T], retries: int = 10, timeout: float | None = None
) -> _T:
    """Execute a change, and repeat it from the newest version after lost races.

    Args:
        snapshot: Version to start from.
        attempt: Makes the change based on a version and commits it.
        retries: Maximum number of repetitions.
        timeout: Time limit for starting attempts, in seconds.

    Raises:
        RetryableError: The error of the last attempt, which names the conflicting writer.
        IncompatibleError: The table was dropped and recreated.
    """
    current = snapshot

    def once(number: int) -> _T:
        nonlocal current
        if number > 0:
            current = current.checkout()
        with same_table(current):
            return attempt(current)

    return RetryPolicy(retries, timeout).run(once, RetryableError)


def newest_of_same_table(snapshot: Snapshot) -> ManifestName:
    """Return the newest version of the table, if it is still the table that was read.

    On an object store, the newest version and the version read are requested concurrently.

    Raises:
        IncompatibleError: Another table replaced the one that was read. The old files no longer exist.
        NotFoundError: The table does not exist.
    """
    store, manifest = snapshot.store, snapshot.manifest
    look: Callable[[], bool | None] = partial(versions.is_present, store, manifest)
    if local_path(store.uri) is None:
        with ThreadPoolExecutor(1, thread_name_prefix="lance_duck-same-table") as pool:
            look = pool.submit(look).result
            latest = versions.latest_version(store)
    else:
        latest = versions.latest_version(store)
    went_back = latest.version < snapshot.version and not paths.is_detached(snapshot.version)
    present = False if went_back else look()
    # A cleanup may remove the version that was read, but never the newest one.
    if present is False or (present is None and latest.version == snapshot.version):
        raise IncompatibleError(
            "another table replaced this one since it was read",
            where=snapshot.uri,
            expected=f"the table that was read at version {snapshot.version}",
            found=f"another table, at version {latest.version}",
            remedy="open the table again and repeat the change",
        )
    return latest


@contextmanager
def same_table(snapshot: Snapshot) -> Iterator[None]:
    """If a file is missing because another table replaced this one, raise an error that explains it.

    Raises:
        IncompatibleError: The body of the `with` statement did not find a file, and another table replaced this one.
    """
    try:
        yield
    except NotFoundError as error:
        with suppress(NotFoundError, StoreError):
            _check_now(snapshot, error)
        raise


def _check_now(snapshot: Snapshot, cause: NotFoundError) -> None:
    try:
        newest_of_same_table(snapshot)
    except IncompatibleError as other:
        raise other from cause
