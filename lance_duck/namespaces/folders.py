"""The folders of tables in the root of a directory namespace.

{name}.lance/                     a table of the root
{name}.lance/.lance-reserved      marks the name as claimed, possibly before the first version exists
{name}.lance/.lance-deregistered  hides the table
{8 hex digits}_{object id}/       a table of a namespace below the root. If its name ends in ".lance", "_" follows
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from lance_duck.dataset import LanceDataset
from lance_duck.errors import AlreadyExistsError, InvalidInputError
from lance_duck.namespaces.base import TableDescription
from lance_duck.namespaces.listing import FOLDER
from lance_duck.namespaces.names import object_id
from lance_duck.store import Store, join_uri, local_path, open_store, remove_empty_folders
from lance_duck.store.base import normal_path
from lance_duck.wire.paths import TABLE_SUFFIX

RESERVED: Final = ".lance-reserved"
DEREGISTERED: Final = ".lance-deregistered"
_ELSEWHERE: Final = frozenset("/\\\0")
"""Characters that are not allowed in folder names. Paths with them could leave the root."""
_OF_NAMESPACE: Final = re.compile(r"[0-9a-f]{8}_[^$]+\$")
"""Matches the folder of a table below the root. In other libraries, it ends in `.lance` if the table's name does."""


class TableFolders:
    """The folders directly in the root, by name.

    Args:
        root: URI of the root.
        options: Settings of the root's store.
        is_listing: Whether unregistered folders `{name}.lance` are tables of the root.

    Attributes:
        root: URI of the root.
        options: Settings of the root's store.
    """

    def __init__(self, root: str, options: dict[str, str], *, is_listing: bool) -> None:
        self.root = root
        self.options = options
        self._is_listing = is_listing

    def names(self) -> list[str]:
        """Return the names of all folders in the root."""
        return self.store().folders() or []

    def listed(self, folders: Sequence[str] | None = None) -> list[str]:
        """Return the names of the root tables that exist as folders. `folders` defaults to `names`."""
        if not self._is_listing:
            return []
        folders = self.names() if folders is None else folders
        names = [name.removesuffix(TABLE_SUFFIX) for name in folders if name.endswith(TABLE_SUFFIX)]
        names = [name for name in names if name and _OF_NAMESPACE.match(name) is None]
        return [name for name in names if not self.store(name + TABLE_SUFFIX).exists(DEREGISTERED)]

    def is_listed(self, name: str) -> bool:
        """Return whether the folder of a root table has files and is not deregistered."""
        if not self._is_listing or _ELSEWHERE & set(name) or _OF_NAMESPACE.match(name) is not None:
            return False
        return self.has_files(name + TABLE_SUFFIX) and not self.store(name + TABLE_SUFFIX).exists(DEREGISTERED)

    def is_used(self, location: str, folders: Collection[str]) -> bool:
        """Return whether a location is in one of these folders of the root, or in a listed table of the root."""
        top = location.partition("/")[0]
        return top in folders or (top.endswith(TABLE_SUFFIX) and self.is_listed(top.removesuffix(TABLE_SUFFIX)))

    def has_manifest(self) -> bool:
        """Return whether `__manifest` exists."""
        return FOLDER in self.names()

    def has_files(self, folder: str) -> bool:
        """Return whether a folder contains any files."""
        return next(iter(self.store(folder).walk()), None) is not None

    def of_new(self, parts: tuple[str, ...]) -> str:
        """Return the folder for a new table: the name of a table in the root, otherwise a unique name.

        Readers list folders that end in `.lance` as tables of the root. The unique names end differently.
        """
        if len(parts) == 1:
            return parts[0] + TABLE_SUFFIX
        folder = f"{secrets.token_hex(4)}_{object_id(parts)}"
        return f"{folder}_" if folder.endswith(TABLE_SUFFIX) else folder

    def reserve(self, folder: str) -> bool:
        """Reserve a folder, and list it if it was deregistered. Returns whether it was not reserved before."""
        store = self.store(folder)
        store.delete([DEREGISTERED])
        try:
            store.put_if_absent(RESERVED, b"reserved")
        except AlreadyExistsError:  # the table was declared but not written, or was deregistered
            return False
        return True

    def deregister(self, folder: str) -> None:
        """Hide the folder of a root table from listings."""
        self.store(folder).put(DEREGISTERED, b"")

    def register(self, folder: str) -> None:
        """List a folder again."""
        self.store(folder).delete([DEREGISTERED])

    def inside(self, location: str) -> str:
        """Remove dot segments from a location.

        Raises InvalidInputError for `__manifest` and locations outside the root.
        """
        folder = normal_path(location, self.root)
        if folder.partition("/")[0] == FOLDER:
            raise InvalidInputError("invalid table location", expected=f"a folder other than {FOLDER}", found=location)
        return folder

    def place(self, folder: str, properties: Mapping[str, str] | None = None) -> TableDescription:
        """Return the location of the table in a folder."""
        return TableDescription(join_uri(self.root, folder), self.options, properties or {})

    def remove(self, place: TableDescription, *, is_table: bool) -> None:
        """Remove a table, or the files of a table that was declared but never written."""
        if is_table:
            LanceDataset.drop(place.location, storage_options=self.options or None)
        else:
            store = open_store(place.location, self.options or None)
            store.delete([entry.path for entry in store.walk()])

    def abandon(self, place: TableDescription) -> None:
        """Remove the files of a table that was never written. On a local disk, also removes its folder."""
        self.remove(place, is_table=False)
        folder = local_path(place.location)
        if folder is not None:
            remove_empty_folders(folder)

    def store(self, folder: str = "") -> Store:
        """Return the store of a folder, or of the root."""
        return open_store(join_uri(self.root, folder) if folder else self.root, self.options or None)
