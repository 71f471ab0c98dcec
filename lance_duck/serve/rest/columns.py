"""Routes that change columns, metadata, versions and tags.

| route (POST `/v1/table/{id}/…`) | body | answer |
|---|---|---|
| `add_columns` | `new_columns`: [{`name`, `expression`}], or an Arrow stream without rows for null columns | version |
| `alter_columns` | `alterations`: [{`path`, `rename`?, `nullable`?, `data_type`?}] | version |
| `drop_columns` | `columns` | version |
| `update_field_metadata` | `updates`: [{`path`, `metadata`, `replace`?}]; null removes a key | version, fields |
| `schema_metadata/update` | the new metadata itself: {name: text} | the metadata |
| `restore` | `version` | version |
| `tags/create`, `tags/update` | `tag`, `version` | {} |
| `tags/delete` | `tag` | {} |

`data_type` is a type as in the schema of `describe`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.problems import Subject, about
from lance_duck.serve.rest.change_fields import (
    needed_objects,
    needed_text,
    needed_texts,
    needed_whole,
    refuse_field,
)
from lance_duck.serve.rest.dialect import answer_headers, checked_body, requested_table
from lance_duck.serve.rest.fields import flag_of, object_of, text_of, wrong_field
from lance_duck.serve.rest.schema_json import schema_from_json


def add_columns(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Add columns with expressions over the other columns, or with nulls."""
    if "arrow" in request.headers.get("content-type", ""):
        return _changed(_opened(call, request, {}), _add_nulls(request))
    body = checked_body(request, ("new_columns", "branch"))
    columns = needed_objects(body, "new_columns", ("name", "expression", "computed", "virtual_column"))
    expressions = {}
    for column in columns:
        refuse_field(column, "computed", "computed columns are not served")
        refuse_field(column, "virtual_column", "virtual columns are not served")
        name = needed_text(column, "name")
        if name in expressions:
            raise RequestError("a column occurs twice", where="new_columns", found=name)
        expressions[name] = needed_text(column, "expression")
    return _changed(_opened(call, request, body), lambda table: table.add_columns(expressions))


def _add_nulls(request: HttpRequest) -> Callable[[LanceDataset], None]:
    reader = request.arrow()
    if sum(batch.num_rows for batch in reader):
        raise RequestError("new columns have rows", where=request.path, expected="a schema without rows")
    return lambda table: table.add_columns(reader.schema)


def alter_columns(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Rename columns, or change their types, or whether they may be null."""
    body = checked_body(request, ("alterations", "branch"))
    fields = ("path", "rename", "nullable", "data_type", "virtual_column")
    alterations = [_alteration(each) for each in needed_objects(body, "alterations", fields)]
    return _changed(_opened(call, request, body), lambda table: table.alter_columns(*alterations))


def _alteration(given: Mapping[str, Any]) -> dict[str, Any]:
    refuse_field(given, "virtual_column", "virtual columns are not served")
    type_ = object_of(given, "data_type")
    changes = {
        "path": needed_text(given, "path"),
        "name": text_of(given, "rename"),
        "nullable": flag_of(given, "nullable"),
        "data_type": None if type_ is None else _type_of(type_),
    }
    return {name: value for name, value in changes.items() if value is not None}


def _type_of(value: Mapping[str, Any]) -> pa.DataType:
    return schema_from_json({"fields": [{"name": "data_type", "nullable": True, "type": value}]}).field(0).type


def drop_columns(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Drop columns."""
    body = checked_body(request, ("columns", "branch"))
    columns = needed_texts(body, "columns")
    return _changed(_opened(call, request, body), lambda table: table.drop_columns(columns))


def update_field_metadata(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Change the metadata of fields, in one version for all fields with equal `replace`."""
    body = checked_body(request, ("updates", "branch"))
    updates: dict[str, dict[str, str | None]] = {}
    modes = set()
    for each in needed_objects(body, "updates", ("path", "metadata", "replace")):
        metadata = object_of(each, "metadata")
        if metadata is None or not all(isinstance(text, str | None) for text in metadata.values()):
            raise wrong_field("metadata", "an object of texts and nulls", metadata)
        updates.setdefault(needed_text(each, "path"), {}).update(metadata)
        modes.add(bool(flag_of(each, "replace")))
    if len(modes) > 1:
        raise RequestError("one request replaces and keeps metadata", where="replace", expected="one of both")
    table = _opened(call, request, body)
    table.update_field_metadata(updates, replace=modes.pop())
    fields = {path: _metadata_of(table, path) for path in updates}
    return json_answer({"version": table.version, "fields": fields}, headers=answer_headers(table))


def _metadata_of(table: LanceDataset, path: str) -> dict[str, str]:
    return dict(table.handle.snapshot.schema.by_path(path).metadata)


def update_schema_metadata(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Replace the metadata of a table's schema. The body and the answer are the metadata itself."""
    metadata = request.json()
    if not all(isinstance(text, str) for text in metadata.values()):
        raise wrong_field("body", "an object of texts", metadata)
    table = _opened(call, request, {})
    return json_answer(table.update_schema_metadata(metadata, replace=True), headers=answer_headers(table))


def restore_version(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Restore a version as the newest one."""
    body = checked_body(request, ("version", "branch"))
    needed_whole(body, "version")
    return _changed(requested_table(call, request, body), lambda table: table.restore())


def create_tag(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Create a tag of a version."""
    table, tag = _tagged(call, request)
    with about(Subject.TAG):
        table.tags.create(tag)
    return json_answer({}, headers=answer_headers(table))


def update_tag(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Move a tag to another version."""
    table, tag = _tagged(call, request)
    with about(Subject.TAG):
        table.tags.update(tag)
    return json_answer({}, headers=answer_headers(table))


def delete_tag(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Delete a tag. The version stays."""
    body = checked_body(request, ("tag",))
    tag, table = needed_text(body, "tag"), requested_table(call, request, {})
    with about(Subject.TAG):
        table.tags.delete(tag)
    return json_answer({}, headers=answer_headers(table))


def _tagged(call: ServerCall, request: HttpRequest) -> tuple[LanceDataset, str]:
    """Return the version that a tag shall name, and the tag."""
    body = checked_body(request, ("tag", "version", "branch"))
    tag = needed_text(body, "tag")
    needed_whole(body, "version")
    return requested_table(call, request, {**body, "tag": None}), tag


def _opened(call: ServerCall, request: HttpRequest, fields: Mapping[str, Any]) -> LanceDataset:
    return requested_table(call, request, {"branch": fields.get("branch")})


def _changed(table: LanceDataset, change: Callable[[LanceDataset], object]) -> HttpAnswer:
    """Change a table, and return its new version."""
    change(table)
    return json_answer({"version": table.version}, headers=answer_headers(table))


COLUMN_CHANGES: Final = tuple(
    HttpRoute("POST", f"/v1/table/{{id}}/{path}", handler, is_change=True)
    for path, handler in (
        ("add_columns", add_columns),
        ("alter_columns", alter_columns),
        ("drop_columns", drop_columns),
        ("update_field_metadata", update_field_metadata),
        ("schema_metadata/update", update_schema_metadata),
        ("restore", restore_version),
        ("tags/create", create_tag),
        ("tags/update", update_tag),
        ("tags/delete", delete_tag),
    )
)
"""Routes of this module."""
