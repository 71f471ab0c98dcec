"""The minimum and maximum length of a column's vectors, and whether some are never found. Cached by fragment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce

import numpy as np

from lance_duck.scan.costs import SMALL_BATCH_ROWS
from lance_duck.scan.nearest.blocks import block_of
from lance_duck.scan.nearest.options import VectorColumn
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.arrays import descend
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.fragment import Fragment


@dataclass(frozen=True)
class Extremes:
    """Extremes of the vectors of a column, possibly including deleted rows.

    Attributes:
        least: Length of the shortest nonzero vector, or infinity if all are zero.
        greatest: Length of the longest vector.
        zero: Whether some vector is zero.
        nan: Whether some vector contains a NaN.
        infinite: Whether some vector contains an infinite number, but not a NaN.
    """

    least: float = np.inf
    greatest: float = 0.0
    zero: bool = False
    nan: bool = False
    infinite: bool = False

    nbytes = 256

    def __or__(self, other: Extremes) -> Extremes:
        return Extremes(
            min(self.least, other.least),
            max(self.greatest, other.greatest),
            self.zero or other.zero,
            self.nan or other.nan,
            self.infinite or other.infinite,
        )

    @property
    def odd(self) -> bool:
        """Whether some vectors contain NaN or infinity. A search never finds these vectors, with any metric."""
        return self.nan or self.infinite


def extremes(table: TableScan, column: VectorColumn) -> Extremes:
    """Return the extremes of a version. Fragments that were measured for any version are not read again."""
    snapshot = table.snapshot

    def of_all() -> Extremes:
        pieces = [
            snapshot.shared(_key(fragment, column), partial(_of, table, column, fragment))
            for fragment in snapshot.fragments
        ]
        return reduce(Extremes.__or__, pieces, Extremes())

    return snapshot.derived(("vector extremes", column.path), of_all)


def _key(fragment: Fragment, column: VectorColumn) -> tuple[object, ...]:
    return "vector extremes", column.path, tuple((file.base_id, file.path) for file in fragment.files)


def _of(table: TableScan, column: VectorColumn, fragment: Fragment) -> Extremes:
    whole = TableScan(table.snapshot)  # all rows, even if the caller's table is restricted
    plan = whole.plan(ScanOptions(columns=[column.names[0]], batch_size=SMALL_BATCH_ROWS), fragment)
    result = Extremes()
    for batch in whole.reader(plan):
        block = block_of(descend(batch.column(0), column.names[1:]), column)
        values = block.values if block.valid is None else block.values[block.valid]
        numbers = values.astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", numbers, numbers))
        is_finite = np.isfinite(lengths)
        longer = lengths[is_finite & (lengths > 0)]
        if len(longer):
            result |= Extremes(float(longer.min()), float(longer.max()))
        result |= Extremes(
            zero=bool((lengths == 0).any()),
            nan=bool(np.isnan(lengths).any()),
            infinite=bool(np.isinf(lengths).any()),
        )
    return result
