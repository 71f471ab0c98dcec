"""Tables and folders named on the command line, and a connection to them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import lance_duck as ld
from lance_duck.cli.open import open_table
from lance_duck.cli.terminal import complain
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store import did_you_mean_path, local_path, open_store, split_place

_ADDRESS: Final = re.compile(r"[A-Za-z][\w+.-]*://\S+")
_TABLE: Final = re.compile(r"[^\s'\";]+\.lance/*", re.IGNORECASE)
_STATEMENT: Final = re.compile(r"[\s;]")
STANDARD_INPUT: Final = "-"


@dataclass(frozen=True)
class VersionArguments:
    """The version to read, given in one of three ways. The newest version if all are None."""

    version: int | None = None
    tag: str | None = None
    asof: datetime | None = None

    @property
    def is_newest(self) -> bool:
        """Whether no version is given."""
        return (self.version, self.tag, self.asof) == (None, None, None)


def places_and_sql(words: Sequence[str]) -> tuple[list[str], str | None]:
    """Split arguments into locations and SQL. The last argument is SQL unless it is a location."""
    if not words or _is_place(words[-1]):
        return list(words), None
    is_alone = len(words) == 1
    if is_alone and words[0] != STANDARD_INPUT and not _STATEMENT.search(words[0]):
        return list(words), None
    return list(words[:-1]), words[-1]


def connect_to(
    places: Sequence[str],
    version: VersionArguments,
    *,
    read_only: bool,
    storage_options: Mapping[str, str] | None = None,
) -> ld.Connection:
    """Connect to a folder, or to tables. Tables are named after their folders, without `.lance`.

    Args:
        places: A folder, or any number of tables.
        version: Version of the tables. An explicit version is read-only.
        read_only: Reject changes to Lance tables.
        storage_options: Settings of the store.

    Raises:
        NotFoundError: A table, version or folder to read does not exist.
        InvalidInputError: The locations cannot be combined in one connection.
    """
    tables: dict[str, str | ld.LanceDataset] = {}
    folders = []
    for place in places:
        path = local_path(place)
        _, name = split_place(place if path is None else os.path.abspath(path))
        try:
            dataset = open_table(place, version.version, version.tag, version.asof, storage_options)
        except NotFoundError:
            if name.endswith(".lance") or not version.is_newest:
                raise
            folders.append(place)
            continue
        table = name.removesuffix(".lance")
        if table in tables:
            raise InvalidInputError(
                "two tables have the same name", where=table, remedy=f"name one in SQL: FROM '{place}'"
            )
        tables[table] = place if version.is_newest else dataset
    if folders and (tables or len(folders) > 1):
        raise InvalidInputError(
            "these paths cannot be opened together",
            expected="one folder, or tables",
            found=", ".join(places),
            remedy="name further ones in SQL: FROM 'dir/x.lance', or ATTACH 'dir' AS name (TYPE lance)",
        )
    if folders and not read_only and is_missing(folders[0]):
        _check_new(folders[0])
    target = folders[0] if folders else tables
    return ld.connect(target, read_only=read_only or not version.is_newest, storage_options=storage_options)


def _check_new(folder: str) -> None:
    """Report that a folder does not exist yet. Raises NotFoundError if its name resembles an existing folder's."""
    other = did_you_mean_path(folder)
    if other is not None:
        raise NotFoundError("no such folder", where=folder, remedy=f"{other} Create the folder if it is new")
    complain(f"{folder}: no such folder yet; a first CREATE TABLE makes it")


def is_missing(folder: str) -> bool:
    """Return whether neither a folder nor a file of this name exists."""
    path = local_path(folder)
    return not os.path.lexists(path) if path is not None else open_store(folder).folders() is None


def _is_place(word: str) -> bool:
    return bool(_ADDRESS.fullmatch(word) or _TABLE.fullmatch(word)) or os.path.exists(word)
