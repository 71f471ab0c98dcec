"""Searches of open segments, which find the zones in which some rows may satisfy a query, or all rows satisfy it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.errors import InternalError
from lance_duck.index.kind import Answer, Rows
from lance_duck.index.query import Among, Except, Null, Query
from lance_duck.index.zones.bounds import read_bounds, zone_masks
from lance_duck.index.zones.layout import ITEMS, PROBABILITY, ROWS_PER_ZONE
from lance_duck.index.zones.open import BloomFilterFile, ZoneMapFile
from lance_duck.index.zones.values import hashes_to_find
from lance_duck.index.zones.zones import Ints, Mask, Zones
from lance_duck.rows.row_set import RowSet


class ZonedIndex(ABC):
    """An open segment with zones, which implements `index.kind.ScalarIndex`.

    Attributes:
        zones: Zones of the rows.
        nulls: Rows whose value is null.
        type: Storage type of the column.
    """

    def __init__(self, zones: Zones, nulls: RowSet, type_: pa.DataType) -> None:
        self.type = type_
        self.zones = zones
        self.nulls = nulls
        self._last: tuple[Query, Mask, Mask] | None = None

    def estimate(self, query: Query) -> int:
        """Return the row count of the zones in which some row may satisfy a query."""
        if isinstance(query, Null):
            return len(self.nulls)
        return self.zones.count(self._asked(query)[0])

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy or may satisfy a query. The result is exact for `Null` and `Except(Null())`."""
        if isinstance(query, Null):
            return self._trusted(self.nulls, self.nulls)
        may, surely = self._asked(query)
        maybe = self.zones.rows(may)
        if isinstance(query, Except) and isinstance(query.query, Null):
            maybe = maybe - self._plain(self.nulls)
            return self._trusted(maybe, maybe)
        sure = self.zones.rows(surely)
        without_nulls = sure - self.nulls
        if without_nulls == maybe:
            return self._trusted(maybe, maybe)
        return self._trusted(without_nulls, maybe)

    def stretches(self) -> tuple[Rows, Ints]:
        """Return the first address and the length of each zone. See `Stretching`."""
        return self.zones.first, self.zones.length

    @property
    def nulls_nbytes(self) -> int:
        """Approximate size of the null set, in bytes."""
        return sum(min(2 * len(part), 8192 + len(part) // 8) for part in self.nulls.parts.values())

    @abstractmethod
    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return two masks: zones in which some row may satisfy a query, and zones whose non-null rows all do."""

    def _asked(self, query: Query) -> tuple[Mask, Mask]:
        """Return the masks for a query. The last masks are cached for the search that follows an estimate."""
        last = self._last
        if last is None or last[0] is not query:
            if isinstance(query, Except) and isinstance(query.query, Null):
                all_ = np.ones(len(self.zones), np.bool_)
                last = (query, all_, all_)
            else:
                last = (query, *self.masks(query))
            self._last = last
        return last[1], last[2]

    def _trusted(self, sure: RowSet, maybe: RowSet) -> Answer:
        if sure is maybe and not self.zones.overlapping:
            return Answer.exactly(sure)
        return Answer(self._plain(sure), maybe)

    def _plain(self, rows: RowSet) -> RowSet:
        """Return rows, except in fragments with overlapping zones.

        One of the overlapping zones may predate a rewrite of the column.
        """
        overlapping = self.zones.overlapping
        return rows.only(set(rows.fragment_ids) - overlapping) if overlapping else rows


class ZoneMapIndex(ZonedIndex):
    """An open zone map.

    Attributes:
        file: File of the segment.
    """

    def __init__(self, file: ZoneMapFile, type_: pa.DataType) -> None:
        statistics = file.statistics
        super().__init__(statistics.zones, file.nulls, type_)
        self.file = file
        self._bounds = read_bounds(
            statistics.low, statistics.high, statistics.nulls, statistics.nans, statistics.zones.length, file.path
        )

    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return two masks: zones in which some row may satisfy a query, and zones whose non-null rows all do."""
        return zone_masks(self._bounds, query)

    def statistics(self) -> dict[str, Any]:
        """Return the number of zones, and the row count of a zone."""
        return {"num_zones": len(self.zones), ROWS_PER_ZONE: self.file.rows_per_zone}

    def prewarm(self) -> None:
        """Do nothing: a zone map is read when it is opened."""

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        statistics = self.file.statistics
        arrays = (statistics.low.nbytes, statistics.high.nbytes, self._bounds.nbytes, 32 * len(self.zones))
        return sum(arrays) + self.nulls_nbytes


class BloomFilterIndex(ZonedIndex):
    """An open segment of Bloom filters.

    Attributes:
        file: File of the segment.
    """

    def __init__(self, file: BloomFilterFile, type_: pa.DataType) -> None:
        super().__init__(file.zones, file.nulls, type_)
        self.file = file

    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return a mask of the zones that may contain a matching row, and a mask that is always False.

        Filters cannot prove that all rows of a zone match.
        """
        if not isinstance(query, Among):
            raise InternalError("Bloom filters cannot evaluate the query", found=query)
        nothing = np.zeros(len(self.zones), np.bool_)
        hashes = hashes_to_find(query.values.cast(self.type))
        return (~nothing if hashes is None else self.file.may_hold(hashes)), nothing

    def statistics(self) -> dict[str, Any]:
        """Return the number of zones, and the parameters of their filters."""
        numbers = {ITEMS: self.file.number_of_items, PROBABILITY: self.file.probability}
        return {"type": "BloomFilter", "num_blocks": len(self.zones), **numbers}

    def prewarm(self) -> None:
        """Read all filters, if they are small enough to be cached."""
        self.file.prewarm()

    @property
    def nbytes(self) -> int:
        """Approximate size in memory, in bytes."""
        return self.file.nbytes + self.nulls_nbytes
