"""The location of a table's branch, and the settings used to open it."""

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
from lance_duck.wire.paths import is_immutable


@dataclass(frozen=True)
class Location:
    """The location of a table's branch.

    Attributes:
        uri: Path or URI.
        storage_options: The user's storage options.
        commit_lock: Lock held while a version is published. None relies on the store's put-if-absent.
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
        """Parse and validate a user's location.

        Raises:
            WrongTypeError: `uri` is not a path or URI, the options are not a dict of strings, or the
                lock is not callable.
            InvalidInputError: The path is not valid.
        """
        text = checked_place(uri, storage_options)
        path = local_path(text)
        if commit_lock is not None and not callable(commit_lock):
            raise WrongTypeError("commit_lock", expected="a function", found=type(commit_lock).__name__)
        return cls(text if path is None else abspath(path), dict(storage_options or {}), commit_lock)

    def store(self, uri: str | None = None, base_id: int | None = None, allowed: tuple[str, ...] = ()) -> Store:
        """Open the store at `uri`, or at this location, with the settings for a base path."""
        own = f"base_{base_id}."
        options = {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}
        options |= {k.removeprefix(own): v for k, v in self.storage_options.items() if k.startswith(own)}
        return open_store(self.uri if uri is None else uri, options, allowed, is_immutable)

    def options_for(self, uri: str) -> Mapping[str, str]:
        """Return the options for opening `uri`: the table's options, unless `uri` is in a different kind of store.

        Local tables do not need these options themselves. Their options therefore apply to any store that they refer
        to.
        """
        own = urlsplit(self.uri).scheme if local_path(self.uri) is None else ""
        if own and own != urlsplit(uri).scheme:
            return {}
        return {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}

    def base_uri(self, base: BasePath) -> str:
        """Return the URI of a base path. Relative paths are below the table."""
        is_local = local_path(base.path) is not None
        if not is_local or base.path.startswith(("/", "~", "file:")) or os.path.isabs(base.path):
            return base.path
        return join_uri(self.uri, base.path)

    def at(self, uri: str) -> Location:
        """Return another location with the same settings."""
        return Location(uri, self.storage_options, self.commit_lock)

    @cached_property
    def root(self) -> Location:
        """Location of the main branch, which contains the files of tags and branches."""
        return self.at(refs.root_uri(self.uri, {k: v for k, v in self.storage_options.items() if not _is_scoped(k)}))


def _is_scoped(option: str) -> bool:
    return option.startswith("base_") and "." in option
