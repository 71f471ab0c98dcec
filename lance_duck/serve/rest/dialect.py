"""What the two kinds of clients have in common, and in what they differ.

LanceDB's clients send a User-Agent that begins with "LanceDB-", or the header x-lancedb-database. All other clients
speak the dialect of the Lance namespace specification. Answers hold the fields of both.

| part of a request | meaning |
|---|---|
| `{id}` in the path | parts of a name, joined by the delimiter; the root is the delimiter alone |
| `delimiter` in the query string | the delimiter, "$" by default |
| `id` in the body | the same name as a list |
| `identity`, `context` in the body | without effect: headers hold the credentials |
| x-lancedb-min-version, x-lancedb-min-read-version | the newest version must be this one or a later one |
| x-lancedb-min-timestamp | without effect: each request opens the newest version |

| header of an answer | meaning |
|---|---|
| phalanx-version | which bodies LanceDB may send: several vectors, and structured full-text queries |
| x-lancedb-version | the version of the table that the answer is about |
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.dataset import LanceDataset
from lance_duck.errors import StoreError
from lance_duck.namespaces.names import DELIMITER
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.fields import most_listed, text_of, whole_of
from lance_duck.snapshot import Version

CAPABILITIES: Final[Mapping[str, str]] = {"phalanx-version": "0.3.0"}
"""Header of answers about tables. 0.4.0 would allow uploads in parts, and 0.5.0 reads of blobs."""

_COMMON: Final = ("id", "identity", "context")
_LEAST: Final = ("x-lancedb-min-version", "x-lancedb-min-read-version")
_WAIT: Final = 1.0
"""Time to wait for a version that another server has committed, in seconds."""
_PAUSE: Final = 0.05
_LONGEST_NAME: Final = 200
"""Longest name, in bytes. The name of a folder has at most 255 bytes, and is a little longer."""


def is_lancedb(request: HttpRequest) -> bool:
    """Return whether LanceDB's client sends a request."""
    headers = request.headers
    return headers.get("user-agent", "").startswith("LanceDB-") or "x-lancedb-database" in headers


def delimiter_of(request: HttpRequest) -> str:
    """Return the delimiter of names.

    Raises:
        RequestError: It is empty.
    """
    delimiter = request.parameters.get("delimiter", DELIMITER)
    if not delimiter:
        raise RequestError("the delimiter is empty", where=request.path)
    return delimiter


def requested_name(request: HttpRequest) -> tuple[str, ...]:
    """Return the parts of the name in the path. The root is ().

    Raises:
        RequestError: A part is empty, or contains the delimiter of stored names, or the name is too long.
    """
    delimiter = delimiter_of(request)
    text = request.names["id"]
    if text in (delimiter, DELIMITER, ""):
        return ()
    parts = tuple(text.split(delimiter))
    is_long = len(text.encode()) > _LONGEST_NAME
    if is_long or not all(parts) or any(DELIMITER in part or not part.isprintable() for part in parts):
        raise RequestError("malformed name", where=request.path, expected="parts of a name", found=repr(text[:200]))
    return parts


def checked_body(request: HttpRequest, fields: Iterable[str]) -> dict[str, Any]:
    """Return the JSON body of a request.

    Args:
        request: The request.
        fields: Fields that the handler reads. Other fields are refused, because they could change the answer.

    Raises:
        RequestError: The body is not a JSON object, or names another table than the path.
        WrongTypeError: A field is unknown.
    """
    body = request.json()
    check_fields(request, body, fields)
    return body


def check_fields(request: HttpRequest, body: Mapping[str, Any], fields: Iterable[str]) -> None:
    """Check the names of a body's fields: see `checked_body`."""
    refuse_unknown(body, [*_COMMON, *fields], "body", "field")
    listed = body.get("id")
    if listed is not None and (not isinstance(listed, list) or tuple(listed) != requested_name(request)):
        raise RequestError("the body names another object than the path", where="id", found=repr(listed)[:200])


def requested_table(call: ServerCall, request: HttpRequest, body: Mapping[str, Any]) -> LanceDataset:
    """Open the table of a request at the version, tag or branch that its body names, or at the newest version.

    Requests without a JSON body name a branch in the query string.

    Raises:
        NotFoundError: The table, version, tag or branch does not exist.
        StoreError: The store does not have the version that the client has seen.
        RequestError: A field has the wrong type.
    """
    name = requested_name(request)
    version, tag = whole_of(body, "version"), text_of(body, "tag")
    branch = text_of(body, "branch") or request.parameters.get("branch")
    if tag is not None and (version is not None or branch is not None):
        raise RequestError("tag excludes version and branch", where="body")
    if version is None and tag is None and branch is None:
        return _newest(call, request, name)
    table = call.open(name)
    number: Version | None = tag if version is None else version
    reference: Any = number if branch in (None, "main") else (branch, number)
    if reference is None:
        return table
    subject = Subject.TAG if tag is not None else Subject.VERSION if version is not None else Subject.BRANCH
    with about(subject):
        return table.checkout_version(reference)


def answer_headers(table: LanceDataset) -> dict[str, str]:
    """Return the headers of an answer about a version of a table."""
    return {**CAPABILITIES, "x-lancedb-version": str(table.version)}


def page(names: Sequence[str], request: HttpRequest, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return one page of a sorted listing, and the token of the next page if there is one.

    The token is the last name of a page, so that names which come and go between two pages shift nothing.

    Args:
        names: All names.
        request: Has `limit` and `page_token` in its query string.
        body: May have them, too.

    Returns:
        {"names": […], "page_token": …}. The token is missing on the last page.

    Raises:
        RequestError: The limit is not a number from 1 on.
    """
    after = request.parameters.get("page_token") or text_of(body or {}, "page_token") or ""
    limit = most_listed(request, body or {})
    rest = [name for name in sorted(names) if name > after]
    if limit is None or len(rest) <= limit:
        return {"names": rest}
    return {"names": rest[:limit], "page_token": rest[limit - 1]}


def _newest(call: ServerCall, request: HttpRequest, name: tuple[str, ...]) -> LanceDataset:
    least = max((_number(request, header) for header in _LEAST), default=0)
    end = time.monotonic() + _WAIT
    while (table := call.open(name)).version < least:
        if time.monotonic() >= end:
            raise StoreError(
                "the store does not have the requested version yet", expected=f"version {least}", found=table.version
            )
        time.sleep(_PAUSE)
    return table


def _number(request: HttpRequest, header: str) -> int:
    text = request.headers.get(header, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise RequestError(f"malformed {header}", expected="a version number", found=text[:40])
    return int(text)
