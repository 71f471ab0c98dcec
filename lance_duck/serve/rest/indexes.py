"""Routes of indexes.

| route (POST `/v1/table/{id}/…`) | body | answer |
|---|---|---|
| `create_index`, `create_scalar_index` | `column`, `index_type`, `name`?, `replace`?, parameters of the kind | {} |
| `index/list` | `version`?, `limit`?, `page_token`? | indexes: [index, …] |
| `index/{index_name}/stats` | `version`? | index_type, distance_type, numbers of rows |
| `index/{index_name}/drop` | | {} |
| `index/{index_name}/prewarm` | | {} |

The index is complete when the answer comes. `metric_type` and `distance_type` are the same, and so are
`max_iterations` and `max_iters`. By default, a new index replaces one of its name over the same column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.dataset import LanceDataset
from lance_duck.index.registry import KINDS
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.http.answers import HttpAnswer, json_answer
from lance_duck.serve.http.request import HttpRequest
from lance_duck.serve.http.routes import HttpRoute
from lance_duck.serve.rest.change_fields import needed_text, refuse_field
from lance_duck.serve.rest.dialect import answer_headers, checked_body, page, requested_table
from lance_duck.serve.rest.fields import flag_of, text_of
from lance_duck.verbs.indexes.describe import IndexDescription

_COMMON: Final = ("column", "index_type", "name", "replace", "branch")
_VECTOR: Final[Mapping[str, str]] = {
    "metric_type": "metric",
    "distance_type": "metric",
    "num_partitions": "num_partitions",
    "target_partition_size": "target_partition_size",
    "num_sub_vectors": "num_sub_vectors",
    "num_bits": "num_bits",
    "m": "m",
    "ef_construction": "ef_construction",
    "sample_rate": "sample_rate",
    "max_iterations": "max_iters",
    "max_iters": "max_iters",
}
"""Fields of vector indexes, and the parameters of `LanceDataset.create_index`."""
_TEXT: Final = (
    *("with_position", "base_tokenizer", "lance_tokenizer", "language", "max_token_length", "lower_case", "stem"),
    *("remove_stop_words", "custom_stop_words", "ascii_folding", "min_ngram_length", "max_ngram_length"),
    *("prefix_only", "block_size", "split_identifiers", "split_on_numerics", "preserve_original", "index_operators"),
)
"""Fields of full-text indexes. They have the names of the parameters of `LanceDataset.create_scalar_index`."""
_ZONES: Final = ("rows_per_zone", "zone_size", "number_of_items", "probability")
_NAMES: Final[Mapping[str, str]] = {"INVERTED": "FTS", "SCALAR": "BTREE", "VECTOR": "IVF_PQ"}
_TEXT_KINDS: Final = ("FTS", "INVERTED")
_UNLIMITED: Final = "max_token_length"
"""The parameter whose null has a meaning: tokens of any length."""


def create_index(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Build an index of any kind."""
    body = checked_body(request, (*_COMMON, *_VECTOR, *_TEXT, *_ZONES))
    column, given = needed_text(body, "column"), needed_text(body, "index_type").upper()
    kind = _NAMES.get(given, given)
    name, replaces = text_of(body, "name"), flag_of(body, "replace") is not False
    table = requested_table(call, request, {"branch": body.get("branch")})
    settings = {name: value for name, value in body.items() if name not in (*_COMMON, "id", "identity", "context")}
    if kind.startswith(("IVF", "HNSW")):
        table.create_index(column, kind, name, replace=replaces, **_vector_parameters(settings))
    else:
        parameters = _parameters(kind, settings)
        table.create_scalar_index(column, kind, name, replace=replaces, **parameters)
    return json_answer({}, headers=answer_headers(table))


def _vector_parameters(settings: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in settings.items() if value is not None}
    refuse_unknown(given, [*_VECTOR], "a vector index", "field")
    return {_VECTOR[name]: value for name, value in given.items()}


def _parameters(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of an index that is not a vector index. Fields of text indexes may be null."""
    is_text = kind in _TEXT_KINDS
    for name in _VECTOR:
        refuse_field(settings, name, "a field of vector indexes")
    if not is_text:
        for name in _TEXT:
            refuse_field(settings, name, "a field of full-text indexes")
    kept = _TEXT if is_text else _ZONES
    return {name: value for name, value in settings.items() if value is not None or name == _UNLIMITED if name in kept}


def list_indexes(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the indexes of a table, without those that Lance itself keeps."""
    body = checked_body(request, ("version", "branch", "limit", "page_token"))
    table = requested_table(call, request, body)
    described = {index.name: index for index in table.describe_indices() if not index.name.startswith("__")}
    found = page([*described], request, body)
    indexes = [_index_to_json(table, described[name]) for name in found.pop("names")]
    return json_answer({"indexes": indexes, **found}, headers=answer_headers(table))


def _index_to_json(table: LanceDataset, index: IndexDescription) -> dict[str, Any]:
    created = [segment.created_at for segment in index.segments if segment.created_at]
    fields = {
        "index_name": index.name,
        "index_uuid": index.segments[0].uuid,
        "columns": index.field_names,
        "status": "done",
        "index_type": _type_to_json(index.index_type),
        "type_url": index.type_url,
        "num_indexed_rows": index.num_rows_indexed,
        "num_unindexed_rows": table.count_rows() - index.num_rows_indexed,
        "size_bytes": index.total_size_bytes,
        "num_segments": len(index.segments),
        "created_at": max(created).isoformat() if created else None,
        "index_version": max(segment.index_version for segment in index.segments),
        "index_details": json.dumps(index.details, default=str) if index.details else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def index_stats(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Return the kind and the coverage of an index."""
    table = requested_table(call, request, checked_body(request, ("version", "branch", "index_name")))
    name = request.names["index_name"]
    figures = table.index_statistics(name)
    details = next(index.details for index in table.describe_indices() if index.name == name)
    answer = {
        "num_indexed_rows": figures["num_indexed_rows"],
        "num_unindexed_rows": figures["num_unindexed_rows"],
        "index_type": _type_to_json(str(figures["index_type"])),
        "distance_type": _distance(details),
        "num_indices": figures["num_indices"],
    }
    return json_answer({k: v for k, v in answer.items() if v is not None}, headers=answer_headers(table))


def _type_to_json(kind: str) -> str:
    """Return the name of a kind in requests, such as "BTREE" for "BTree"."""
    for entry in KINDS:
        if entry.name == kind:
            return _NAMES.get(entry.sql_name, entry.sql_name)
    return kind


def _distance(details: Mapping[str, Any]) -> str | None:
    metric = details.get("metric_type") or details.get("metric") or details.get("distance_type")
    return None if metric is None else str(metric).lower()


def drop_index(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Drop an index."""
    table = requested_table(call, request, checked_body(request, ("branch", "index_name")))
    table.drop_index(request.names["index_name"])
    return json_answer({}, headers=answer_headers(table))


def prewarm_index(call: ServerCall, request: HttpRequest) -> HttpAnswer:
    """Read an index into the cache."""
    table = requested_table(call, request, checked_body(request, ("branch",)))
    table.prewarm_index(request.names["index_name"])
    return json_answer({}, headers=answer_headers(table))


INDEXES: Final = (
    HttpRoute("POST", "/v1/table/{id}/create_index", create_index, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/create_scalar_index", create_index, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/index/list", list_indexes),
    HttpRoute("GET", "/v1/table/{id}/index/list", list_indexes),
    HttpRoute("POST", "/v1/table/{id}/index/{index_name}/stats", index_stats),
    HttpRoute("POST", "/v1/table/{id}/index/{index_name}/drop", drop_index, is_change=True),
    HttpRoute("POST", "/v1/table/{id}/index/{index_name}/prewarm", prewarm_index),
)
"""Routes of this module."""
