"""Calls of `lance_vector_search` carried out first, and the statement over their rows.

DuckDB binds a call by running Python, which makes a source that it then scans: more work than a search. Where all
arguments are constants or parameters the call is a table of Arrow's instead, found before the statement is run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any, Final

import numpy as np
import pyarrow as pa

from lance_duck.duck.catalog import TableCatalog, quoted
from lance_duck.duck.handle import VersionChoice
from lance_duck.duck.names import Names
from lance_duck.duck.nearest import DISTANCE, NearestRows
from lance_duck.duck.rules.order_by_distance import LISTED, Listed
from lance_duck.duck.rules.vector_call import FUNCTION, Parameter, VectorCall, vector_call
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.order_by_search import ALL_ROWS
from lance_duck.duck.run.parameters import Given, numbers
from lance_duck.duck.run.prefetch_rows import RowsFirst
from lance_duck.duck.run.rewritten import Replaced
from lance_duck.duck.settings import About
from lance_duck.errors import LanceDuckError

_MOST: Final = 10_000
_NUMBERS: Final = count()
_KINDS: Final = {
    **dict.fromkeys(("k", "nprobes", "refine_factor", "ef"), int),
    **dict.fromkeys(("table_name", "column_name", "metric", "filter", "tag", "asof"), str),
    **dict.fromkeys(("prefilter", "use_index"), bool),
}


class SearchFirst:
    """Runs calls of `lance_vector_search` for the statements of one connection.

    Args:
        catalog: Its tables.
        names: How SQL is read on it.
        first: Gives rows to statements.
    """

    def __init__(self, catalog: TableCatalog, names: Names, first: RowsFirst) -> None:
        self._catalog = catalog
        self._names = names
        self._first = first

    def replaced(self, sql: str, parameters: Any) -> Replaced | None:
        """Put the rows found in the place of the call; None where the statement has no such call."""
        listed = Listed.of(sql)
        call = vector_call(listed.text)
        if call is None or not self._names.dialect((FUNCTION,), later=False).is_usual(About.SYNTAX):
            return None
        try:
            rows = self._rows(call, Given(listed.lists, parameters))
            values = _without(call, parameters)
        except (NotFoundHere, LanceDuckError):
            return None  # the statement itself will say what is wrong

        def placed(query: str) -> str:
            return listed.back(f"{call.before}({query}){call.after}")

        found = self._first.as_values(placed, rows, call.marks, values)
        if found is not None:
            return found
        name = f"__lance_search_{next(_NUMBERS)}"
        columns = ", ".join(map(quoted, rows.column_names))
        # The limit, which takes no row away, keeps the rows in their order.
        return Replaced(placed(f'SELECT {columns} FROM "{name}" LIMIT {ALL_ROWS}'), {name: rows}, values)  # noqa: S608

    def _rows(self, call: VectorCall, given: Given) -> pa.Table:
        asked = {name: _value(name, value, given) for name, value in call.arguments}
        if asked.get("asof") is not None:
            raise NotFoundHere("a text that DuckDB reads as a moment in the time zone of the connection")
        choice = VersionChoice(*(asked.pop(name, None) for name in ("version", "tag", "asof")))
        dataset = self._catalog.binder.handle(asked.pop("table_name"), choice).current()
        options = {"filter": asked.pop("filter", None), "prefilter": asked.pop("prefilter", True) is not False}
        nearest = {"column": asked.pop("column_name"), "q": asked.pop("query_vector"), "k": 10}
        nearest |= {"use_index": asked.pop("use_index", True) is not False, **asked}
        found = NearestRows(dataset, nearest, options)
        field = dataset.schema.field(nearest["column"]) if nearest["column"] in dataset.schema.names else None
        if field is None or not pa.types.is_fixed_size_list(field.type) or not _is_narrow(field.type.value_type):
            raise NotFoundHere("numbers that text does not have exactly")
        names = found.schema.names
        if call.columns is not None:
            names = [name for name in names if name.lower() in call.columns] or [DISTANCE]
        return found.scanner(columns=names).to_reader().read_all()


def _is_narrow(type_: pa.DataType) -> bool:
    return bool(type_ in (pa.float32(), pa.float16()))


def _value(name: str, value: Any, given: Given) -> Any:
    """Return the value of an argument, where it has the type that the call wants.

    Raises:
        NotFoundHere: It has another one, or DuckDB would refuse it.
    """
    if name == "query_vector":
        key = value.key
        vector = given.vector(key) if str(key).startswith(LISTED) else numbers(given.value(key))
        with np.errstate(over="ignore"):
            if vector.ndim not in (1, 2) or not vector.size or not np.isfinite(vector.astype(np.float32)).all():
                raise NotFoundHere("no vector")
        return vector
    found = given.value(value.key) if isinstance(value, Parameter) else value
    if name == "version" and type(found) in (int, str):
        return str(found)
    if name in ("table_name", "column_name", "k") if found is None else type(found) is not _KINDS.get(name):
        raise NotFoundHere("another type")
    if name == "k" and found > _MOST:
        raise NotFoundHere("many rows")
    return found


def _without(call: VectorCall, parameters: Any) -> Any:
    """Return the parameters of the rest of the statement.

    Raises:
        NotFoundHere: They are not known.
    """
    if isinstance(parameters, Mapping):
        return {name: value for name, value in parameters.items() if name not in call.own}
    if parameters is None or not isinstance(parameters, list | tuple):
        return None
    return [value for place, value in enumerate(parameters, 1) if place not in call.own]
