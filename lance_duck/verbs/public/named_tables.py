"""Tables identified by their name in a catalog: pylance's `namespace_client=` and `table_id=`.

A client is any `lance_namespace.LanceNamespace` (folders, REST services, Glue, Hive, Unity, …), or a namespace of this
package. Only `describe_table` and `declare_table` are called: data is read from and written to the store directly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    StoreError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.redact import remember

_KINDS: Final = {"NotFoundError": NotFoundError, "AlreadyExistsError": AlreadyExistsError}
"""Maps the suffix of a client's exception class name to an exception of this package."""


def named_place(
    uri: Any, client: Any, table_id: Sequence[str] | None, storage_options: Mapping[str, str] | None, mode: str | None
) -> tuple[Any, Mapping[str, str] | None]:
    """Return a table's location and store settings. The catalog's settings take precedence.

    Args:
        uri: The location, if no catalog is used.
        client: The catalog.
        table_id: Name of the table in the catalog, as a list of its parts.
        storage_options: The caller's settings.
        mode: Write mode. "create" declares the table in the catalog. Other modes declare it if it does not exist. None
            opens the table.

    Raises:
        InvalidInputError: Both a location and a catalog are given, or neither of them, or only one of catalog and name.
        NotFoundError: The table does not exist in the catalog.
        AlreadyExistsError: The table exists in the catalog, and the mode is "create".
        UnsupportedError: The catalog manages the table's versions.
        StoreError: The catalog failed.
    """
    name = _checked(client, table_id)
    if name is None:
        return uri, storage_options
    if uri is not None:
        raise InvalidInputError("uri and namespace_client exclude each other", expected="one of them")
    answer = _answer(client, name, mode)
    location = getattr(answer, "location", None)
    if not isinstance(location, str) or not location:
        raise StoreError(
            "invalid response of the catalog", where=_text(name), expected="a location", found=repr(location)
        )
    return location, _lent(answer, name, storage_options)


def lent_options(
    client: Any, table_id: Sequence[str] | None, storage_options: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    """Return the store settings of a table with a known location. The catalog's settings take precedence.

    Raises:
        InvalidInputError: A catalog is given without a name, or a name without a catalog.
        NotFoundError, UnsupportedError, StoreError: See `named_place`.
    """
    name = _checked(client, table_id)
    return storage_options if name is None else _lent(_answer(client, name, None), name, storage_options)


def _checked(client: Any, table_id: Sequence[str] | None) -> list[str] | None:
    """Return the parts of a table name, or None if no catalog is used."""
    if client is None and table_id is None:
        return None
    if client is None or table_id is None:
        raise InvalidInputError("namespace_client and table_id", expected="both or neither")
    if isinstance(table_id, str) or not isinstance(table_id, Sequence):
        raise WrongTypeError(
            "table_id", expected='a list of strings, such as ["namespace", "table"]', found=repr(table_id)
        )
    return list(table_id)


def _lent(answer: Any, name: list[str], storage_options: Mapping[str, str] | None) -> Mapping[str, str] | None:
    if getattr(answer, "managed_versioning", None) is True:
        raise UnsupportedError("catalogs that manage table versions are not supported", where=_text(name))
    options = getattr(answer, "storage_options", None)
    remember(options)
    return {**(storage_options or {}), **options} if options else storage_options


def _answer(client: Any, table_id: list[str], mode: str | None) -> Any:
    """Request a table's current or future location from the catalog."""
    if mode is None:
        return _asked(client, "describe_table", "DescribeTableRequest", table_id)
    if mode != "create":
        try:
            return _asked(client, "describe_table", "DescribeTableRequest", table_id)
        except NotFoundError:
            pass
    return _asked(client, "declare_table", "DeclareTableRequest", table_id)


def _asked(client: Any, method: str, request: str, table_id: list[str]) -> Any:
    call = getattr(client, method, None)
    if call is None:
        expected = "a LanceNamespace, or what connect_namespace returns"
        raise WrongTypeError("namespace_client", expected=expected, found=type(client).__name__)
    try:
        return call(table_id if hasattr(client, "open_table") else _request(request, table_id))
    except LanceDuckError:
        raise
    except Exception as error:
        kinds = (kind for end, kind in _KINDS.items() if type(error).__name__.endswith(end))
        kind = next(kinds, StoreError)
        raise kind(f"the catalog refuses {method}", where=_text(table_id), found=str(error)) from error


def _request(name: str, table_id: list[str]) -> Any:
    """Build a request that `lance_namespace` clients accept."""
    try:
        import lance_namespace
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            "namespace_client needs the package lance_namespace",
            where="namespace_client",
            remedy="pip install lance-namespace",
        ) from error
    return getattr(lance_namespace, name)(id=table_id)


def _text(table_id: Sequence[str]) -> str:
    return "$".join(table_id)
