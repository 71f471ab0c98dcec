"""A namespace behind a REST service of Lance: names and places come from the service, data go straight to their store.

    GET   /v1/namespace/{id}/list, /table/list                           ?delimiter=&limit=&page_token=
    POST  /v1/namespace/{id}/describe, create, drop, exists              JSON
    POST  /v1/table/{id}/describe, declare, register, deregister, drop, rename, exists

`{id}` is a name with the delimiter between its parts, percent-encoded; the root is the delimiter alone. Errors are
JSON, {"error", "code"}.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from lance_duck import forks
from lance_duck.arguments import checked_calls
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    RetryableError,
    StoreError,
    UnsupportedError,
)
from lance_duck.namespaces.base import Namespace, TableDescription
from lance_duck.namespaces.names import DELIMITER, NAMESPACE, TABLE, Name, check_new, joined, parts_of
from lance_duck.redact import shown

_PAGE: Final = 1000
_MOST_PAGES: Final = 10_000
"""Pages of a listing, after which the service is taken to repeat itself."""
_TIMEOUT: Final = 60.0
_NEEDS: Final = "pip install 'lance-duck[rest]'"
_ERRORS: Final[Mapping[int, type[LanceDuckError]]] = {
    0: UnsupportedError,
    1: NotFoundError,
    2: AlreadyExistsError,
    3: ReferencedError,
    4: NotFoundError,
    5: AlreadyExistsError,
    11: NotFoundError,
    13: InvalidInputError,
    14: RetryableError,
}
_STATUS: Final[Mapping[int, type[LanceDuckError]]] = {
    400: InvalidInputError,
    404: NotFoundError,
    409: AlreadyExistsError,
    501: UnsupportedError,
}


@checked_calls
class RestNamespace(Namespace):
    """The tables that a service lists.

    Args:
        uri: Address of the service, before "/v1".
        delimiter: What the service puts between the parts of a name.
        headers: Sent with each request, as {"Authorization": "Bearer …"}.
        storage_options: Settings of the stores of tables; those that the service lends win.

    Raises:
        UnsupportedError: urllib3 is not installed.
    """

    def __init__(
        self,
        uri: str,
        *,
        delimiter: str = DELIMITER,
        headers: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        if urlsplit(uri).scheme not in ("http", "https"):
            raise InvalidInputError("address of a namespace", where=uri, expected="http:// or https://")
        self.uri = uri.rstrip("/")
        self._delimiter = delimiter
        self._headers = dict(headers or {})
        self._options = dict(storage_options or {})
        self._pool: tuple[int, Any] | None = None
        self._connections()

    def __repr__(self) -> str:
        return f"RestNamespace({shown(self.uri)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (self.uri, self._delimiter, self._headers, self._options)

    def list_namespaces(self, name: Name = ()) -> list[str]:
        """Return the last parts of the names of the namespaces directly in one, in order. Raises NotFoundError."""
        return sorted(self._pages(f"namespace/{self._id(name)}/list", "namespaces"))

    def list_tables(self, name: Name = ()) -> list[str]:
        """Return the last parts of the names of the tables directly in a namespace, in order. Raises NotFoundError."""
        return sorted(self._pages(f"namespace/{self._id(name)}/table/list", "tables"))

    def describe_namespace(self, name: Name) -> dict[str, str]:
        """Return the properties of a namespace. Raises NotFoundError."""
        return _texts(self._post(f"namespace/{self._id(name)}/describe").get("properties"))

    def create_namespace(
        self, name: Name, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Make a namespace: see `Namespace.create_namespace`."""
        check_new(parts_of(name), NAMESPACE)
        body = {"mode": "exist_ok" if exist_ok else "create", "properties": dict(properties or {})}
        self._post(f"namespace/{self._id(name)}/create", body)

    def drop_namespace(self, name: Name) -> None:
        """Remove an empty namespace. Raises NotFoundError, or ReferencedError where it is not empty."""
        check_new(parts_of(name), NAMESPACE)
        self._post(f"namespace/{self._id(name)}/drop")

    def describe_table(self, name: Name) -> TableDescription:
        """Return where a table is. Raises NotFoundError."""
        return self._place(name, self._post(f"table/{self._id(name)}/describe"))

    def declare_table(self, name: Name) -> TableDescription:
        """Claim the name of a table, and return where its first version goes: see `Namespace.declare_table`."""
        check_new(parts_of(name), TABLE)
        return self._place(name, self._post(f"table/{self._id(name)}/declare"))

    def register_table(self, name: Name, location: str) -> None:
        """Give a table that is there a name: see `Namespace.register_table`."""
        check_new(parts_of(name), TABLE)
        self._post(f"table/{self._id(name)}/register", {"location": location})

    def deregister_table(self, name: Name) -> None:
        """Take the name of a table back, and leave its files. Raises NotFoundError."""
        self._post(f"table/{self._id(name)}/deregister")

    def drop_table(self, name: Name) -> None:
        """Have the service remove a table with all its versions. Raises NotFoundError."""
        self._post(f"table/{self._id(name)}/drop")

    def rename_table(self, name: Name, new_name: Name) -> None:
        """Have the service give a table another name: see `Namespace.rename_table`."""
        *namespace, last = parts_of(new_name) or ("",)
        check_new((*namespace, last), TABLE)
        body = {"new_table_name": last, "new_namespace_id": namespace}
        self._post(f"table/{self._id(name)}/rename", body)

    def abandon_table(self, name: Name) -> None:
        """Take back the name of a table that was declared, and is not written. Raises no error of the namespace."""
        try:
            if self.is_declared_only(self.describe_table(name)):
                self.deregister_table(name)
        except LanceDuckError:
            pass  # the first error is the one to tell; the name stays declared

    def _id(self, name: Name) -> str:
        return quote(self._delimiter.join(parts_of(name)) or self._delimiter, safe="")

    def _place(self, name: Name, answer: Mapping[str, Any]) -> TableDescription:
        location = answer.get("table_uri") or answer.get("location")
        if not isinstance(location, str):
            raise StoreError("the service names no place", where=joined(parts_of(name)), found=sorted(answer))
        options = self._options | _texts(answer.get("storage_options"))
        return TableDescription(location, options, _texts(answer.get("properties")))

    def _pages(self, path: str, key: str) -> Iterator[str]:
        token = None
        for _ in range(_MOST_PAGES):
            fields = {"limit": str(_PAGE)} | ({"page_token": token} if token else {})
            answer = self._request("GET", path, fields)
            names = answer.get(key) or []
            if not isinstance(names, list):
                raise StoreError("answer of the service", where=path, expected=f"a list of {key}")
            yield from map(str, names)
            token = answer.get("page_token")
            if not token or not names:
                return
        raise StoreError("the listing does not end", where=shown(self.uri))

    def _post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._request("POST", path, {}, dict(body or {}))

    def _request(
        self, method: str, path: str, fields: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the JSON object of an answer; empty where it has no body."""
        import urllib3

        url = f"{self.uri}/v1/{path}"
        query = urlencode({"delimiter": self._delimiter, **fields})
        try:
            answer = self._connections().request(
                method, f"{url}?{query}", headers=self._headers, timeout=_TIMEOUT, json=body, redirect=False
            )
        except urllib3.exceptions.HTTPError as error:
            raise StoreError("the service does not answer", where=shown(url), found=shown(str(error))) from None
        parsed = _parsed(answer.data)
        if answer.status >= 300:
            raise _error(answer.status, parsed, path)
        return parsed

    def _connections(self) -> Any:
        """Return the connections of this process: a forked child has its own."""
        try:
            import urllib3
        except ModuleNotFoundError as error:
            raise UnsupportedError("namespaces of REST services need urllib3", remedy=_NEEDS) from error
        process = forks.count()
        if self._pool is None or self._pool[0] != process:
            self._pool = process, urllib3.PoolManager(retries=urllib3.Retry(3, redirect=False, backoff_factor=0.1))
        return self._pool[1]


def _again(uri: str, delimiter: str, headers: Mapping[str, str], storage_options: Mapping[str, str]) -> RestNamespace:
    return RestNamespace(uri, delimiter=delimiter, headers=headers, storage_options=storage_options)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(data) if data.strip() else {}
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _error(status: int, answer: Mapping[str, Any], path: str) -> LanceDuckError:
    code = answer.get("code")
    kind = _ERRORS.get(code) if isinstance(code, int) else None
    text = str(answer.get("error") or f"HTTP status {status}")[:1000]
    return (kind or _STATUS.get(status, StoreError))(f"the service says: {shown(text)}", where=path)


def _texts(value: object) -> dict[str, str]:
    return {str(name): str(text) for name, text in value.items()} if isinstance(value, dict) else {}
