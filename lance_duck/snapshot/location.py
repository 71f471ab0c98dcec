"""The location of a branch of a table, and the settings that it is opened with."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from os.path import abspath
from urllib.parse import urlsplit

from lance_duck.errors import WrongTypeError
from lance_duck.snapshot import refs
from lance_duck.snapshot.publish import CommitLock
from lance_duck.store import Store, checked_place, join_uri, local_path, open_store
from lance_duck.wire.manifest import BasePath


@dataclass(frozen=True)
class Location:
    """The place of a branch of a table.

    Attributes:
        uri: Path or URI.
        storage_options: Storage options as the user gave them.
        commit_lock: Lock that is held while a version appears; None: the store alone decides who was first.
    """

    uri: str
    storage_options: Mapping[str, str]
    commit_lock: CommitLock | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(
        cls,
        uri: str | PathLike[str],
        storage_options: Mapping[str, str] | None = None,
        commit_lock: CommitLock | None = None,
    ) -> Location:
        """Return the location that a user names.

        Raises:
            WrongTypeError: The value is no path or URI, the settings are no dict of strings, or the lock no function.
            InvalidInputError: The path is not valid.
        """
        text = checked_place(uri, storage_options)
        path = local_path(text)
        if commit_lock is not None and not callable(commit_lock):
            raise WrongTypeError("commit_lock", expected="a function", found=type(commit_lock).__name__)
        return cls(text if path is None else abspath(path), dict(storage_options or {}), commit_lock)

    def store(self, uri: str | None = None, base_id: int | None = None, allowed: tuple[str, ...] = ()) -> Store:
        """Open the store at `uri`, or at the location itself, with the settings for a base path."""
        own = f"base_{base_id}."
        options = {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}
        options |= {k.removeprefix(own): v for k, v in self.storage_options.items() if k.startswith(own)}
        return open_store(self.uri if uri is None else uri, options, allowed)

    def options_for(self, uri: str) -> Mapping[str, str]:
        """Return the options to open `uri` with: those of the table, unless it lies in another kind of store.

        A local table needs no options for itself, so its options are for the stores that it refers to.
        """
        own = urlsplit(self.uri).scheme if local_path(self.uri) is None else ""
        if own and own != urlsplit(uri).scheme:
            return {}
        return {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}

    def base_uri(self, base: BasePath) -> str:
        """Return the URI of a base path of the table; a relative one lies below the table."""
        is_local = local_path(base.path) is not None
        if not is_local or base.path.startswith(("/", "~", "file:")) or os.path.isabs(base.path):
            return base.path
        return join_uri(self.uri, base.path)

    def at(self, uri: str) -> Location:
        """Return another place, with the same settings."""
        return Location(uri, self.storage_options, self.commit_lock)

    @cached_property
    def root(self) -> Location:
        """Location of the main branch, with the tags and branches."""
        return self.at(refs.root_uri(self.uri, {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}))


def _is_scoped(option: str) -> bool:
    return option.startswith("base_") and "." in option
