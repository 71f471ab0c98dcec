"""Plans name the index for each part, or the reason for a scan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from unit.scan.fake_index import FakeKind, Indexes
from unit.scan.fake_table import FakeSnapshot

from lance_duck.scan.options import ScanOptions
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.table_scan import TableScan

CURRENT: list[FakeSnapshot] = []


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def open_column(field: Any, locate: Any, num_rows: int, arrow_type: pa.DataType) -> Any:
        return CURRENT[0].open_column(field, locate, num_rows, arrow_type)

    monkeypatch.setattr(fragment_reader, "open_column", open_column)
    yield
    CURRENT.clear()


@pytest.fixture
def snapshot() -> Any:
    def rows(start: int) -> pa.Table:
        numbers = np.arange(start, start + 100)
        return pa.table({"i": numbers, "a": numbers % 10, "s": numbers.astype(str), "st": pa.array([{"x": 1}] * 100)})

    CURRENT[:] = [FakeSnapshot({k: rows(k * 100) for k in range(5)})]
    return CURRENT[0]


def scanner(snapshot: Any, **options: Any) -> LanceScanner:
    return LanceScanner(TableScan(snapshot), ScanOptions(**options))


def test_the_index_its_segments_and_the_query_are_named(snapshot: Any) -> None:
    Indexes(snapshot).add("i", [[0, 1], [2]])
    uuid = str(snapshot.catalog.indexes[0].segments[0].uuid)[:8]
    text = scanner(snapshot, filter="i = 7 AND length(s) > 0").explain_plan()
    assert "ScalarIndexQuery: i: value in (7), by i_idx (BTree, segments " + uuid in text
    assert "at most 1 row, 3 fragments through the index" in text
    assert "fragments: 3 through indexes, 2 scanned" in text
    assert "filter checked again on the index's rows: (length(s) > 0) (by DuckDB)" in text
    assert snapshot.reads == []


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("a = 1", "without an index: no index on a"),
        ("st.x = 1", "without an index: no index on st.x"),
        ("i + 1 = 2", "without an index: i + 1 = 2 is evaluated by DuckDB"),
        ("i = 1 OR a = 1", "without an index: no index on a"),
        ("i = 1 OR i % 2 = 0", "without an index: (i % 2 = 0) is evaluated by DuckDB"),
        (pc.add(pc.field("i"), 1) == 2, "without an index"),
        ("_rowoffset = 3", "without an index: no index on _rowoffset"),
    ],
)
def test_the_plan_states_why_no_index_is_used(snapshot: Any, condition: Any, why: str) -> None:
    Indexes(snapshot).add("i", [range(5)])
    for text in (
        scanner(snapshot, filter=condition).explain_plan(),
        scanner(snapshot, filter=condition).analyze_plan(),
    ):
        assert why in text
        assert "ScalarIndexQuery" not in text


def test_unusable_indexes_are_listed_in_the_plan(snapshot: Any) -> None:
    made = Indexes(snapshot)
    made.add("i", [], ignored=["its version 9 is not read"])
    made.add("a", [range(5)], FakeKind("ZoneMap", refuses=(object,)))
    assert "index 'i_idx' is ignored: its version 9 is not read" in scanner(snapshot, filter="i = 1").explain_plan()
    assert (
        "the ZoneMap index 'a_idx' on a does not answer: value in (1)"
        in scanner(snapshot, filter="a = 1").explain_plan()
    )
    assert "use_scalar_index is false" in scanner(snapshot, filter="a = 1", use_scalar_index=False).explain_plan()


def test_analyze_counts_rows_fragments_and_reads(snapshot: Any) -> None:
    Indexes(snapshot).add("i", [range(4)])
    text = scanner(snapshot, columns=["s"], filter="i IN (5, 105, 106, 450) AND a = 5").analyze_plan()
    assert ": 3 rows\n" in text
    assert "fragments: 2 through indexes, 2 pruned, 1 scanned" in text
    assert "rows through indexes: 3" in text
    assert "filter checked again on the index's rows: a = 5 (on Arrow columns)" in text
    assert "i IN (5, 105, 106, 450) kept 1 of 100 rows" in text
    assert "a = 5 kept 12 of 103 rows" in text
    assert ", 2 rows, " in text
    assert " 3 rows, 0 batches" in scanner(snapshot, filter="i IN (5, 6, 7)").analyze_plan(count_rows=True)
