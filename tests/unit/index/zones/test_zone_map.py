from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments, stay
from unit.index.zone_cases import VALUES, Case, cases, check_answer, check_damaged, following, queries, satisfying

from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import Details, MergeInput
from lance_duck.index.query import Among, Between, ContainsAny, Except, HasPrefix, Null, Query
from lance_duck.index.zones import zones
from lance_duck.index.zones.kind import ZONE_MAP
from lance_duck.index.zones.layout import ZONE_MAP_FILE
from lance_duck.index.zones.search import ZoneMapIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map
from lance_duck.wire.pb import index_pb2

NAMES = list(VALUES)
ORDINARY = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(ZONE_MAP, tmp_path)


def zones_of(index: Any) -> list[tuple[Any, ...]]:
    kept = index.file.statistics
    columns = (kept.zones.fragments, kept.zones.offsets, kept.zones.length, kept.nulls, kept.nans)
    return [*zip(*(column.tolist() for column in columns), kept.low.to_pylist(), kept.high.to_pylist(), strict=True)]


@ORDINARY
@given(st.data())
def test_searches_never_miss_a_row(segments: Segments, data: st.DataObject) -> None:
    case = data.draw(cases(NAMES))
    index = case.build(segments, "rows_per_zone")
    for _ in range(10):
        query = data.draw(queries(case.type))
        wanted = satisfying(case, query)
        rows = set(case.rows)
        inside = {case.rows[place] for place in wanted}
        check_answer(index, query, inside, rows - inside)


@ORDINARY
@given(st.data())
def test_searches_never_miss_a_row_after_a_remap(segments: Segments, data: st.DataObject) -> None:
    case = data.draw(cases(NAMES))
    index = case.build(segments, "rows_per_zone")
    moves = dict(zip(case.rows, new_names(data, case), strict=True))
    gone = data.draw(st.sets(st.sampled_from(case.rows))) if case.rows else set()
    moves = {old: new for old, new in moves.items() if old not in gone}
    merged = segments.merge([MergeInput(index, following(moves))])
    for _ in range(6):
        query = data.draw(queries(case.type))
        wanted = {moves[case.rows[place]] for place in satisfying(case, query) if case.rows[place] in moves}
        check_answer(merged, query, wanted, set(moves.values()) - wanted)


def new_names(data: st.DataObject, case: Case) -> list[int]:
    """Return row addresses after a compaction, a shuffle, or no change."""
    count = len(case.rows)
    how = data.draw(st.sampled_from(["compacted", "shuffled", "kept"]))
    if how == "kept":
        return case.rows
    offsets = list(range(count)) if how == "compacted" else data.draw(st.permutations(range(count)))
    return [(9 + offset // 7) << 32 | offset % 7 for offset in offsets]


def test_zones_end_with_their_fragment_and_span_deleted_rows(segments: Segments) -> None:
    rows = [2, 3, 4, 6, 7, 8, (1 << 32) + 8, (1 << 32) + 9]
    index = segments.build(pa.array([2, 3, 4, None, 7, 8, 18, 19]), rows, batch=3, parameters={"rows_per_zone": 4})
    assert zones_of(index) == [(0, 2, 5, 1, 0, 2, 4), (0, 7, 2, 0, 0, 7, 8), (1, 8, 2, 0, 0, 18, 19)]
    assert index.statistics() == {"num_zones": 3, "rows_per_zone": 4}
    details = index_pb2.ZoneMapIndexDetails.FromString(segments.details.value)
    assert (details.rows_per_zone, details.use_seeds, details.has_null_bitmap) == (4, False, True)


def test_zones_follow_the_fragment_order_of_the_table(segments: Segments) -> None:
    rows = [(5 << 32) + 0, (5 << 32) + 1, 2 << 32, (2 << 32) + 1]
    index = segments.build(pa.array([50, 51, 20, 21]), rows, batch=1, parameters={"rows_per_zone": 10})
    assert zones_of(index) == [(2, 0, 2, 0, 0, 20, 21), (5, 0, 2, 0, 0, 50, 51)]


def test_float_extremes_follow_the_total_order(segments: Segments) -> None:
    values = [0.0, -0.0, np.nan, None, np.nan, np.nan, -np.inf, 1.0, None, None]
    index = segments.build(pa.array(values), parameters={"rows_per_zone": 2})
    found = [[None if v is None else str(v) for v in zone[5:]] for zone in zones_of(index)]
    assert found == [["-0.0", "0.0"], ["nan", "nan"], ["nan", "nan"], ["-inf", "1.0"], [None, None]]
    assert [zone[3:5] for zone in zones_of(index)] == [(0, 0), (1, 1), (0, 2), (0, 0), (2, 0)]


@pytest.mark.parametrize("type_name", NAMES)
def test_extremes_do_not_depend_on_the_computation(
    segments: Segments, monkeypatch: pytest.MonkeyPatch, type_name: str
) -> None:
    type_, choice = VALUES[type_name]
    values = [None if i % 5 == 1 or i > 55 else choice[i * i // 3 % len(choice)] for i in range(64)]
    found = []
    for long in (0, 1 << 40):
        monkeypatch.setattr(zones, "LONG_ZONE", long)
        index = segments.build(pa.array(values, type_), batch=9, parameters={"rows_per_zone": 4})
        found.append(repr(zones_of(index)))
    assert found[0] == found[1]


def rows_of(index: Any, query: Query) -> tuple[list[int], list[int]]:
    answer = index.search(query)
    return list(answer.sure), list(answer.maybe)


def test_zones_inside_a_range_are_certain(segments: Segments) -> None:
    index = segments.build(pa.array([0, 1, 2, 3, None, 5, 6, 7]), parameters={"rows_per_zone": 2})
    assert rows_of(index, Between(pa.scalar(1), pa.scalar(5))) == ([2, 3, 5], [0, 1, 2, 3, 4, 5])
    assert rows_of(index, Between(pa.scalar(2), pa.scalar(7), high_open=True)) == ([2, 3, 5], [2, 3, 4, 5, 6, 7])
    assert rows_of(index, Except(Among(pa.array([6])))) == ([0, 1, 2, 3, 5], [0, 1, 2, 3, 4, 5, 6, 7])
    assert rows_of(index, Among(pa.array([5, 100]))) == ([5], [4, 5])
    assert rows_of(index, Except(Among(pa.array([5, 100])))) == ([0, 1, 2, 3, 6, 7], [0, 1, 2, 3, 6, 7])


def test_nan_is_greater_than_all_else(segments: Segments) -> None:
    index = segments.build(pa.array([1.0, 2.0, 3.0, np.nan, np.nan, -np.nan]), parameters={"rows_per_zone": 2})
    nan = pa.scalar(np.nan)
    assert rows_of(index, Between(pa.scalar(2.5))) == ([2, 3, 4, 5], [2, 3, 4, 5])
    assert rows_of(index, Between(None, pa.scalar(10.0))) == ([0, 1], [0, 1, 2, 3])
    assert rows_of(index, Between(nan)) == ([4, 5], [2, 3, 4, 5])
    assert rows_of(index, Between(nan, None, low_open=True)) == ([], [])
    assert rows_of(index, Between(None, nan, high_open=True)) == ([0, 1], [0, 1, 2, 3])
    assert rows_of(index, Between(None, nan)) == (list(range(6)), list(range(6)))
    assert rows_of(index, Among(pa.array([np.nan]))) == ([4, 5], [2, 3, 4, 5])


def test_long_strings_are_not_truncated(segments: Segments) -> None:
    long = "x" * 100_000
    index = segments.build(pa.array([long + "a", long + "c", "y", "z"]), parameters={"rows_per_zone": 2})
    assert rows_of(index, Among(pa.array([long + "d"]))) == ([], [])
    assert rows_of(index, HasPrefix(pa.scalar("x"))) == ([0, 1], [0, 1])
    assert rows_of(index, HasPrefix(pa.scalar(""))) == ([0, 1, 2, 3], [0, 1, 2, 3])


def test_range_prefix_and_null_predicates_are_answered() -> None:
    one = pa.scalar("a")
    text = [Between(one), Among(pa.array(["a"])), Null(), HasPrefix(one), Except(HasPrefix(one)), Except(Null())]
    assert all(ZONE_MAP.answers(query, pa.string()) for query in text)
    assert not ZONE_MAP.answers(HasPrefix(one), pa.binary(2))
    assert not ZONE_MAP.answers(ContainsAny(pa.array([1])), pa.int64())
    assert not ZONE_MAP.answers(Null(), pa.list_(pa.int64()))
    assert [ZONE_MAP.supports(t) for t in (pa.null(), pa.dictionary(pa.int32(), pa.string()), pa.binary(0))] == [
        False
    ] * 3


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "8", 2**64])
def test_invalid_zone_sizes_are_rejected(segments: Segments, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="parameter rows_per_zone: expected a positive integer"):
        segments.build(pa.array([1]), parameters={"rows_per_zone": value})


def test_invalid_parameters_are_rejected(segments: Segments) -> None:
    with pytest.raises(InvalidInputError, match="unknown parameter 'zones': expected one of rows_per_zone, use_seeds"):
        segments.build(pa.array([1]), parameters={"zones": 1})
    with pytest.raises(InvalidInputError, match="parameter use_seeds: expected a bool"):
        segments.build(pa.array([1]), parameters={"use_seeds": 1})


def test_no_rows_give_no_zones(segments: Segments) -> None:
    index = segments.build(pa.array([], pa.string()))
    assert zones_of(index) == []
    assert rows_of(index, Among(pa.array(["a"]))) == ([], [])
    assert rows_of(index, Null()) == ([], [])


def test_zones_that_move_together_become_one(segments: Segments) -> None:
    rows = [fragment << 32 | offset for fragment in range(6) for offset in range(2)]
    values = [*range(11), None]
    index = segments.build(pa.array(values), rows, parameters={"rows_per_zone": 4})
    assert len(zones_of(index)) == 6
    moves = {old: 9 << 32 | place for place, old in enumerate(rows)}
    merged = segments.merge([MergeInput(index, following(moves))])
    assert zones_of(merged) == [(9, 0, 4, 0, 0, 0, 3), (9, 4, 4, 0, 0, 4, 7), (9, 8, 4, 1, 0, 8, 10)]
    assert list(merged.search(Null()).sure) == [9 << 32 | 11]


def test_new_rows_extend_existing_zones(segments: Segments) -> None:
    first = segments.build(pa.array([1, None]), [0, 1], parameters={"rows_per_zone": 4})
    second = segments.build(pa.array([3, 4]), [1 << 32, 1 << 32 | 1])
    gone = following({1 << 32: 1 << 32})
    merged = segments.merge(
        [MergeInput(first, stay), MergeInput(second, gone)], pa.array([None, 9]), [2 << 32, 2 << 32 | 1]
    )
    assert zones_of(merged) == [(0, 0, 2, 1, 0, 1, 1), (1, 0, 2, 0, 0, 3, 4), (2, 0, 2, 1, 0, 9, 9)]
    assert list(merged.search(Null()).sure) == [1, 2 << 32]
    assert merged.statistics()["rows_per_zone"] == 4


def write(segments: Segments, *, nulls: RowSet | None = None, **columns: Any) -> ZoneMapIndex:
    """Write a handmade file; `nulls` are written unchanged, or left out if None."""
    plain: dict[str, Any] = {
        "min": [1], "max": [5], "null_count": [0], "nan_count": [0],
        "fragment_id": [0], "zone_start": [0], "zone_length": [10],
    }  # fmt: skip
    types = {"null_count": pa.uint32(), "nan_count": pa.uint32(), "min": pa.int64(), "max": pa.int64()}
    made = {
        name: value if isinstance(value, pa.Array) else pa.array(value, types.get(name, pa.uint64()))
        for name, value in (plain | columns).items()
        if value is not None
    }
    table = pa.table(made)
    with SegmentWriter(segments.store) as writer:
        file = writer.create(ZONE_MAP_FILE, table.schema)
        for batch in table.to_batches():
            file.write(batch)
        if nulls is not None:
            file.add_schema_metadata("null_bitmap", str(file.add_global_buffer(row_address_map(nulls))))
        writer.add(ZONE_MAP_FILE, file)
    opened = ZONE_MAP.open(SegmentReader(segments.store, writer.directory), pa.int64(), Details(0))
    assert isinstance(opened, ZoneMapIndex)
    return opened


def test_unknown_bounds_do_not_prune(segments: Segments) -> None:
    index = write(segments, min=[None], max=[None], nulls=RowSet({}))
    assert rows_of(index, Among(pa.array([7]))) == ([], list(range(10)))
    assert rows_of(index, Except(Between(pa.scalar(7)))) == ([], list(range(10)))


def test_overlapping_zones_are_not_certain(segments: Segments) -> None:
    two = {"min": [1, 8], "max": [5, 9], "null_count": [0, 0], "nan_count": [0, 0], "fragment_id": [0, 0]}
    nulls = RowSet.of(np.array([3], np.uint64))
    index = write(segments, **two, zone_start=[0, 5], zone_length=[10, 10], nulls=nulls)
    assert rows_of(index, Between(pa.scalar(0))) == ([], list(range(15)))
    assert rows_of(index, Null()) == ([], [3])
    assert rows_of(index, Except(Null())) == ([], list(range(15)))
    assert rows_of(index, Among(pa.array([9]))) == ([], list(range(5, 15)))


def test_files_without_null_positions_are_not_used(segments: Segments) -> None:
    with pytest.raises(UnsupportedError, match="written by an early version"):
        write(segments)


@pytest.mark.parametrize(
    "columns",
    [
        {"zone_length": [0]},
        {"zone_start": [2**32 - 1]},
        {"zone_length": [2**64 - 1], "zone_start": [1]},
        {"fragment_id": [2**32]},
        {"fragment_id": [None]},
        {"null_count": [None]},
        {"null_count": [0.5]},
        {"null_count": [1]},
        {"min": [6]},
        {"min": pa.array(["a"])},
        {"max": None},
        {"zone_start": pa.array([0], pa.int64())},
    ],
)
def test_contradictory_files_are_corrupt(segments: Segments, columns: dict[str, Any]) -> None:
    if columns == {"null_count": [0.5]}:
        columns = {"null_count": pa.array([0.5])}
    with pytest.raises(CorruptError):
        write(segments, **columns, nulls=RowSet({}))


@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_raise_lance_duck_errors(segments: Segments, data: st.DataObject) -> None:
    segments.build(pa.array(["a", None, "b", "c"]), parameters={"rows_per_zone": 2})
    check_damaged(segments, ZONE_MAP_FILE, data)
