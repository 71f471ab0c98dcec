"""Scans through indexes give what scans without them give."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.scan.fake_index import FakeKind, Indexes
from unit.scan.fake_table import FakeSnapshot

from lance_duck.errors import IndexWarning
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.predicate.tree import OPS, And, Compare, In, IsNull, Not, Or, Predicate
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.table_scan import TableScan

CURRENT: list[FakeSnapshot] = []


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def open_column(field: Any, locate: Any, num_rows: int, arrow_type: pa.DataType) -> Any:
        return CURRENT[0].open_column(field, locate, num_rows, arrow_type)

    monkeypatch.setattr(fragment_reader, "open_column", open_column)
    yield
    CURRENT.clear()


def table(fragments: int = 4, rows: int = 50, seed: int = 0) -> Any:
    """Columns i (row position), a (few values, nulls), f, s, st.x; rows 3 and 7 of even fragments are deleted."""
    rng = random.Random(seed)
    parts = {}
    for fragment in range(fragments):
        numbers = list(range(fragment * rows, (fragment + 1) * rows))
        parts[fragment] = pa.table(
            {
                "i": pa.array(numbers, pa.int64()),
                "a": pa.array([rng.choice([None, 0, 1, 2, 3]) for _ in numbers], pa.int32()),
                "f": pa.array([rng.choice([None, float("nan"), -0.0, 0.0, 1.5, float("inf")]) for _ in numbers]),
                "s": pa.array([rng.choice([None, "", "ab", "abc", "b"]) for _ in numbers], pa.string()),
                "st": pa.StructArray.from_arrays([pa.array(numbers), pa.array(numbers)], ["x", "y"]),
            }
        )
    CURRENT[:] = [FakeSnapshot(parts, {fragment: [3, 7] for fragment in range(0, fragments, 2)})]
    return CURRENT[0]


def read(snapshot: Any, **options: Any) -> pa.Table:
    scan = TableScan(snapshot)
    chosen = ScanOptions(**options)
    return scan.reader(scan.plan(chosen), chosen).read_all()


def both(snapshot: Any, **options: Any) -> tuple[pa.Table, pa.Table]:
    return read(snapshot, **options), read(snapshot, use_scalar_index=False, **options)


def same(first: pa.Table, second: pa.Table) -> bool:
    """Whether rows and schema are the same, NaN among them."""
    return first.schema == second.schema and repr(first.to_pylist()) == repr(second.to_pylist())


def test_only_rows_found_by_the_index_are_read() -> None:
    snapshot = table()
    (index,) = Indexes(snapshot).add("i", [range(4)])
    found = read(snapshot, columns=["s", "i"], filter="i = 60")
    assert found["i"].to_pylist() == [60]
    assert [str(q) for q in index.asked] == ["value in (60)"]
    assert {(fragment, name) for fragment, name, _ in snapshot.reads} == {(1, "s"), (1, "i")}
    assert snapshot.deletions_read == 0


def test_uncovered_fragments_are_scanned() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [[0], [2]])
    found = read(snapshot, columns=["i"], filter="i IN (1, 60, 110, 199)")
    assert found["i"].to_pylist() == [1, 60, 110, 199]
    scanned = {fragment for fragment, _, rows in snapshot.reads if isinstance(rows, slice) and rows.stop == 50}
    assert scanned == {1, 3}


def test_deleted_rows_are_removed_from_index_results() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [range(4)])
    assert read(snapshot, columns=["i"], filter="i IN (3, 4, 53, 103)")["i"].to_pylist() == [4, 53]


def test_the_remaining_condition_is_applied_to_index_results() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [range(4)])
    found, plain = both(snapshot, filter="i BETWEEN 40 AND 110 AND a = 1")
    assert same(found, plain)
    assert found.num_rows
    assert {name for _, name, _ in snapshot.reads if name == "i"}


def test_exact_index_results_are_counted_without_reading_rows() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [range(4)])
    scan = TableScan(snapshot)
    assert scan.count(scan.plan(ScanOptions(filter="i >= 10 AND i < 120"))) == 108
    assert scan.has_rows(scan.plan(ScanOptions(filter="i = 4")))
    assert not scan.has_rows(scan.plan(ScanOptions(filter="i = 3")))
    assert snapshot.reads == []


def test_an_unsatisfiable_condition_reads_nothing() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [range(4)])
    assert read(snapshot, filter="i > 100 AND i < 50").num_rows == 0
    assert read(snapshot, filter="i = NULL").num_rows == 0
    assert snapshot.reads == []


def test_ranges_on_one_column_become_one_index_query() -> None:
    snapshot = table()
    (index,) = Indexes(snapshot).add("i", [range(4)])
    read(snapshot, filter="i >= 10 AND s IS NOT NULL AND i < 20 AND i <= 15")
    assert [str(q) for q in index.asked] == ["10 <= value <= 15"]


def test_the_most_selective_index_is_searched_first() -> None:
    snapshot = table()
    made = Indexes(snapshot)
    (wide,), (narrow,) = made.add("a", [range(4)]), made.add("i", [range(4)])
    found, plain = both(snapshot, filter="a >= 0 AND i IN (5, 6, 7, 8)")
    assert same(found, plain)
    assert (len(narrow.asked), len(wide.asked)) == (1, 0)


def test_a_broken_segment_is_scanned() -> None:
    snapshot = table()
    _, second = Indexes(snapshot).add("i", [[0, 1], [2, 3]])
    second.broken = True
    with pytest.warns(IndexWarning, match="scanned"):
        found = read(snapshot, columns=["i"], filter="i IN (1, 101, 102)")
    assert found["i"].to_pylist() == [1, 101, 102]


def test_possible_matches_of_an_index_are_rechecked() -> None:
    snapshot = table()
    Indexes(snapshot).add("a", [range(4)], FakeKind("ZoneMap", slack=20))
    found, plain = both(snapshot, filter="a = 2")
    assert same(found, plain)
    scan = TableScan(snapshot)
    assert scan.count(scan.plan(ScanOptions(filter="a = 2"))) == plain.num_rows


def test_one_index_covers_fragments_the_other_lacks() -> None:
    snapshot = table()
    made = Indexes(snapshot)
    (zones,) = made.add("a", [range(4)], FakeKind("ZoneMap", slack=5))
    (tree,) = made.add("a", [[1, 2]], FakeKind("BTree"), "exact")
    found, plain = both(snapshot, filter="a = 2")
    assert same(found, plain)
    assert (len(tree.asked), len(zones.asked)) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["i = 5 AND a = 1", "i < 20 OR i >= 190", "st.x = 70", "NOT (i < 190)", "a = 1 OR s = 'b'", "NOT (i <> 77)"],
)
def test_an_index_scan_returns_the_same_rows_as_a_scan(text: str) -> None:
    snapshot = table()
    made = Indexes(snapshot)
    for path in ("i", "a", "st.x"):
        made.add(path, [[0, 1], [2]])
    found, plain = both(snapshot, filter=text, with_row_id=True, with_row_address=True)
    assert same(found, plain)


def test_scan_options_apply_to_index_scans() -> None:
    snapshot = table()
    (index,) = Indexes(snapshot).add("i", [range(4)])
    wanted = {"columns": ["i", "_rowoffset"], "filter": "i >= 20 AND i < 120"}
    for more in (
        {"limit": 7, "offset": 5},
        {"fragments": [2, 0]},
        {"fragments": [2, 2]},
        {"batch_size": 8, "strict_batch_size": True},
        {"order_by": ["i"], "limit": 3},
        {"use_threads": False},
    ):
        found, plain = both(snapshot, **wanted, **more)
        assert same(found, plain), more
    asked = len(index.asked)
    read(snapshot, filter="i = 3", include_deleted_rows=True, with_row_id=True)
    assert len(index.asked) == asked


def test_few_rows_of_many_fragments_are_read_together() -> None:
    snapshot = table(fragments=20)
    Indexes(snapshot).add("i", [range(20)])
    wanted = list(range(4, 1000, 50))
    scan = TableScan(snapshot)
    options = ScanOptions(columns=["i", "s"], filter=In(("i",), pa.array(wanted)))
    batches = list(scan.reader(scan.plan(options), options))
    assert [i for batch in batches for i in batch["i"].to_pylist()] == wanted
    assert len(batches) == 1


def test_rows_by_address_need_no_index() -> None:
    snapshot = table()
    addresses = [(1 << 32) + 5, 3, (9 << 32) + 1, (2 << 32) + 70, 8]
    condition = In(("_rowaddr",), pa.array(addresses, pa.uint64()))
    found, plain = both(snapshot, columns=["i"], filter=condition)
    assert found["i"].to_pylist() == plain["i"].to_pylist() == [8, 55]
    snapshot.reads.clear()
    assert read(snapshot, columns=["i"], filter=f"_rowid = {(1 << 32) + 5}")["i"].to_pylist() == [55]
    between = f"_rowaddr >= {1 << 32} AND _rowaddr < {(1 << 32) + 3}"
    assert read(snapshot, columns=["i"], filter=between)["i"].to_pylist() == [50, 51, 52]
    assert {fragment for fragment, _, _ in snapshot.reads} == {1}
    found, plain = both(snapshot, columns=["i"], filter=f"_rowid > {2 << 32} OR i = 5")
    assert same(found, plain)


def test_the_estimate_includes_scanned_rows() -> None:
    snapshot = table()
    Indexes(snapshot).add("i", [[0, 1, 2]])
    scan = TableScan(snapshot)
    assert scan.index_estimate("i = 5") == 1 + 50
    assert scan.index_estimate("a = 5") is None
    assert scan.index_estimate("a = 5 AND i < 7") == 7 + 50
    assert scan.index_estimate("a = 5 OR i < 7") is None


COLUMNS = {
    "i": (pa.int64(), [0, 5, 60, 61, 149, 300]),
    "a": (pa.int32(), [0, 1, 2, 3, 9]),
    "f": (pa.float64(), [float("nan"), 0.0, -0.0, 1.5, float("inf")]),
    "s": (pa.string(), ["", "ab", "abc", "zz"]),
}


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    column = draw(st.sampled_from(list(COLUMNS)))
    type_, values = COLUMNS[column]
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return IsNull((column,))
    if kind == 1:
        chosen = draw(st.lists(st.sampled_from([None, *values]), min_size=1, max_size=4))
        return In((column,), pa.array(chosen, type_))
    return Compare(
        draw(st.sampled_from(OPS)), (column,), pa.scalar(draw(st.sampled_from([*values, *values, None])), type_)
    )


PREDICATES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda p: And(tuple(p))),
        st.lists(inner, min_size=2, max_size=3).map(lambda p: Or(tuple(p))),
        inner.map(Not),
    ),
    max_leaves=6,
)


@settings(max_examples=150)
@given(predicate=PREDICATES, seed=st.integers(0, 9999), data=st.data())
def test_indexes_never_change_a_result(predicate: Predicate, seed: int, data: st.DataObject) -> None:
    snapshot = table(seed=seed)
    made = Indexes(snapshot)
    for column in data.draw(st.lists(st.sampled_from(list(COLUMNS)), unique=True)):
        for number in range(data.draw(st.integers(1, 2))):
            groups = data.draw(st.sampled_from([[range(4)], [[0], [1, 3]], [[2]], [[0, 1], [2], [3]]]))
            slack = data.draw(st.sampled_from([0, 0, 10]))
            kind = FakeKind("ZoneMap" if slack else "BTree", slack)
            for index in made.add(column, groups, kind, f"{column}{number}"):
                index.estimates = data.draw(st.booleans())
    found, plain = both(snapshot, columns=["i"], filter=predicate)
    assert found["i"].to_pylist() == plain["i"].to_pylist()
    scan = TableScan(snapshot)
    assert scan.count(scan.plan(ScanOptions(filter=predicate))) == plain.num_rows
    assert scan.has_rows(scan.plan(ScanOptions(filter=predicate))) == bool(plain.num_rows)
    assert pc.is_in(found["i"], value_set=plain["i"]).null_count == 0
    assert np.all(np.diff(found["i"].to_numpy()) > 0)
