"""An entry of the commit log, as JSON.

    {"id": "<UUID>", "lance_duck_commit": 1, "number": 7, "time": "…", "writer": "lance_duck 0.1.0",
     "moves": [{"inode": 81234, "source": "a.lance", "target": "b.lance"}],          target null: the folder is removed
     "tables": [{"base": 12, "folder": "t.lance", "transaction": "<UUID>", "undo": "<UUID>", "whole": false,
                 "xxh3": "<hex>"}]}

`folder`, `source` and `target` are folders relative to the root. The position of a table in `tables` is the name of its
staged files: see `log`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.store.base import normal_path

FORM: Final = 1
_FORM_KEY: Final = "lance_duck_commit"
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class GroupTable:
    """A change of one table.

    Attributes:
        folder: Folder of the table or branch.
        base: The version that the staged change follows.
        transaction: UUID of the change.
        undo: UUID of the transaction that undoes it.
        whole: Whether the staged manifest is published unchanged, directly after `base`.
        xxh3: Digest of the staged files and of the version `base`.
    """

    folder: str
    base: int
    transaction: str
    undo: str
    whole: bool
    xxh3: str


@dataclass(frozen=True)
class FolderMove:
    """A folder of the root that changes its name.

    Attributes:
        inode: The folder's number on its disk.
        source: The name before.
        target: The name afterwards, or None if the folder is removed.
    """

    inode: int
    source: str
    target: str | None


@dataclass(frozen=True)
class GroupEntry:
    """The changes of one group. Attributes: see the module."""

    number: int
    id: str
    time: str
    writer: str
    tables: tuple[GroupTable, ...] = ()
    moves: tuple[FolderMove, ...] = ()

    def to_json(self) -> bytes:
        """Return the entry as JSON."""
        return json.dumps({**asdict(self), _FORM_KEY: FORM}, sort_keys=True, separators=(",", ":")).encode()

    def change_of(self, folder: str) -> GroupTable | None:
        """Return the change of a table, or None if the group does not change it."""
        return next((table for table in self.tables if table.folder == folder), None)


def entry_from_json(data: bytes, number: int, where: str) -> GroupEntry:
    """Read an entry.

    Args:
        data: The file.
        number: The number in its name.
        where: The file, for messages.

    Raises:
        CorruptError: The entry is damaged.
        UnsupportedError: A newer version of this package wrote it.
    """
    values = json_object(data, where)
    form = values.pop(_FORM_KEY, None)
    if isinstance(form, int) and form > FORM:
        raise UnsupportedError(
            "a newer version of lance-duck wrote this entry of the commit log",
            where=where,
            expected=f"form {FORM}",
            found=f"form {form}",
            remedy="install the newer version",
        )
    try:
        entry = GroupEntry(
            number=_number(values["number"]),
            id=_uuid(values["id"]),
            time=_text(values["time"]),
            writer=_text(values["writer"]),
            tables=tuple(_table(each, where) for each in _items(values["tables"])),
            moves=tuple(_move(each, where) for each in _items(values["moves"])),
        )
    except (KeyError, TypeError, InvalidInputError) as error:
        raise CorruptError("a damaged entry of the commit log", where=where, found=str(error)) from error
    if entry.number != number or form != FORM:
        raise CorruptError("a damaged entry of the commit log", where=where, found=f"number {entry.number}")
    return entry


def json_object(data: bytes, where: str) -> dict[str, Any]:
    """Read a file of the commit log. Raises CorruptError."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptError("a file of the commit log is not JSON", where=where, found=str(error)) from error
    if not isinstance(values, dict):
        raise CorruptError("a file of the commit log is not a JSON object", where=where)
    return values


def _table(values: Mapping[str, Any], where: str) -> GroupTable:
    whole = values["whole"]
    if not isinstance(whole, bool):
        raise TypeError(f"whole: {whole!r}")
    return GroupTable(
        folder=normal_path(_text(values["folder"]), where),
        base=_number(values["base"]),
        transaction=_uuid(values["transaction"]),
        undo=_uuid(values["undo"]),
        whole=whole,
        xxh3=_text(values["xxh3"]),
    )


def _move(values: Mapping[str, Any], where: str) -> FolderMove:
    target = values["target"]
    return FolderMove(
        inode=_number(values["inode"]),
        source=normal_path(_text(values["source"]), where),
        target=None if target is None else normal_path(_text(target), where),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a string: {value!r}")
    return value


def _uuid(value: object) -> str:
    """Return a UUID, which becomes part of paths."""
    text = _text(value)
    if _UUID.fullmatch(text) is None:
        raise TypeError(f"not a UUID: {text!r}")
    return text


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise TypeError(f"not a number: {value!r}")
    return value


def _items(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"not a list: {value!r}")
    return value
