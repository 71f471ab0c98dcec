"""Opens the table version that a command reads, and parses its column list."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from datetime import datetime

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.namespaces import DirectoryNamespace
from lance_duck.namespaces.listing import FOLDER
from lance_duck.store import CACHE_SIZE_OPTION, did_you_mean_path, join_uri, local_path, open_store, with_cache
from lance_duck.wire.paths import GROUP_COMMITS, VERSIONS


def open_table(
    table: str,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> ld.LanceDataset:
    """Open a version of a table. Raises InvalidInputError if several versions are requested."""
    if sum(choice is not None for choice in (version, tag, asof)) > 1:
        raise InvalidInputError(
            "several options choose a version", remedy="pass only one of --version, --tag and --asof"
        )
    return ld.dataset(table, version=tag if version is None else version, asof=asof, storage_options=storage_options)


def cache_options(cache: str | None, cache_size: str | None) -> Mapping[str, str] | None:
    """Return the storage options of `--cache` and `--cache-size`, or None without them.

    Raises:
        InvalidInputError: There is a size without a folder.
    """
    if cache is None and cache_size is not None:
        raise InvalidInputError("--cache-size needs a folder", remedy="pass --cache")
    size = {} if cache_size is None else {CACHE_SIZE_OPTION: cache_size}
    return with_cache(size, cache) or None


def open_folder(path: str) -> DirectoryNamespace | None:
    """Open a folder with `__manifest` or a commit log, by its path or that of `__manifest`. Returns None for others."""
    root, _, last = path.rstrip("/").rpartition("/")
    if last == FOLDER:
        return DirectoryNamespace(root or ".")
    folders = open_store(path).folders() or ()
    is_database = FOLDER in folders or GROUP_COMMITS.partition("/")[0] in folders
    return DirectoryNamespace(path) if is_database and VERSIONS not in folders else None


def check_folder(folder: str) -> None:
    """Raise NotFoundError if a path is not a local folder. URIs of object stores are not checked."""
    path = local_path(folder)
    if path is not None and not os.path.isdir(path):  # a namespace may be empty before its folder exists
        is_file = os.path.exists(path)
        remedy = None if is_file else did_you_mean_path(folder)
        raise NotFoundError("not a folder" if is_file else "no such folder", where=folder, remedy=remedy)


def manifest_of(folder: DirectoryNamespace) -> str | None:
    """Return the path of `__manifest` in a folder, or None if it does not exist."""
    return join_uri(folder.root, FOLDER) if FOLDER in (open_store(folder.root).folders() or ()) else None


def listed_names(text: str | None) -> list[str] | None:
    """Split a list of names such as `a,b`. A name with a comma is double-quoted. Returns None for None.

    Raises:
        InvalidInputError: A name is empty.
    """
    if text is None:
        return None
    try:
        names = [name.strip() for line in csv.reader([text], skipinitialspace=True) for name in line]
    except csv.Error:
        names = []
    if not names or not all(names):
        raise InvalidInputError("--columns", expected="column names, separated by commas", found=repr(text))
    return names
