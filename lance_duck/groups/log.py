"""The commit log of a folder. All files are put if absent.

    __lance_duck/commits/{n}.json      entry n, from 1: see `entry`. `{n}` is 2**64 - 1 - n with 20 digits
    __lance_duck/commits/{n}.end       {"outcome": "published"}, or {"outcome": "undo", "reason": "…"}
    __lance_duck/commits/{n}.undone    {"outcome": "undone"}, or {"outcome": "partly", "kept": {"t.lance": 13}}, where
                                       0 is an unknown version, because old versions were removed
    __lance_duck/staged/{id}/{k}.txn       the transaction of table k of the group, as in Lance's transaction files
    __lance_duck/staged/{id}/{k}.manifest  its manifest, if it may only follow the version `base`

An entry is finished if `.end` says "published", or if `.undone` exists. Only the newest entry may be unfinished. Newer
entries come first in listings.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from lance_duck.errors import AlreadyExistsError, CorruptError, LanceDuckError, NotFoundError
from lance_duck.groups.entry import GroupEntry, entry_from_json, json_object
from lance_duck.store import Entry, Store, join_uri, local_path, open_store, remove_empty_folders
from lance_duck.wire.paths import GROUP_COMMITS, STAGED_GROUPS

PUBLISHED: Final = "published"
UNDO: Final = "undo"
UNDONE: Final = "undone"
PARTLY: Final = "partly"
_LAST: Final = 2**64 - 1
_ENTRY, _END, _UNDONE = ".json", ".end", ".undone"
_DIGITS: Final = 20
_SAME_TIME: Final = 100_000_000
"""Age in nanoseconds below which a folder may change again without a new modification time."""
KEPT_ENTRIES: Final = 100
KEPT_SECONDS: Final = 7 * 24 * 3600.0


@dataclass(frozen=True)
class LogState:
    """The newest entry of a log.

    Attributes:
        number: Its number, or 0 if the log is empty.
        is_finished: Whether all its changes are published or taken back.
    """

    number: int = 0
    is_finished: bool = True

    @property
    def finished(self) -> int:
        """The number of the newest finished entry."""
        return self.number if self.is_finished else self.number - 1


class CommitLog:
    """The commit log of one folder. Thread-safe.

    Args:
        root: URI of the folder.
        storage_options: Settings of its store.

    Attributes:
        may_exist: False if the folder had no log when it was last listed: see `note_folders`.
        may_finish: Whether readers finish a group that is not finished. Otherwise, they read the state before it.
    """

    def __init__(self, root: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.storage_options = storage_options
        self._folder = root
        self._finished = 0
        self._known: tuple[object, LogState] | None = None
        self._is_swept = False
        self.may_exist = True
        self.may_finish = True

    @cached_property
    def store(self) -> Store:
        """The store of the folder."""
        return open_store(self._folder, self.storage_options)

    @cached_property
    def root(self) -> str:
        """The URI of the folder. For a local folder, its absolute path."""
        return self.store.uri

    @cached_property
    def _path(self) -> str | None:
        return local_path(join_uri(self.root, GROUP_COMMITS))

    def note_folders(self, names: Collection[str]) -> None:
        """Remember whether the log exists, after its folder was listed."""
        self.may_exist = GROUP_COMMITS.partition("/")[0] in names

    def state(self) -> LogState:
        """Return the newest entry. On a local disk, the log is listed only if it has changed."""
        stamp = self._stamp()
        if stamp == 0:
            return LogState()
        known = self._known
        if known is not None and stamp is not None and known[0] == stamp:
            return known[1]
        state = self._listed()
        self._known = stamp, state
        return state

    def _stamp(self) -> object:
        """Return a value that changes with the log, or None if only a listing can tell. Without a log, 0."""
        if self._path is None:
            return None
        try:
            changed = os.stat(self._path).st_mtime_ns
        except OSError:
            return 0
        return changed if time.time_ns() - changed > _SAME_TIME else None

    def _listed(self) -> LogState:
        number, files = 0, set()
        for name in self.store.names(GROUP_COMMITS):
            found, kind = _parsed(name)
            if found and number and found != number:
                break
            if found:
                number = found
                files.add(kind)
        if _ENTRY not in files or _UNDONE in files or (self._path is None and number <= self._finished):
            return LogState(number)
        if _END not in files or self.outcome(number) != PUBLISHED:
            return LogState(number, is_finished=False)
        self._finished = number
        return LogState(number)

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, newest first."""
        return [number for number, kind in map(_parsed, self.store.names(GROUP_COMMITS)) if kind == _ENTRY]

    def read(self, number: int) -> GroupEntry:
        """Return an entry.

        Raises:
            NotFoundError: The entry was removed, because it is old.
            CorruptError: The entry is damaged.
            UnsupportedError: A newer version of this package wrote it.
        """
        path = _file(number, _ENTRY)
        return entry_from_json(self.store.get(path), number, f"{self.store.uri}/{path}")

    def entries_after(self, number: int) -> Iterator[GroupEntry]:
        """Yield the entries after a number, oldest first."""
        for each in range(number + 1, self.state().number + 1):
            yield self.read(each)

    def put(self, entry: GroupEntry, staged: Mapping[str, bytes] | None = None) -> None:
        """Add an entry.

        Args:
            entry: The entry.
            staged: Contents of its staged files by path. They are written first.

        Raises:
            AlreadyExistsError: The number is taken.
        """
        self.may_exist = True
        self.store.put_if_absent(_file(entry.number, _ENTRY), entry.to_json(), staged)

    def end(self, number: int, outcome: str, **more: Any) -> str:
        """Decide whether a group is published or taken back, unless it is decided. Returns the decision."""
        self._put(_file(number, _END), {"outcome": outcome, **more})
        decided = self.outcome(number)
        assert decided is not None
        return decided

    def outcome(self, number: int) -> str | None:
        """Return "published" or "undo", or None if that is not decided."""
        found = self._json(path := _file(number, _END))
        outcome = None if found is None else found.get("outcome")
        if found is not None and outcome not in (PUBLISHED, UNDO):
            raise CorruptError("a damaged end in the commit log", where=f"{self.store.uri}/{path}", found=repr(outcome))
        return outcome

    def put_undone(self, number: int, kept: Mapping[str, int]) -> None:
        """Record that all changes were taken back, or all but those of some tables.

        Args:
            number: The entry.
            kept: Versions with changes that could not be taken back, by folder of the table. 0 if it is not
                known whether there is one.
        """
        self._put(_file(number, _UNDONE), {"outcome": PARTLY if kept else UNDONE, "kept": dict(kept)})

    def undone(self, number: int) -> dict[str, int] | None:
        """Return the versions that could not be taken back, by folder. None if the group was not taken back."""
        found = self._json(path := _file(number, _UNDONE))
        if found is None:
            return None
        kept = found.get("kept")
        if not isinstance(kept, dict) or not all(isinstance(version, int) for version in kept.values()):
            raise CorruptError("a damaged end in the commit log", where=f"{self.store.uri}/{path}", found=repr(kept))
        return kept

    def reason(self, number: int) -> str:
        """Return why a group was taken back."""
        found = self._json(_file(number, _END))
        return "" if found is None else str(found.get("reason", ""))

    def _put(self, path: str, values: Mapping[str, Any]) -> None:
        with suppress(AlreadyExistsError):
            self.store.put_if_absent(path, json.dumps(values, sort_keys=True, separators=(",", ":")).encode())

    def _json(self, path: str) -> dict[str, Any] | None:
        try:
            return json_object(self.store.get(path), f"{self.store.uri}/{path}")
        except NotFoundError:
            return None

    def remove_old(self) -> None:
        """Remove entries and staged files that are older than a week. Keep the newest entries. Never raises."""
        limit = time.time() - KEPT_SECONDS
        with suppress(LanceDuckError, OSError):
            entries = {entry.path: entry for entry in self.store.entries(GROUP_COMMITS)}
            numbers = sorted({_parsed(path.rpartition("/")[2])[0] for path in entries}, reverse=True)
            old = set(numbers[KEPT_ENTRIES:]) - {0}
            for path, entry in entries.items():
                if _parsed(path.rpartition("/")[2])[0] in old and entry.modified.timestamp() < limit:
                    self.store.delete([path])
        if not self._is_swept:
            self._is_swept = True
            with suppress(LanceDuckError, OSError):
                self._remove_staged(limit)

    def _remove_staged(self, limit: float) -> None:
        """Remove staged files of processes that were killed, if all files of their group are older than `limit`.

        Files of a table that is being dropped may be old. But the folder into which it was moved has changed since.
        """
        folders: dict[str, list[Entry]] = {}
        for entry in self.store.walk(STAGED_GROUPS):
            folders.setdefault("/".join(entry.path.split("/")[:3]), []).append(entry)
        for folder, entries in folders.items():
            path = local_path(join_uri(self.root, folder))
            changed = [entry.modified.timestamp() for entry in entries]
            if max([*changed, 0.0 if path is None else os.stat(path).st_mtime]) < limit:
                self.store.delete([entry.path for entry in entries])
                if path is not None:
                    remove_empty_folders(path)

    def staged(self, entry_id: str, table: int, kind: str) -> str:
        """Return the path of a staged file, relative to the root."""
        return f"{STAGED_GROUPS}/{entry_id}/{table}.{kind}"


def _file(number: int, kind: str) -> str:
    return f"{GROUP_COMMITS}/{_LAST - number:0{_DIGITS}d}{kind}"


def _parsed(name: str) -> tuple[int, str]:
    """Return the number and the suffix of a file name. The number is 0 for other files."""
    digits, kind = name[:_DIGITS], name[_DIGITS:]
    if kind not in (_ENTRY, _END, _UNDONE) or not digits.isdecimal() or not 0 < _LAST - int(digits) < 2**63:
        return 0, ""
    return _LAST - int(digits), kind
