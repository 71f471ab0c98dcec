"""`ORDER BY distance LIMIT k` carried out: a search, and the statement over its candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.caller_frame import call_as_user
from lance_duck.duck.catalog import TableCatalog, quoted
from lance_duck.duck.handle import TableHandle
from lance_duck.duck.names import Names
from lance_duck.duck.rules.order_by_distance import Listed, NearestSelect, nearest_select
from lance_duck.duck.run.candidates import MOST, Ask, NotFoundHere, candidates
from lance_duck.duck.run.nearest_table import NearestTable
from lance_duck.duck.run.parameters import Given, numbers
from lance_duck.duck.run.rewritten import Replaced
from lance_duck.duck.run.search_settings import SearchSettings, Session
from lance_duck.duck.settings import About, about_condition
from lance_duck.duck.table import DuckTable
from lance_duck.errors import LanceDuckError
from lance_duck.scan.duckdb.types import duckdb_arrow_type

ALL_ROWS: Final = (1 << 63) - 1
ROUNDING: Final = 2.0**-22
_NUMBERS: Final = count()


class NearestFirst:
    """Runs searches by ORDER BY distance for the statements of one connection.

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

    def replaced(self, sql: str, parameters: Any, *, later: bool) -> Replaced | None:
        """Put the nearest rows in the place of a table; None where the statement asks for no such rows.

        Args:
            sql: The statement.
            parameters: Its parameters.
            later: It will be run at some later time, perhaps repeatedly.
        """
        listed = Listed.of(sql)
        asked = nearest_select(listed.text)
        if asked is None or not self._names.are_ours(asked.name, later=later):
            return None
        handle = self._catalog.find(asked.name[-1])
        if handle is None:
            return None
        dataset = handle.current()
        vectors = vector_column(dataset, asked.column)
        if vectors is None:
            return None
        given = Given(listed.lists, parameters)
        work = _Work(
            self._native, handle, dataset, vectors, asked, given, self._session.settings, self._names.constancy()
        )
        try:
            about = About.ORDER | work.about_condition()
            if not self._names.dialect(asked.name, later=later).is_usual(about):
                raise NotFoundHere("settings give other words another meaning")
            work.search(later=later)
        except (NotFoundHere, LanceDuckError):
            work.tables.clear()
            work.edits.clear()
        work.cast(listed.text)
        return Replaced(listed.back(work.edited(listed.text)), work.tables) if work.edits else None


@dataclass
class _Work:
    """One statement.

    Attributes:
        is_steady: Whether names and settings are still what they were.
        tables: What new names stand for.
        edits: Places of the text, their ends, and what stands there instead.
    """

    native: duckdb.DuckDBPyConnection
    handle: TableHandle
    dataset: LanceDataset
    vectors: pa.Field
    asked: NearestSelect
    given: Given
    settings: SearchSettings
    is_steady: Callable[[], bool]
    tables: dict[str, DuckTable | pa.Table] = field(default_factory=dict)
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def about_condition(self) -> About:
        """Return what the meaning of its condition depends on."""
        values = [self.given.value(key) for key in self.asked.where_keys]
        return about_condition(self.asked.where, self.asked.where_columns, self.dataset.schema, values)

    def search(self, *, later: bool) -> None:
        """Put rows that may be the nearest in the place of the table.

        Raises:
            NotFoundHere: DuckDB has to look at all rows.
        """
        asked = self.asked
        later = later or asked.explained
        ask = self._ask(later)
        name = f"__lance_nearest_{next(_NUMBERS)}"
        self.tables[name] = (
            NearestTable(self.handle.current, ask, self.is_steady) if later else candidates(self.dataset, ask)
        )
        columns = ", ".join(quoted(each) for each in ask.schema(self.dataset).names)
        # The limit, which takes no row away, keeps the filters of the statement from being pushed into the table.
        inner = f'(SELECT {columns} FROM "{name}" LIMIT {ALL_ROWS})'  # noqa: S608
        place = inner if asked.alias is None else f"{inner} AS {quoted(asked.alias)}"
        self.edits.append((asked.start, asked.end, place))

    def cast(self, text: str) -> None:
        """Make the vector an array where DuckDB would refuse a list."""
        if self.asked.bare is not None:
            start, end = self.asked.bare
            kind = "DOUBLE" if self.vectors.type.value_type == pa.float64() else "FLOAT"
            self.edits.append((start, end, f"({text[start:end]}::{kind}[{self.vectors.type.list_size}])"))

    def edited(self, text: str) -> str:
        """Return the text with all that was changed."""
        for start, end, new in sorted(self.edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _ask(self, later: bool) -> Ask:
        asked, given, settings = self.asked, self.given, self.settings
        if settings.nearest == "off":
            raise NotFoundHere("it is switched off")
        wanted = given.number(asked.limit) + given.number(asked.offset)
        if not given.number(asked.limit) or wanted > MOST // 4:
            raise NotFoundHere("more rows than a search is for")
        vector = given.vector(asked.vector) if asked.query_place is None else self._query(asked.query_place, later)
        length = self.vectors.type.list_size
        if vector.shape != (length,) or asked.length not in (None, length):
            raise NotFoundHere("another length")
        with np.errstate(over="ignore"):
            narrow = vector.astype(np.float32)
        if not np.isfinite(narrow).all():
            raise NotFoundHere("no finite numbers")
        return Ask(
            asked.metric,
            asked.largest_first,
            self.vectors.name,
            narrow,
            np.array([np.linalg.norm(vector - narrow) + ROUNDING * np.linalg.norm(vector)]),
            wanted,
            asked.where,
            tuple(given.value(key) for key in asked.where_keys),
            asked.columns,
            settings,
        )

    def _query(self, place: tuple[int, int], later: bool) -> NDArray[np.float64]:
        """Return the vector that a query gives, which is run now; the statement reads what it gave.

        Raises:
            NotFoundHere: There is none, or it may be another one when the statement runs.
        """
        if later:
            raise NotFoundHere("its vector is not known before it is run")
        values = {name: self.given.value(key) for name, key, _ in self.asked.vector_keys}
        try:
            text = f"SELECT v FROM ({self.asked.vector}) AS q(v)"  # noqa: S608
            rows = call_as_user(partial(self.native.sql, text, params=values or None), {}).to_arrow_table()
        except duckdb.InterruptException:
            raise
        except duckdb.Error as error:
            raise NotFoundHere("its vector cannot be found") from error
        if rows.num_rows != 1 or not rows.column(0)[0].is_valid:
            raise NotFoundHere("there is no vector")
        name = f"__lance_vector_{next(_NUMBERS)}"
        self.tables[name] = rows
        # The parameters of the query stay, for DuckDB refuses values that nothing asks for.
        kept = "".join(f" AND typeof({mark}) IS NOT NULL" for _, _, mark in self.asked.vector_keys)
        self.edits.append((*place, f'SELECT v FROM "{name}" WHERE true{kept}'))  # noqa: S608
        return numbers(rows.column(0)[0].as_py())


def vector_column(dataset: LanceDataset, name: str) -> pa.Field | None:
    """Return the column of vectors that SQL means by a name, as DuckDB sees it; None where there is none."""
    found = [each for each in dataset.schema if each.name.lower() == name.lower()]
    if len(found) != 1:
        return None
    type_ = duckdb_arrow_type(found[0])
    if not pa.types.is_fixed_size_list(type_) or type_.value_type not in (pa.float32(), pa.float64()):
        return None
    return found[0].with_type(type_)
