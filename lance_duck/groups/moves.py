"""Moves of table folders on a local disk, at the end of a group.

    t.lance             →  __lance_duck/staged/{id}/moved-{k}  →  u.lance
    __lance_duck/staged/{id}/{table}                           →  u.lance     a new table

A folder whose old name is the new name of another one waits in the staged folder. A removed folder stays there until
the group is finished. One process at a time moves folders: it holds a lock (`flock`) that the system releases when the
process ends. A folder is recognized by its number on the disk, so that every process sees which moves are over.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

from lance_duck.errors import CommitConflictError, StoreError, UnsupportedError
from lance_duck.groups.entry import FolderMove, GroupEntry
from lance_duck.groups.log import CommitLog
from lance_duck.store import local_path
from lance_duck.store.local_write import move_folder
from lance_duck.wire.paths import GROUP_COMMITS, STAGED_GROUPS

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def move_all(log: CommitLog, entry: GroupEntry) -> None:
    """Move the folders of a group. Does nothing for folders that are moved already.

    Raises:
        CommitConflictError: Another program has removed a folder, or has taken its new name. Or the group has ended.
        StoreError: A folder cannot be moved.
    """
    if not entry.moves:
        return
    with _lock(log) as root:
        if log.outcome(entry.number) is not None:
            return
        stops = [_stops(root, entry, number) for number in range(len(entry.moves))]
        for step in (1, 2):
            for move, stop in zip(entry.moves, stops, strict=True):
                _move(move, stop, step, max)


def move_back(log: CommitLog, entry: GroupEntry) -> None:
    """Move the folders of a group back, as far as their old names are free."""
    if not entry.moves:
        return
    with _lock(log) as root:
        stops = [_stops(root, entry, number) for number in range(len(entry.moves))]
        for step in (1, 0):
            for move, stop in zip(entry.moves, stops, strict=True):
                with contextlib.suppress(CommitConflictError):
                    _move(move, stop, step, min)


def _stops(root: str, entry: GroupEntry, number: int) -> tuple[str, str, str]:
    """Return the paths of a folder before, between and after the steps. Two equal paths mean that a step is empty."""
    move = entry.moves[number]
    waits = move.target is None or move.source in {each.target for each in entry.moves}
    source = os.path.join(root, move.source)
    between = os.path.join(root, STAGED_GROUPS, entry.id, f"moved-{number}") if waits else source
    return source, between, between if move.target is None else os.path.join(root, move.target)


def _move(move: FolderMove, stops: tuple[str, str, str], step: int, nearest: Callable[[list[int]], int]) -> None:
    """Move a folder to one of its stops, unless it is there or beyond.

    Args:
        move: The folder.
        stops: Its paths before, between and after the steps.
        step: The stop.
        nearest: Returns the stop where the folder is, in the direction of the move: `max` forward, `min` back.
    """
    found = [place for place, path in enumerate(stops) if _inode(path) == move.inode]
    if not found:
        raise CommitConflictError("another program has removed the folder of a table", where=stops[0])
    place = nearest(found)
    if nearest([place, step]) == place or stops[place] == stops[step]:
        return
    if os.path.lexists(stops[step]):
        raise CommitConflictError("another program has created a folder with the name of a table", where=stops[step])
    os.makedirs(os.path.dirname(stops[step]), exist_ok=True)
    move_folder(stops[place], stops[step])


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


@contextlib.contextmanager
def _lock(log: CommitLog) -> Iterator[str]:
    root = local_path(log.root)
    if root is None:
        raise UnsupportedError("folders on an object store cannot be moved", where=log.root)
    try:
        handle = os.open(os.path.join(root, GROUP_COMMITS), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError("the commit log cannot be locked", where=log.root, found=str(error)) from error
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield root
    finally:
        os.close(handle)
