"""Selectivity of a filter, estimated from a small sample; and whether to filter in the scan rather than in DuckDB.

A filter in the scan saves reading columns of rows that do not pass, but copies those that do, which DuckDB need not;
and DuckDB plans its joins as if a filter that the scan accepts passed every row. So it pays only where very few rows
pass, or where rows are wide or in an object store.
"""

from __future__ import annotations

from lance_duck.errors import LanceDuckError
from lance_duck.scan.costs import PAYS_BELOW, PAYS_BELOW_WHEN_WIDE, SAMPLE_SLICES, TASK_ROWS, WIDE_ROW
from lance_duck.scan.filters import Filter
from lance_duck.scan.predicate.arrays import row_width
from lance_duck.scan.projection import HIDDEN, reads
from lance_duck.scan.read.fragment_reader import ColumnCache, FragmentReader
from lance_duck.snapshot import Snapshot
from lance_duck.store import local_path
from lance_duck.store.request import run


def filter_pays(snapshot: Snapshot, columns: ColumnCache, condition: Filter, expected: int | None = None) -> bool:
    """Return whether a scan should filter by itself rather than leave it to DuckDB.

    Args:
        snapshot: The version of the table.
        columns: Column readers to use again.
        condition: The filter.
        expected: Rows that the scan reads at most, with the help of indexes; None without.
    """
    if local_path(snapshot.uri) is None or any(path[0] in HIDDEN for path in condition.paths()):
        return True
    wide = sum(row_width(field.type) for field in snapshot.schema.scan_arrow) >= WIDE_ROW
    most = PAYS_BELOW_WHEN_WIDE if wide else PAYS_BELOW
    if expected is not None and expected <= most * snapshot.count_rows():
        return True
    try:
        selectivity = estimate_selectivity(snapshot, columns, condition)
    except LanceDuckError:
        return True  # the scan will raise the error
    return selectivity <= most


def estimate_selectivity(snapshot: Snapshot, columns: ColumnCache, condition: Filter) -> float:
    """Estimate the share of rows that pass a filter, 0 to 1, from slices spread over the table."""
    fragments = snapshot.fragments
    columns_to_read = reads(snapshot.schema, condition.paths())
    spots = {
        _spot(snapshot, (i + 0.5) * len(fragments) / SAMPLE_SLICES)
        for i in range(SAMPLE_SLICES if len(fragments) else 0)
    }
    num_rows = num_passing = 0
    for index, start, stop in sorted(spots):
        if start < stop:
            reader = FragmentReader(snapshot, fragments[index], columns)
            num_rows += stop - start
            num_passing += condition.mask(
                run(reader.read(columns_to_read, slice(start, stop))), stop - start
            ).true_count
    return num_passing / num_rows if num_rows else 0.0


def _spot(snapshot: Snapshot, place: float) -> tuple[int, int, int]:
    """Return the fragment, start and stop of the slice around a place, in fragments from the start of the table."""
    index = int(place)
    count = snapshot.physical_rows(snapshot.fragments[index])
    start = max(0, min(int((place % 1) * count) - TASK_ROWS // 2, count - TASK_ROWS))
    return index, start, min(start + TASK_ROWS, count)
