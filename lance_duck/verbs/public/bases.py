"""Base paths: additional locations for a table's data files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_duck.arguments import suggest_names
from lance_duck.errors import InvalidInputError
from lance_duck.redact import has_secrets, shown
from lance_duck.snapshot import Location, Snapshot
from lance_duck.wire.manifest import BasePath
from lance_duck.write.options import Base


@suggest_names
@dataclass(frozen=True)
class DatasetBasePath:
    """A base path: a location for data files outside the table root.

    Attributes:
        path: Absolute path or URI.
        name: Name that writes use to select it.
        is_dataset_root: Whether `path` has the directories of a table. If so, files are in its data directory,
            otherwise directly in `path`.
        id: Id in the table. If None, an id is assigned when the base path is added.
    """

    path: str
    name: str | None = None
    is_dataset_root: bool = False
    id: int | None = None

    def __repr__(self) -> str:
        return (
            f"DatasetBasePath(path={shown(self.path)!r}, name={self.name!r}, "
            f"is_dataset_root={self.is_dataset_root!r}, id={self.id!r})"
        )


def known_bases(bases: Mapping[int, BasePath]) -> dict[int, DatasetBasePath]:
    """Return the base paths of a table as `DatasetBasePath`, by id."""
    return {i: shown_base(base) for i, base in bases.items()}


def shown_base(base: BasePath) -> DatasetBasePath:
    """Convert a base path to pylance's class."""
    return DatasetBasePath(base.path, base.name, base.is_dataset_root, base.id)


def new_bases(bases: Sequence[Any], present: Mapping[int, BasePath], where: str) -> list[BasePath]:
    """Return the new base paths of a table, with their ids.

    Args:
        bases: Base paths from the user: `DatasetBasePath`, or objects with its attributes.
        present: Base paths of the table, by id.
        where: Name of the parameter, for messages.

    Raises:
        InvalidInputError: An object is not a base path, or its path, name or id is taken.
    """
    result: list[BasePath] = []
    for entry in bases:
        by_id = {**present, **{base.id: base for base in result}}
        base = _base(entry, where)
        if base.path in {other.path for other in by_id.values()}:
            raise InvalidInputError("the base path already exists", where=where, found=base.path)
        if base.name is not None and base.name in {other.name for other in by_id.values()}:
            raise InvalidInputError("another base path has this name", where=where, found=repr(base.name))
        base_id = base.id or max(by_id, default=0) + 1
        if base_id in by_id:
            raise InvalidInputError("another base path has this id", where=where, found=base_id)
        result.append(replace(base, id=base_id))
    return result


def target_bases(
    location: Location, bases: Mapping[int, BasePath], names: Sequence[str] | None, all_bases: bool | None
) -> list[Base | None]:
    """Return the locations that a write fills round-robin. Empty if only the table root is used.

    Args:
        location: The table.
        bases: Base paths of the table, by id.
        names: Names or paths of the bases to use, or None to use `all_bases`.
        all_bases: True for the root and all bases, False for all bases, None to use `names`.

    Raises:
        InvalidInputError: Both `names` and `all_bases` are given, or a base does not exist.
    """
    if names is not None and all_bases is not None:
        raise InvalidInputError(
            "target_bases and target_all_bases exclude each other", where="write", expected="one of them"
        )
    if all_bases is not None:
        every: list[Base | None] = [_place(location, bases, base) for _, base in sorted(bases.items())]
        if not every and not all_bases:
            raise InvalidInputError("the table does not have base paths", where="target_all_bases")
        return [None, *every] if all_bases else every
    return [_place(location, bases, _named(bases, name)) for name in names or ()]


def with_base_options(
    storage_options: Mapping[str, str] | None,
    base_store_params: Mapping[str, Mapping[str, str]] | None,
    bases: Mapping[int, BasePath],
) -> dict[str, str]:
    """Return storage options that include the options of base paths, prefixed with the base id.

    Raises:
        InvalidInputError: A path does not belong to a base.
    """
    options = dict(storage_options or {})
    for path, own in (base_store_params or {}).items():
        base = _named(bases, path)
        options |= {f"base_{base.id}.{name}": value for name, value in own.items()}
    return options


def snapshot_bases(snapshot: Snapshot | None) -> Mapping[int, BasePath]:
    """Return the base paths of a version. Empty if the version is None."""
    return {} if snapshot is None else snapshot.base_paths


def _base(base: Any, where: str) -> BasePath:
    try:
        path, name = os.fspath(base.path), base.name
        base_id, is_root = getattr(base, "id", None), bool(base.is_dataset_root)
    except (AttributeError, TypeError):
        raise InvalidInputError("not a base path", where=where, expected="DatasetBasePath", found=repr(base)) from None
    if not path or not (name is None or isinstance(name, str)) or not isinstance(base_id, int | None):
        raise InvalidInputError("not a base path", where=where, expected="DatasetBasePath", found=repr(base))
    if has_secrets(path):
        raise InvalidInputError(
            "the base path contains credentials, which the table would store in plain text",
            where=where,
            found=repr(path),
            remedy="pass them as storage options: base_store_params",
        )
    return BasePath(base_id or 0, name, is_root, path)


def _named(bases: Mapping[int, BasePath], name: str) -> BasePath:
    for base in bases.values():
        if name in (base.name, base.path):
            return base
    names = [base.name or base.path for base in bases.values()]
    raise InvalidInputError(f"base path {name!r} not found", where="write", expected=", ".join(names) or "none")


def _place(location: Location, bases: Mapping[int, BasePath], base: BasePath) -> Base:
    uris = [location.base_uri(other) for other in bases.values()]
    store = location.store(location.base_uri(base), base.id, (location.uri, *uris))
    return Base(base.id, store, base.is_dataset_root)
