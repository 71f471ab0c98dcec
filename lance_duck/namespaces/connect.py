"""From the properties of a namespace, as pylance and LanceDB spell them, to the namespace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lance_duck.arguments import checked_call, did_you_mean
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.namespaces.base import Namespace
from lance_duck.namespaces.directory import DirectoryNamespace
from lance_duck.namespaces.rest import RestNamespace
from lance_duck.store import boolean_option

_STORAGE: Final = "storage."
_HEADER: Final = "header."


@checked_call
def connect_namespace(impl: str, properties: Mapping[str, str]) -> Namespace:
    """Open a namespace: a folder of tables, or a REST service that lists tables.

    Args:
        impl: "dir" or "rest".
        properties: Of "dir": root, manifest_enabled and dir_listing_enabled ("true", "false"), and settings of the
            store as storage.NAME. Of "rest": uri, delimiter, HTTP headers as header.NAME, and storage.NAME.

    Raises:
        UnsupportedError: Another kind of namespace.
        InvalidInputError: A property is missing, or not known.
    """
    given = {str(name): str(value) for name, value in properties.items()}
    storage = {name.removeprefix(_STORAGE): given.pop(name) for name in [*given] if name.startswith(_STORAGE)}
    if impl == "dir":
        root = _taken(given, "root")
        manifest = boolean_option(given, "manifest_enabled", default=True) if "manifest_enabled" in given else None
        listing = boolean_option(given, "dir_listing_enabled", default=True)
        _refuse_others(given, ("manifest_enabled", "dir_listing_enabled"))
        return DirectoryNamespace(
            root, manifest_enabled=manifest, dir_listing_enabled=listing, storage_options=storage or None
        )
    if impl == "rest":
        uri, delimiter = _taken(given, "uri"), given.pop("delimiter", "$")
        headers = {name.removeprefix(_HEADER): given.pop(name) for name in [*given] if name.startswith(_HEADER)}
        _refuse_others(given, ())
        return RestNamespace(uri, delimiter=delimiter, headers=headers, storage_options=storage or None)
    raise UnsupportedError("kind of namespace", expected='"dir" or "rest"', found=repr(impl))


def _taken(given: dict[str, str], name: str) -> str:
    value = given.pop(name, "")
    if not value:
        raise InvalidInputError(f"property {name!r} of the namespace is missing")
    return value


def _refuse_others(given: Mapping[str, str], known: tuple[str, ...]) -> None:
    for name in given:
        if name not in known:
            candidates = (*known, "root", "uri", "delimiter")
            raise InvalidInputError(
                f"property {name!r} of a namespace", remedy=did_you_mean(name, candidates) or "see connect_namespace"
            )
