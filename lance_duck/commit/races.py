"""Repeats changes that lost a race, from the newest version. A table that replaced the original is never changed."""

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
from lance_duck.interrupts import Stopped
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
    Stopped,
)
"""Commit errors that guarantee that no version was created. After other errors, the outcome is unknown."""

_T = TypeVar("_T")


def run_again(
    snapshot: Snapshot, attempt: Callable[[Snapshot], _T], retries: int = 10, timeout: float | None = None
) -> _T:
    """Run a change. After a lost race, repeat it from the newest version.

    Args:
        snapshot: Version to start from.
        attempt: Computes the change from a version and commits it.
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
    """Return the name of the newest version of the table, after checking that it is still the same table.

    On an object store, the newest version and the version of `snapshot` are requested concurrently.

    Raises:
        IncompatibleError: A new table replaced the table of `snapshot`. The old files no longer exist.
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
    # A cleanup may remove the version of `snapshot`, but never the newest version.
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
    """Raise an error that explains a missing file if a new table replaced this one.

    Raises:
        IncompatibleError: The body of the `with` statement did not find a file, and a new table replaced this one.
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
