"""Reads one morsel: first the filter's columns, then the other columns for the rows that pass."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import CorruptError
from lance_duck.file.column import Rows
from lance_duck.scan.costs import WIDE_VALUE
from lance_duck.scan.plan import Morsel, ScanPlan
from lance_duck.scan.predicate.arrays import keep, nonzero
from lance_duck.scan.projection import ROW_ID, Read
from lance_duck.scan.read.assemble import assemble
from lance_duck.scan.read.fragment_reader import Columns, FragmentReader
from lance_duck.scan.read.joined_fragments import JoinedFragments
from lance_duck.scan.read.row_access import RowAccess, choose_row_access
from lance_duck.store.request import run


def read_morsel(plan: ScanPlan, reader: FragmentReader | JoinedFragments, morsel: Morsel) -> pa.RecordBatch | None:
    """Read the result columns of the morsel's live rows that pass the filter. Returns None if no row passes."""
    rows = _live_rows(plan, reader, morsel)
    early: Columns = {}
    if plan.filter is not None and count_rows(rows):
        early = read_rows(reader, plan.first_reads, rows)
        early |= _hidden(plan, reader, plan.hidden_in_filter, rows, morsel)
        mask = plan.filter.mask(early, count_rows(rows))
        rows, early = _narrow(plan, rows, early, mask)
    count = count_rows(rows)
    if not count:
        return None
    columns = {**early, **read_rows(reader, plan.later_reads, rows)}
    columns |= _hidden(plan, reader, plan.hidden, rows, morsel)
    return assemble(plan.projection, columns, count)


def count_morsel(plan: ScanPlan, reader: FragmentReader | JoinedFragments, morsel: Morsel) -> int:
    """Return the number of the morsel's live rows that pass the filter."""
    rows = _live_rows(plan, reader, morsel)
    if plan.filter is None or not count_rows(rows):
        return count_rows(rows)
    columns = read_rows(reader, plan.first_reads, rows)
    columns |= _hidden(plan, reader, plan.hidden_in_filter, rows, morsel)
    return int(plan.filter.mask(columns, count_rows(rows)).true_count)


def read_rows(reader: FragmentReader | JoinedFragments, reads: Sequence[Read], rows: Rows) -> Columns:
    """Read columns of rows with the cheapest access method.

    If rows are close to each other, the rows between them are also read, and then dropped. For columns with wide
    values, only the requested rows are read.
    """
    if not reads:
        return {}
    if not isinstance(rows, slice) and len(rows) == rows[-1] - rows[0] + 1:
        rows = slice(int(rows[0]), int(rows[-1]) + 1)
    access = None if isinstance(rows, slice) else choose_row_access(rows, reader.num_rows, may_read_between=True)
    if isinstance(rows, slice) or access is not RowAccess.BETWEEN:
        return run(reader.read(reads, rows))
    wide = [read for read in reads if read.width >= WIDE_VALUE]
    narrow = [read for read in reads if read.width < WIDE_VALUE]
    columns = run(reader.read(wide, rows)) if wide else {}
    if narrow:
        first, last = int(rows[0]), int(rows[-1])
        mask = np.zeros(last + 1 - first, np.bool_)
        mask[rows - first] = True
        selection = pa.array(mask)
        try:
            arrays = run(reader.read(narrow, slice(first, last + 1)))
        except CorruptError:  # a row between them may be corrupt
            return columns | run(reader.read(narrow, rows))
        columns |= {name: keep(array, selection) for name, array in arrays.items()}
    return columns


def count_rows(rows: Rows) -> int:
    """Return the number of rows."""
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)


def _live_rows(plan: ScanPlan, reader: FragmentReader | JoinedFragments, morsel: Morsel) -> Rows:
    deletions = None if plan.include_deleted else reader.deletions
    if deletions is None or not deletions.count_in(morsel.start, morsel.stop):
        return slice(morsel.start, morsel.stop)
    return deletions.live_offsets(morsel.start, morsel.stop)


def _narrow(plan: ScanPlan, rows: Rows, early: Columns, mask: pa.BooleanArray) -> tuple[Rows, Columns]:
    """Return the rows for which the mask is true, and their values in result columns that are already read."""
    carried = {name: early[name] for name in plan.carried if name in early}
    if mask.true_count == len(mask):
        return rows, carried
    places: NDArray[np.int64] = nonzero(mask)
    row_offsets = places + rows.start if isinstance(rows, slice) else rows[places]
    return row_offsets, {name: keep(array, mask) for name, array in carried.items()}


def _hidden(
    plan: ScanPlan, reader: FragmentReader | JoinedFragments, names: Sequence[str], rows: Rows, morsel: Morsel
) -> Columns:
    columns = {name: reader.hidden(name, rows, morsel.row_offset) for name in names}
    if plan.include_deleted and ROW_ID in columns and reader.deletions is not None:
        offsets = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        is_deleted = pa.array(reader.deletions.contains(offsets))
        columns[ROW_ID] = pc.if_else(is_deleted, pa.scalar(None, pa.uint64()), columns[ROW_ID])
    return columns
