"""A namespace behind a Lance REST service. It lists names and locations. Data is read directly from the store.

    GET   /v1/namespace/{id}/list, /table/list                           ?delimiter=&limit=&page_token=
    POST  /v1/namespace/{id}/describe, create, drop, exists              JSON
    POST  /v1/table/{id}/describe, declare, register, deregister, drop, rename, exists

`{id}` consists of the parts of a name, joined by the delimiter and percent-encoded. The root is just the delimiter.
Errors are JSON, {"error", "code"}.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from lance_duck.arguments import checked_calls
from lance_duck.errors import LanceDuckError, NotFoundError, StoreError, UnsupportedError
from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.draft import CatalogDraft
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, Name, check_new, name_parts, object_id
from lance_duck.namespaces.requests import ServiceRequests
from lance_duck.redact import shown
from lance_duck.store import local_path, service_options, with_cache

_PAGE: Final = 1000
_MOST_PAGES: Final = 10_000
"""Maximum number of pages of a listing. Beyond it, the service probably returns the same pages again."""


@checked_calls
class RestNamespace(Namespace):
    """The tables that a REST service lists.

    Args:
        uri: Address of the service, before "/v1".
        delimiter: Separator of name parts in the service.
        headers: Headers of each request, for example {"Authorization": "Bearer …"}.
        storage_options: Store settings for tables. Settings from the service override them, except the cache.
        cache: A local folder that caches files of tables in object stores. Same as the storage option `cache`.

    Raises:
        InvalidInputError: The address is invalid, or a header cannot be sent.
        UnsupportedError: urllib3 is not installed.
    """

    def __init__(
        self,
        uri: str,
        *,
        delimiter: str = DELIMITER,
        headers: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> None:
        self._requests = ServiceRequests(uri, headers or {})
        self.uri = self._requests.uri
        self._delimiter = delimiter
        self._headers = dict(headers or {})
        self._options = dict(with_cache(storage_options, cache) or {})

    def __repr__(self) -> str:
        return f"RestNamespace({shown(self.uri)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.uri, self._delimiter, self._headers, self._options)

    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the child namespaces, without the parent's name. Raises NotFoundError."""
        return sorted(self._pages(f"namespace/{self._id(name)}/list", "namespaces"))

    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the sorted names of the tables in a namespace, without the namespace. Raises NotFoundError."""
        return sorted(self._pages(f"namespace/{self._id(name)}/table/list", "tables"))

    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""
        return _texts(self._post(f"namespace/{self._id(name)}/describe").get("properties"))

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Create a namespace: see `Namespace.create_namespace`."""
        check_new(name_parts(name), NAMESPACE)
        body = {"mode": "exist_ok" if exist_ok else "create", "properties": dict(properties or {})}
        self._post(f"namespace/{self._id(name)}/create", body)

    def drop_namespace(self, name: Name, *, cascade: bool = False) -> None:
        """Let the service drop a namespace: see `Namespace.drop_namespace`."""
        check_new(name_parts(name), NAMESPACE)
        self._post(f"namespace/{self._id(name)}/drop", {"behavior": "Cascade"} if cascade else None)

    def update_namespace(self, name: Name, properties: Mapping[str, str | None]) -> None:
        """Raise UnsupportedError: services cannot change properties."""
        raise UnsupportedError(
            "a REST service cannot change the properties of a namespace",
            where=object_id(name_parts(name)),
            found=", ".join(properties),
        )

    def change_catalog(self, edit: Callable[[CatalogDraft], object]) -> None:
        """Raise UnsupportedError: services do not store objects."""
        del edit
        raise UnsupportedError("a REST service does not store views, macros and types", where=shown(self.uri))

    def describe_table(self, name: Name) -> TableDescription:
        """Return the location of a table. Raises NotFoundError."""
        return self._place(name, self._post(f"table/{self._id(name)}/describe"))

    def declare_table(self, name: Name) -> TableDescription:
        """Reserve a table name, and return the location for its first version. See `Namespace.declare_table`."""
        check_new(name_parts(name), TABLE)
        return self._place(name, self._post(f"table/{self._id(name)}/declare"))

    def register_table(self, name: Name, location: str) -> None:
        """Register an existing table under a name: see `Namespace.register_table`."""
        check_new(name_parts(name), TABLE)
        self._post(f"table/{self._id(name)}/register", {"location": location})

    def deregister_table(self, name: Name) -> None:
        """Remove the name of a table, but keep the table's files. Raises NotFoundError."""
        self._post(f"table/{self._id(name)}/deregister")

    def drop_table(self, name: Name) -> None:
        """Let the service drop a table with all its versions. Raises NotFoundError."""
        self._post(f"table/{self._id(name)}/drop")

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Let the service rename a table: see `Namespace.rename_table`."""
        *namespace, last = name_parts(new_name) or ("",)
        check_new((*namespace, last), TABLE)
        body = {"new_table_name": last, "new_namespace_id": namespace}
        self._post(f"table/{self._id(name)}/rename", body)

    def abandon_table(self, name: Name) -> None:
        """Remove the name of a declared table that was not written. Ignores errors of the namespace."""
        try:
            if self.is_declared_only(self.describe_table(name)):
                self.deregister_table(name)
        except LanceDuckError:
            pass  # the caller reports the original error; the name remains declared

    def discard(self, place: TableDescription) -> None:
        """Do nothing, because the service manages files without a name.

        Args:
            place: Without effect.
        """

    def describe_tables(self, name: Name = ()) -> dict[str, TableDescription]:
        """Return the locations of the tables directly in a namespace. Skips tables that are dropped during the call."""
        parts, places = name_parts(name), {}
        for table in self.list_tables(parts):
            try:
                places[table] = self.describe_table((*parts, table))
            except NotFoundError:
                continue
        return places

    def _id(self, name: Name) -> str:
        return quote(self._delimiter.join(name_parts(name)) or self._delimiter, safe="")

    def _place(self, name: Name, answer: Mapping[str, Any]) -> TableDescription:
        location = answer.get("table_uri") or answer.get("location")
        if not isinstance(location, str) or not location:
            raise StoreError(
                "the service did not return a location", where=object_id(name_parts(name)), found=sorted(answer)
            )
        is_here = local_path(location) is not None and not location.startswith("file:")
        if is_here and not os.path.isabs(location):
            raise StoreError(
                "the service returned a relative location",
                where=object_id(name_parts(name)),
                expected="a URI or an absolute path",
                found=shown(location[:200]),
            )
        options = self._options | service_options(_texts(answer.get("storage_options")))
        return TableDescription(location, options, _texts(answer.get("properties")))

    def _pages(self, path: str, key: str) -> Iterator[str]:
        token = None
        for _ in range(_MOST_PAGES):
            fields = {"limit": str(_PAGE)} | ({"page_token": token} if token else {})
            answer = self._requests.send("GET", path, {"delimiter": self._delimiter, **fields})
            names = answer.get(key) or []
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise StoreError("invalid response of the service", where=path, expected=f"a list of names of {key}")
            yield from names
            before, token = token, answer.get("page_token")
            if not token or not names:
                return
            if not isinstance(token, str) or token == before:
                break
        raise StoreError("the service repeats a page of its listing, or lists too many pages", where=shown(self.uri))

    def _post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._requests.send("POST", path, {"delimiter": self._delimiter}, dict(body or {}))


def _again(uri: str, delimiter: str, headers: Mapping[str, str], storage_options: Mapping[str, str]) -> RestNamespace:
    return RestNamespace(uri, delimiter=delimiter, headers=headers, storage_options=storage_options)


def _texts(value: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}
