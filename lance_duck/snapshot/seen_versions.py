"""The newest version of a table on a local disk, without a listing of all versions.

Every change of a directory changes its times. A listing stays true while the times are the same as before it. A commit
has checked that its version follows the newest one, and records the times again. These rules apply:

- Two changes may have the same time if they happen within one step of the clock. A listing only counts if the times
  were 20 ms old. After a commit, the name of the next version is looked up in any case. Then only a writer that adds
  two versions and removes the first of them within one step stays unseen. Linux 6.13 and newer have no such steps.
- Times without microseconds never count. They come from file systems that store seconds or milliseconds.
- Network file systems may report old times. Only known local file systems count.

`docs/decisions/small-commits.md` compares the remaining risk with that of a listing.
"""

from __future__ import annotations

import os
import time
from typing import Final

from lance_duck.cache import LruCache
from lance_duck.store import Store, local_path
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName

_DIRECTORIES: Final = 4096
_CLOCK: Final = 20_000_000
"""Age after which a later change has another time, in nanoseconds. Older kernels have clock steps of 1 to 10 ms."""
_COARSE: Final = 1_000_000
"""Times that are multiples of this number come from a file system that stores milliseconds or seconds."""
_LOCAL: Final = frozenset({"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})
_MOUNTS: Final = "/proc/self/mountinfo"
State = tuple[int, int, int, int]
"""Device, inode, and times of the last change of a directory's names and of its properties, in nanoseconds."""


class VersionDirectory:
    """What is known about the directory of manifests of a table.

    Args:
        path: Path of the directory.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: tuple[State, ManifestName] | None = None

    def newest(self) -> ManifestName | None:
        """Return the newest version if it is still known, otherwise None."""
        seen = self._seen
        if seen is None or self.state() != seen[0]:
            return None
        version, root = seen[1].version + 1, os.path.dirname(self._path)
        is_followed = any(os.path.lexists(os.path.join(root, name)) for name in paths.manifest_candidates(version))
        return None if is_followed else seen[1]

    def state(self) -> State | None:
        """Return the present state of the directory, or None if it cannot be read."""
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns

    def note_listed(self, before: State | None, name: ManifestName) -> None:
        """Record the newest version of a listing.

        Args:
            before: State of the directory before the listing.
            name: The newest version.
        """
        if before is not None and max(before[2:]) < time.time_ns() - _CLOCK:
            self._note(before, name)

    def note_published(self, name: ManifestName) -> None:
        """Record the version that was added to the version that was the newest."""
        self._note(self.state(), name)

    def _note(self, state: State | None, name: ManifestName) -> None:
        seen = self._seen
        self._seen = None
        if state is None or not all(time_ % _COARSE for time_ in state[2:]):
            return
        if (seen is not None and seen[0][:2] == state[:2]) or _is_local(state[0]):
            self._seen = state, name


def version_directory(store: Store) -> VersionDirectory | None:
    """Return what this process knows about the manifests of a table. Returns None for object stores."""
    root = local_path(store.uri)
    if root is None:
        return None
    path = os.path.join(root, paths.VERSIONS)
    return _directories.get(path, lambda: VersionDirectory(path))


def _is_local(device: int) -> bool:
    """Return whether a device is a known local file system. Returns False on other systems than Linux."""
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        with open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
            lines = [line.split() for line in mounts]
    except OSError:
        return False
    kinds = {words[words.index("-") + 1] for words in lines if words[2] == number}
    return bool(kinds) and kinds <= _LOCAL


_directories: Final[LruCache[VersionDirectory]] = LruCache(_DIRECTORIES)
