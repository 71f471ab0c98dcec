from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.scan.fake_table import FakeSnapshot

from lance_duck.scan import table_scan
from lance_duck.scan.filters import TreeFilter
from lance_duck.scan.predicate.tree import Compare
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.table_scan import estimate_selectivity, filter_pays

CURRENT: list[FakeSnapshot] = []


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fragment_reader, "open_column", lambda *args: CURRENT[0].open_column(*args))
    yield
    CURRENT.clear()


def table(*sizes: int) -> Any:
    starts = np.cumsum([0, *sizes]).tolist()
    ranges = itertools.pairwise(starts)
    parts = {i: pa.table({"i": np.arange(*bounds)}) for i, bounds in enumerate(ranges)}
    CURRENT[:] = [FakeSnapshot(parts, uri="/local")]
    return CURRENT[0]


def below(limit: int) -> TreeFilter:
    return TreeFilter(Compare("<", ("i",), pa.scalar(limit)))


@pytest.mark.parametrize("part", [0.0, 0.25, 0.5, 1.0])
def test_the_sample_is_spread_over_the_table(part: float) -> None:
    snapshot = table(20_000, 20_000, 20_000, 20_000)
    found = estimate_selectivity(snapshot, ColumnCache(), below(int(part * 80_000)))
    assert found == pytest.approx(part, abs=0.1)
    assert sum(rows.stop - rows.start for _, _, rows in snapshot.reads) <= 8 * 1024


def test_tables_without_rows_or_fragments() -> None:
    assert estimate_selectivity(table(0, 0), ColumnCache(), below(1)) == 0.0
    assert estimate_selectivity(table(3), ColumnCache(), below(3)) == 1.0


def test_filtering_first_pays_if_few_rows_match() -> None:
    large = table(200_000)
    assert filter_pays(large, ColumnCache(), below(500))
    assert not filter_pays(large, ColumnCache(), below(100_000))
    assert filter_pays(table(1000), ColumnCache(), below(1))
    assert not filter_pays(table(10), ColumnCache(), below(1))


def test_a_filter_pays_on_wide_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_scan, "WIDE_ROW", 8)
    assert filter_pays(table(1000), ColumnCache(), below(300))
    assert not filter_pays(table(1000), ColumnCache(), below(900))


def test_filtering_first_pays_on_object_stores_and_hidden_columns() -> None:
    snapshot = table(1000)
    assert filter_pays(snapshot, ColumnCache(), TreeFilter(Compare("<", ("_rowid",), pa.scalar(5, pa.uint64()))))
    snapshot.uri = "s3://bucket/table"
    assert filter_pays(snapshot, ColumnCache(), below(900))
