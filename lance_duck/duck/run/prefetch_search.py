"""Runs calls of `lance_vector_search` before the statement.

For each call, DuckDB runs Python when it binds the statement, and then scans the source that Python returns. That takes
longer than a search. If all arguments are constants or parameters, the search runs before the statement, and an Arrow
table replaces the call.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.rules.vector_call import FUNCTION, Parameter, VectorCall
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.costs import MOST_NEAREST
from lance_duck.duck.run.parameters import ParameterValues, vector_numbers
from lance_duck.duck.run.prefetch_rows import in_place
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import About
from lance_duck.duck.statement.identifiers import shown_names, stored_name
from lance_duck.duck.statement.placeholders import LISTED
from lance_duck.duck.tables.handle import VersionChoice
from lance_duck.duck.tables.nearest import DISTANCE, NearestRows
from lance_duck.errors import LanceDuckError

_KINDS: Final = {
    **dict.fromkeys(("k", "nprobes", "refine_factor", "ef"), int),
    "recall": float,
    **dict.fromkeys(("table_name", "column_name", "metric", "filter", "tag", "asof"), str),
    **dict.fromkeys(("prefilter", "use_index"), bool),
}


def run(call: VectorCall, request: Request, database: Database) -> Rewriting | None:
    """Replace a call with the rows that it finds. Returns None if its arguments are unknown."""
    if not request.is_free(call.start, call.end):
        return None
    if not database.names.dialect((FUNCTION,), later=False).is_usual(About.SYNTAX):
        return None
    try:
        rows = _rows(call, request.values, database)
    except (NotFoundHere, LanceDuckError):
        return None  # the error is raised when the statement runs
    return replace(in_place(rows, call.start, call.end, None, request, database), dropped=call.own)


def _rows(call: VectorCall, parameters: ParameterValues, database: Database) -> pa.Table:
    arguments = {name: _value(name, value, parameters) for name, value in call.arguments}
    if arguments.get("asof") is not None:
        raise NotFoundHere("a text that DuckDB reads as a moment in the time zone of the connection")
    choice = VersionChoice(*(arguments.pop(name, None) for name in ("version", "tag", "asof", "branch")))
    table = database.names.qualified(arguments.pop("table_name"), later=False)
    dataset = database.catalog.binder.handle(table, choice).current()
    condition = database.catalog.binder.filters.filter(arguments.pop("filter", None), dataset)
    options = {"filter": condition, "prefilter": arguments.pop("prefilter", True) is not False}
    column = stored_name(arguments.pop("column_name"), dataset.schema.names)
    nearest = {"column": column, "q": arguments.pop("query_vector"), "k": 10}
    nearest |= {"use_index": arguments.pop("use_index", True) is not False, **arguments}
    neighbours = NearestRows(dataset, nearest, options)
    field = dataset.schema.field(column) if column in dataset.schema.names else None
    if field is None or not pa.types.is_fixed_size_list(field.type) or not _is_narrow(field.type.value_type):
        raise NotFoundHere("numbers that text does not have exactly")
    names = neighbours.schema.names
    columns = dict(zip(shown_names(names), names, strict=True))
    if call.columns is not None:
        read = {shown: name for shown, name in columns.items() if shown.lower() in call.columns}
        columns = read or {DISTANCE: DISTANCE}
    rows: pa.Table = neighbours.scanner(columns=list(columns.values())).to_reader().read_all()
    return rows.rename_columns(list(columns))


def _is_narrow(type_: pa.DataType) -> bool:
    return bool(type_ in (pa.float32(), pa.float16()))


def _value(name: str, value: Any, parameters: ParameterValues) -> Any:
    """Return the value of an argument, checked against the parameter type.

    Raises:
        NotFoundHere: The value has a different type, or DuckDB would reject it.
    """
    if name == "query_vector":
        key = value.key
        vector = parameters.vector(key) if str(key).startswith(LISTED) else vector_numbers(parameters.value(key))
        with np.errstate(over="ignore"):
            if vector.ndim not in (1, 2) or not vector.size or not np.isfinite(vector.astype(np.float32)).all():
                raise NotFoundHere("no vector")
        return vector
    parameter_value = parameters.value(value.key) if isinstance(value, Parameter) else value
    if name == "version" and type(parameter_value) in (int, str):
        return str(parameter_value)
    if (
        name in ("table_name", "column_name", "k")
        if parameter_value is None
        else type(parameter_value) is not _KINDS.get(name)
    ):
        raise NotFoundHere("another type")
    if name == "k" and parameter_value > MOST_NEAREST:
        raise NotFoundHere("many rows")
    return parameter_value
