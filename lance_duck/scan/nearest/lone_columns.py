"""Builds the result of a search from columns that are decoded in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID, Projection
from lance_duck.scan.read.column_cache import DecodedColumn
from lance_duck.scan.read.take import Taker

_INT64: Final = np.dtype(np.int64)
_FLOAT32: Final = pa.float32()
_UINT64: Final = pa.uint64()


_Maker = Callable[[NDArray[np.uint64], NDArray[np.float32]], pa.Array]


class _Layout(Protocol):
    """A `ResultLayout` or a `ScoreLayout`."""

    @property
    def projection(self) -> Projection: ...

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def order(self) -> Sequence[Any]: ...


class LoneColumns:
    """The columns of the result of a search with one query. Safe to use from several threads.

    Args:
        layout: Layout of the result.
        number: Name of the distance or score in `layout.order`.
        taker: Reads rows of the table, and caches decoded columns.
        has_row_ids: Whether row ids are stored. Otherwise, they are the addresses.
    """

    def __init__(self, layout: _Layout, number: str, taker: Taker, *, has_row_ids: bool) -> None:
        self._layout = layout
        self._schema = layout.schema
        self._number = number
        self._taker = taker
        self._addresses = (ROW_ADDRESS,) if has_row_ids else (ROW_ADDRESS, ROW_ID)
        self._makers: list[_Maker] | None = None

    def table(self, addresses: NDArray[np.uint64], numbers: NDArray[np.float32]) -> pa.Table | None:
        """Return the result for rows with their distances or scores, or None if a column is not decoded."""
        if self._makers is None:
            self._makers = self._all_makers()
            if self._makers is None:
                return None
        arrays = [make(addresses, numbers) for make in self._makers]
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def _all_makers(self) -> list[_Maker] | None:
        projection = self._layout.projection
        decoded, shifts = self._taker.decoded_columns(projection), self._taker.row_shifts
        if decoded is None or shifts is None or projection.dictionaries:
            return None
        makers: list[_Maker] = []
        for place in self._layout.order:
            if place == self._number:
                makers.append(_numbers)
                continue
            path = projection.outputs[place].path if isinstance(place, int) else None
            if path is None or len(path) > 1:
                return None
            if path[0] in self._addresses and path[0] not in decoded:
                makers.append(_addresses)
            elif path[0] in decoded:
                makers.append(self._taken(decoded[path[0]]))
            else:
                return None
        return makers

    def _taken(self, column: DecodedColumn) -> _Maker:
        shifts = self._taker.row_shifts
        assert shifts is not None  # checked before
        take = column.take
        if len(shifts) == 1:
            shift = int(shifts[0])
            if not shift:
                return lambda addresses, _: take(addresses.view(_INT64))
            return lambda addresses, _: take(addresses.view(_INT64) + shift)
        return lambda addresses, _: take(addresses.view(_INT64) + shifts[addresses >> 32])


def _numbers(_: NDArray[np.uint64], numbers: NDArray[np.float32]) -> pa.Array:
    return pa.Array.from_buffers(_FLOAT32, len(numbers), [None, pa.py_buffer(numbers)])


def _addresses(addresses: NDArray[np.uint64], _: NDArray[np.float32]) -> pa.Array:
    return pa.Array.from_buffers(_UINT64, len(addresses), [None, pa.py_buffer(addresses)])
