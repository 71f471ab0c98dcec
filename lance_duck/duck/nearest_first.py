"""Searching for the nearest rows first, and the statement over these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.candidates import MOST, Ask, NotFoundHere, candidates
from lance_duck.duck.catalog import Catalog, quoted
from lance_duck.duck.handle import TableHandle
from lance_duck.duck.names import Names
from lance_duck.duck.nearest_table import NearestTable
from lance_duck.duck.order_by_distance import LISTED, Key, Listed, NearestSelect, Parameter, nearest_select
from lance_duck.duck.scope import call_as_user
from lance_duck.duck.search_settings import Session
from lance_duck.duck.table import DuckTable
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb_types import duckdb_arrow_type

_ALL: Final = (1 << 63) - 1
_ROUNDING: Final = 2.0**-22
_NUMBERS: Final = count()


@dataclass(frozen=True)
class Replaced:
    """A statement with tables in place of others.

    Attributes:
        sql: The statement.
        tables: What its new names stand for.
    """

    sql: str
    tables: Mapping[str, DuckTable | pa.Table]


class NearestFirst:
    """Does so for the statements of one connection.

    Args:
        native: DuckDB's connection.
        catalog: Its tables.
        names: What names mean on it.
        session: Its settings.
    """

    def __init__(self, native: duckdb.DuckDBPyConnection, catalog: Catalog, names: Names, session: Session) -> None:
        self._native = native
        self._catalog = catalog
        self._names = names
        self._session = session

    def replaced(self, sql: str, parameters: Any, *, later: bool) -> Replaced | None:
        """Put the nearest rows in the place of a table; None where the statement asks for no such rows.

        Args:
            sql: The statement.
            parameters: Its parameters.
            later: It will be run at some later time, perhaps repeatedly.
        """
        listed = Listed.of(sql)
        asked = nearest_select(listed.text)
        if asked is None or not self._names.are_plain(asked.name, later=later):
            return None
        try:
            return self._replaced(listed, asked, parameters, later)
        except NotFoundHere:
            return None  # before anything is known of the table

    def _replaced(self, listed: Listed, asked: NearestSelect, parameters: Any, later: bool) -> Replaced | None:
        handle = self._catalog.find(asked.name[-1])
        if handle is None:
            return None
        dataset = handle.current()
        field = _column(dataset, asked.column)
        cast = f"::{_array_type(field)}" if asked.bare is not None else ""
        tables: dict[str, DuckTable | pa.Table] = {}
        place = None
        try:
            place = self._place(handle, dataset, field, asked, _Given(listed.lists, parameters), tables, later)
        except (NotFoundHere, LanceDuckError):
            if not cast:
                return None
        edits = [] if place is None else [(asked.start, asked.end, place)]
        if asked.bare is not None:
            start, end = asked.bare
            edits.append((start, end, f"({listed.text[start:end]}{cast})"))
        text = listed.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return Replaced(listed.back(text), tables)

    def _place(
        self,
        handle: TableHandle,
        dataset: LanceDataset,
        field: pa.Field,
        asked: NearestSelect,
        given: _Given,
        tables: dict[str, DuckTable | pa.Table],
        later: bool,
    ) -> str:
        """What stands in the place of the table's name; a table for it is added to `tables`."""
        ask = self._ask(dataset, field, asked, given, later)
        name = f"__lance_nearest_{next(_NUMBERS)}"
        if later or asked.explained:
            tables[name] = NearestTable(handle.current, ask)
        else:
            tables[name] = candidates(dataset, ask)
        columns = ", ".join(quoted(each) for each in ask.schema(dataset).names)
        # The limit, which takes no row away, keeps the filters of the statement from being pushed into the table.
        inner = f'(SELECT {columns} FROM "{name}" LIMIT {_ALL})'  # noqa: S608
        return inner if asked.alias is None else f"{inner} AS {quoted(asked.alias)}"

    def _ask(self, dataset: LanceDataset, field: pa.Field, asked: NearestSelect, given: _Given, later: bool) -> Ask:
        settings = self._session.settings
        if settings.nearest == "off":
            raise NotFoundHere("it is switched off")
        wanted = given.number(asked.limit) + given.number(asked.offset)
        if not 0 < wanted <= MOST // 4 or not given.number(asked.limit):
            raise NotFoundHere("more rows than a search is for")
        vector = self._query(asked, given, later) if asked.is_query else given.vector(asked.vector)
        length = field.type.list_size
        if vector.shape != (length,) or asked.length not in (None, length):
            raise NotFoundHere("another length")
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise NotFoundHere("no finite numbers")
        rough = float(np.linalg.norm(vector - narrow)) + _ROUNDING * float(np.linalg.norm(vector))
        values = tuple(given.value(key) for key in asked.where_keys)
        return Ask(
            asked.metric,
            asked.largest_first,
            field.name,
            narrow,
            rough,
            wanted,
            asked.where,
            values,
            asked.columns,
            settings,
        )

    def _query(self, asked: NearestSelect, given: _Given, later: bool) -> NDArray[np.float64]:
        """The vector that a query gives, which is run now.

        Raises:
            NotFoundHere: There is none, or it may be another one when the statement runs.
        """
        if later or asked.explained:
            raise NotFoundHere("its vector is not known before it is run")
        values = {name: given.value(key) for name, key in asked.vector_keys}
        try:
            run = partial(self._native.execute, str(asked.vector), values or None)
            rows = call_as_user(run, {}).fetchall()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise NotFoundHere("its vector cannot be found") from error
        if not rows or rows[0][0] is None:
            raise NotFoundHere("there is no vector")
        return _numbers(rows[0][0])


class _Given:
    """Values of parameters and lists of a statement."""

    def __init__(self, lists: Sequence[str], parameters: Any) -> None:
        self._lists = lists
        self._parameters = parameters

    def value(self, key: Key) -> Any:
        """The value of a parameter.

        Raises:
            NotFoundHere: There is none.
        """
        given = self._parameters
        if isinstance(given, Mapping) and str(key) in given:
            return given[str(key)]
        positional = isinstance(given, Sequence) and not isinstance(given, str | bytes)
        if positional and isinstance(key, int) and 0 < key <= len(given):
            return given[key - 1]
        raise NotFoundHere("a parameter is missing")

    def number(self, number: int | Parameter) -> int:
        """A number of rows."""
        found = self.value(number.key) if isinstance(number, Parameter) else number
        if isinstance(found, bool) or not hasattr(found, "__index__") or found.__index__() < 0:
            raise NotFoundHere("no number of rows")
        return int(found.__index__())

    def vector(self, key: Key) -> NDArray[np.float64]:
        """Numbers of a parameter, or of a list in the text."""
        try:
            if isinstance(key, str) and key.startswith(LISTED):
                text = self._lists[int(key.removeprefix(LISTED))]
                return np.array([float(part) for part in text.strip("[]").split(",")], np.float64)
        except (ValueError, TypeError) as error:
            raise NotFoundHere("no vector of numbers") from error
        return _numbers(self.value(key))


def _numbers(value: Any) -> NDArray[np.float64]:
    if isinstance(value, str | bytes):
        raise NotFoundHere("a text")
    try:
        return np.asarray(value, np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise NotFoundHere("no vector of numbers") from error


def _column(dataset: LanceDataset, name: str) -> pa.Field:
    """The column of vectors that SQL means by a name.

    Raises:
        NotFoundHere: There is none.
    """
    found = [field for field in dataset.schema if field.name.lower() == name.lower()]
    if len(found) == 1:
        type_ = duckdb_arrow_type(found[0])
        if pa.types.is_fixed_size_list(type_) and type_.value_type in (pa.float32(), pa.float64()):
            return found[0].with_type(type_)
    raise NotFoundHere("no column of vectors")


def _array_type(field: pa.Field) -> str:
    return f"{'DOUBLE' if field.type.value_type == pa.float64() else 'FLOAT'}[{field.type.list_size}]"
