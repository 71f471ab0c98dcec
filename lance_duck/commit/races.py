"""Changes that lost a race are made again from the newest version, but never on a table that took the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeVar

from lance_duck.errors import (
    CommitConflictError,
    IncompatibleError,
    InvalidInputError,
    NotFoundError,
    RetryableError,
    StoreError,
    UnsupportedError,
)
from lance_duck.retry import RetryPolicy
from lance_duck.snapshot import Snapshot, versions
from lance_duck.wire import paths

REFUSALS: Final = (CommitConflictError, InvalidInputError, UnsupportedError)
"""Errors of a commit after which there surely is no new version; of any other one nobody knows."""

_T = TypeVar("_T")


def run_again(
    snapshot: Snapshot, attempt: Callable[[Snapshot], _T], retries: int = 10, timeout: float | None = None
) -> _T:
    """Make a change, and make it again from the newest version as long as others come first.

    Args:
        snapshot: Version to begin with.
        attempt: Makes the change from a version and commits it.
        retries: How often to make it again.
        timeout: Seconds after which not to begin again.

    Raises:
        RetryableError: The error of the last attempt, which says who came first.
        IncompatibleError: The table was dropped and made again.
    """
    current = snapshot

    def once(number: int) -> _T:
        nonlocal current
        if number > 0:
            current = current.checkout()
        with same_table(current):
            return attempt(current)

    return RetryPolicy(retries, timeout).run(once, RetryableError)


def check_same_table(snapshot: Snapshot, latest: int) -> None:
    """Refuse a table that was made where the one that was read has been, for the files of that one went with it.

    Args:
        snapshot: Version that was read.
        latest: Number of the newest version there is now.

    Raises:
        IncompatibleError: It is another table.
    """
    went_back = latest < snapshot.version and not paths.is_detached(snapshot.version)
    present = False if went_back else versions.is_present(snapshot.store, snapshot.manifest)
    # Of a table that went on, the version that was read may be cleaned up; the newest one never is.
    if present is False or (present is None and latest == snapshot.version):
        raise IncompatibleError(
            "the table was dropped and created again since it was read",
            where=snapshot.uri,
            expected=f"the table of which version {snapshot.version} was read",
            found=f"another table, at version {latest}",
            remedy="open the table again and repeat the change",
        )


@contextmanager
def same_table(snapshot: Snapshot) -> Iterator[None]:
    """Work with a version that others may drop; if they made another table, a missing file is an error that says so.

    Raises:
        IncompatibleError: A file was not found, and it is another table.
    """
    try:
        yield
    except NotFoundError as error:
        with suppress(NotFoundError, StoreError):
            _check_now(snapshot, error)
        raise


def _check_now(snapshot: Snapshot, cause: NotFoundError) -> None:
    try:
        check_same_table(snapshot, snapshot.latest_version())
    except IncompatibleError as other:
        raise other from cause
