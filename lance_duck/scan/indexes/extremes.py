"""The least and the greatest value of a column: an index tells those of its rows, the other rows are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.index.aggregates import extremes as indexed_extremes
from lance_duck.index.catalog import ColumnIndex, catalog
from lance_duck.snapshot import Snapshot

Read = Callable[[Iterable[int]], Iterable[pa.Array]]
"""Reads the column of fragments, by their ids, batch by batch."""


def extremes(snapshot: Snapshot, path: str, type_: pa.DataType, read: Read) -> tuple[pa.Scalar, pa.Scalar] | None:
    """Return the least and the greatest value of a column.

    Args:
        snapshot: The version of the table.
        path: Dotted path of the column.
        type_: Its type; only of numbers, dates, timestamps, texts and bytes the order is known.
        read: Reads the column where no index covers it.

    Returns:
        Two values, null where all rows are null; None where no index tells, it covers less than half of the rows, or
        a value is NaN.
    """
    if not _is_ordered(type_):
        return None
    for index in catalog(snapshot).over(path):
        if index.segments[0].type == type_ and _covers_most(snapshot, index):
            values = indexed_extremes(snapshot, index)
            if values is not None:
                rest = set(snapshot.fragments.ids()) - set(index.fragments.tolist())
                return _ends(chain([values], read(sorted(rest)) if rest else ()), type_)
    return None


def _ends(parts: Iterable[pa.Array], type_: pa.DataType) -> tuple[pa.Scalar, pa.Scalar] | None:
    ends: list[pa.Scalar] = []
    for values in parts:
        if pa.types.is_floating(type_) and pc.any(pc.is_nan(values)).as_py():
            return None
        ends += pc.min_max(values).values()
    pair = pc.min_max(pa.array(ends, type_))
    return pair["min"], pair["max"]


def _is_ordered(type_: pa.DataType) -> bool:
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal)
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(type_) for test in (*tests, *texts)) and type_ != pa.float16()


def _covers_most(snapshot: Snapshot, index: ColumnIndex) -> bool:
    covered = sum(snapshot.num_rows(snapshot.fragment(number)) for number in index.fragments.tolist())
    return covered * 2 >= snapshot.count_rows()
