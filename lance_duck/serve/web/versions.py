"""The page of a table's versions, and the comparison of two."""

from __future__ import annotations

from typing import Any, Final

from lance_duck.duck.statement.identifiers import literal
from lance_duck.namespaces.names import name_parts
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.web.changes import changes_between, version_entries
from lance_duck.serve.web.html import html_page
from lance_duck.serve.web.names import TableName, sql_name
from lance_duck.serve.web.table import open_version
from lance_duck.serve.web.tables import whole_number
from lance_duck.snapshot import Snapshot

_ON_A_PAGE: Final = 25


def answer_versions(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the page of versions. If the request names two, it compares their manifests."""
    name = name_parts(request.names["t"])
    snapshot = call.open(name).handle.snapshot
    skip = whole_number(request, "skip", 0)
    numbers = snapshot.version_numbers()[::-1]
    shown = numbers[skip : skip + _ON_A_PAGE]
    before = numbers[skip + len(shown)] if skip + len(shown) < len(numbers) else None
    comparison = None
    if request.parameters.get("from") and request.parameters.get("to"):
        pair = (open_version(call, name, request, field).handle.snapshot for field in ("from", "to"))
        comparison = _comparison(name, *sorted(pair, key=lambda each: each.version))
    return html_page(
        call.settings,
        "versions.html",
        name=name,
        versions=version_entries(snapshot, shown, before),
        comparison=comparison,
        chosen=_chosen(comparison, shown),
        skip=skip,
        step=_ON_A_PAGE,
        count=len(numbers),
    )


def _chosen(comparison: dict[str, Any] | None, shown: list[int]) -> tuple[int, int]:
    """Return the versions that the form has selected: the compared ones, or the newest two."""
    if comparison is not None:
        return comparison["older"].version, comparison["newer"].version
    newest = [*shown, 0, 0]
    return newest[1] or newest[0], newest[0]


def _comparison(name: TableName, older: Snapshot, newer: Snapshot) -> dict[str, Any]:
    first, last = older.version + 1, newer.version
    function = f"lance_table_changes({literal('.'.join(name))}, {first}, {last})"
    is_listed = sql_name(name) is not None and first <= last and older.branch == newer.branch
    return {
        "older": older,
        "newer": newer,
        "changes": changes_between(older, newer),
        "counts": [each.fragments.row_counts() for each in (older, newer)],
        "sizes": [int(each.manifest.summary()["total_files_size"]) for each in (older, newer)],
        "sql": f"FROM {function} LIMIT 100" if is_listed else None,
    }
