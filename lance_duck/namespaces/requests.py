"""Requests to a REST service, and the handling of its responses.

status below 300    a JSON object, or nothing
others              {"error": text, "code": number}, or any other content
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from lance_duck import forks
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    RetryableError,
    StoreError,
    UnsupportedError,
    install_extra,
)
from lance_duck.redact import remember, remember_uri, shown

_TIMEOUT: Final = 60.0
"""Maximum time without a received byte, in seconds. The request is then sent once more before it fails."""
_LONGEST: Final = 300.0
"""Maximum duration of a response, in seconds."""
_LARGEST: Final = 64 << 20
"""Maximum size of a decompressed response, in bytes. A page of names has about 100 kB."""
_PIECE: Final = 1 << 20
_NEEDS: Final = install_extra("rest")
_SENDABLE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
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


class ServiceRequests:
    """A sender of requests to one service.

    Args:
        uri: Address of the service, before "/v1".
        headers: Headers of each request.

    Raises:
        InvalidInputError: The address is invalid, or a header cannot be sent.
        UnsupportedError: urllib3 is not installed.
    """

    def __init__(self, uri: str, headers: Mapping[str, str]) -> None:
        remember(headers)
        remember_uri(uri)
        for value in headers.values():  # the token in "Bearer …" is also a secret
            remember({"token": value.rpartition(" ")[2]})
        _check(uri, headers)
        self.uri = uri.rstrip("/")
        self._headers = dict(headers)
        self._pool: tuple[int, Any] | None = None
        self._connections()

    def send(
        self, method: str, path: str, fields: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Send a request, and return the JSON object of the response, or an empty dict if the body is empty.

        Args:
            method: "GET" or "POST".
            path: Path after "/v1/".
            fields: Fields of the query.
            body: JSON object to send. Default: no body.

        Raises:
            StoreError: The service does not respond, or its response is malformed.
            LanceDuckError: The response is an error.
        """
        import urllib3

        url = f"{self.uri}/v1/{path}"
        try:
            answer = self._connections().request(
                method,
                f"{url}?{urlencode(fields)}",
                headers=self._headers,
                timeout=_TIMEOUT,
                json=body,
                redirect=False,
                preload_content=False,
            )
            try:
                data = _content(answer, path)
            finally:
                answer.close()
        except urllib3.exceptions.HTTPError as error:
            raise StoreError("the service does not respond", where=shown(url), found=shown(str(error))) from None
        parsed = _parsed(data)
        if answer.status >= 300:
            raise _error(answer.status, parsed or {}, path)
        if parsed is None:
            raise StoreError(
                "invalid response of the service", where=path, expected="a JSON object", found=shown(data[:100])
            )
        return parsed

    def _connections(self) -> Any:
        """Return the connections of this process. A forked child has separate connections."""
        try:
            import urllib3
        except ModuleNotFoundError as error:
            raise UnsupportedError("REST namespaces need the package urllib3", remedy=_NEEDS) from error
        process = forks.count()
        if self._pool is None or self._pool[0] != process:
            # The service must not control how long the client waits.
            retries = urllib3.Retry(3, read=1, redirect=False, backoff_factor=0.1, respect_retry_after_header=False)
            self._pool = process, urllib3.PoolManager(retries=retries)
        return self._pool[1]


def _check(uri: str, headers: Mapping[str, str]) -> None:
    try:
        parts = urlsplit(uri)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        raise InvalidInputError("invalid namespace address", where=uri, expected="http:// or https://, and a host")
    if parts.query or parts.fragment:
        remedy = "headers, as header.Authorization"
        raise InvalidInputError(
            "invalid namespace address", where=uri, expected="a URL without query or fragment", remedy=remedy
        )
    for name, value in headers.items():
        if not name or not _SENDABLE.fullmatch(name) or not _SENDABLE.fullmatch(value):
            raise InvalidInputError(f"header {name!r} cannot be sent", expected="characters of Latin-1 in one line")


def _content(answer: Any, path: str) -> bytes:
    """Read a response in chunks. Raises StoreError if it is too large or takes too long."""
    content, end = bytearray(), time.monotonic() + _LONGEST
    while piece := answer.read1(_PIECE):  # read1 returns the bytes received so far: a full chunk may never arrive
        content += piece
        if len(content) > _LARGEST:
            raise StoreError("invalid response of the service", where=path, expected=f"at most {_LARGEST} bytes")
        if time.monotonic() > end:
            raise StoreError(
                "invalid response of the service",
                where=path,
                expected=f"the end of the response within {_LONGEST:.0f} seconds",
            )
    return bytes(content)


def _parsed(data: bytes) -> dict[str, Any] | None:
    """Return the JSON object of a response, or None if the response is not a JSON object."""
    try:
        parsed = json.loads(data) if data.strip() else {}
        if rb"\u" in data:
            json.dumps(parsed, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def _error(status: int, answer: Mapping[str, Any], path: str) -> LanceDuckError:
    code = answer.get("code")
    kind = _ERRORS.get(code) if type(code) is int else None
    text = str(answer.get("error") or f"HTTP status {status}")[:1000]
    return (kind or _STATUS.get(status, StoreError))(f"the service returned: {shown(text)}", where=path)
