"""The body of a query in both dialects, as one checked value.

| field | LanceDB | specification |
|---|---|---|
| vector | [], [numbers], [[numbers], …] | {}, {"single_vector"}, {"multi_vector"} |
| columns | [names], {name: expression} | {"column_names"}, {"column_aliases"} |
| full_text_query | {"query": words, "columns"}, {"query": tree} | {"string_query"}, {"structured_query"} |
| k | rows; 2^63 - 1 means all | rows |
| offset, filter, prefilter, with_row_id, order_by | | |
| vector_column, distance_type, lower_bound, upper_bound | | |
| fast_search, bypass_vector_index | | |
| nprobes, minimum_nprobes, maximum_nprobes, ef, refine_factor | 0 and null mean the default | |
| version, tag, branch | see `dialect.requested_table` | |
| approx_mode | without effect | |
| use_lsm | true is refused | |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import UnsupportedError
from lance_duck.scan.options import ColumnOrdering
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.rest.fields import (
    flag_of,
    float_of,
    object_of,
    text_of,
    texts_of,
    whole_of,
    wrong_field,
)

FIELDS: Final = (
    *("vector", "columns", "full_text_query", "k", "offset", "filter", "prefilter", "with_row_id", "order_by"),
    *("vector_column", "distance_type", "lower_bound", "upper_bound", "fast_search", "bypass_vector_index"),
    *("nprobes", "minimum_nprobes", "maximum_nprobes", "ef", "refine_factor", "approx_mode", "use_lsm"),
    *("version", "tag", "branch"),
)
"""All fields of a query."""

_TUNING: Final = ("minimum_nprobes", "maximum_nprobes", "ef", "refine_factor")
_ORDERING: Final = ("column_name", "ascending", "nulls_first")


@dataclass(frozen=True)
class QueryRequest:
    """A query of one table.

    Attributes:
        vectors: Query vectors: a list of numbers, or a list of these lists. None without a vector search.
        words: Query of a full-text search, as a text or as a tree. None without one.
        word_columns: Columns in which `words` are searched. None searches the columns with an index.
        k: Number of rows, per query vector. None means the default of the search, or all rows.
        offset: Number of rows to skip.
        columns: Names of columns, or expressions by name. None selects all columns.
        filter: Condition in SQL, or None.
        prefilter: Whether a search finds only rows that pass the filter.
        with_row_id: Whether the rows have a `_rowid`.
        order_by: Columns to sort by.
        vector_column: Column that a vector search reads. None means the only one that fits.
        fast_search: Whether a search skips rows that no index covers.
        nearest: Other options of a vector search, by their names in `LanceDataset.scanner`.
    """

    vectors: list[Any] | None = None
    words: str | dict[str, Any] | None = None
    word_columns: list[str] | None = None
    k: int | None = None
    offset: int = 0
    columns: list[str] | dict[str, str] | None = None
    filter: str | None = None
    prefilter: bool = True
    with_row_id: bool = False
    order_by: tuple[ColumnOrdering, ...] = ()
    vector_column: str | None = None
    fast_search: bool = False
    nearest: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> QueryRequest:
        """Return the query that a body describes. The names of its fields are known.

        Raises:
            RequestError: A field has a wrong type or value.
            UnsupportedError: The query asks for rows of a write-ahead log.
        """
        if flag_of(body, "use_lsm"):
            raise UnsupportedError("use_lsm is not supported", where="query")
        words, word_columns = _words(body)
        return cls(
            _vectors(body),
            words,
            word_columns,
            whole_of(body, "k"),
            whole_of(body, "offset") or 0,
            _columns(body),
            text_of(body, "filter"),
            flag_of(body, "prefilter") is not False,
            bool(flag_of(body, "with_row_id")),
            _order(body),
            text_of(body, "vector_column"),
            bool(flag_of(body, "fast_search")),
            _nearest(body),
        )

    @property
    def is_batch(self) -> bool:
        """Whether `vectors` is a list of lists."""
        return bool(self.vectors) and isinstance(self.vectors[0], list)  # type: ignore[index]


def _vectors(body: Mapping[str, Any]) -> list[Any] | None:
    value = body.get("vector")
    if isinstance(value, dict):
        given = _one_of(value, ("single_vector", "multi_vector"), "vector")
        if given is None:
            return None
        name, value = given
        if isinstance(value, list) and any(isinstance(each, list) for each in value) != (name == "multi_vector"):
            raise wrong_field(f"vector.{name}", "numbers" if name == "single_vector" else "lists of numbers", value)
    if value is None or value == []:
        return None
    if not isinstance(value, list):
        raise wrong_field("vector", "numbers, or lists of numbers", value)
    rows = value if isinstance(value[0], list) else [value]
    for row in rows:
        if not isinstance(row, list) or not row or not {*map(type, row)} <= {int, float}:
            raise wrong_field("vector", "numbers, or lists of numbers", row)
    return value


def _columns(body: Mapping[str, Any]) -> list[str] | dict[str, str] | None:
    value = body.get("columns")
    if value is None or isinstance(value, list):
        return texts_of(body, "columns")
    if isinstance(value, dict) and not any(isinstance(each, str) for each in value.values()):
        given = _one_of(value, ("column_names", "column_aliases"), "columns")
        if given is None:
            return None
        name, value = given
        if name == "column_names":
            return texts_of({"columns": value}, "columns")
    if isinstance(value, dict) and value and all(isinstance(each, str) for each in value.values()):
        return value
    raise wrong_field("columns", "names, or expressions by name", value)


def _words(body: Mapping[str, Any]) -> tuple[str | dict[str, Any] | None, list[str] | None]:
    value = object_of(body, "full_text_query")
    if value is not None and "query" not in value:
        given = _one_of(value, ("string_query", "structured_query"), "full_text_query")
        value = None if given is None else object_of({given[0]: given[1]}, given[0])
    if value is None:
        return None, None
    refuse_unknown(value, ("query", "columns"), "full_text_query", "field")
    query, columns = value.get("query"), texts_of(value, "columns") or None
    if isinstance(query, str):
        return query, columns
    if not isinstance(query, dict):
        raise wrong_field("full_text_query.query", "a text, or a query", query)
    return query, columns


def _one_of(value: Mapping[str, Any], names: tuple[str, str], where: str) -> tuple[str, Any] | None:
    """Return the only field of an object that is not null, or None if all are null."""
    refuse_unknown(value, names, where, "field")
    given = [(name, each) for name, each in value.items() if each is not None]
    if len(given) > 1:
        raise RequestError("only one field is allowed", where=where, expected=" or ".join(names))
    return given[0] if given else None


def _order(body: Mapping[str, Any]) -> tuple[ColumnOrdering, ...]:
    value = body.get("order_by")
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise wrong_field("order_by", "a list of objects", value)
    orderings = []
    for each in value:
        refuse_unknown(each, _ORDERING, "order_by", "field")
        name = text_of(each, "column_name")
        if name is None:
            raise wrong_field("order_by.column_name", "the name of a column", None)
        ascending, nulls_first = flag_of(each, "ascending"), flag_of(each, "nulls_first")
        orderings.append(ColumnOrdering(name, ascending is not False, bool(nulls_first)))
    return tuple(orderings)


def _nearest(body: Mapping[str, Any]) -> dict[str, Any]:
    text_of(body, "approx_mode")
    options: dict[str, Any] = {name: value for name in _TUNING if (value := whole_of(body, name))}
    exact = whole_of(body, "nprobes")
    if exact and not ("minimum_nprobes" in options or "maximum_nprobes" in options):
        options |= {"minimum_nprobes": exact, "maximum_nprobes": exact}
    lower, upper = float_of(body, "lower_bound"), float_of(body, "upper_bound")
    if lower is not None or upper is not None:
        options["distance_range"] = (lower, upper)
    metric = text_of(body, "distance_type")
    if metric is not None:
        options["metric"] = metric
    if flag_of(body, "bypass_vector_index"):
        options["use_index"] = False
    return options
