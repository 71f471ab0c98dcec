"""The page of all tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

from lance_duck.errors import LanceDuckError
from lance_duck.namespaces import Namespace
from lance_duck.namespaces.catalog_objects import VIEW
from lance_duck.redact import shown
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.web.html import html_page
from lance_duck.serve.web.names import TableName, listed_tables, sql_name
from lance_duck.snapshot import Version

_ON_A_PAGE: Final = 100
_READERS: Final = 8


@dataclass(frozen=True)
class ListedTable:
    """A table, as the page lists it. The numbers are None if the table cannot be opened, or old files lack them.

    Attributes:
        name: Name.
        rows: Number of rows.
        columns: Number of columns.
        size: Size of the data files in bytes.
        version: Newest version.
        time: Commit time of this version in UTC.
        problem: Why the table cannot be opened, or "".
    """

    name: TableName
    rows: int | None = None
    columns: int | None = None
    size: int | None = None
    version: int | None = None
    time: datetime | None = None
    problem: str = ""


def answer_tables(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the page of all tables. Only their newest manifests are read."""
    skip = whole_number(request, "skip", 0)
    names, has_more = listed_tables(call.namespace, _ON_A_PAGE, skip)
    with ThreadPoolExecutor(_READERS) as pool:
        listed = list(pool.map(lambda name: _listed(call, name), names))
    call.check()
    groups = [(inside, list(group)) for inside, group in groupby(listed, lambda table: table.name[:-1])]
    return html_page(
        call.settings,
        "tables.html",
        groups=groups,
        views=[] if skip else _views(call.namespace),
        skip=skip,
        step=_ON_A_PAGE,
        has_more=has_more,
        count=len(listed),
    )


def whole_number(request: HttpRequest, name: str, default: int) -> int:
    """Return a field of the query string as a number. Raises RequestError."""
    text = request.parameters.get(name, "")
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise RequestError(f"malformed {name}", expected="a whole number", found=text[:40])
    return int(text)


def version_or_tag(request: HttpRequest, name: str = "version") -> Version | None:
    """Return the version that a field of the query string names: a number or a tag. None without the field.

    Raises:
        RequestError: The number is too long.
    """
    text = request.parameters.get(name) or None
    return whole_number(request, name, 0) if text and text.isascii() and text.isdigit() else text


def _views(namespace: Namespace) -> list[tuple[TableName, str]]:
    """Return the names of views, and a query of each."""
    names = sorted(key.name for key in namespace.catalog().objects if key.kind == VIEW)
    return [(name, f"FROM {sql} LIMIT 100") for name in names[:_ON_A_PAGE] if (sql := sql_name(name)) is not None]


def _listed(call: ServerCall, name: TableName) -> ListedTable:
    try:
        snapshot = call.open(name).handle.snapshot
        counts = snapshot.fragments.row_counts()
        return ListedTable(
            name,
            None if counts is None else sum(counts),
            len(snapshot.schema.fields),
            int(snapshot.manifest.summary()["total_files_size"]),
            snapshot.version,
            snapshot.timestamp,
        )
    except LanceDuckError as error:
        call.check()
        return ListedTable(name, problem=call.settings.without_place(shown(error)))
