"""Searches that are prepared once, and run with many queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.scan.nearest.result import DISTANCE, QUERY
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ID
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.scored.layout import SCORE
from lance_duck.scan.searches.prepared_base import Prepared
from lance_duck.scan.searches.request import (
    cached_scan,
    cached_words,
    embedded_query,
    is_plain_search,
    read_table,
    scanned,
    search_arguments,
)
from lance_duck.scan.table_scan import HasTable, TableScan
from lance_duck.scan.text.columns import is_text_column
from lance_duck.scan.text.prepared import WordSearch
from lance_duck.scan.text.query.tree import FullTextQuery, no_query
from lance_duck.scan.text.request import words_in
from lance_duck.telemetry.metrics import ROWS_RETURNED
from lance_duck.telemetry.observing import observed

_REFUSED: Final = ("full_text_query", "hybrid", "rerank")
_QUERY: Final = pa.field(QUERY, pa.int32(), nullable=False)


_S = TypeVar("_S", NearestScan, WordSearch)


@dataclass(frozen=True)
class _Version(Generic[_S]):
    """The searches in one version of the table.

    Attributes:
        table: The version.
        rows: The search for rows, or None if it cannot be cached.
        ids: The search for row ids, or None if it cannot be cached.
    """

    table: TableScan
    rows: _S | None
    ids: _S | None

    @cached_property
    def has_row_ids(self) -> bool:
        """Whether row ids are not the addresses: they are stored, or do not exist."""
        return self.table.snapshot.has_stable_row_ids or self.table.snapshot.log is not None

    @cached_property
    def uri(self) -> str:
        """URI of the table."""
        return self.table.snapshot.uri

    @property
    def nbytes(self) -> int:
        """Size of the open index and of the row addresses that the search refers to, in bytes."""
        return 0 if self.rows is None else self.rows.nbytes


@checked_calls
class PreparedVectorSearch(Prepared[_Version[NearestScan]]):
    """A prepared vector search, from `LanceDataset.prepare_search`. Safe to use from several threads and after a fork.

    Each call searches the version that the dataset has at that time. After a change of the table through the dataset,
    or `checkout_latest`, the next call prepares the search again.

    As a context manager, it is closed at the end of the block.
    """

    def __init__(self, handle: HasTable, column: str | None, k: int, options: Mapping[str, Any]) -> None:
        given = search_arguments(handle.table.snapshot, None, k, column, options)
        super().__init__(handle, f"{given['nearest']['column']}, k {k}", "prepare_search")
        self._column = column
        self._arguments = given
        self._id_arguments = {**given, "columns": [ROW_ID, DISTANCE], "with_row_id": None, "with_row_address": None}
        self._start()

    def __call__(self, q: Any) -> pa.Table:
        """Return the rows nearest to a query, like `LanceDataset.search`.

        Args:
            q: A list, numpy array or Arrow array of numbers. A float32 array is fastest. Or a text, if the table's
                metadata names an embedder for the column. Or several queries: see `many`.

        Raises:
            InvalidInputError: The query does not fit the column.
            WrongTypeError: The query does not consist of numbers.
        """
        version = self._version()
        if isinstance(q, str):
            q = self._embedded(version, q)
        if version.rows is None:
            return read_table(version.table, self._with(q, self._arguments))
        with observed("SEARCH", version.uri):
            result = version.rows.search({"q": q})
        ROWS_RETURNED.add(by=result.num_rows)
        return result

    def ids(self, q: Any) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        """Return the row ids of the rows nearest to one query, and their distances, nearest first.

        `LanceDataset.take_rows` reads rows by their ids.

        Args:
            q: See `__call__`. Several queries are not supported.

        Returns:
            Row ids, uint64 (n,), and distances, float32 (n,). n is less than k if fewer rows match.
        """
        version = self._version()
        if isinstance(q, str):
            q = self._embedded(version, q)
        if version.ids is not None and not version.has_row_ids and version.ids.is_plain(q):
            with observed("SEARCH", version.uri):
                rows = version.ids.rows_of_one(q)
            if rows is not None:
                ROWS_RETURNED.add(by=len(rows.distances))
                return rows.addresses, rows.distances
        result = read_table(version.table, self._with(q, self._id_arguments))
        if result.num_columns > 2:
            raise InvalidInputError("ids", where="prepare_search", expected="one query", remedy="use many")
        return result.column(ROW_ID).to_numpy(), result.column(DISTANCE).to_numpy()

    def many(self, queries: Any) -> pa.Table:
        """Return the rows nearest to each of several queries, with the number of the query as `query_index`.

        Args:
            queries: A matrix, or a list of queries.
        """
        return self(queries)

    def _made(self, table: TableScan) -> _Version[NearestScan]:
        if not is_plain_search(self._arguments):
            return _Version(table, None, None)
        return _Version(table, cached_scan(table, self._arguments), cached_scan(table, self._id_arguments))

    def _embedded(self, version: _Version[NearestScan], q: str) -> Any:
        """Return the vector of a text, as in `LanceDataset.search`."""
        return embedded_query(version.table.snapshot, q, self._column, {"full_text_query": q})  # never words alone

    def _with(self, q: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {**arguments, "nearest": {**arguments["nearest"], "q": q}}


@checked_calls
class PreparedTextSearch(Prepared[_Version[WordSearch]]):
    """A prepared search for words, from `LanceDataset.prepare_search`. Safe to use from several threads and in forks.

    Each call searches the version that the dataset has at that time. After a change of the table through the dataset,
    or `checkout_latest`, the next call prepares the search again.

    As a context manager, it is closed at the end of the block.
    """

    def __init__(self, handle: HasTable, column: str, k: int, options: Mapping[str, Any]) -> None:
        given = search_arguments(handle.table.snapshot, "", k, column, options)
        super().__init__(handle, f"{column}, k {k}", "prepare_search")
        self._column = column
        self._arguments = given
        self._id_arguments = {**given, "columns": [ROW_ID, SCORE], "with_row_id": None, "with_row_address": None}
        LanceScanner(handle.table, ScanOptions.of(given))
        self._start()

    def __call__(self, q: str | Mapping[str, Any] | FullTextQuery) -> pa.Table:
        """Return the rows that match a query, best first, like `LanceDataset.search`.

        Args:
            q: Words, a phrase in double quotes, or a query from `lance_duck.query`, or its JSON form.

        Raises:
            InvalidInputError: The query is invalid.
            WrongTypeError: The query has a wrong type.
        """
        version, request = self._version(), self._request(q)
        if version.rows is not None:
            with observed("SEARCH", version.uri):
                rows = version.rows.table(request)
            if rows is not None:
                ROWS_RETURNED.add(by=rows.num_rows)
                return rows
        return scanned(version.table, {**self._arguments, "full_text_query": request})

    def ids(self, q: str | Mapping[str, Any] | FullTextQuery) -> tuple[NDArray[np.uint64], NDArray[np.float32]]:
        """Return the row ids of the rows that match a query, and their scores, best first.

        `LanceDataset.take_rows` reads rows by their ids.

        Args:
            q: See `__call__`.

        Returns:
            Row ids, uint64 (n,), and scores, float32 (n,). n is less than k if fewer rows match.
        """
        version, request = self._version(), self._request(q)
        if version.ids is not None and not version.has_row_ids:
            with observed("SEARCH", version.uri):
                rows = version.ids.rows(request)
            if rows is not None:
                ROWS_RETURNED.add(by=len(rows.scores))
                return rows.addresses, rows.scores
        result = scanned(version.table, {**self._id_arguments, "full_text_query": request})
        return result.column(ROW_ID).to_numpy(), result.column(SCORE).to_numpy()

    def many(self, queries: Iterable[str | Mapping[str, Any] | FullTextQuery]) -> pa.Table:
        """Return the rows that match each of several queries, with the number of the query as `query_index`.

        Args:
            queries: A list of queries.
        """
        if isinstance(queries, str | Mapping | FullTextQuery) or not isinstance(queries, Iterable):
            raise WrongTypeError("queries", where="prepare_search", expected="a list", found=type(queries).__name__)
        tables = [self(q) for q in queries]
        if not tables:
            raise InvalidInputError("queries", where="prepare_search", expected="one or more", found="none")
        numbers = np.repeat(np.arange(len(tables), dtype=np.int32), [table.num_rows for table in tables])
        return pa.concat_tables(tables).add_column(0, _QUERY, pa.array(numbers))

    def _made(self, table: TableScan) -> _Version[WordSearch]:
        rows, ids = (cached_words(table, each, is_repeated=True) for each in (self._arguments, self._id_arguments))
        return _Version(table, rows, ids)

    def _request(self, q: Any) -> Any:
        if q is None:
            raise no_query("full_text_query", q, "scan")
        return words_in(q, self._column) if isinstance(q, str) else q


def prepared_search(
    handle: HasTable, column: str | None, k: int, options: Mapping[str, Any]
) -> PreparedVectorSearch | PreparedTextSearch:
    """Prepare a search of a text column for words, or of a vector column: see `LanceDataset.prepare_search`."""
    for name in _REFUSED:
        if options.get(name) is not None:
            raise UnsupportedError(f"{name} is not supported", where="prepare_search", remedy="use search")
    if column is not None and is_text_column(handle.table.snapshot.schema, column):
        return PreparedTextSearch(handle, column, k, options)
    return PreparedVectorSearch(handle, column, k, options)
