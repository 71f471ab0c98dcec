"""Renders templates to pages, with the headers that every page has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from lance_duck.errors import NotFoundError, UnsupportedError, install_extra
from lance_duck.markup import size_text
from lance_duck.namespaces.names import object_id
from lance_duck.redact import shown
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.problems import HttpProblem
from lance_duck.serve.web.formats import HTML, SAFE

try:
    import jinja2
except ModuleNotFoundError as error:
    raise UnsupportedError("the pages need the package jinja2", remedy=install_extra("serve")) from error

_HERE: Final = Path(__file__).parent
_ASSETS: Final[Mapping[str, tuple[str, bytes]]] = {
    name: (media_type, (_HERE / "static" / name).read_bytes())
    for name, media_type in (("style.css", "text/css; charset=utf-8"), ("page.js", "text/javascript; charset=utf-8"))
}
_PAGE: Final[Mapping[str, str]] = {
    **SAFE,
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "cache-control": "private, no-cache",
    "vary": "Accept, Cookie",
}
_TITLES: Final[Mapping[int, str]] = {
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    413: "Too large",
    422: "This took too long",
    429: "The server is busy",
    503: "The server cannot answer now",
}


def html_page(settings: ServeSettings, template: str, *, status: int = 200, **values: Any) -> HttpAnswer:
    """Render a template.

    Args:
        settings: Settings of the server.
        template: File name of the template.
        status: HTTP status.
        values: Values that the template shows.
    """
    place = shown(settings.place).rstrip("/").rpartition("/")[2]
    text = _ENVIRONMENT.get_template(template).render(settings=settings, place=place, **values)
    return HttpAnswer(text.encode(errors="replace"), f"{HTML}; charset=utf-8", status, _PAGE)


def asset(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the style sheet or the script. Raises NotFoundError."""
    if request.names["name"] not in _ASSETS:
        raise NotFoundError("no such file", where=request.path)
    media_type, body = _ASSETS[request.names["name"]]
    headers = {**SAFE, "cache-control": "public, max-age=31536000, immutable"}
    return HttpAnswer(body, media_type, headers=headers)


def problem_page(settings: ServeSettings, problem: HttpProblem, path: str) -> HttpAnswer:
    """Return the page of an error. A browser without a valid token goes to the login page.

    Args:
        settings: Settings of the server.
        problem: The error.
        path: Path of the request, with its query.
    """
    if problem.status == 401:
        return redirect(f"/login?{urlencode({'next': path})}")
    title = _TITLES.get(problem.status, "Something failed" if problem.status >= 500 else "This did not work")
    text = settings.without_place(problem.text)
    return html_page(settings, "problem.html", status=problem.status, title=title, text=text)


def accepts_html(headers: Mapping[str, str]) -> bool:
    """Return whether a request comes from a browser that shows a page."""
    return HTML in headers.get("accept", "")


def redirect(target: str, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return an answer that sends a browser to a path of this server."""
    return HttpAnswer(b"", HTML, 303, {**SAFE, "location": target, "cache-control": "no-store", **(headers or {})})


def table_path(name: Sequence[str], *further: str, **parameters: Any) -> str:
    """Return the path of a table's page, such as "/table/t/versions?from=1"."""
    path = "/".join(["/table", quote(object_id(name), safe=""), *further])
    given = {key.rstrip("_"): value for key, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _time(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"


def _asset_path(name: str) -> str:
    return f"/static/{name}?v={sha256(_ASSETS[name][1]).hexdigest()[:12]}"


_ENVIRONMENT: Final = jinja2.Environment(
    loader=jinja2.FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_ENVIRONMENT.filters.update({"number": _number, "size": size_text, "time": _time})
_ENVIRONMENT.globals.update({"asset": _asset_path, "table_path": table_path})
