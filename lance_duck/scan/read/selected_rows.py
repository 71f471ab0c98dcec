"""Reads rows that indexes chose. A few rows of many fragments are read together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.errors import ArrayLimitError
from lance_duck.scan.costs import FILTER_READ_AHEAD_ROWS
from lance_duck.scan.filters import Filter
from lance_duck.scan.plan import ScanPlan
from lance_duck.scan.predicate.arrays import keep, nonzero
from lance_duck.scan.projection import Read
from lance_duck.scan.read.assemble import assemble
from lance_duck.scan.read.fragment_reader import Columns, FragmentReader, open_at_once
from lance_duck.scan.read.morsel import read_rows
from lance_duck.store.request import gather, run

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Share:
    """Selected rows of one fragment.

    Attributes:
        reader: The fragment.
        offsets: Ascending physical offsets, possibly including deleted rows.
        row_offset: Number of live rows before the fragment in the table.
    """

    reader: FragmentReader
    offsets: NDArray[np.int64]
    row_offset: int = 0

    def living(self) -> Share:
        """Return the share without deleted rows."""
        deletions = self.reader.deletions
        if deletions is None:
            return self
        is_deleted = deletions.contains(self.offsets)
        return Share(self.reader, self.offsets[~is_deleted], self.row_offset) if is_deleted.any() else self


def read_shares(plan: ScanPlan, shares: Sequence[Share]) -> list[pa.RecordBatch]:
    """Read the live rows that pass the plan's filter. Returns one batch, or an empty list if no row passes.

    Returns several batches if one array cannot hold a column.
    """
    return _in_parts(lambda part: _read_shares(plan, part), shares)


def _read_shares(plan: ScanPlan, shares: Sequence[Share]) -> list[pa.RecordBatch]:
    shares = _prepared(plan, shares)
    early: Columns = {}
    ahead: Sequence[Read] = ()
    if plan.filter is not None and shares:
        is_remote = shares[0].reader.is_remote
        if is_remote and sum(len(share.offsets) for share in shares) <= FILTER_READ_AHEAD_ROWS:
            first = {read.name for read in plan.first_reads}
            ahead = [read for read in plan.later_reads if read.name not in first]
        early = _read(shares, (*plan.first_reads, *ahead)) | _hidden(shares, plan.hidden_in_filter)
        names = {*plan.carried, *plan.hidden, *(read.name for read in ahead)}
        shares, early = _narrowed(plan.filter, shares, early, names)
    if not shares:
        return []
    columns = early | _read(shares, [read for read in plan.later_reads if read not in ahead])
    columns |= _hidden(shares, [name for name in plan.hidden if name not in early])
    return [assemble(plan.projection, columns, sum(len(share.offsets) for share in shares))]


def count_shares(plan: ScanPlan, shares: Sequence[Share]) -> int:
    """Return the number of live rows that pass the plan's filter."""
    return sum(_in_parts(lambda part: [_count_shares(plan, part)], shares))


def _in_parts(read: Callable[[Sequence[Share]], list[_T]], shares: Sequence[Share]) -> list[_T]:
    """Read shares together. If one array cannot hold them, read each share separately, and a single share in halves."""
    try:
        return read(shares)
    except ArrayLimitError:
        if len(shares) > 1:
            return [result for share in shares for result in _in_parts(read, [share])]
        if not shares or len(shares[0].offsets) < 2:
            raise
    (share,) = shares
    halves = np.array_split(share.offsets, 2)
    return [result for half in halves for result in _in_parts(read, [replace(share, offsets=half)])]


def _count_shares(plan: ScanPlan, shares: Sequence[Share]) -> int:
    shares = _prepared(plan, shares)
    count = sum(len(share.offsets) for share in shares)
    if plan.filter is None or not count:
        return count
    columns = _read(shares, plan.first_reads) | _hidden(shares, plan.hidden_in_filter)
    return int(plan.filter.mask(columns, count).true_count)


def _prepared(plan: ScanPlan, shares: Sequence[Share]) -> list[Share]:
    """Return the shares without deleted rows. If each file needs a round trip, files are opened concurrently."""
    if len(shares) > 1:
        open_at_once([share.reader for share in shares], (*plan.first_reads, *plan.later_reads))
    return [living for share in shares if len((living := share.living()).offsets)]


def _read(shares: Sequence[Share], columns: Sequence[Read]) -> Columns:
    if not columns:
        return {}
    if len(shares) == 1:
        return read_rows(shares[0].reader, columns, shares[0].offsets)
    arrays = run(gather([share.reader.read(columns, share.offsets) for share in shares]))
    return {name: concatenate([columns[name] for columns in arrays]) for name in arrays[0]}


def _hidden(shares: Sequence[Share], names: Sequence[str]) -> Columns:
    return {
        name: concatenate([share.reader.hidden(name, share.offsets, share.row_offset) for share in shares])
        for name in names
    }


def _narrowed(
    filter_: Filter, shares: Sequence[Share], early: Columns, names: set[str]
) -> tuple[Sequence[Share], Columns]:
    """Return the rows that pass the filter, and their values in the columns that are in `early` and in `names`."""
    mask = filter_.mask(early, sum(len(share.offsets) for share in shares))
    carried = {name: array for name, array in early.items() if name in names}
    if mask.true_count == len(mask):
        return shares, carried
    if not mask.true_count:
        return [], {}
    selection = nonzero(mask)
    edges = np.cumsum([0, *(len(share.offsets) for share in shares)])
    bounds = np.searchsorted(selection, edges).tolist()
    narrowed = [
        Share(share.reader, share.offsets[selection[begin:end] - edge], share.row_offset)
        for share, begin, end, edge in zip(shares, bounds, bounds[1:], edges.tolist(), strict=False)
        if begin < end
    ]
    return narrowed, {name: keep(array, mask) for name, array in carried.items()}
