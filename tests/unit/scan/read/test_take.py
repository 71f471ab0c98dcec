from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.scan.fake_table import FakeSnapshot

from lance_duck.errors import InvalidInputError
from lance_duck.scan.projection import nested_projection, project
from lance_duck.scan.read import fragment_reader
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.read.take import Taker

CURRENT: list[FakeSnapshot] = []


@pytest.fixture(autouse=True)
def fake_columns(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(fragment_reader, "open_column", lambda *args: CURRENT[0].open_column(*args))
    yield
    CURRENT.clear()


def table(*sizes: int, deleted: dict[int, list[int]] | None = None) -> Any:
    parts, start = {}, 0
    for fragment, size in enumerate(sizes):
        numbers = np.arange(start, start + size)
        struct = pa.StructArray.from_arrays([pa.array(numbers), pa.array(-numbers)], ["x", "y"])
        parts[fragment * 3] = pa.table({"i": numbers, "s": numbers.astype(str), "st": struct})
        start += size
    gone = {fragment * 3: rows for fragment, rows in (deleted or {}).items()}
    CURRENT[:] = [FakeSnapshot(parts, gone)]
    return CURRENT[0]


def take(snapshot: Any, positions: Any, columns: Any = ("i",)) -> pa.RecordBatch:
    return Taker(snapshot, ColumnCache()).by_position(positions, project(snapshot.schema, columns))


def test_rows_are_returned_in_the_requested_order_with_repeats() -> None:
    snapshot = table(10, 10)
    assert take(snapshot, [15, 3, 15, 0])["i"].to_pylist() == [15, 3, 15, 0]


def test_each_needed_row_is_read_once() -> None:
    snapshot = table(10, 10, 10)
    take(snapshot, [25, 3, 25, 1])
    assert [(fragment, name, rows.tolist()) for fragment, name, rows in snapshot.reads] == [
        (0, "i", [1, 3]),
        (6, "i", [5]),
    ]


def test_positions_skip_deleted_rows() -> None:
    snapshot = table(5, 5, deleted={0: [0, 1], 1: [4]})
    assert take(snapshot, list(range(7)))["i"].to_pylist() == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(InvalidInputError, match="0 to 6"):
        take(snapshot, [7])


@pytest.mark.parametrize("rows", [[], np.array([], np.int64), pa.array([], pa.int64()), range(0)])
def test_taking_no_rows_keeps_the_schema(rows: Any) -> None:
    snapshot = table(3)
    found = take(snapshot, rows, ["i", "_rowid", "st.x"])
    assert found.num_rows == 0
    assert found.schema.types == [pa.int64(), pa.uint64(), pa.int64()]


@pytest.mark.parametrize("rows", [(2, 0), np.array([2, 0], np.uint8), pa.array([2, 0]), iter([2, 0]), range(2, -1, -2)])
def test_positions_are_accepted_as_several_types(rows: Any) -> None:
    assert take(table(3), rows)["i"].to_pylist() == [2, 0]


@pytest.mark.parametrize("rows", [[-1], [3], [1.5], ["a"], [[1]], pa.array([None, 1]), [2**70], 5])
def test_invalid_positions_are_rejected(rows: Any) -> None:
    with pytest.raises(InvalidInputError):
        take(table(3), rows)


def test_hidden_columns_and_expressions() -> None:
    snapshot = table(3, 3, deleted={0: [0]})
    found = take(snapshot, [4, 0], ["_rowoffset", "_rowaddr", "_rowid"])
    assert found.to_pydict() == {
        "_rowoffset": [4, 0],
        "_rowaddr": [(3 << 32) + 2, 1],
        "_rowid": [(3 << 32) + 2, 1],
    }
    assert take(snapshot, [4, 0], {"z": "i * 10"}).to_pydict() == {"z": [50, 10]}


def test_struct_fields_are_returned_as_structs() -> None:
    snapshot = table(3)
    found = Taker(snapshot, ColumnCache()).by_position([1], nested_projection(snapshot.schema, ["st.y", "i"]))
    assert found.to_pylist() == [{"st": {"y": -1}, "i": 1}]


def test_deleted_addresses_are_skipped_and_unknown_addresses_are_rejected() -> None:
    snapshot = table(3, 3, deleted={1: [0]})
    taker, projection = Taker(snapshot, ColumnCache()), project(snapshot.schema, ["i"])
    assert taker.by_address([(3 << 32) + 1, 3 << 32, 0], projection)["i"].to_pylist() == [4, 0]
    assert taker.by_row_id([1, 1], projection)["i"].to_pylist() == [1, 1]
    for bad in ([3], [1 << 32], [-1]):
        with pytest.raises(InvalidInputError):
            taker.by_address(bad, projection)


def test_rows_of_one_fragment_are_taken_by_offset() -> None:
    snapshot = table(3, 3, deleted={1: [0]})
    taker, projection = Taker(snapshot, ColumnCache()), project(snapshot.schema, ["i"])
    assert taker.in_fragment(snapshot.fragment(3), [1, 0], projection)["i"].to_pylist() == [5, 4]
    with pytest.raises(InvalidInputError):
        taker.in_fragment(snapshot.fragment(3), [2], projection)


@given(data=st.data())
def test_a_take_equals_taking_from_the_whole_table(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=4))
    deleted = {
        i: sorted(data.draw(st.sets(st.integers(0, size - 1), max_size=size - 1))) for i, size in enumerate(sizes)
    }
    snapshot = table(*sizes, deleted={i: gone for i, gone in deleted.items() if gone})
    live = snapshot.live()
    positions = data.draw(st.lists(st.integers(0, live.num_rows - 1), max_size=30))
    found = take(snapshot, positions, ["s", "_rowaddr", "i"])
    expected = live.take(pa.array(positions, pa.int64())).select(["s", "_rowaddr", "i"])
    assert pa.Table.from_batches([found]).equals(expected.combine_chunks())
