"""Builds the result of a search from columns that are decoded in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pyarrow as pa

from lance_duck.scan.nearest.lone import NearRows
from lance_duck.scan.nearest.result import DISTANCE, ResultLayout
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.scan.read.column_cache import DecodedColumn
from lance_duck.scan.read.take import Taker

_FLOAT32: Final = pa.float32()
_UINT64: Final = pa.uint64()

_Maker = Callable[[NearRows], pa.Array]


class LoneColumns:
    """The columns of the result of a search with one query. Safe to use from several threads.

    Args:
        layout: Layout of the result.
        taker: Reads rows of the table, and caches decoded columns.
        has_row_ids: Whether row ids are stored. Otherwise, they are the addresses.
    """

    def __init__(self, layout: ResultLayout, taker: Taker, *, has_row_ids: bool) -> None:
        self._layout = layout
        self._taker = taker
        self._addresses = (ROW_ADDRESS,) if has_row_ids else (ROW_ADDRESS, ROW_ID)
        self._makers: list[_Maker] | None = None

    def table(self, rows: NearRows) -> pa.Table | None:
        """Return the result for the given rows, or None if a column is not decoded."""
        if self._makers is None:
            self._makers = self._all_makers()
            if self._makers is None:
                return None
        arrays = [make(rows) for make in self._makers]
        return pa.Table.from_batches([pa.RecordBatch.from_arrays(arrays, schema=self._layout.schema)])

    def _all_makers(self) -> list[_Maker] | None:
        projection = self._layout.projection
        decoded, shifts = self._taker.decoded_columns(projection), self._taker.row_shifts
        if decoded is None or shifts is None or projection.dictionaries:
            return None
        makers: list[_Maker] = []
        for place in self._layout.order:
            path = (place,) if isinstance(place, str) else projection.outputs[place].path
            if path is None or len(path) > 1:
                return None
            if path[0] == DISTANCE:
                makers.append(_distances)
            elif path[0] in self._addresses and path[0] not in decoded:
                makers.append(_addresses)
            elif path[0] in decoded:
                makers.append(self._taken(decoded[path[0]]))
            else:
                return None
        return makers

    def _taken(self, column: DecodedColumn) -> _Maker:
        shifts = self._taker.row_shifts
        assert shifts is not None  # checked before
        if len(shifts) == 1:
            shift = int(shifts[0])
            return lambda rows: column.take(rows.addresses.view("i8") + shift)
        return lambda rows: column.take(rows.addresses.view("i8") + shifts[rows.addresses >> 32])


def _distances(rows: NearRows) -> pa.Array:
    return pa.Array.from_buffers(_FLOAT32, len(rows.distances), [None, pa.py_buffer(rows.distances)])


def _addresses(rows: NearRows) -> pa.Array:
    return pa.Array.from_buffers(_UINT64, len(rows.addresses), [None, pa.py_buffer(rows.addresses)])
