from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments, stay

from lance_duck.errors import CorruptError, LanceDuckError
from lance_duck.index.bitmap.kind import LABEL_LIST
from lance_duck.index.bitmap.layout import FILE
from lance_duck.index.bitmap.search import LabelListIndex
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import Details, MergeInput
from lance_duck.index.query import Among, ContainsAll, ContainsAny, Except, Null

FLOATS = [0.0, -0.0, 1.0, math.nan, -math.nan, math.inf]
Lists = list[list[Any] | None]

ITEMS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.sampled_from(["", "a", "b", "é"])),
    (pa.int32(), st.integers(-2, 2)),
    (pa.float64(), st.sampled_from(FLOATS)),
]


def same(a: Any, b: Any) -> bool:
    both_nan = isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b)
    return bool(a is not None and (a == b or both_nan))


def has(items: list[Any] | None, value: Any) -> bool:
    return items is not None and any(same(item, value) for item in items)


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, Lists, list[Any], pa.DataType]:
    type_, values = draw(st.sampled_from(ITEMS))
    lists = draw(st.lists(st.none() | st.lists(st.none() | values, max_size=4), max_size=20))
    make = draw(st.sampled_from([pa.list_, pa.large_list]))
    return pa.array(lists, make(type_)), lists, draw(st.lists(values, max_size=3)), type_


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns(), st.sampled_from([1, 1 << 20]))
def test_a_search_equals_checking_each_list(
    tmp_path: Path, drawn: tuple[pa.Array, Lists, list[Any], pa.DataType], memory_limit: int
) -> None:
    column, lists, values, type_ = drawn
    segments = Segments(LABEL_LIST, tmp_path)
    index = segments.build(column, batch=5, memory_limit=memory_limit)

    wanted = pa.array(values, type_)
    any_ = [row for row, items in enumerate(lists) if any(has(items, value) for value in values)]
    all_ = [row for row, items in enumerate(lists) if all(has(items, value) for value in values)]
    for _ in range(2):
        assert exact(index, ContainsAny(wanted)) == any_
        assert (index.estimate(ContainsAny(wanted)) or math.inf) >= len(any_)
        if values:
            assert exact(index, ContainsAll(wanted)) == all_
            estimated = index.estimate(ContainsAll(wanted))
            assert estimated is None or estimated >= len(all_)
    assert isinstance(index, LabelListIndex)
    assert index.nulls is not None
    assert list(index.nulls) == [row for row, items in enumerate(lists) if items is None]
    assert segments.details == Details(1)


def exact(index: Any, query: ContainsAny | ContainsAll) -> list[int]:
    answer = index.search(query)
    assert answer.is_exact
    return list(answer.sure)


def test_items_below_null_lists_are_not_indexed(tmp_path: Path) -> None:
    lists = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()), pa.array(["a", "b", "c", "d"]), mask=pa.array([False, True, False])
    )
    index = Segments(LABEL_LIST, tmp_path).build(lists)

    assert exact(index, ContainsAny(pa.array(["a", "b", "c"]))) == [0]
    assert exact(index, ContainsAny(pa.array(["d"]))) == [2]


def test_null_lists_are_stored_in_a_global_buffer(tmp_path: Path) -> None:
    segments = Segments(LABEL_LIST, tmp_path)
    index = segments.build(pa.array([["a", None, "a"], None, []]))

    file = SegmentReader(segments.store, segments.directory).open(FILE)

    assert file.metadata == {
        "lance:index_stats": '{"num_bitmaps":2}',
        "lance:label_list_nulls": "1",
        "lance_duck:exact": "1",
    }
    assert file.global_buffer(1).hex() == "0100000000000000120000003a3000000100000000000000100000000100"
    assert file.read(["keys"])[0].to_pylist() == [None, "a"]
    assert index.statistics() == {"num_bitmaps": 2}


def test_a_merge_keeps_items_and_null_lists(tmp_path: Path) -> None:
    segments = Segments(LABEL_LIST, tmp_path)
    index = segments.build(pa.array([["a"], None, ["b"], None]))

    def move(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return names + np.uint64(10), names != 3

    merged = segments.merge([MergeInput(index, move)], pa.array([["b"], None]), [20, 21])

    assert isinstance(merged, LabelListIndex)
    assert exact(merged, ContainsAny(pa.array(["b"]))) == [12, 20]
    assert list(merged.nulls or ()) == [11, 21]


def foreign(segments: Segments, *, nulls: str | None, buffer: bytes | None) -> LabelListIndex:
    """Return the last segment, rewritten like another writer's."""
    keys, maps = SegmentReader(segments.store, segments.directory).open(FILE).read(["keys", "bitmaps"])
    with SegmentWriter(segments.store) as writer:
        schema = pa.schema([("keys", keys.type), ("bitmaps", pa.binary())])
        file = writer.create(FILE, schema)
        file.write(pa.record_batch([keys, maps], schema))
        if buffer is not None:
            file.add_global_buffer(buffer)
        if nulls is not None:
            file.add_schema_metadata("lance:label_list_nulls", nulls)
        writer.add(FILE, file)
    found = segments.open(writer.directory, pa.list_(keys.type))
    assert isinstance(found, LabelListIndex)
    return found


def test_rows_indexed_by_other_writers_need_a_recheck(tmp_path: Path) -> None:
    segments = Segments(LABEL_LIST, tmp_path)
    segments.build(pa.array([["a"], None, ["b"]]))

    index = foreign(segments, nulls=None, buffer=None)
    answer = index.search(ContainsAny(pa.array(["a"])))
    assert (list(answer.sure), list(answer.maybe)) == ([], [0])
    assert index.nulls is None

    merged = segments.merge([MergeInput(index, stay)])
    answer = merged.search(ContainsAll(pa.array(["b"])))
    assert (list(answer.sure), list(answer.maybe)) == ([], [2])
    assert segments.details == Details(0)


@pytest.mark.parametrize(("nulls", "buffer"), [("2", b""), ("x", b""), ("-1", b""), ("1", b"\x01\0\0\0"), ("1", b"")])
def test_damaged_null_lists_are_rejected(tmp_path: Path, nulls: str, buffer: bytes) -> None:
    segments = Segments(LABEL_LIST, tmp_path)
    segments.build(pa.array([["a"], None]))

    with pytest.raises(CorruptError):
        foreign(segments, nulls=nulls, buffer=buffer)


def test_unsupported_list_predicates_are_not_answered() -> None:
    labels = pa.list_(pa.string())

    assert LABEL_LIST.answers(ContainsAny(pa.array(["a"])), labels)
    assert LABEL_LIST.answers(ContainsAll(pa.array(["a"])), labels)
    assert LABEL_LIST.answers(ContainsAny(pa.array([], pa.string())), labels)
    assert not LABEL_LIST.answers(ContainsAll(pa.array([], pa.string())), labels)
    assert not LABEL_LIST.answers(Except(ContainsAny(pa.array(["a"]))), labels)
    assert not LABEL_LIST.answers(Null(), labels)
    assert not LABEL_LIST.answers(Among(pa.array([["a"]])), labels)
    assert not LABEL_LIST.supports(pa.string())
    assert not LABEL_LIST.supports(pa.list_(pa.list_(pa.string())))
    assert not LABEL_LIST.supports(pa.list_(pa.float32(), 2))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=3))
def test_damaged_bytes_are_rejected_or_harmless(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    segments = Segments(LABEL_LIST, tmp_path)
    segments.build(pa.array([["a", "b"], None, ["c"]] * 9))
    data = bytearray(segments.path(FILE).read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    segments.path(FILE).write_bytes(data)

    try:
        index = segments.open(segments.directory, pa.list_(pa.string()))
        index.search(ContainsAll(pa.array(["a", "b"])))
        segments.merge([MergeInput(index, stay)])
    except LanceDuckError:
        pass
