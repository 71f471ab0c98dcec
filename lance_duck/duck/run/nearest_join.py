"""LATERAL searches carried out: one search for all rows, and the statement over its result.

The other table is read once, before the statement, and stands in it as it was read; the table that is searched holds
the rows found, each with the vector that it was found for. A condition in the text joins them to that vector, so that
DuckDB sorts for each row only what was found for it.
"""

from __future__ import annotations

import re
from functools import partial
from itertools import count
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from lance_duck.duck.caller_frame import call_as_user, user_variable
from lance_duck.duck.catalog import TableCatalog, quoted
from lance_duck.duck.names import Names
from lance_duck.duck.nearest import DISTANCE, QUERY
from lance_duck.duck.rules.lateral import LateralNearest, lateral_nearest
from lance_duck.duck.run.candidates import MOST, Ask, NotFoundHere, candidates
from lance_duck.duck.run.order_by_search import ALL_ROWS, ROUNDING, vector_column
from lance_duck.duck.run.parameters import Given, numbers
from lance_duck.duck.run.rewritten import Replaced
from lance_duck.duck.run.search_settings import Session
from lance_duck.duck.settings import HAS_COLLATIONS, About, about_condition
from lance_duck.errors import LanceDuckError

MOST_QUERIES: Final = 100_000
FOR: Final = "__lance_query"
_SAME: Final = re.compile(
    r"(TINY|SMALL|BIG|UTINY|USMALL|UBIG|U)?INT(EGER)?|FLOAT|DOUBLE|BOOLEAN|VARCHAR|BLOB|DATE|TIMESTAMP"
    r"|(FLOAT|DOUBLE)(\[\d*\])|DECIMAL\(\d+,\s*\d+\)"
)
"""Types whose values are the same after a way through Arrow."""
_FRAMES: Final = ("pandas", "polars")
_NUMBERS: Final = count()


class NearestJoin:
    """Runs LATERAL searches for the statements of one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its tables.
        names: What names mean on it.
        session: Its settings.
    """

    def __init__(
        self, native: duckdb.DuckDBPyConnection, catalog: TableCatalog, names: Names, session: Session
    ) -> None:
        self._native = native
        self._catalog = catalog
        self._names = names
        self._session = session

    def replaced(self, sql: str, parameters: Any) -> Replaced | None:
        """Put what was found in the place of the tables; None where the statement asks for nothing of the kind."""
        asked = lateral_nearest(sql)
        if asked is None or self._session.settings.nearest == "off":
            return None
        if not self._names.are_ours(asked.inner.name, later=False):
            return None
        try:
            return self._replaced(sql, asked, parameters)
        except (NotFoundHere, LanceDuckError):
            return None

    def _replaced(self, sql: str, asked: LateralNearest, parameters: Any) -> Replaced | None:
        inner = asked.inner
        handle = self._catalog.find(inner.name[-1])
        if handle is None:
            return None
        dataset = handle.current()
        field = vector_column(dataset, inner.column)
        if field is None:
            return None
        given = Given((), parameters)
        values = [given.value(key) for key in inner.where_keys]
        about = About.ORDER | about_condition(inner.where, inner.where_columns, dataset.schema, values)
        if not self._names.dialect(inner.name, later=False).is_usual(about | About.TEXTS):
            return None  # the other table loses the order of its texts on the way through Arrow
        queries = self._queries(sql, asked)
        vectors = _distinct(queries, str(inner.vector), field.type.list_size)
        ask = self._ask(asked, field.name, vectors, given)
        found = candidates(dataset, ask)
        which = found.column(QUERY)
        found = found.drop_columns([QUERY]).append_column(FOR, vectors.take(which.combine_chunks()))
        number = next(_NUMBERS)
        rows, others = f"__lance_nearest_rows_{number}", f"__lance_queries_{number}"
        columns = ", ".join(map(quoted, ask.schema(dataset).names))
        place = (
            f'(SELECT {columns} FROM (SELECT * FROM "{rows}" LIMIT {ALL_ROWS}) AS found '  # noqa: S608
            f"WHERE found.{FOR} = {quoted(asked.alias)}.{quoted(str(inner.vector))})"
        )
        place += "" if inner.alias is None else f" AS {quoted(inner.alias)}"
        outer = f'(SELECT * FROM "{others}" LIMIT {ALL_ROWS})'  # noqa: S608
        outer += "" if asked.has_alias else f" AS {quoted(asked.alias)}"
        text = sql
        for start, end, new in sorted([(inner.start, inner.end, place), (asked.start, asked.end, outer)], reverse=True):
            text = text[:start] + new + text[end:]
        plan = ask.scanner(dataset, ask.first).explain_plan() if inner.explained else None
        return Replaced(text, {rows: found, others: queries}, plan=plan)

    def _queries(self, sql: str, asked: LateralNearest) -> pa.Table:
        """Return the other table.

        Raises:
            NotFoundHere: It is large, cannot be read twice, or would be another one after a way through Arrow.
        """
        variable = None if len(asked.name) > 1 else user_variable(asked.name[0])
        frame = type(variable).__module__.split(".")[0] in _FRAMES and type(variable).__name__ == "DataFrame"
        if not (variable is None or frame or isinstance(variable, pa.Table)):
            raise NotFoundHere("a variable that may be read once")
        text = f"SELECT * FROM {sql[asked.start : asked.end]} LIMIT {MOST_QUERIES + 1}"  # noqa: S608
        try:
            relation = call_as_user(partial(self._native.sql, text), {})
            if not all(_SAME.fullmatch(str(type_)) for type_ in relation.types) or self._has_collations():
                raise NotFoundHere("types that Arrow does not have")
            table: pa.Table = call_as_user(relation.to_arrow_table, {})
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise NotFoundHere("the statement itself will say what is wrong") from error
        if not 0 < table.num_rows <= MOST_QUERIES:
            raise NotFoundHere("no queries, or too many")
        return table

    def _has_collations(self) -> bool:
        return bool(self._native.execute(HAS_COLLATIONS).fetchall()[0][0])

    def _ask(self, asked: LateralNearest, column: str, vectors: pa.Array, given: Given) -> Ask:
        inner = asked.inner
        wanted = given.number(inner.limit) + given.number(inner.offset)
        if not given.number(inner.limit) or wanted > MOST // 4:
            raise NotFoundHere("more rows than a search is for")
        wide = numbers(vectors.flatten().to_numpy(zero_copy_only=False)).reshape(len(vectors), -1)
        with np.errstate(over="ignore"):
            narrow = wide.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise NotFoundHere("no finite numbers")
        rough = np.linalg.norm(wide - narrow, axis=1)
        return Ask(
            inner.metric,
            inner.largest_first,
            column,
            narrow,
            rough + ROUNDING * np.linalg.norm(wide, axis=1),
            wanted,
            inner.where,
            tuple(given.value(key) for key in inner.where_keys),
            inner.columns,
            self._session.settings,
        )


def _distinct(table: pa.Table, name: str, length: int) -> pa.Array:
    """Return the vectors of a column, each once.

    Raises:
        NotFoundHere: There is no such column, or it holds null, or vectors of another length.
    """
    found = [each for each in table.column_names if each.lower() == name.lower()]
    if len(found) != 1 or not len(table) or {DISTANCE, QUERY, FOR} & {each.lower() for each in table.column_names}:
        raise NotFoundHere("no column of vectors")
    array = table.column(found[0]).combine_chunks()
    type_ = array.type
    if not pa.types.is_fixed_size_list(type_) and not pa.types.is_list(type_):
        raise NotFoundHere("no column of vectors")
    inner = array.flatten()
    if array.null_count or inner.null_count or len(inner) != len(array) * length:
        raise NotFoundHere("null, or another length")
    if pa.types.is_list(type_) and not (array.value_lengths().to_numpy() == length).all():
        raise NotFoundHere("another length")
    matrix = np.ascontiguousarray(inner.to_numpy(zero_copy_only=False).reshape(len(array), length) + 0.0)  # no -0.0
    rows = matrix.view(np.dtype((np.void, matrix.dtype.itemsize * length)))
    return array.take(pa.array(np.unique(rows, return_index=True)[1]))
