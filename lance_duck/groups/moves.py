"""Moves of table folders on a local disk, at the end of a group.

    t.lance             →  __lance_duck/staged/{id}/moved-{k}  →  u.lance
    __lance_duck/staged/{id}/{table}                           →  u.lance     a new table

A folder whose old name is the new name of another one waits in the staged folder. A removed folder stays there until
the group is finished. A folder is recognized by its number on the disk, so that every process sees which moves are
over.

One process at a time publishes and moves: it holds a lock (`flock`) that the system releases when the process ends.
Otherwise a slow process could publish the change of a table into another table that now has its name.
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


@contextlib.contextmanager
def turn(log: CommitLog, entry: GroupEntry) -> Iterator[None]:
    """Hold the lock of the moves during the block. A group without moves needs no lock.

    Raises:
        UnsupportedError: The folders are on an object store.
        StoreError: The log cannot be locked.
    """
    if not entry.moves:
        yield
        return
    try:
        handle = os.open(os.path.join(_root(log), GROUP_COMMITS), os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError("the commit log cannot be locked", where=log.root, found=str(error)) from error
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def have_begun(log: CommitLog, entry: GroupEntry) -> bool:
    """Return whether a folder of a group has left its old name. Then all changes of its tables are published."""
    places = [_found(entry.moves[number], stops) for number, stops in _all_stops(log, entry)]
    return any(found and found[0] > 0 for found in places)


def move_all(log: CommitLog, entry: GroupEntry) -> None:
    """Move the folders of a group, in its turn. Does nothing for folders that are moved already.

    Raises:
        CommitConflictError: Another program has removed a folder, or has taken its new name.
        StoreError: A folder cannot be moved.
    """
    for step in (1, 2):
        for number, stops in _all_stops(log, entry):
            _move(entry.moves[number], stops, step, max)


def move_back(log: CommitLog, entry: GroupEntry) -> None:
    """Move the folders of a group back, as far as their old names are free."""
    with turn(log, entry):
        for step in (1, 0):
            for number, stops in _all_stops(log, entry):
                with contextlib.suppress(CommitConflictError):
                    _move(entry.moves[number], stops, step, min)


def _all_stops(log: CommitLog, entry: GroupEntry) -> list[tuple[int, tuple[str, str, str]]]:
    return [(number, _stops(_root(log), entry, number)) for number in range(len(entry.moves))]


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
    found = _found(move, stops)
    if not found:
        raise CommitConflictError("another program has removed the folder of a table", where=stops[0])
    place = nearest(found)
    if nearest([place, step]) == place or stops[place] == stops[step]:
        return
    if os.path.lexists(stops[step]):
        raise CommitConflictError("another program has created a folder with the name of a table", where=stops[step])
    os.makedirs(os.path.dirname(stops[step]), exist_ok=True)
    move_folder(stops[place], stops[step])


def _found(move: FolderMove, stops: tuple[str, str, str]) -> list[int]:
    """Return the stops where a folder is, as positions. There may be several, because stops may be equal."""
    return [place for place, path in enumerate(stops) if _inode(path) == move.inode]


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _root(log: CommitLog) -> str:
    root = local_path(log.root)
    if root is None:
        raise UnsupportedError("folders on an object store cannot be moved", where=log.root)
    return root
