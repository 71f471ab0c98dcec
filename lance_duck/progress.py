"""Progress observers: called when a fragment's file is opened and completed, and at each step of an index build.

`FileSystemFragmentWriteProgress` writes two files for the fragment with number {id}:

    fragment_{id}.json           the metadata of the fragment at the start of its file
    fragment_{id}.in_progress    {"fragment_id": id, "metadata": {…}}, while the fragment is not complete

The module is public, as in pylance.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pyarrow import fs

from lance_duck.verbs.indexes.kinds import IndexProgress
from lance_duck.verbs.public.fragment_metadata import FragmentMetadata


class FragmentWriteProgress(ABC):
    """Base class of observers, for the `progress` argument of functions that write fragments."""

    @abstractmethod
    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Handle a new file. The fragment lists the file, but does not have rows yet."""

    @abstractmethod
    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Handle a completed file, which is not committed yet."""


class NoopFragmentWriteProgress(FragmentWriteProgress):
    """Observer that does nothing."""

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Do nothing."""


class FileSystemFragmentWriteProgress(FragmentWriteProgress):
    """Observer that writes files to show other processes the fragments in progress.

    Args:
        base_uri: Directory for the files, a path or a URI that pyarrow supports. It is created if it does not exist.
        metadata: Strings to store with each incomplete fragment, such as the name of its writer.
    """

    PROGRESS_EXT: ClassVar[str] = ".in_progress"

    def __init__(self, base_uri: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        place = os.fspath(base_uri)
        self._files, self._directory = fs.FileSystem.from_uri(place if "://" in place else os.path.abspath(place))
        self._metadata = dict(metadata or {})

    def begin(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Write both files of a fragment."""
        self._files.create_dir(self._directory, recursive=True)
        self._write(fragment.id, self.PROGRESS_EXT, {"fragment_id": fragment.id, "metadata": self._metadata})
        self._write(fragment.id, ".json", fragment.to_json())

    def complete(self, fragment: FragmentMetadata, **kwargs: Any) -> None:
        """Delete the file that marks the fragment as not complete."""
        self._files.delete_file(self._path(fragment.id, self.PROGRESS_EXT))

    def _write(self, fragment_id: int, ending: str, content: Any) -> None:
        with self._files.open_output_stream(self._path(fragment_id, ending)) as out:
            out.write(json.dumps(content).encode())

    def _path(self, fragment_id: int, ending: str) -> str:
        return f"{self._directory}/fragment_{fragment_id}{ending}"


__all__ = ["FileSystemFragmentWriteProgress", "FragmentWriteProgress", "IndexProgress", "NoopFragmentWriteProgress"]
