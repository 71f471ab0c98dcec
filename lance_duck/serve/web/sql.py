"""SQL over HTTP: rows as JSON, CSV, Parquet or Arrow, and the page with the box for SQL.

POST /sql  {"query": …, "parameters": […] or {…}}      or the same fields of a form, with "parameters" as JSON
GET /sql?query=…                                        only reads

The header Accept chooses the format, or the field `format`: json, csv, parquet, arrow (a file) or arrows (a stream).

JSON    {"columns": [{"name", "type"}], "rows": [[…]], "truncated": bool, "seconds": number}
        Types are Arrow types. `truncated` says that further rows are missing. See `values` for the rows.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import duckdb
import pyarrow as pa

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import LanceDuckError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.statements import StatementRows, run_statements
from lance_duck.serve.http.answers import FILE, JSON, STREAM, HttpAnswer, StreamedAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.problems import HttpProblem
from lance_duck.serve.web.cells import shown_columns
from lance_duck.serve.web.formats import CSV, HTML, PARQUET, SAFE, rows_answer, wanted_format
from lance_duck.serve.web.html import html_page
from lance_duck.serve.web.names import listed_tables
from lance_duck.serve.web.plan import PREFIX, PlanTree, plan_tree
from lance_duck.serve.web.values import json_values

MOST_ROWS: Final = 1000
"""Maximum number of rows in JSON and on the page."""

_FIELDS: Final = ("query", "parameters", "format", "action")
_FORM: Final = "application/x-www-form-urlencoded"
_LISTED: Final = 200
_EXPLAIN: Final = re.compile(r"\s*explain\b", re.IGNORECASE)


@dataclass(frozen=True)
class StatementRequest:
    """The fields of a request.

    Attributes:
        query: The SQL text.
        parameters: Values of placeholders.
        format: Name of the format, or None.
        is_explain: Whether the page shows the plan in place of the rows.
        is_get: Whether changes are refused.
    """

    query: str
    parameters: Sequence[Any] | Mapping[str, Any] | None
    format: str | None
    is_explain: bool
    is_get: bool

    @classmethod
    def of(cls, request: HttpRequest) -> StatementRequest:
        """Read the fields. Raises RequestError."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_get = request.method == "GET"
        is_form = kind == _FORM and not request.body.lstrip().startswith(b"{")  # curl -d calls all bodies forms
        fields: Mapping[str, Any]
        if is_get or is_form:
            fields = request.parameters if is_get else request.form()
            parameters = _json_field(fields.get("parameters"))
        else:
            fields = request.json()
            refuse_unknown(fields, _FIELDS, "body", "field")
            parameters = fields.get("parameters")
        query, format_ = fields.get("query", ""), fields.get("format")
        is_missing = not is_get and "query" not in fields
        if is_missing or not isinstance(query, str) or not isinstance(format_, str | None):
            raise RequestError("malformed body", where=request.path, expected='{"query": "SELECT …"}')
        if not isinstance(parameters, list | dict | None):
            raise RequestError("malformed parameters", expected="a list, or an object", found=type(parameters).__name__)
        return cls(query.replace("\r\n", "\n"), parameters, format_, fields.get("action") == "explain", is_get)

    def run(self, call: ServerCall, prefix: str = "") -> StatementRows:
        """Run the statements: see `run_statements`."""
        reads_only = self.is_get or bool(prefix)
        return run_statements(call, prefix + self.query, self.parameters, reads_only=reads_only)


def answer_sql(call: ServerCall, request: HttpRequest) -> HttpAnswer | StreamedAnswer:
    """Run SQL, and answer in the format that the client accepts."""
    asked = StatementRequest.of(request)
    offered = (JSON, CSV, PARQUET, FILE, STREAM, *([HTML] if call.settings.web else []))
    kind = wanted_format(request.headers, asked.format, offered)
    if kind == HTML:
        return _page(call, asked)
    if kind == JSON:
        return _json(call, asked)
    rows = asked.run(call)
    settings = call.settings
    batches = call.limited(rows.batches, max_rows=settings.max_rows, max_bytes=settings.max_bytes)
    return rows_answer(rows.schema, batches, kind)


def first_rows(call: ServerCall, rows: StatementRows, limit: int) -> tuple[pa.Table, bool]:
    """Return the first rows of a statement, and whether it has more."""
    batches, count = [], 0
    with closing(rows.batches):
        for batch in call.limited(rows.batches, max_rows=1 << 62, max_bytes=call.settings.max_bytes):
            batches.append(batch.slice(0, limit - count))
            count += batch.num_rows
            if count > limit:
                break
    return pa.Table.from_batches(batches, rows.schema), count > limit


def _json(call: ServerCall, asked: StatementRequest) -> HttpAnswer:
    began = time.monotonic()
    table, is_truncated = first_rows(call, asked.run(call), MOST_ROWS)
    columns = [json_values(column.combine_chunks()) for column in table.columns]
    value = {
        "columns": [{"name": field.name, "type": str(field.type)} for field in table.schema],
        "rows": list(zip(*columns, strict=True)),
        "truncated": is_truncated,
        "seconds": round(time.monotonic() - began, 6),
    }
    return json_answer(value, headers={**SAFE, "vary": "Accept"})


def _page(call: ServerCall, asked: StatementRequest) -> HttpAnswer:
    """Return the page with the box, and with the rows, the plan or the error of its statement."""
    began = time.monotonic()
    values: dict[str, Any] = {"columns": None, "plan": None, "problem": None, "is_truncated": False, "row_count": 0}
    status = 200
    if asked.query.strip():
        try:
            if asked.is_explain and not _EXPLAIN.match(asked.query):
                values["plan"] = _plan(call, asked)
            else:
                table, values["is_truncated"] = first_rows(call, asked.run(call), MOST_ROWS)
                values |= {"columns": shown_columns(table), "row_count": table.num_rows}
        except (duckdb.Error, LanceDuckError) as error:
            reason = call.stopped(error)
            problem = HttpProblem.of(reason, "")
            if problem.status >= 500:
                raise reason from error
            status, values["problem"] = problem.status, call.settings.without_place(problem.text)
    values |= {"query": asked.query, "seconds": time.monotonic() - began, "most_rows": MOST_ROWS}
    names, _ = listed_tables(call.namespace, _LISTED)
    return html_page(call.settings, "sql.html", status=status, tables=names, **values)


def _plan(call: ServerCall, asked: StatementRequest) -> PlanTree:
    table, _ = first_rows(call, asked.run(call, PREFIX), MOST_ROWS)
    if table.num_columns != 2 or not table.num_rows:
        raise RequestError("one statement is explained at a time", remedy="explain the statements one by one")
    return plan_tree(call.settings.without_place(str(table.column(1)[0].as_py())))


def _json_field(text: str | None) -> Any:
    if not text or not text.strip():
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise RequestError("malformed parameters", expected="a JSON list or object", found=text[:40]) from None
