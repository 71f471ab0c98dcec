"""The check of `__manifest`: its data, its rows, and the objects in its settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from lance_duck.errors import LanceDuckError, UnsupportedError
from lance_duck.maintenance.validation.problems import Problem
from lance_duck.maintenance.validation.validate import find_problems
from lance_duck.namespaces import catalog_objects as objects
from lance_duck.namespaces.catalog import catalog_of
from lance_duck.namespaces.folders import TableFolders
from lance_duck.namespaces.listing import FOLDER, ListedNames, Listing, NamedObject
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, object_id

TABLE_VERSION: Final = "table_version"
"""Type of rows that pylance 4 to 6 could write for each version of a table."""

_DEEPEST: Final = 1 << 30


def folder_problems(listing: Listing, folders: TableFolders) -> list[Problem]:
    """Return the problems of `__manifest`. There are none if it does not exist."""
    snapshot = listing.snapshot()
    if snapshot is None:
        return []
    problems = [Problem(f"{FOLDER}: {p.where}", p.what, p.is_damage, p.remedy) for p in find_problems(snapshot)]
    try:
        names = listing.names()
    except LanceDuckError as error:
        return [*problems, Problem(FOLDER, str(error))]
    rows = names.rows.values()
    problems += version_rows([row for row in rows if row.object_type == TABLE_VERSION])
    problems += _other_rows(rows)
    problems += _newer_form(names)
    return [*problems, *_broken(names, folders), *_missing_folders(rows, folders), *_orphans(names)]


def version_rows(rows: Iterable[NamedObject]) -> list[Problem]:
    """Return the problem of rows for versions of tables, which a repair removes."""
    if not (count := len([*rows])):
        return []
    what = f"{count} rows of the type {TABLE_VERSION}, with which pylance 8 and newer refuse every change"
    return [Problem(FOLDER, what, is_damage=False, remedy="`repair` removes them, the versions stay")]


def _other_rows(rows: Iterable[NamedObject]) -> Iterator[Problem]:
    """Yield a problem for each type of rows that is not known here. A repair keeps these rows."""
    counts = Counter(row.object_type for row in rows)
    for object_type, count in sorted(counts.items()):
        if object_type not in (NAMESPACE, TABLE, TABLE_VERSION):
            what = f"{count} rows of the unknown type {object_type!r}, with which pylance refuses every change"
            yield Problem(FOLDER, what, is_damage=False, remedy="the program that wrote them may need them")


def _broken(names: ListedNames, folders: TableFolders) -> Iterator[Problem]:
    for key, reason in catalog_of((), names, folders, folders.listed(), _DEEPEST).broken.items():
        yield Problem(str(key), reason, is_damage=key.kind in (NAMESPACE, TABLE, *objects.KINDS))


def _missing_folders(rows: Iterable[NamedObject], folders: TableFolders) -> Iterator[Problem]:
    """Yield tables whose folder does not exist. The folder of a declared table does."""
    present = {*folders.names()}
    for row in rows:
        location = row.location if row.object_type == TABLE else None
        if location and not location.startswith((".", "/")) and location.partition("/")[0] not in present:
            what = f"the folder {location} does not exist"
            yield Problem(f"{TABLE} {row.object_id}", what, remedy="`deregister_table` removes the name")


def _newer_form(names: ListedNames) -> Iterator[Problem]:
    try:
        objects.check_form(names.settings, FOLDER)
    except UnsupportedError as error:
        yield Problem(FOLDER, f"{error.what}, expected {error.expected}", is_damage=False, remedy=error.remedy)


def _orphans(names: ListedNames) -> Iterator[Problem]:
    """Yield names in namespaces that do not exist. Other libraries drop namespaces without their objects."""
    rows = [(row.object_type, tuple(each.split(DELIMITER))) for each, row in names.rows.items()]
    stored = [(key.kind, key.name) for key, _ in objects.stored_objects(names.settings)]
    for kind, name in [each for each in rows if each[0] in (NAMESPACE, TABLE)] + stored:
        parent = names.rows.get(object_id(name[:-1]))
        if len(name) > 1 and (parent is None or parent.object_type != NAMESPACE):
            what = f"the namespace {object_id(name[:-1])} does not exist"
            yield Problem(f"{kind} {object_id(name)}", what, is_damage=False)
