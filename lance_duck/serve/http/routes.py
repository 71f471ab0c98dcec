"""Maps paths to handlers.

A path is matched in its encoded form, with or without "/" at its end. Its parts are decoded once, afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from lance_duck.errors import LanceDuckError, NotFoundError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.answers import HttpAnswer, StreamedAnswer
from lance_duck.serve.http.request import HttpRequest

Handler = Callable[[ServerCall, HttpRequest], HttpAnswer | StreamedAnswer]


@dataclass(frozen=True)
class HttpRoute:
    """A path and its handler.

    Attributes:
        method: "GET" or "POST".
        path: Path such as "/v1/table/{id}/insert". A part in braces matches any text without "/".
        handler: Called in a worker thread.
        is_change: Whether the handler changes tables.
        takes_upload: Whether the handler reads the body itself, as a stream.
        is_open: Whether callers without a token may use it.
    """

    method: str
    path: str
    handler: Handler
    is_change: bool = False
    takes_upload: bool = False
    is_open: bool = False


class RouteTable:
    """A table of routes."""

    def __init__(self, routes: Iterable[HttpRoute]) -> None:
        self._routes: dict[tuple[str, ...], dict[str, HttpRoute]] = {}
        for route in routes:
            shape = tuple("{}" if part.startswith("{") else part for part in _parts(route.path))
            self._routes.setdefault(shape, {})[route.method] = route

    def get(self, method: str, path: str) -> tuple[HttpRoute, dict[str, str]] | None:
        """Return the route of an encoded path, and the decoded parts that it names. None if there is no such route."""
        parts = _parts(path)
        route = self._methods(parts).get(method)
        if route is None:
            return None
        named = zip(_parts(route.path), parts, strict=True)
        return route, {name[1:-1]: unquote(part) for name, part in named if name.startswith("{")}

    def missing(self, method: str, path: str) -> LanceDuckError:
        """Return the error for a path without a route: it is unknown, or needs another method."""
        methods = self._methods(_parts(path))
        if methods:
            return RequestError("wrong method", where=path, expected=" or ".join(methods), found=method)
        return NotFoundError("unknown path", where=path)

    def _methods(self, parts: tuple[str, ...]) -> Mapping[str, HttpRoute]:
        """Return the routes of a path, by method."""
        for shape, by_method in self._routes.items():
            if len(shape) == len(parts) and all(a in ("{}", b) for a, b in zip(shape, parts, strict=True)):
                return by_method
        return {}


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.strip("/").split("/"))
