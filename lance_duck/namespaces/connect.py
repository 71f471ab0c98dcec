"""Opens namespaces with the properties that pylance and LanceDB use. Only this module imports both implementations."""

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
        properties: For "dir": root; manifest_enabled and dir_listing_enabled ("true" or "false"); settings of the store
            as storage.NAME. For "rest": uri; delimiter; HTTP headers as header.NAME; storage.NAME.

    Raises:
        UnsupportedError: The kind of namespace is neither "dir" nor "rest".
        InvalidInputError: A property is missing or unknown.
    """
    remaining = {str(name): str(value) for name, value in properties.items()}
    storage = {name.removeprefix(_STORAGE): remaining.pop(name) for name in [*remaining] if name.startswith(_STORAGE)}
    if impl == "dir":
        root = _taken(remaining, "root")
        manifest = (
            boolean_option(remaining, "manifest_enabled", default=True) if "manifest_enabled" in remaining else None
        )
        listing = boolean_option(remaining, "dir_listing_enabled", default=True)
        _refuse_others(remaining, ("manifest_enabled", "dir_listing_enabled"), ("root", "storage.NAME"))
        return DirectoryNamespace(
            root, manifest_enabled=manifest, dir_listing_enabled=listing, storage_options=storage or None
        )
    if impl == "rest":
        uri, delimiter = _taken(remaining, "uri"), remaining.pop("delimiter", "$")
        headers = {name.removeprefix(_HEADER): remaining.pop(name) for name in [*remaining] if name.startswith(_HEADER)}
        _refuse_others(remaining, (), ("uri", "delimiter", "header.NAME", "storage.NAME"))
        return RestNamespace(uri, delimiter=delimiter, headers=headers, storage_options=storage or None)
    raise UnsupportedError("unknown kind of namespace", expected='"dir" or "rest"', found=repr(impl))


def _taken(properties: dict[str, str], name: str) -> str:
    value = properties.pop(name, "")
    if not value:
        raise InvalidInputError(f"property {name!r} of the namespace is missing")
    return value


def _refuse_others(properties: Mapping[str, str], names: tuple[str, ...], taken: tuple[str, ...]) -> None:
    """Raise InvalidInputError for a property without one of the names. `taken` are further names, for the message."""
    for name in properties:
        if name not in names:
            raise InvalidInputError(
                f"unknown property {name!r} of a namespace",
                expected=f"one of {', '.join((*taken, *names))}",
                remedy=did_you_mean(name, (*taken, *names)),
            )
