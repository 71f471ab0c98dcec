"""Settings are measured the same way in every location; the cheapest one depends on the location."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.search import open_index
from lance_duck.scan.nearest.covered import covered_vectors
from lance_duck.scan.nearest.options import Nearest
from lance_duck.scan.nearest.settings.curve import Curve
from lance_duck.scan.nearest.settings.measure import candidate_cost, measure
from lance_duck.scan.nearest.settings.sample import draw
from lance_duck.scan.nearest.settings.segment_curves import curves_of
from lance_duck.scan.table_scan import TableScan

DIM, ROWS = 16, 20_000


def table(uri: str) -> TableScan:
    """Return a vector table with inaccurate codes."""
    numbers = np.random.default_rng(1).random(ROWS * DIM, np.float32)
    made = ld.write_dataset(pa.table({"v": pa.FixedSizeListArray.from_arrays(numbers, DIM)}), uri)
    made = made.create_index("v", "IVF_PQ", num_partitions=32, num_sub_vectors=2)
    scan: TableScan = made.handle.table
    return scan


def measured(scan: TableScan, candidate_ns: float | None) -> Curve:
    """Return the curve of the whole segment for a candidate cost, or for the cost at the table's location."""
    (index,) = catalog(scan.snapshot).over("v")
    (segment,) = index.segments
    opened = open_index(scan.snapshot, segment)
    column = Nearest.of({"column": "v"}, scan, 10).column
    rows = covered_vectors(scan.snapshot, segment, opened)
    if candidate_ns is None:
        (curve,) = curves_of(scan, column, segment, opened, rows, 10, ROWS)
        return curve
    sample = draw(scan, column, segment, opened, rows, 10, 1.0)
    assert sample is not None
    return measure(opened, sample, 10, 1.0, candidate_ns)


def test_expensive_candidates_shift_settings_towards_more_partitions(tmp_path: Path) -> None:
    scan = table(str(tmp_path / "t.lance"))
    near, far = (measured(scan, candidate_cost(4 * DIM, is_remote=is_remote)) for is_remote in (False, True))
    for recall in (0.5, 0.8, 0.9):
        cheap, dear = near.choose(recall), far.choose(recall)
        assert cheap is not None
        assert dear is not None
        assert dear.recall - dear.error >= recall
        assert (dear.setting.candidates or 0) <= (cheap.setting.candidates or 0)
        assert dear.setting.nprobes >= cheap.setting.nprobes


def test_candidate_cost_depends_on_the_storage_location(tmp_path: Path) -> None:
    for uri, is_remote in ((str(tmp_path / "t.lance"), False), (f"memory:///{uuid4()}.lance", True)):
        scan = table(uri)
        curve, cost = measured(scan, None), candidate_cost(4 * DIM, is_remote=is_remote)
        pairs = {each.setting: each.cost for each in curve.measured}
        codes = {s.nprobes: c - (s.candidates or 0) * cost for s, c in pairs.items()}
        assert len(pairs) > len(codes)
        assert all(c - (s.candidates or 0) * cost == pytest.approx(codes[s.nprobes]) for s, c in pairs.items())
