from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.scan.fake_table import FakeSnapshot

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.rows import VersionSequence
from lance_duck.scan.options import ColumnOrdering, ScanOptions, plan_scan
from lance_duck.scan.predicate.tree import Compare, Predicate
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.read.execute import count_rows, has_rows, open_reader, scan_batches
from lance_duck.scan.table_scan import TableScan


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def open_column(field: Any, locate: Any, num_rows: int, arrow_type: pa.DataType) -> Any:
        return CURRENT[0].open_column(field, locate, num_rows, arrow_type)

    monkeypatch.setattr(fragment_reader, "open_column", open_column)
    yield
    CURRENT.clear()


CURRENT: list[FakeSnapshot] = []


def rows_of(start: int, count: int) -> pa.Table:
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "i": numbers,
            "s": pa.array([None if i % 7 == 0 else f"row {i}" for i in numbers], pa.string()),
            "f": numbers / 2,
            "st": pa.StructArray.from_arrays([pa.array(numbers * 2), pa.array(numbers.astype(str))], ["x", "y"]),
        }
    )


def table(*sizes: int, deleted: dict[int, list[int]] | None = None, ids: list[int] | None = None) -> Any:
    starts = np.cumsum([0, *sizes]).tolist()
    names = ids or list(range(len(sizes)))
    parts = {name: rows_of(start, size) for name, start, size in zip(names, starts, sizes, strict=False)}
    CURRENT[:] = [FakeSnapshot(parts, deleted or {})]
    return CURRENT[0]


def read(snapshot: Any, **options: Any) -> pa.Table:
    return open_reader(snapshot, plan_scan(snapshot, ScanOptions(**options))).read_all()


def test_all_rows_in_order_without_the_deleted() -> None:
    snapshot = table(100, 0, 50, deleted={0: [0, 5, 99], 2: [10]})
    found = read(snapshot)
    assert found.equals(snapshot.live().drop_columns(["_rowaddr"]))
    assert found.schema.equals(snapshot.schema.arrow)


def test_columns_keep_the_requested_order() -> None:
    snapshot = table(10)
    found = read(snapshot, columns=["st.y", "i", "_rowaddr", "st"], with_row_id=True)
    assert found.schema.names == ["st.y", "i", "_rowaddr", "st", "_rowid"]
    assert found["st.y"].to_pylist() == [str(i) for i in range(10)]


def test_only_requested_columns_are_read() -> None:
    snapshot = table(10)
    read(snapshot, columns=["i"])
    assert {name for _, name, _ in snapshot.reads} == {"i"}


def test_hidden_columns_can_be_selected() -> None:
    snapshot = table(3, 4, ids=[2, 5], deleted={2: [1], 5: [0]})
    snapshot.versions = {5: VersionSequence(np.array([1, 3]), np.array([3, 9], np.uint64))}
    names = ["_rowid", "_rowaddr", "_rowoffset", "_row_created_at_version", "_row_last_updated_at_version"]
    found = read(snapshot, columns=names).to_pydict()
    addresses = [2 << 32, (2 << 32) + 2, (5 << 32) + 1, (5 << 32) + 2, (5 << 32) + 3]
    assert found["_rowid"] == found["_rowaddr"] == addresses
    assert found["_rowoffset"] == [0, 1, 2, 3, 4]
    assert found["_row_created_at_version"] == found["_row_last_updated_at_version"] == [1, 1, 9, 9, 9]


def test_row_id_and_address_are_the_last_columns() -> None:
    snapshot = table(2)
    assert read(snapshot, columns=["i"], with_row_address=True, with_row_id=True).schema.names == [
        "i",
        "_rowid",
        "_rowaddr",
    ]


def test_a_scan_without_columns_returns_row_counts() -> None:
    snapshot = table(5, 5, deleted={1: [0]})
    assert read(snapshot, columns=[]).num_rows == 9
    assert snapshot.reads == []


def test_result_columns_are_read_only_for_matching_rows() -> None:
    snapshot = table(1000)
    found = read(snapshot, columns=["s", "i"], filter="i = 500")
    assert found.to_pydict() == {"s": ["row 500"], "i": [500]}
    by_name = {name: rows for _, name, rows in snapshot.reads}
    assert by_name["i"] == slice(0, 1000)
    assert by_name["s"] == slice(500, 501)
    assert len(snapshot.reads) == 2


def test_a_filter_without_matches_reads_only_its_columns() -> None:
    snapshot = table(1000)
    assert read(snapshot, columns=["s"], filter="i < 0").num_rows == 0
    assert {name for _, name, _ in snapshot.reads} == {"i"}


@pytest.mark.parametrize(
    "condition",
    ["st.x = 40", "st.x = 40 AND s LIKE 'row%'", pc.field("st", "x") == 40, Compare("=", ("st", "x"), pa.scalar(40))],
)
def test_filters_on_struct_fields(condition: str | pc.Expression | Predicate) -> None:
    snapshot = table(100)
    assert read(snapshot, columns=["st.y", "st"], filter=condition).to_pylist() == [
        {"st.y": "20", "st": {"x": 40, "y": "20"}}
    ]


def test_filters_on_hidden_columns() -> None:
    snapshot = table(10, 10)
    assert read(snapshot, columns=["i"], filter=f"_rowaddr = {(1 << 32) + 3}").to_pydict() == {"i": [13]}
    assert read(snapshot, columns=["i"], filter="_rowoffset % 10 = 9").to_pydict() == {"i": [9, 19]}


def test_expressions_are_evaluated_by_duckdb() -> None:
    snapshot = table(4)
    found = read(snapshot, columns={"twice": "i * 2", "same": "i", "u": "upper(s)"}, filter="i > 1", with_row_id=True)
    assert found.to_pydict() == {"twice": [4, 6], "same": [2, 3], "u": ["ROW 2", "ROW 3"], "_rowid": [2, 3]}
    assert found.schema.field("twice").type == pa.int64()
    assert read(snapshot, columns={"twice": "i * 2"}, filter="i > 9").schema.field("twice").type == pa.int64()


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_batches_end_at_fragment_boundaries_by_default(batch: int) -> None:
    snapshot = table(20, 30)
    loose = plan_scan(snapshot, ScanOptions(batch_size=batch))
    expected = [min(batch, size - at) for size in (20, 30) for at in range(0, size, batch)]
    assert [b.num_rows for b in scan_batches(snapshot, loose)] == expected
    strict = plan_scan(snapshot, ScanOptions(batch_size=batch, strict_batch_size=True))
    found = list(scan_batches(snapshot, strict))
    assert [b.num_rows for b in found] == [min(batch, 50 - at) for at in range(0, 50, batch)]
    assert pa.Table.from_batches(found)["i"].to_pylist() == list(range(50))


def test_a_limit_stops_reading() -> None:
    snapshot = table(100, 100, 100)
    assert read(snapshot, columns=["i"], limit=5, offset=120)["i"].to_pylist() == [120, 121, 122, 123, 124]
    assert snapshot.reads == [(1, "i", slice(20, 25))]


def test_a_limit_on_a_filter_ends_the_scan() -> None:
    snapshot = table(*[20_000] * 5)
    assert read(snapshot, columns=["i"], filter="i % 2 = 1", limit=3)["i"].to_pylist() == [1, 3, 5]
    assert len(snapshot.reads) == 1


def test_a_closed_scan_leaves_no_thread() -> None:
    snapshot = table(*[20_000] * 5)
    reader = open_reader(snapshot, plan_scan(snapshot, ScanOptions(columns=["i"])), workers=2)
    for _ in range(3):
        reader.read_next_batch()
    reader.close()
    del reader
    for thread in threading.enumerate():
        if thread.name.startswith("lance_duck-scan"):
            thread.join(10)
            assert not thread.is_alive()


def test_counting_without_a_filter_reads_nothing() -> None:
    snapshot = table(100, 50, deleted={0: [1, 2]})
    assert count_rows(snapshot, plan_scan(snapshot, ScanOptions(columns=[]))) == 148
    assert count_rows(snapshot, plan_scan(snapshot, ScanOptions(limit=10, offset=145))) == 3
    assert snapshot.reads == []
    assert snapshot.deletions_read == 0


def test_counting_with_a_filter_reads_only_its_columns() -> None:
    snapshot = table(100, 50, deleted={0: [1, 2]})
    assert count_rows(snapshot, plan_scan(snapshot, ScanOptions(filter="i < 10"))) == 8
    assert count_rows(snapshot, plan_scan(snapshot, ScanOptions(filter="i < 10 and s like 'row%'"))) == 6
    assert {name for _, name, _ in snapshot.reads} == {"i", "s"}


def test_has_rows_stops_at_the_first_row() -> None:
    snapshot = table(100, 100)
    assert has_rows(snapshot, plan_scan(snapshot, ScanOptions(filter="i = 3")))
    assert [fragment for fragment, _, _ in snapshot.reads] == [0]
    assert not has_rows(snapshot, plan_scan(snapshot, ScanOptions(filter="i = 1000")))


def test_deleted_rows_are_returned_on_request_with_a_null_row_id() -> None:
    snapshot = table(4, deleted={0: [1]})
    found = read(snapshot, columns=["i"], include_deleted_rows=True, with_row_id=True)
    assert found.to_pydict() == {"i": [0, 1, 2, 3], "_rowid": [0, None, 2, 3]}
    with pytest.raises(InvalidInputError, match="with_row_id"):
        ScanOptions(include_deleted_rows=True)


def test_fragments_are_scanned_in_the_given_order() -> None:
    snapshot = table(2, 2, 2)
    chosen = [snapshot.fragment(2), snapshot.fragment(0)]
    assert read(snapshot, columns=["i"], fragments=chosen)["i"].to_pylist() == [4, 5, 0, 1]
    with pytest.raises(InvalidInputError, match="no such fragment"):
        read(snapshot, fragments=[9])


def test_order_by_sorts_rows() -> None:
    snapshot = table(5)
    scan = TableScan(snapshot)

    def ordered(*by: Any, **options: Any) -> list[Any]:
        given = ScanOptions(columns=["i"], order_by=by, **options)
        return list(scan.reader(scan.plan(given), given).read_all()["i"].to_pylist())

    assert ordered(ColumnOrdering("i", ascending=False), limit=2, offset=1) == [3, 2]
    assert ordered("s") == [1, 2, 3, 4, 0]
    assert ordered(ColumnOrdering("s", nulls_first=True)) == [0, 1, 2, 3, 4]
    assert ordered(ColumnOrdering("st.y", ascending=False), filter="i < 3") == [2, 1, 0]
    with pytest.raises(InvalidInputError):
        ordered("nope")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"columns": ["nope"]}, InvalidInputError),
        ({"columns": ["st.nope"]}, InvalidInputError),
        ({"columns": ["i", "i"]}, InvalidInputError),
        ({"columns": "i"}, InvalidInputError),
        ({"columns": [3]}, InvalidInputError),
        ({"columns": {"x": "sum(i)"}}, InvalidInputError),
        ({"limit": -1}, InvalidInputError),
        ({"offset": -1}, InvalidInputError),
        ({"limit": "3"}, InvalidInputError),
        ({"batch_size": 0}, InvalidInputError),
        ({"filter": "nope"}, InvalidInputError),
        ({"blob_handling": "nope"}, InvalidInputError),
        ({"nearest": {"column": "v"}}, UnsupportedError),
        ({"full_text_query": "x"}, UnsupportedError),
        ({"fast_search": True}, UnsupportedError),
        ({"parameters": [1]}, InvalidInputError),
        ({"order_by": [3]}, InvalidInputError),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], error: type[Exception]) -> None:
    scan = TableScan(table(3))

    def run() -> None:
        given = ScanOptions(**options)
        scan.reader(scan.plan(given), given)

    with pytest.raises(error):
        run()


def test_an_unknown_option_raises_type_error() -> None:
    with pytest.raises(TypeError, match="bogus"):
        ScanOptions(bogus=1)  # type: ignore[call-arg]


@given(data=st.data())
def test_a_scan_equals_filtering_the_whole_table(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))
    deleted = {
        i: sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=size))) for i, size in enumerate(sizes) if size
    }
    snapshot = table(*sizes, deleted={i: gone for i, gone in deleted.items() if gone})
    low, high = sorted(data.draw(st.tuples(st.integers(-1, 90), st.integers(-1, 90))))
    limit = data.draw(st.one_of(st.none(), st.integers(0, 60)))
    offset = data.draw(st.integers(0, 40))
    whole = snapshot.live()
    condition = None
    if data.draw(st.booleans()):
        condition = f"i >= {low} and i < {high}"
        whole = whole.filter((pc.field("i") >= low) & (pc.field("i") < high))
    expected = whole.slice(offset, limit).select(["s", "i", "_rowaddr"])
    batch = data.draw(st.one_of(st.none(), st.integers(1, 20)))
    options = ScanOptions(
        columns=["s", "i", "_rowaddr"], filter=condition, limit=limit, offset=offset, batch_size=batch
    )
    plan = plan_scan(snapshot, options)
    assert open_reader(snapshot, plan, workers=2).read_all().equals(expected)
    assert count_rows(snapshot, plan) == expected.num_rows
    assert has_rows(snapshot, plan_scan(snapshot, ScanOptions(filter=condition))) == (whole.num_rows > 0)
