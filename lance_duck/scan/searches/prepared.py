"""Vector searches that are prepared once, and run with many queries."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from weakref import WeakSet

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import checked_calls
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.forks import Lock
from lance_duck.redact import shown
from lance_duck.scan.nearest.result import DISTANCE
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.projection import ROW_ID
from lance_duck.scan.searches.request import cached_scan, is_plain_search, read_table, search_arguments
from lance_duck.scan.table_scan import HasTable, TableScan
from lance_duck.telemetry.metrics import ROWS_RETURNED
from lance_duck.telemetry.observing import observed

_REFUSED: Final = ("full_text_query", "hybrid")
_ALIVE: Final[WeakSet[PreparedVectorSearch]] = WeakSet()
_ALIVE_LOCK: Final = Lock()


class _Version:
    """The searches for rows and for row ids in one version of the table. None if they cannot be cached."""

    def __init__(self, table: TableScan, arguments: Mapping[str, Any], id_arguments: Mapping[str, Any]) -> None:
        self.table = table
        self.rows: NearestScan | None = None
        self.ids: NearestScan | None = None
        if is_plain_search(arguments):
            self.rows, self.ids = cached_scan(table, arguments), cached_scan(table, id_arguments)
        self.has_row_ids = table.snapshot.has_stable_row_ids


@checked_calls
class PreparedVectorSearch:
    """A prepared vector search, from `LanceDataset.prepare_search`. Safe to use from several threads and after a fork.

    Each call searches the version that the dataset has at that time. After a change of the table through the dataset,
    or `checkout_latest`, the next call prepares the search again.

    As a context manager, it is closed at the end of the block.
    """

    def __init__(self, handle: HasTable, column: str | None, k: int, options: Mapping[str, Any]) -> None:
        for name in _REFUSED:
            if options.get(name) is not None:
                raise UnsupportedError(f"{name} is not supported", where="prepare_search", remedy="use search")
        given = search_arguments(handle.table.snapshot, None, k, column, options)
        self._handle: HasTable | None = handle
        self._arguments = given
        self._id_arguments = {**given, "columns": [ROW_ID, DISTANCE], "with_row_id": None, "with_row_address": None}
        self._current: _Version | None = None
        self._version()
        with _ALIVE_LOCK:
            _ALIVE.add(self)

    def __call__(self, q: Any) -> pa.Table:
        """Return the rows nearest to a query, like `LanceDataset.search`.

        Args:
            q: A list, numpy array or Arrow array of numbers. A float32 array is fastest. Or several queries: see
                `many`.

        Raises:
            InvalidInputError: The query does not fit the column.
            WrongTypeError: The query does not consist of numbers.
        """
        version = self._version()
        if version.rows is None:
            return read_table(version.table, self._with(q, self._arguments))
        with observed("SEARCH", version.table.snapshot.uri):
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
        if version.ids is not None and not version.has_row_ids and version.ids.is_plain(q):
            with observed("SEARCH", version.table.snapshot.uri):
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

    @property
    def nbytes(self) -> int:
        """Size of the open index and of the row addresses that the search refers to, in bytes."""
        current = self._current
        return 0 if current is None or current.rows is None else current.rows.nbytes

    def belongs_to(self, handle: HasTable) -> bool:
        """Return whether the search is open, and reads the versions of a handle."""
        return self._handle is handle

    def close(self) -> None:
        """Release the memory of the search. It cannot be used any more."""
        self._handle = self._current = None

    def __enter__(self) -> Self:
        """Return the search."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the search."""
        self.close()

    def __repr__(self) -> str:
        """Return a short description."""
        if self._handle is None:
            return "<PreparedVectorSearch, closed>"
        near = self._arguments["nearest"]
        return f"<PreparedVectorSearch of {near['column']} in {shown(self._handle.table.snapshot.uri)}, k {near['k']}>"

    def _version(self) -> _Version:
        """Return the search in the version that the dataset has now."""
        handle, current = self._handle, self._current
        if handle is None:
            raise InvalidInputError("the search is closed", where="prepare_search")
        if current is None or current.table is not handle.table:
            current = self._current = _Version(handle.table, self._arguments, self._id_arguments)
        return current

    def _with(self, q: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {**arguments, "nearest": {**arguments["nearest"], "q": q}}


def prepared_bytes(handle: HasTable) -> int:
    """Return the total size that the prepared searches of a dataset refer to, in bytes: see `nbytes`."""
    with _ALIVE_LOCK:
        searches = list(_ALIVE)
    return sum(each.nbytes for each in searches if each.belongs_to(handle))
