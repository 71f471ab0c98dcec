"""Sets of primary keys, which find older rows with the keys of newer ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import UnsupportedError


class KeySet:
    """An immutable set of keys.

    Args:
        keys: The keys, without nulls, perhaps repeated. One column for each column of the primary key.

    Raises:
        UnsupportedError: Arrow cannot look up values of these types.
    """

    def __init__(self, keys: pa.Table) -> None:
        self._columns = [column.combine_chunks() for column in keys.columns]
        self.num_rows = keys.num_rows
        self._steps: list[NDArray[np.int64]] = []
        try:
            self._values = [column.unique() for column in self._columns]
            self._codes = self._combined(self._columns, grows=True)
        except pa.ArrowNotImplementedError as error:
            raise UnsupportedError(
                "a log cannot be read if the primary key has this type", found=keys.schema.types
            ) from error

    def contains(self, keys: pa.Table) -> NDArray[np.bool_]:
        """Return whether each key is in the set."""
        if not self.num_rows or not keys.num_rows:
            return np.zeros(keys.num_rows, np.bool_)
        return self._combined([column.combine_chunks() for column in keys.columns]) >= 0

    def values(self, column: int) -> pa.Array:
        """Return the distinct values of one column of the keys."""
        return self._values[column]

    def replaced(self) -> NDArray[np.bool_]:
        """Return whether each key of the constructor's table occurs again later."""
        last = np.zeros(self.num_rows, np.int64)
        last[self._codes] = np.arange(self.num_rows)
        replaced: NDArray[np.bool_] = last[self._codes] != np.arange(self.num_rows)
        return replaced

    def _combined(self, columns: list[pa.Array], *, grows: bool = False) -> NDArray[np.int64]:
        """Return one number for each key, below the number of keys. Other keys are -1.

        The columns are added one by one. After each, the pairs of the set are numbered anew.
        """
        codes = _places(columns[0], self._values[0])
        for number, (column, values) in enumerate(zip(columns[1:], self._values[1:], strict=True)):
            added = _places(column, values)
            pairs = codes * len(values) + added
            if grows:
                self._steps.append(np.unique(pairs))
            step = self._steps[number]
            place = np.minimum(np.searchsorted(step, pairs), max(len(step) - 1, 0))
            found = (codes >= 0) & (added >= 0)
            found &= step[place] == pairs if len(step) else False
            codes = np.where(found, place, -1)
        return codes


def union(sets: Iterable[pa.Table], schema: pa.Schema) -> KeySet:
    """Return the set of the keys of all tables, which have equal schemas."""
    return KeySet(pa.concat_tables([schema.empty_table(), *sets]))


def _places(column: pa.Array, values: pa.Array) -> NDArray[np.int64]:
    places = pc.index_in(column, value_set=values, skip_nulls=True)
    found: NDArray[np.int64] = pc.fill_null(places, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found
