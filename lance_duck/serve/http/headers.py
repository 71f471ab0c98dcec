"""Read credentials, origin and timeout of a request from its headers."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from lance_duck.serve.gate.refusals import ForbiddenError, MisdirectedError, RequestError
from lance_duck.serve.gate.settings import LOOPBACK, ServeSettings

COOKIE: Final = "lance_duck_token"
_LONGEST_ID: Final = 200


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of an ASGI request, with names in lower case."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def parameters_of(scope: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the fields of the query string as pairs. A name may occur several times.

    Raises:
        RequestError: The query string has too many fields, or is not UTF-8.
    """
    try:
        text = scope["query_string"].decode("ascii")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000)
    except (ValueError, UnicodeError):
        raise RequestError("malformed query string", expected="percent-encoded UTF-8 fields") from None


def token_of(headers: Mapping[str, str]) -> str | None:
    """Return the token of a request: a Bearer token, a Basic password, an API key, or the cookie of the page."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeError):
            return None
    if "x-api-key" in headers:
        return headers["x-api-key"]
    try:
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return cookie.value if cookie else None


def request_id_of(headers: Mapping[str, str]) -> str | None:
    """Return the id that the client gave the request. None if it is not printable ASCII, or too long for logs."""
    text = headers.get("x-request-id", "")
    return text if text.isascii() and text.isprintable() and 0 < len(text) <= _LONGEST_ID else None


def timeout_of(headers: Mapping[str, str]) -> float | None:
    """Return the time that the client grants, in seconds, or None.

    Raises:
        RequestError: The header is not a positive number.
    """
    text = headers.get("x-request-timeout-ms")
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not int(text):
        raise RequestError("malformed x-request-timeout-ms", expected="milliseconds, at least 1", found=text[:40])
    return int(text) / 1000


def check_origin(headers: Mapping[str, str], settings: ServeSettings) -> None:
    """Check that a request names this server, and does not come from a page of another one.

    Without tokens, a page of a foreign site could otherwise read and change tables through the browser of a user.

    Raises:
        MisdirectedError: The Host header names another server.
        ForbiddenError: The Origin header names another server.
    """
    host = _host(f"//{headers.get('host', '')}")
    names = (*LOOPBACK, settings.host, *settings.allowed_hosts)
    if not settings.tokens and host not in names:
        raise MisdirectedError("the Host header names another server", found=host, remedy="pass --allow-host")
    origin = headers.get("origin")
    if origin is not None and _split(origin).netloc != headers.get("host"):
        raise ForbiddenError("the request comes from a page of another server", found=origin)


def _host(address: str) -> str:
    return _split(address).hostname or ""


def _split(address: str) -> SplitResult:
    """Split an address. All parts of a malformed one are empty."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")
