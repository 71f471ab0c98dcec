"""Routes that describe tables, their versions and their tags. {t} is /v1/table/{id}.

| path | body | answer |
|---|---|---|
| POST {t}/describe | {"version"? or "tag"?} | {"table", "namespace", "location", "version", "schema", "stats", …} |
| POST {t}/exists | {"version"?} | {}, or status 404 |
| POST {t}/stats | {} | {"total_bytes", "num_rows", "num_indices", "fragment_stats"} |
| POST {t}/version/list | {} | {"versions": [version, …], "page_token"?} |
| POST {t}/version/describe | {"version"?} | {"version": version} |
| POST {t}/tags/list | {} | LanceDB {name: tag}, others {"tags": {name: tag}, "page_token"?} |
| POST {t}/tags/version | {"tag"} | {"version", "branch"?} |
| GET /v1/namespace/{id}/table/list | | {"tables": [name, …], "page_token"?} |
| GET /v1/table | | the same: LanceDB the root's tables, others all tables with their whole names |

Listings take `limit` and `page_token`, listings of versions also `descending`. Tables that are declared and have no
version yet are listed, unless `include_declared` is false. They have no `version` and `schema`, and for LanceDB they do
not exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lance_duck.errors import NotFoundError
from lance_duck.namespaces.base import TableDescription
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import ForbiddenError
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.dialect import (
    CAPABILITIES,
    answer_headers,
    checked_body,
    delimiter_of,
    is_lancedb,
    page,
    requested_name,
    requested_table,
)
from lance_duck.serve.rest.fields import flag_of, most_listed, parameter_flag, text_of, wrong_field
from lance_duck.serve.rest.schema_json import json_of_schema
from lance_duck.snapshot.versions import load_all
from lance_duck.store import local_path
from lance_duck.wire.manifest import Manifest

_DESCRIBE: Final = ("with_table_uri", "load_detailed_metadata", "check_declared", "vend_credentials")
_SMALL: Final = 100_000
"""Rows of a fragment below which LanceDB calls it small."""


def describe_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the location, schema and version of a table."""
    body = checked_body(request, ("version", "tag", "branch", *_DESCRIBE))
    for flag in _DESCRIBE:
        flag_of(body, flag)
    name = requested_name(request)
    place = call.namespace.describe_table(name)
    answer: dict[str, Any] = {
        "table": name[-1],
        "namespace": list(name[:-1]),
        "properties": dict(place.properties),
        **_location(call, place),
    }
    try:
        table = requested_table(call, request, body)
    except NotFoundError:
        names_version = any(body.get(field) is not None for field in ("version", "tag", "branch"))
        if is_lancedb(request) or names_version or not call.namespace.is_declared_only(place):
            raise
        return json_answer({**answer, "is_only_declared": True}, headers=CAPABILITIES)
    stats = table.stats.dataset_stats()
    answer |= {
        "version": table.version,
        "schema": json_of_schema(table.schema),
        "stats": {name: stats[name] for name in ("num_deleted_rows", "num_fragments")},
        "metadata": table.metadata,
        "is_only_declared": False,
    }
    return json_answer(answer, headers=answer_headers(table))


def table_exists(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Answer {} if a table exists."""
    body = checked_body(request, ("version",))
    if body.get("version") is None:
        call.namespace.describe_table(requested_name(request))
    else:
        requested_table(call, request, body)
    return json_answer({}, headers=CAPABILITIES)


def table_stats(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the sizes of a table."""
    table = requested_table(call, request, checked_body(request, ("branch",)))
    snapshot, indexes = table.handle.snapshot, table.describe_indices()
    lengths = sorted(snapshot.physical_rows(fragment) for fragment in snapshot.fragments)
    data_size = int(snapshot.manifest.summary().get("total_files_size", 0))
    answer = {
        "total_bytes": data_size + sum(index.total_size_bytes or 0 for index in indexes),
        "num_rows": table.count_rows(),
        "num_indices": len(indexes),
        "fragment_stats": {
            "num_fragments": len(lengths),
            "num_small_fragments": sum(length < _SMALL for length in lengths),
            "lengths": _summary(lengths),
        },
    }
    return json_answer(answer, headers=answer_headers(table))


def list_versions(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the versions of a table, oldest first unless `descending` is true."""
    body = checked_body(request, ("branch", "limit", "page_token", "descending"))
    branch = body.get("branch") or request.parameters.get("branch")
    table = requested_table(call, request, {"branch": branch})
    descending = bool(flag_of(body, "descending")) or parameter_flag(request, "descending")
    manifests = sorted(load_all(table.handle.snapshot.store), key=lambda each: each.version, reverse=descending)
    after = _version_after(request, body)
    if after is not None:
        manifests = [each for each in manifests if (each.version < after if descending else each.version > after)]
    limit = most_listed(request, body)
    listed = manifests if limit is None else manifests[:limit]
    answer: dict[str, Any] = {"versions": [_version(call, each) for each in listed]}
    if len(listed) < len(manifests):
        answer["page_token"] = str(listed[-1].version)
    return json_answer(answer, headers=answer_headers(table))


def describe_version(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return one version of a table."""
    body = checked_body(request, ("version", "branch"))
    table = requested_table(call, request, body)
    return json_answer({"version": _version(call, table.handle.snapshot.manifest)}, headers=answer_headers(table))


def list_tags(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the tags of a table."""
    body = checked_body(request, ("branch", "limit", "page_token"))
    table = requested_table(call, request, {})
    tags = table.tags.list()
    listed = page(list(tags), request, body)
    named = {name: _tag(tags[name]) for name in listed.pop("names")}
    return json_answer(named if is_lancedb(request) else {"tags": named, **listed}, headers=answer_headers(table))


def tag_version(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the version of a tag."""
    body = checked_body(request, ("tag",))
    tag = text_of(body, "tag")
    if tag is None:
        raise wrong_field("tag", "the name of a tag", None)
    table = requested_table(call, request, {})
    tags = table.tags.list()
    if tag not in tags:
        with about(Subject.TAG):
            raise NotFoundError("no such tag", where=tag[:200])
    entry = _tag(tags[tag])
    return json_answer({name: entry[name] for name in ("version", "branch") if name in entry}, headers=CAPABILITIES)


def list_tables(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the tables of a namespace."""
    name = requested_name(request)
    with about(Subject.NAMESPACE):
        tables = call.namespace.list_tables(name)
    if not parameter_flag(request, "include_declared", True):
        tables = [table for table in tables if _has_version(call, (*name, table))]
    return _listed(tables, request)


def list_all_tables(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the tables of the root for LanceDB, and for others also the tables of all namespaces."""
    names = [(table,) for table in call.namespace.list_tables(())] if is_lancedb(request) else [*_all_tables(call, ())]
    if not parameter_flag(request, "include_declared", True):
        names = [name for name in names if _has_version(call, name)]
    return _listed([delimiter_of(request).join(name) for name in names], request)


TABLES: Final = (
    HttpRoute("POST", "/v1/table/{id}/describe", describe_table),
    HttpRoute("POST", "/v1/table/{id}/exists", table_exists),
    HttpRoute("POST", "/v1/table/{id}/stats", table_stats),
    HttpRoute("POST", "/v1/table/{id}/version/list", list_versions),
    HttpRoute("POST", "/v1/table/{id}/version/describe", describe_version),
    HttpRoute("POST", "/v1/table/{id}/tags/list", list_tags),
    HttpRoute("POST", "/v1/table/{id}/tags/version", tag_version),
    HttpRoute("GET", "/v1/namespace/{id}/table/list", list_tables),
    HttpRoute("GET", "/v1/table", list_all_tables),
)


def _location(call: ServerCall, place: TableDescription) -> dict[str, str]:
    """Return the location of a table as a path or URI, and as a URI. Empty if the settings hide locations."""
    if not call.settings.locations:
        return {}
    path = local_path(place.location)
    if path is None:
        return {"location": place.location, "table_uri": place.location}
    absolute = os.path.abspath(path)
    return {"location": absolute, "table_uri": Path(absolute).as_uri()}


def _version(call: ServerCall, manifest: Manifest) -> dict[str, Any]:
    return {
        "version": manifest.version,
        "manifest_path": manifest.path if call.settings.locations else manifest.path.rpartition("/")[2],
        "manifest_size": manifest.size,
        "timestamp": manifest.timestamp.isoformat(),
        "timestamp_millis": int(manifest.timestamp.timestamp() * 1000),
        "metadata": manifest.summary(),
    }


def _version_after(request: HttpRequest, body: Mapping[str, Any]) -> int | None:
    token = request.parameters.get("page_token") or text_of(body, "page_token")
    if not token:
        return None
    if not (token.isascii() and token.isdigit() and len(token) < 20):
        raise wrong_field("page_token", "a token of an earlier page", token)
    return int(token)


def _tag(entry: Mapping[str, Any]) -> dict[str, Any]:
    branch = {"branch": entry["branch"]} if entry.get("branch") else {}
    return {"version": entry["version"], "manifestSize": entry["manifest_size"], **branch}


def _summary(lengths: Sequence[int]) -> dict[str, int]:
    """Return the distribution of sorted numbers."""
    if not lengths:
        return dict.fromkeys(("min", "max", "mean", "p25", "p50", "p75", "p99"), 0)
    ranks = {"p25": 0.25, "p50": 0.5, "p75": 0.75, "p99": 0.99}
    last = len(lengths) - 1
    return {
        "min": lengths[0],
        "max": lengths[last],
        "mean": sum(lengths) // len(lengths),
        **{name: lengths[min(last, int(share * len(lengths)))] for name, share in ranks.items()},
    }


def _has_version(call: ServerCall, name: tuple[str, ...]) -> bool:
    call.check()
    try:
        return not call.namespace.is_declared_only(call.namespace.describe_table(name))
    except (NotFoundError, ForbiddenError):  # a table outside has none for callers
        return False


def _all_tables(call: ServerCall, name: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    call.check()
    yield from ((*name, table) for table in call.namespace.list_tables(name))
    for child in call.namespace.list_namespaces(name):
        yield from _all_tables(call, (*name, child))


def _listed(names: Sequence[str], request: HttpRequest) -> HttpAnswer:
    listed = page(names, request)
    return json_answer({"tables": listed.pop("names"), **listed}, headers=CAPABILITIES)
