"""Finds rows by the value of a column.

It has one shape: a B-tree of one segment covers all rows, and the values are whole numbers or texts, like the values
of the column. For other tables and values, a lookup returns None. A scan with the same filter then finds the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.names import covered_rows
from lance_duck.index.query import Among
from lance_duck.index.search import held_segment
from lance_duck.interrupts import Stopped
from lance_duck.scan.filters import TreeFilter, make_filter
from lance_duck.scan.predicate.tree import Compare
from lance_duck.scan.projection import HIDDEN, Projection
from lance_duck.scan.read.column_cache import DecodedColumn
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import is_watched
from lance_duck.telemetry.metrics import INDEX_USES
from lance_duck.wire.column_path import quoted_name

_BTREE: Final = "BTree"
_BOUND: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*\?\s*", re.ASCII)
_FRAGMENT_BITS: Final = np.uint64(32)
_SAMPLES: Final = {int: 0, str: "a"}


class KeyLookup:
    """Finds the rows with a value in a column. Safe to use from several threads.

    Args:
        table: The table.
        segment: The segment, a B-tree that covers all rows.
        kind: Type of the values, `int` or `str`.
        projection: Columns of the result.
    """

    def __init__(self, table: TableScan, segment: Segment, kind: type, projection: Projection) -> None:
        self._table = table
        self._segment = segment
        self._opened = held_segment(table.snapshot, segment)
        self._index = self._opened.index
        self._kind = kind
        self._projection = projection
        self._nothing = projection.schema.empty_table()
        self._columns: Sequence[DecodedColumn] | None = None
        ids = table.snapshot.fragments.ids()
        self._is_ordered = all(before < after for before, after in pairwise(ids))

    @property
    def nbytes(self) -> int:
        """Size of the segment in memory, in bytes."""
        return int(self._index.nbytes)

    def rows(self, values: Sequence[Any], most: int | None = None) -> pa.Table | None:
        """Return the rows with one of the values, in the order of a scan, or None if a scan must find them.

        Args:
            values: The values, in any order and possibly repeated.
            most: Maximum number of rows. A scan must find more.
        """
        kind = self._kind
        if self._opened.index is not self._index or is_watched() or any(type(value) is not kind for value in values):
            return None
        try:
            rows = self._found(values, most)
        except Stopped:
            raise
        except Exception:  # a scan fails, too, or finds out that the segment is corrupt
            return None
        if rows is not None:
            INDEX_USES.add(_BTREE)
        return rows

    def _found(self, values: Sequence[Any], most: int | None) -> pa.Table | None:
        if self._kind is str and any("\0" in value for value in values):
            return None
        table, segment = self._table, self._segment
        names = self._index.search(Among(pa.array(values, segment.type))).maybe
        rows = covered_rows(table.snapshot, segment, names)
        if len(rows.parts) > 1 and not self._is_ordered:
            return None
        if not rows:
            return self._nothing
        if most is not None and len(rows) > most:
            return None
        addresses = rows.rows()
        columns = self._decoded_columns()
        if columns is None:
            return pa.Table.from_batches([table.taker.by_address(addresses, self._projection)])
        places = addresses.view(np.int64) + self._shifts[addresses >> _FRAGMENT_BITS]
        return pa.Table.from_arrays([column.take(places) for column in columns], schema=self._projection.schema)

    def _decoded_columns(self) -> Sequence[DecodedColumn] | None:
        """Return the columns of the result if they are in memory, and no row is deleted."""
        if self._columns is None and self._may_be_decoded:
            found = self._table.taker.decoded_columns(self._projection)
            self._columns = None if found is None else [found[path[0]] for path in self._paths]
        return self._columns

    @cached_property
    def _may_be_decoded(self) -> bool:
        fragments, outputs = self._table.snapshot.fragments, self._projection.outputs
        if self._projection.dictionaries or any(fragment.deletion_file is not None for fragment in fragments):
            return False
        is_plain = bool(outputs) and len(self._paths) == len(outputs) and all(len(path) == 1 for path in self._paths)
        is_stored = is_plain and not any(path[0] in HIDDEN for path in self._paths)
        return is_stored and self._table.taker.row_shifts is not None

    @cached_property
    def _paths(self) -> Sequence[tuple[str, ...]]:
        """The column of each output that is a column."""
        return [output.path for output in self._projection.outputs if output.path is not None]

    @cached_property
    def _shifts(self) -> NDArray[np.int64]:
        shifts = self._table.taker.row_shifts
        assert shifts is not None  # checked before
        return shifts


def bound_column(text: str) -> str | None:
    """Return the column of a filter of the form `column = ?`, or None for other filters."""
    match = _BOUND.fullmatch(text)
    return None if match is None else match[1]


def key_lookup(table: TableScan, column: str, projection: Projection) -> KeyLookup | None:
    """Return the lookup of rows by a column, or None if it does not have the shape of the fast way."""
    snapshot = table.snapshot
    if table.restriction is not None or column not in snapshot.schema.names:
        return None
    everything = snapshot.fragments.id_set
    indexes = [index for index in catalog(snapshot).over(quoted_name(column)) if index.kind is not None]
    for index in indexes:
        segment = index.segments[0]
        if index.kind is None or index.kind.name != _BTREE or len(index.segments) > 1:
            continue
        kind = _kind_of(segment.type)
        is_plain = kind is not None and _is_comparison(table, column, kind)
        if kind is not None and is_plain and everything <= segment.fragment_ids:
            return KeyLookup(table, segment, kind, projection)
    return None


def _kind_of(type_: pa.DataType) -> type | None:
    if pa.types.is_integer(type_):
        return int
    return str if pa.types.is_string(type_) or pa.types.is_large_string(type_) else None


def _is_comparison(table: TableScan, column: str, kind: type) -> bool:
    """Return whether `column = ?` compares the column with the value, and nothing else."""
    readable = table.option_cache.readable(table.snapshot.schema)
    try:
        condition = make_filter(f"{column} = ?", readable, [_SAMPLES[kind]])
    except Exception:
        return False
    predicate = condition.predicate if isinstance(condition, TreeFilter) else None
    return isinstance(predicate, Compare) and predicate.op == "=" and predicate.path == (column,)
