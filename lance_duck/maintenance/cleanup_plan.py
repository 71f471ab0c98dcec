"""Cleanup plans: pure functions that select the versions and files to remove from listings.

A file is removed if only removed versions refer to it. A file that no version refers to may belong to a change in
progress, so it is kept until it is a week old. Foreign files are never touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from lance_duck.arguments import suggest_names
from lance_duck.errors import InvalidInputError, ReferencedError, WrongTypeError
from lance_duck.store.base import Entry, is_temporary
from lance_duck.wire import paths

UNVERIFIED_AGE: Final = timedelta(days=7)
DEFAULT_AGE: Final = timedelta(days=14)

_KINDS: Final = (
    ("data", re.compile(rf"{paths.DATA}/[^/]+\.lance|{paths.DATA}/[^/]+/[^/]+\.blob")),
    ("deletion", re.compile(rf"{paths.DELETIONS}/[^/]+\.(arrow|bin)")),
    ("transaction", re.compile(rf"{paths.TRANSACTIONS}/[^/]+\.txn")),
    ("index", re.compile(rf"{paths.INDICES}/[0-9a-f-]{{36}}/.+")),
)


@dataclass(frozen=True, kw_only=True)
class CleanupPolicy:
    """Policy that selects the old versions.

    Attributes:
        older_than: Minimum age of versions to remove. Defaults to 14 days if `retain_versions` and `versions` are also
            None.
        retain_versions: Number of newest versions to keep.
        versions: If set, only these versions may be removed.
        delete_unverified: Whether files that no version refers to are removed at any age.
        error_if_tagged_old_versions: Whether removing a tagged version is an error. Otherwise, the version is kept.

    Raises:
        InvalidInputError: A number is not positive, or an age is below zero.
    """

    older_than: timedelta | None = None
    retain_versions: int | None = None
    versions: Sequence[int] | None = None
    delete_unverified: bool = False
    error_if_tagged_old_versions: bool = True

    def __post_init__(self) -> None:
        if self.older_than is not None and not isinstance(self.older_than, timedelta):
            raise WrongTypeError(
                "older_than",
                where="cleanup",
                expected="a timedelta",
                found=repr(self.older_than),
                remedy=f"timedelta(days={self.older_than})" if isinstance(self.older_than, int | float) else None,
            )
        for name, numbers in (("retain_versions", [self.retain_versions]), ("versions", self.versions or ())):
            if not _are_numbers(numbers):
                raise WrongTypeError(name, where="cleanup", expected="whole numbers", found=repr(getattr(self, name)))
        if self.retain_versions is not None and self.retain_versions < 1:
            raise InvalidInputError(
                "retain_versions must be greater than 0", where="cleanup", found=self.retain_versions
            )
        if self.older_than is not None and self.older_than < timedelta(0):
            raise InvalidInputError("older_than must not be negative", where="cleanup", found=self.older_than)

    def before(self, now: datetime) -> datetime | None:
        """Return the time from which versions are kept, or None if age does not matter."""
        if self.older_than is None and self.retain_versions is None and self.versions is None:
            return now - DEFAULT_AGE
        return None if self.older_than is None else now - self.older_than


def _are_numbers(values: object) -> bool:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        return False
    return all(value is None or (hasattr(value, "__index__") and not isinstance(value, bool)) for value in values)


@suggest_names
@dataclass(frozen=True)
class CleanupCandidateFile:
    """A file to remove.

    Attributes:
        path: Path below the root of the table.
        kind: "data", "deletion", "transaction", "index", "manifest" or "temporary".
        unverified: Whether no version refers to the file.
        size_bytes: Bytes of the file.
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int


def old_versions(
    timestamps: Mapping[int, datetime],
    names_of: Mapping[int, Sequence[str]],
    current: int,
    policy: CleanupPolicy,
    now: datetime,
) -> list[int]:
    """Return the versions to remove, in order. The newest, the current and all versions in `names_of` are kept.

    Args:
        timestamps: Times of all versions.
        names_of: Tagged versions and branch points, with their tag names.
        current: Version that the caller reads.
        policy: Policy that selects the old versions.
        now: The current time.

    Raises:
        ReferencedError: One of the versions is tagged, and the policy forbids removing it.
    """
    all_versions = sorted(timestamps)
    before = policy.before(now)
    candidates = all_versions[: -max(policy.retain_versions or 1, 1)]
    candidates = [v for v in candidates if v != current and (before is None or timestamps[v] < before)]
    if policy.versions is not None:
        numbers = set(policy.versions)
        candidates = [v for v in candidates if v in numbers]
    tagged = {name: v for v in candidates for name in names_of.get(v, ())}
    if tagged and policy.error_if_tagged_old_versions:
        raise ReferencedError(
            f"Cleanup error: {len(set(tagged.values()))} tagged version(s) have been marked for cleanup",
            found=", ".join(f"{name!r}: {v}" for name, v in tagged.items()),
            remedy="set error_if_tagged_old_versions=False to keep them, or delete the tags",
        )
    return [v for v in candidates if v not in names_of]


def removable(
    entries: Iterable[Entry], in_use: set[str], old_references: set[str], delete_unverified: bool, now: datetime
) -> list[CleanupCandidateFile]:
    """Return the files to remove, except manifests.

    Args:
        entries: Files below the root.
        in_use: Files and directories that remaining versions refer to. Directories end with a slash.
        old_references: Files and directories that removed versions refer to.
        delete_unverified: Whether files that no version refers to are removed at any age.
        now: The present time.
    """
    result = []
    for entry in entries:
        kind = _kind(entry.path)
        if kind is None or _referred(entry.path, in_use):
            continue
        unverified = not _referred(entry.path, old_references)
        if not unverified or delete_unverified or now - entry.modified > UNVERIFIED_AGE:
            result.append(CleanupCandidateFile(entry.path, kind, unverified, entry.size))
    return result


def _kind(path: str) -> str | None:
    if is_temporary(path) or paths.parse_staged_manifest(path) is not None:
        return "temporary"
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(path)), None)


def _referred(path: str, references: set[str]) -> bool:
    """Return whether a file or one of its directories is among references."""
    if path in references:
        return True
    at = path.find("/")
    while at >= 0:
        if path[: at + 1] in references:
            return True
        at = path.find("/", at + 1)
    return False
