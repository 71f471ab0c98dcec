"""Routes that change rows.

| route (POST `/v1/table/{id}/…`) | body and query string | answer |
|---|---|---|
| `create?mode=` | Arrow stream, possibly without batches; `create`, `exist_ok` or `overwrite` | location, version |
| `insert?mode=` | Arrow stream; `append` or `overwrite` | version, num_inserted_rows |
| `update` | `predicate`?, `updates`: [[column, expression], …] | version, rows_updated, updated_rows |
| `delete` | `predicate` | version, num_deleted_rows |
| `merge_insert?on=…` | Arrow stream; see `merge_rows` | version, numbers of rows, num_attempts |

Rows of an upload go to the writer while they arrive. An upload that ends too early commits nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.errors import AlreadyExistsError, DataMismatchError, IncompatibleError, NotFoundError
from lance_duck.namespaces.names import object_id
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.rest.change_fields import (
    check_parameters,
    missing_is_namespace,
    needed_text,
    refuse_field,
    word_of,
)
from lance_duck.serve.rest.dialect import answer_headers, checked_body, requested_name, requested_table
from lance_duck.serve.rest.fields import parameter_flag, text_of, wrong_field

_PATIENCE: Final = 30.0
"""Longest time in which a change is repeated after lost races, in seconds."""
_DURATION: Final = re.compile(r"(\d{1,9})(ms|s|m)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0}
_MERGE: Final = (
    *("on", "when_matched_update_all", "when_matched_update_all_filt", "when_not_matched_insert_all"),
    *("when_not_matched_by_source_delete", "when_not_matched_by_source_delete_filt", "use_index", "timeout"),
)


class UploadedRows:
    """The rows of an upload, counted while they are read.

    Args:
        call: Checked before each batch.
        request: Has the upload.

    Attributes:
        count: Number of rows so far.
        schema: Schema of the rows.
    """

    def __init__(self, call: ServerCall, request: HttpRequest) -> None:
        self.count = 0
        self._call = call
        self._reader = request.arrow()
        self.schema = self._reader.schema

    def reader(self) -> pa.RecordBatchReader:
        """Return the batches. They are read once."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for batch in self._reader:
            self._call.check()
            self.count += batch.num_rows
            yield batch
        self._call.check()


def create_table(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Create a table with the rows of an upload.

    With the mode "exist_ok", a table that exists stays as it is. Its columns must be those of the upload.
    """
    check_parameters(request, ("mode", "properties", "storage_options"))
    refuse_field(request.parameters, "properties", "tables of a folder have no properties")
    refuse_field(request.parameters, "storage_options", "the server has the settings of the store")
    name, mode = requested_name(request), word_of(request.parameters, "mode", ("create", "exist_ok", "overwrite"))
    rows = UploadedRows(call, request)
    if mode == "exist_ok" and (present := _present(call, name)) is not None:
        return _created(call, _with_columns(present, rows.schema))
    try:
        with missing_is_namespace():
            table = call.namespace.create_table(
                name, rows.reader(), "overwrite" if mode == "overwrite" else "create", vector_columns=[]
            )
    except AlreadyExistsError:
        present = _present(call, name) if mode == "exist_ok" else None
        if present is None:
            raise
        return _created(call, _with_columns(present, rows.schema))
    return _created(call, table)


def insert_rows(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Append the rows of an upload to a table, or replace its rows and columns."""
    check_parameters(request, ("mode",))
    mode = word_of(request.parameters, "mode", ("append", "overwrite"))
    table = requested_table(call, request, {})
    rows = UploadedRows(call, request)
    table.insert(rows.reader(), mode=mode)
    return _changed(call, request, table, num_inserted_rows=rows.count)


def update_rows(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Update rows with expressions over their old values."""
    body = checked_body(request, ("predicate", "updates", "branch", "properties"))
    refuse_field(body, "properties", "tables of a folder have no properties")
    table = requested_table(call, request, {"branch": body.get("branch")})
    result = table.update(_updates(body), text_of(body, "predicate") or None, retry_timeout=_patience(call))
    count = result["num_rows_updated"]
    return _changed(call, request, table, rows_updated=count, updated_rows=count)


def delete_rows(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Delete rows."""
    body = checked_body(request, ("predicate", "branch"))
    predicate = needed_text(body, "predicate")
    table = requested_table(call, request, {"branch": body.get("branch")})
    result = table.delete(predicate, retry_timeout=_patience(call))
    return _changed(call, request, table, num_deleted_rows=result["num_deleted_rows"])


def merge_rows(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Merge the rows of an upload into a table.

    Fields of the query string: `on`, once for each key column, by default the primary key; the flags
    `when_matched_update_all`, `when_not_matched_insert_all` and `when_not_matched_by_source_delete`; conditions in the
    first and the last with `_filt`; `use_index`; `timeout`, such as "30s".
    """
    check_parameters(request, _MERGE)
    parameters = request.parameters
    table = requested_table(call, request, {})
    merge = table.merge_insert(request.listed("on") or None)
    if parameter_flag(request, "when_matched_update_all"):
        merge.when_matched_update_all(parameters.get("when_matched_update_all_filt") or None)
    else:
        refuse_field(parameters, "when_matched_update_all_filt", "a condition of rows that are not updated")
    if parameter_flag(request, "when_not_matched_insert_all"):
        merge.when_not_matched_insert_all()
    if parameter_flag(request, "when_not_matched_by_source_delete"):
        merge.when_not_matched_by_source_delete(parameters.get("when_not_matched_by_source_delete_filt") or None)
    else:
        refuse_field(parameters, "when_not_matched_by_source_delete_filt", "a condition of rows that are not deleted")
    merge.use_index(parameter_flag(request, "use_index", default=True))
    merge.retry_timeout(_patience(call, parameters.get("timeout")))
    result = merge.execute(UploadedRows(call, request).reader())
    num_rows = result["num_inserted_rows"] + result["num_updated_rows"]
    return _changed(call, request, table, **result, num_rows=num_rows, num_attempts=1)


def _present(call: ServerCall, name: tuple[str, ...]) -> LanceDataset | None:
    """Return a table that has a version, or None."""
    try:
        return call.open(name)
    except NotFoundError:
        return None


def _with_columns(table: LanceDataset, schema: pa.Schema) -> LanceDataset:
    """Return a table. Raises DataMismatchError if its columns are not those of a schema."""
    if not schema.equals(table.schema):
        raise DataMismatchError(
            "the table exists with other columns", expected=str(table.schema)[:500], found=str(schema)[:500]
        )
    return table


def _created(call: ServerCall, table: LanceDataset) -> HttpAnswer:
    location = {"location": table.uri} if call.settings.locations else {}
    return json_answer({**location, "version": table.version}, headers=answer_headers(table))


def _changed(call: ServerCall, request: HttpRequest, table: LanceDataset, **counts: int) -> HttpAnswer:
    """Return the answer of a change.

    Raises:
        IncompatibleError: The table was dropped or renamed meanwhile, so the change may be lost.
    """
    name = requested_name(request)
    try:
        is_same = call.namespace.describe_table(name).location == table.uri or bool(table.handle.snapshot.branch)
    except NotFoundError:
        is_same = False
    if not is_same:
        raise IncompatibleError("the table was dropped or renamed during the change", where=object_id(name))
    return json_answer({"version": table.version, **counts}, headers=answer_headers(table))


def _updates(body: dict[str, Any]) -> dict[str, str]:
    """Return expressions by column, from a list of pairs."""
    pairs = body.get("updates")
    if not isinstance(pairs, list) or not pairs or not all(_is_pair(pair) for pair in pairs):
        raise wrong_field("updates", "a list of pairs of a column and an expression", pairs)
    updates = dict(pairs)
    if len(updates) < len(pairs):
        raise wrong_field("updates", "each column once", [column for column, _ in pairs])
    return updates


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(each, str) for each in value)


def _patience(call: ServerCall, text: str | None = None) -> timedelta:
    """Return the time in which a change may be repeated.

    Args:
        call: Has a deadline.
        text: A duration such as "30s", or None.
    """
    match = _DURATION.fullmatch(text) if text else None
    if text and match is None:
        raise wrong_field("timeout", "a duration such as 30s", text)
    asked = _PATIENCE if match is None else int(match[1]) * _SECONDS[match[2]]
    return timedelta(seconds=min(asked, call.seconds_left))


WRITES: Final = (
    HttpRoute("POST", "/v1/table/{id}/create", create_table, is_change=True, takes_upload=True),
    HttpRoute("POST", "/v1/table/{id}/insert", insert_rows, is_change=True, takes_upload=True),
    HttpRoute("POST", "/v1/table/{id}/update", update_rows, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/delete", delete_rows, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/merge_insert", merge_rows, is_change=True, takes_upload=True),
)
"""Routes of this module."""
