"""Functions for Lance filters: macros for functions whose DuckDB names differ, and one function that DuckDB lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from lance_duck import lazy

if TYPE_CHECKING:
    from lance_duck.text import contains
else:
    contains = lazy.modules(globals(), "lance_duck.text", "contains")

_TOKENS: Final = "__lance_contains_tokens"
_TEXT_PAIR: Final[list[Any]] = ["VARCHAR", "VARCHAR"]
_ARROW: Final[Any] = "arrow"


def _moment(per_second: int) -> str:
    text = "TRY_CAST(CAST(x AS VARCHAR) AS TIMESTAMP)"
    number = f"make_timestamp(CAST(TRY_CAST(x AS DOUBLE) * {1_000_000 // per_second} AS BIGINT))"
    return f"coalesce({text}, {number})"


_TEXTS: Final = {
    "btrim(s)": "trim(s)",
    "character_length(s)": "length(s)",
    "initcap(s)": "array_to_string(list_transform(string_split(lower(s), ' '), "
    "lambda w: upper(left(w, 1)) || substr(w, 2)), ' ')",
    "regexp_count(s, p)": "length(regexp_extract_all(s, p))",
    "regexp_like(s, p)": "regexp_matches(s, p)",
    "regexp_match(s, p)": "regexp_matches(s, p)",
}

_LISTS: Final = {
    "array_element(a, i)": "list_extract(a, i)",
    "array_empty(a)": "length(a) = 0",
    "array_has_all(a, b)": "list_has_all(a, b)",
    "array_has_any(a, b)": "list_has_any(a, b)",
    "array_max(a)": "list_max(a)",
    "array_min(a)": "list_min(a)",
    "empty(a)": "length(a) = 0",
    "get_field(s, name)": "struct_extract(s, name)",
}

_NUMBERS: Final = {
    "nanvl(a, b)": "CASE WHEN isnan(a) THEN b ELSE a END",
    "nvl(a, b)": "coalesce(a, b)",
    "signum(n)": "sign(n)",
}

_TIMES: Final = {
    "date_bin(step, x)": "time_bucket(step, x, TIMESTAMP '1970-01-01')",
    "date_format(x, form)": "strftime(x, form)",
    "to_char(x, form)": "strftime(x, form)",
    "to_date(x)": "CAST(x AS DATE)",
    "to_timestamp(x)": _moment(1),
    "to_timestamp_seconds(x)": _moment(1),
    "to_timestamp_millis(x)": _moment(1000),
    "to_timestamp_micros(x)": _moment(1_000_000),
    "to_unixtime(x)": "CAST(floor(epoch(x)) AS BIGINT)",
}

_JSON: Final = {
    "json_get(j, k)": "json_extract(j, '/' || replace(replace(k, '~', '~0'), '/', '~1'))",
    "json_get_string(j, k)": "json_get(j, k) ->> '$'",
    "json_get_bool(j, k)": "TRY_CAST(json_get_string(j, k) AS BOOLEAN)",
    "json_get_float(j, k)": "coalesce(TRY_CAST(json_get_string(j, k) AS DOUBLE), CAST(json_get_bool(j, k) AS DOUBLE))",
    "json_get_int(j, k)": "coalesce(TRY_CAST(json_get_string(j, k) AS BIGINT), CAST(json_get_bool(j, k) AS BIGINT))",
    "json_array_contains(j, p, v)": "list_contains(json_extract_string(j, p || '[*]'), CAST(v AS VARCHAR))",
}

_CONTAINS_TOKENS: Final = (
    f"CREATE MACRO contains_tokens(s VARCHAR, words VARCHAR) AS {_TOKENS}(s, words), "
    f"(s VARCHAR[], words VARCHAR) AS {_TOKENS}(coalesce(array_to_string(s, ' '), left(s::VARCHAR, 0)), words)"
)
"""Macro that searches a string, or all elements of a list, for words."""

_MACROS: Final = tuple(
    f"CREATE MACRO {call} AS {body}" for call, body in (_TEXTS | _LISTS | _NUMBERS | _TIMES | _JSON).items()
)


def add_functions(connection: duckdb.DuckDBPyConnection) -> None:
    """Define the functions in a database. The order matters, because later functions use earlier ones."""
    connection.create_function(_TOKENS, _contains_tokens, _TEXT_PAIR, "BOOLEAN", type=_ARROW)
    for statement in (*_MACROS, _CONTAINS_TOKENS):
        connection.execute(statement)


def _contains_tokens(texts: pa.ChunkedArray, words: pa.ChunkedArray) -> pa.BooleanArray:
    return contains.contains_tokens(texts, words)
