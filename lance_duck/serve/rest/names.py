"""Routes that change names, and routes of namespaces.

| route | body | answer |
|---|---|---|
| POST `/v1/table/{id}/declare` | `location`? | location |
| POST `/v1/table/{id}/register` | `location`, `mode`? | location |
| POST `/v1/table/{id}/deregister`, `…/drop` | | id, location |
| POST `/v1/table/{id}/rename` | `new_table_name`, `new_namespace_id`? (LanceDB: `new_namespace`) | {} |
| POST `/v1/namespace/{id}/create` | `mode`? ("Create", "ExistOk"), `properties`? | properties |
| POST `/v1/namespace/{id}/describe` | | properties |
| GET `/v1/namespace/{id}/list` | query string: `limit`?, `page_token`? | namespaces, page_token |
| POST `/v1/namespace/{id}/exists` | | {}; 404 if it does not exist |
| POST `/v1/namespace/{id}/drop` | `mode`? ("Fail", "Skip"), `behavior`? ("Restrict", "Cascade") | properties |

With `locations` off, no answer has a location. `declare` and `register` are then refused, because their callers would
write and read the store themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lance_duck import forks
from lance_duck.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from lance_duck.namespaces.names import object_id
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.change_fields import (
    missing_is_namespace,
    needed_text,
    refuse_field,
    text_by_name,
    word_of,
)
from lance_duck.serve.rest.dialect import answer_headers, checked_body, page, requested_name
from lance_duck.serve.rest.fields import text_of, texts_of, wrong_field


def declare_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Reserve a name, and return the location for the table's first version."""
    _check_has_locations(call)
    body = checked_body(request, ("location", "properties", "vend_credentials"))
    refuse_field(body, "properties", "tables of a folder have no properties")
    name, wanted = requested_name(request), text_of(body, "location")
    if wanted is not None:
        _check_location(call, name, wanted)
    with missing_is_namespace():
        place = call.namespace.declare_table(name)
    return json_answer({"location": place.location, "managed_versioning": False})


def _check_location(call: ServerCall, name: tuple[str, ...], wanted: str) -> None:
    """Check that a table would get the location that a client asks for."""
    own = f"{call.settings.place.rstrip('/')}/{name[-1]}.lance"
    if len(name) != 1 or wanted.rstrip("/").removeprefix("file://") != own.removeprefix("file://"):
        raise UnsupportedError("the server chooses the location of a new table", where="location", found=wanted)


_REGISTRATION: Final = forks.Lock()
"""Lock for the check of a location and its registration. Two requests could otherwise give one folder two names."""


def register_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Give a name to a table that is a folder below the root.

    Raises:
        AlreadyExistsError: Another name has the folder.
        NotFoundError: The folder is not a table.
    """
    _check_has_locations(call)
    body = checked_body(request, ("location", "mode", "properties"))
    refuse_field(body, "properties", "tables of a folder have no properties")
    if word_of(body, "mode", ("create", "overwrite")) == "overwrite":
        raise UnsupportedError("a name cannot be registered again", where="mode", remedy="deregister it first")
    name, location = requested_name(request), needed_text(body, "location")
    inside = location.removeprefix(call.settings.place.rstrip("/") + "/")
    with _REGISTRATION:
        others = call.namespace.names_sharing(inside) - {object_id(name)}
        if others:
            raise AlreadyExistsError("another table has this location", where=min(others), remedy="deregister it first")
        with missing_is_namespace():
            call.namespace.register_table(name, inside)
    try:
        table = call.open(name)
    except BaseException:
        call.namespace.deregister_table(name)
        raise
    return json_answer({"location": table.uri}, headers=answer_headers(table))


def deregister_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Remove the name of a table, and keep its files."""
    return _removed(call, request, call.namespace.deregister_table)


def drop_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Remove a table with its files. Files that another name shares stay."""
    return _removed(call, request, call.namespace.drop_table)


def rename_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Rename a table, or move it to another namespace."""
    body = checked_body(request, ("new_table_name", "new_namespace_id", "new_namespace"))
    name, new = requested_name(request), needed_text(body, "new_table_name")
    spaces = [texts_of(body, field) for field in ("new_namespace_id", "new_namespace")]
    parent = next((tuple(space) for space in spaces if space is not None), name[:-1])
    if spaces[0] is not None and spaces[1] is not None and spaces[0] != spaces[1]:
        raise RequestError("two namespaces", where=request.path, found="new_namespace_id and new_namespace")
    call.namespace.describe_table(name)  # otherwise the namespace is missing
    with missing_is_namespace():
        call.namespace.rename_table(name, (*parent, new))
    return json_answer({})


def create_namespace(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Create a namespace."""
    body = checked_body(request, ("mode", "properties"))
    mode, properties = word_of(body, "mode", ("create", "exist_ok", "overwrite")), text_by_name(body, "properties")
    if mode == "overwrite":
        raise UnsupportedError("a namespace cannot be overwritten", where="mode", remedy="drop it first")
    name = requested_name(request)
    with about(Subject.NAMESPACE):
        call.namespace.create_namespace(name, properties, exist_ok=mode == "exist_ok")
        return json_answer({"properties": call.namespace.describe_namespace(name)})


def describe_namespace(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the properties of a namespace."""
    checked_body(request, ())
    with about(Subject.NAMESPACE):
        return json_answer({"properties": call.namespace.describe_namespace(requested_name(request))})


def namespace_exists(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return nothing, or an error if a namespace does not exist."""
    describe_namespace(call, request)
    return json_answer({})


def list_namespaces(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the names of the namespaces directly in a namespace."""
    with about(Subject.NAMESPACE):
        found = page(call.namespace.list_namespaces(requested_name(request)), request)
    return json_answer({"namespaces": found.pop("names"), **found})


def drop_namespace(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Drop a namespace. "Cascade" also drops its contents."""
    body = checked_body(request, ("mode", "behavior"))
    mode, behavior = word_of(body, "mode", ("fail", "skip")), word_of(body, "behavior", ("restrict", "cascade"))
    name = requested_name(request)
    if not name:
        raise wrong_field("id", "a namespace other than the root", "the root")
    try:
        with about(Subject.NAMESPACE):
            properties = call.namespace.describe_namespace(name)
            call.namespace.drop_namespace(name, cascade=behavior == "cascade")
    except NotFoundError:
        if mode == "fail":
            raise
        properties = {}
    return json_answer({"properties": properties})


def _check_has_locations(call: ServerCall) -> None:
    if not call.settings.locations:
        raise UnsupportedError("the server keeps the locations of tables to itself", remedy="send the rows to it")


def _removed(call: ServerCall, request: HttpRequest, remove: Callable[[tuple[str, ...]], None]) -> HttpAnswer:
    """Remove a name, and return it with its location."""
    checked_body(request, ())
    name = requested_name(request)
    place = call.namespace.describe_table(name)
    remove(name)
    answer: Mapping[str, Any] = {"id": list(name)}
    return json_answer({**answer, "location": place.location} if call.settings.locations else answer)


NAMES: Final = (
    HttpRoute("POST", "/v1/table/{id}/declare", declare_table, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/register", register_table, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/deregister", deregister_table, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/drop", drop_table, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/rename", rename_table, is_change=True),
    HttpRoute("POST", "/v1/namespace/{id}/create", create_namespace, is_change=True),
    HttpRoute("POST", "/v1/namespace/{id}/drop", drop_namespace, is_change=True),
    HttpRoute("POST", "/v1/namespace/{id}/describe", describe_namespace),
    HttpRoute("POST", "/v1/namespace/{id}/exists", namespace_exists),
    HttpRoute("GET", "/v1/namespace/{id}/list", list_namespaces),
)
"""Routes of this module."""
