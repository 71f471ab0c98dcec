"""Shows what a cache folder contains, and empties it."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store.disk_cache.claim import is_cache
from lance_duck.store.disk_cache.folder import CacheFolder, remove
from lance_duck.store.disk_cache.waiting import wait_for_blocks


@dataclass(frozen=True)
class Usage:
    """What a cache folder contains.

    Attributes:
        blocks: Number of blocks.
        objects: Number of objects that have blocks.
        size: Size of all blocks in bytes.
        oldest: When the block that was not used for longest was last used, as seconds since 1970. None without blocks.
    """

    blocks: int
    objects: int
    size: int
    oldest: float | None


def usage(folder: str) -> Usage:
    """Return what a cache folder contains. Raises the errors of `clear`.

    Blocks that wait in this process are written first.
    """
    wait_for_blocks()
    files = list(_checked(folder).files())
    objects = {file.path.rpartition("-")[0] for file in files}
    return Usage(
        len(files), len(objects), sum(file.size for file in files), min((file.used for file in files), default=None)
    )


def clear(folder: str) -> Usage:
    """Delete all blocks of a cache folder, and return what it contained. Processes may be using it.

    Raises:
        NotFoundError: The folder does not exist.
        InvalidInputError: The folder is not a cache.
        OSError: The disk failed.
    """
    before = usage(folder)
    for file in list(_checked(folder).files()):
        remove(file.path)
    return before


def _checked(folder: str) -> CacheFolder:
    root = os.path.abspath(os.path.expanduser(folder))
    if not os.path.isdir(root):
        raise NotFoundError("no such folder", where=folder)
    if not is_cache(root):
        raise InvalidInputError("the folder is not a cache of lance-duck", where=folder, remedy="nothing was deleted")
    return CacheFolder(root)
