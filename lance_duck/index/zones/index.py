"""The common part of zone maps and Bloom filters: zones and null rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import CorruptError, InvalidInputError
from lance_duck.index.files import SegmentFile
from lance_duck.index.kind import Answer, BuildOptions, Rows
from lance_duck.index.query import Except, Null, Query
from lance_duck.index.zones.zones import Ints, Mask, Zones
from lance_duck.rows.row_set import RowSet

_MAX_ROWS = (1 << 63) - 1


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
        """Return the number of rows of the zones in which some row may satisfy a query."""
        if isinstance(query, Null):
            return len(self.nulls)
        return self.zones.count(self._asked(query)[0])

    def search(self, query: Query) -> Answer:
        """Return the rows that satisfy or may satisfy a query; exact if it asks for nulls."""
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
        """Return the zones: first addresses and lengths, see `Stretching`."""
        return self.zones.first, self.zones.length

    @property
    def nulls_nbytes(self) -> int:
        """Approximate bytes of the set of nulls."""
        return sum(min(2 * len(part), 8192 + len(part) // 8) for part in self.nulls.parts.values())

    @abstractmethod
    def masks(self, query: Query) -> tuple[Mask, Mask]:
        """Return the zones in which some row may satisfy a query, and those in which every row but nulls does."""

    def _asked(self, query: Query) -> tuple[Mask, Mask]:
        """Return the masks for a query; those of the last query are cached, since an estimate precedes its search."""
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
        """Return the rows without fragments in which zones overlap: one of such zones may be older than the column."""
        overlapping = self.zones.overlapping
        return rows.only(set(rows.fragment_ids) - overlapping) if overlapping else rows


def row_number(file: SegmentFile, key: str, default: int) -> int:
    """Return a number of rows from the metadata.

    Raises:
        CorruptError: The entry is not a positive integer.
    """
    text = file.metadata.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text)):
        raise CorruptError(f"metadata {key!r}", where=file.path, expected="a positive integer", found=repr(text))
    return int(text)


def whole_number(options: BuildOptions, name: str, default: int) -> int:
    """Return a number of rows from the parameters.

    Raises:
        InvalidInputError: The parameter is not a positive integer.
    """
    value: Any = options.parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MAX_ROWS:
        raise InvalidInputError(f"parameter {name}", expected="a positive integer", found=repr(value))
    return value


def check_parameters(options: BuildOptions, kind: str, names: tuple[str, ...]) -> None:
    """Check that a kind has all given parameters.

    Raises:
        InvalidInputError: The kind does not have one of the parameters.
    """
    refuse_unknown(options.parameters, names, f"a {kind} index", "parameter")


def null_counts(nulls: RowSet, zones: Zones) -> Ints:
    """Return the number of nulls in each zone; where zones overlap, a null counts in each."""
    counts = np.zeros(len(zones), np.int64)
    starts = zones.offsets.astype(np.int64)
    for fragment_id, part in nulls.parts.items():
        places = np.flatnonzero(zones.fragments == np.uint64(fragment_id))
        stops = starts[places] + zones.length[places]
        cardinalities = map(part.range_cardinality, starts[places].tolist(), stops.tolist())
        counts[places] = np.fromiter(cardinalities, np.int64, len(places))
    return counts
