"""The paths of the REST namespace."""

from __future__ import annotations

from typing import Final

from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute


def list_tables(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the names of the tables."""
    return json_answer({"tables": call.namespace.list_tables(request.names["id"])})


ROUTES: Final = (HttpRoute("GET", "/v1/namespace/{id}/table/list", list_tables),)
