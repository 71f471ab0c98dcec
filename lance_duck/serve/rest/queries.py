"""Routes that read rows. All are POST below /v1/table/{id}.

| path | body | answer |
|---|---|---|
| /query | see `query_request` | Arrow: a stream for LanceDB, a file for others |
| /count_rows | {"predicate"?, "version"?} | the number |
| /explain_plan | {"query": …, "verbose"?} | the plan, as a JSON text |
| /analyze_plan | see `query_request` | the plan with what it read, as a JSON text |

Rows are sent as the plan produces them. `max_rows` and `max_bytes` of the settings limit an answer. A search that may
exceed `max_rows` is refused before it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.errors import UnsupportedError
from lance_duck.scan.nearest.options import DEFAULT_K, only_vector_column
from lance_duck.scan.scanner import LanceScanner
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.refusals import LimitError
from lance_duck.serve.http.answers import FILE, STREAM, HttpAnswer, StreamedAnswer, arrow_answer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.rest.dialect import answer_headers, check_fields, checked_body, is_lancedb, requested_table
from lance_duck.serve.rest.fields import flag_of, object_of, text_of, wrong_field
from lance_duck.serve.rest.query_request import FIELDS, QueryRequest
from lance_duck.serve.rest.text_tree import completed_tree
from lance_duck.wire.column_path import quoted_name


def query_rows(call: ServerCall, request: HttpRequest) -> StreamedAnswer:
    """Return the rows of a query."""
    body = checked_body(request, FIELDS)
    query = QueryRequest.of(body)
    table = requested_table(call, request, body)
    scanner = _scanner(call, table, query)
    media_type = STREAM if is_lancedb(request) else FILE
    schema = scanner.projected_schema
    batches = _limited(call, scanner)
    if scanner.is_batch and query.offset:
        batches = _without_first(batches, query.offset)
    if media_type == FILE and any(_has_dictionary(field.type) for field in schema):
        batches = _with_one_dictionary(schema, batches)
    return arrow_answer(schema, batches, media_type, answer_headers(table))


def count_rows(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the number of rows, or of the rows that pass a condition."""
    body = checked_body(request, ("predicate", "version", "branch"))
    condition = text_of(body, "predicate")
    table = requested_table(call, request, body)
    return json_answer(table.count_rows(condition), headers=answer_headers(table))


def explain_plan(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the plan of a query."""
    body = checked_body(request, ("query", "verbose", "branch"))
    query = object_of(body, "query")
    if query is None:
        raise wrong_field("query", "a query", None)
    check_fields(request, query, FIELDS)
    verbose, parsed = bool(flag_of(body, "verbose")), QueryRequest.of(query)
    branch = {"branch": body["branch"]} if body.get("branch") is not None else {}
    table = requested_table(call, request, {**query, **branch})
    return _plan_answer(call, table, _scanner(call, table, parsed).explain_plan(verbose))


def analyze_plan(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Run a query, and return its plan."""
    body = checked_body(request, FIELDS)
    query = QueryRequest.of(body)
    table = requested_table(call, request, body)
    return _plan_answer(call, table, _scanner(call, table, query).analyze_plan())


QUERIES: Final = (
    HttpRoute("POST", "/v1/table/{id}/query", query_rows),
    HttpRoute("POST", "/v1/table/{id}/count_rows", count_rows),
    HttpRoute("POST", "/v1/table/{id}/explain_plan", explain_plan),
    HttpRoute("POST", "/v1/table/{id}/analyze_plan", analyze_plan),
)


def _plan_answer(call: ServerCall, table: LanceDataset, plan: str) -> HttpAnswer:
    if not call.settings.locations:
        plan = call.settings.without_place(plan)
    return json_answer(str(plan), headers=answer_headers(table))


def _scanner(call: ServerCall, table: LanceDataset, query: QueryRequest) -> LanceScanner:
    """Return the scan or search of a query.

    Raises:
        InvalidInputError: The query does not fit the table.
        LimitError: The query may have more rows than an answer may have.
        UnsupportedError: Several vectors are combined with an offset and an order.
    """
    rows = table.count_rows()
    is_search = query.vectors is not None or query.words is not None
    default = DEFAULT_K if is_search else None
    k = default if query.k is None else min(query.k, rows)
    query = replace(query, offset=min(query.offset, rows), k=k)
    most = min(rows - query.offset, rows if k is None else k) * (len(query.vectors or ()) if query.is_batch else 1)
    if most > call.settings.max_rows and (is_search or query.filter is None):
        raise LimitError(
            "the answer may have too many rows",
            expected=f"at most {call.settings.max_rows}",
            found=most,
            remedy="ask for fewer rows",
        )
    arguments = _arguments(table, query)
    if query.is_batch:
        scanner: LanceScanner = table.scan(**arguments)
        if scanner.is_batch:  # `k` limits the rows of each vector
            if query.offset and query.order_by:
                raise UnsupportedError("order_by with several vectors and an offset is not supported", where="query")
            return scanner
    return table.scan(**arguments, limit=query.k, offset=query.offset or None)


def _arguments(table: LanceDataset, query: QueryRequest) -> dict[str, Any]:
    """Return the arguments of `LanceDataset.scanner`, without the limit and the offset."""
    arguments: dict[str, Any] = {
        "columns": query.columns,
        "filter": query.filter,
        "with_row_id": query.with_row_id or None,
        "order_by": query.order_by or None,
    }
    if query.vectors is None and query.words is None:
        return arguments
    arguments |= {"prefilter": query.prefilter, "fast_search": query.fast_search or None}
    if query.words is not None:
        arguments["full_text_query"] = _text_query(table, query)
    if query.vectors is not None:
        column = query.vector_column or _column_that_fits(table, query)
        k = max(1, (query.k or 0) + query.offset)  # a search needs a positive k, also in an empty table
        arguments["nearest"] = {"column": column, "q": query.vectors, "k": k, **query.nearest}
    return arguments


def _column_that_fits(table: LanceDataset, query: QueryRequest) -> str:
    """Return the only column with vectors of the query's length, or else the only one with vectors.

    Raises:
        InvalidInputError: The table does not have exactly one vector column.
    """
    vectors = query.vectors or []
    length = len(vectors[0]) if query.is_batch else len(vectors)
    fitting = [field.name for field in table.schema if _vector_length(field.type) == length]
    return quoted_name(fitting[0]) if len(fitting) == 1 else only_vector_column(table.handle.table)


def _vector_length(type_: pa.DataType) -> int | None:
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        type_ = type_.value_type
    return type_.list_size if pa.types.is_fixed_size_list(type_) else None


def _text_query(table: LanceDataset, query: QueryRequest) -> Mapping[str, Any]:
    if isinstance(query.words, Mapping):
        return completed_tree(query.words, query.word_columns, table.handle.snapshot)
    return {"query": query.words, "columns": query.word_columns}


def _limited(call: ServerCall, scanner: LanceScanner) -> Iterator[pa.RecordBatch]:
    settings = call.settings
    reader = scanner.to_reader()
    try:
        yield from call.limited(reader, max_rows=settings.max_rows, max_bytes=settings.max_bytes)
    finally:
        reader.close()


def _without_first(batches: Iterator[pa.RecordBatch], count: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of several searches without the first `count` rows of each search. Its rows are consecutive."""
    seen: Counter[int] = Counter()
    for batch in batches:
        keep = []
        for query in batch["query_index"].to_pylist():
            seen[query] += 1
            keep.append(seen[query] > count)
        yield batch.filter(pa.array(keep, pa.bool_()))


def _with_one_dictionary(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches that share their dictionaries, as a file must have them. All rows are read first."""
    yield from pa.Table.from_batches(batches, schema).unify_dictionaries().to_batches()


def _has_dictionary(type_: pa.DataType) -> bool:
    if pa.types.is_dictionary(type_):
        return True
    return any(_has_dictionary(type_.field(i).type) for i in range(type_.num_fields))
