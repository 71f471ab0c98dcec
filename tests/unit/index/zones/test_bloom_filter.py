from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments, stay
from unit.index.zone_cases import VALUES, cases, check_answer, check_damaged, following, queries, satisfying

from lance_duck.encoding.bloom import hash_keys, insert, new_filter
from lance_duck.errors import CorruptError, InvalidInputError, UnsupportedError
from lance_duck.index.files import SegmentFile, SegmentReader, SegmentWriter
from lance_duck.index.kind import Details, MergeInput
from lance_duck.index.query import Among, Between, Except, Null, Query
from lance_duck.index.zones import open as open_files
from lance_duck.index.zones.kind import BLOOM_FILTER
from lance_duck.index.zones.layout import BLOOM_FILTER_FILE, FILTER_SCHEMA
from lance_duck.index.zones.search import BloomFilterIndex
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import row_address_map

NAMES = [name for name, (type_, _) in VALUES.items() if BLOOM_FILTER.supports(type_)]
ORDINARY = settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(BLOOM_FILTER, tmp_path)


def answered(query: Query) -> bool:
    return isinstance(query, Among | Null) or query == Except(Null())


def opened(segments: Segments) -> SegmentFile:
    return SegmentReader(segments.store, segments.directory).open(BLOOM_FILTER_FILE)


def rows_of(index: Any, query: Query) -> list[int]:
    return list(index.search(query).maybe)


@ORDINARY
@given(st.data())
def test_searches_never_miss_a_row(segments: Segments, data: st.DataObject) -> None:
    case = data.draw(cases(NAMES))
    index = case.build(segments, "number_of_items")
    for _ in range(6):
        query = data.draw(queries(case.type).filter(answered))
        inside = {case.rows[place] for place in satisfying(case, query)}
        check_answer(index, query, inside, set(case.rows) - inside)


@ORDINARY
@given(st.data())
def test_searches_never_miss_a_row_after_a_remap(segments: Segments, data: st.DataObject) -> None:
    case = data.draw(cases(NAMES))
    index = case.build(segments, "number_of_items")
    places = data.draw(st.permutations(range(len(case.rows))) | st.just(list(range(len(case.rows)))))
    moves = {old: (9 + place // 7) << 32 | place % 7 for old, place in zip(case.rows, places, strict=True)}
    gone = data.draw(st.sets(st.sampled_from(case.rows))) if case.rows else set()
    moves = {old: new for old, new in moves.items() if old not in gone}
    merged = segments.merge([MergeInput(index, following(moves))])
    query = data.draw(queries(case.type).filter(answered))
    wanted = {moves[case.rows[place]] for place in satisfying(case, query) if case.rows[place] in moves}
    check_answer(merged, query, wanted, set(moves.values()) - wanted)


def test_filters_hold_the_bytes_of_values(segments: Segments) -> None:
    values = pa.array([1, -2, None, 3], pa.int16())
    segments.build(values, parameters={"number_of_items": 2, "probability": 0.01})
    found = opened(segments).read(FILTER_SCHEMA.names)
    words = [new_filter(1), new_filter(1)]
    insert(words[0], hash_keys([b"\x01\x00", b"\xfe\xff"]))
    insert(words[1], hash_keys([b"\x03\x00"]))
    plain = [[0, 0], [0, 2], [2, 2], [False, True], [each.tobytes() for each in words]]
    assert [column.to_pylist() for column in found] == plain
    assert {key: opened(segments).metadata[key] for key in ("bloomfilter_item", "bloomfilter_probability")} == {
        "bloomfilter_item": "2",
        "bloomfilter_probability": "0.01",
    }


@pytest.mark.parametrize(("probability", "shown"), [(1e-5, "0.00001"), (0, "0"), (0.25, "0.25")])
def test_probabilities_are_written_without_exponents(segments: Segments, probability: float, shown: str) -> None:
    index = segments.build(pa.array([], pa.int64()), parameters={"probability": probability})
    assert opened(segments).metadata["bloomfilter_probability"] == shown
    assert index.statistics() == {
        "type": "BloomFilter",
        "num_blocks": 0,
        "number_of_items": 8192,
        "probability": probability,
    }


def test_only_zones_that_may_contain_a_value_are_returned(segments: Segments) -> None:
    index = segments.build(pa.array(range(1000)), parameters={"number_of_items": 100, "probability": 1e-9})
    assert rows_of(index, Among(pa.array([250, 777]))) == [*range(200, 300), *range(700, 800)]
    assert index.estimate(Among(pa.array([250]))) == 100
    assert rows_of(index, Among(pa.array([-1, 5000]))) == []
    assert rows_of(index, Among(pa.array([], pa.int64()))) == []
    assert not index.search(Among(pa.array([250]))).sure


def test_zeros_are_equal_and_nan_matches_everything(segments: Segments) -> None:
    index = segments.build(pa.array([0.0, -0.0, 1.0, np.nan]), parameters={"number_of_items": 1, "probability": 1e-9})
    assert rows_of(index, Among(pa.array([0.0]))) == [0, 1]
    assert rows_of(index, Among(pa.array([-0.0]))) == [0, 1]
    assert rows_of(index, Among(pa.array([1.0, np.nan]))) == [0, 1, 2, 3]


def test_equality_and_null_predicates_are_answered() -> None:
    among = Among(pa.array([1]))
    assert [BLOOM_FILTER.answers(query, pa.int64()) for query in (among, Null(), Except(Null()))] == [True] * 3
    assert [BLOOM_FILTER.answers(query, pa.int64()) for query in (Except(among), Between())] == [False] * 2
    others = (pa.bool_(), pa.float16(), pa.decimal128(5, 1), pa.binary(2), pa.duration("s"), pa.list_(pa.int8()))
    assert not any(BLOOM_FILTER.supports(type_) for type_ in others)


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, "a", True, float("nan")])
def test_invalid_probabilities_are_rejected(segments: Segments, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="parameter probability: expected at least 0 and below 1"):
        segments.build(pa.array([1]), parameters={"probability": value})


def test_invalid_parameters_are_rejected(segments: Segments) -> None:
    with pytest.raises(InvalidInputError, match="parameter number_of_items"):
        segments.build(pa.array([1]), parameters={"number_of_items": 0})
    with pytest.raises(
        InvalidInputError, match="unknown parameter 'items': expected one of number_of_items, probability"
    ):
        segments.build(pa.array([1]), parameters={"items": 1})


@pytest.mark.parametrize("limits", [(1 << 20, 1 << 20), (64, 0)])
def test_filters_are_read_in_small_blocks(
    segments: Segments, monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int]
) -> None:
    monkeypatch.setattr(open_files, "INDEX_BLOCK_BYTES", limits[0])
    monkeypatch.setattr(open_files, "FILTER_CACHE_BYTES", limits[1])
    index = segments.build(pa.array(range(100)), parameters={"number_of_items": 5, "probability": 0.001})
    before = index.nbytes
    assert set(range(35, 40)) <= set(rows_of(index, Among(pa.array([37]))))
    index.prewarm()
    assert (index.nbytes > before) == (limits[1] > 0)


def test_small_filters_that_move_together_become_one(segments: Segments) -> None:
    rows = [fragment << 32 | offset for fragment in range(6) for offset in range(2)]
    index = segments.build(pa.array([*range(11), None]), rows, parameters={"number_of_items": 4, "probability": 1e-6})
    moves = {old: 9 << 32 | place for place, old in enumerate(rows)}
    merged = segments.merge([MergeInput(index, following(moves))])
    assert merged.statistics() == {**index.statistics(), "num_blocks": 3}
    assert rows_of(merged, Among(pa.array([5]))) == [9 << 32 | place for place in range(4, 8)]
    assert list(merged.search(Null()).sure) == [9 << 32 | 11]


def test_filters_of_different_sizes_are_merged(segments: Segments) -> None:
    small = segments.build(pa.array([1, 2]), parameters={"number_of_items": 2, "probability": 0.1})
    large = segments.build(pa.array([3, 4]), [5 << 32, 5 << 32 | 1], parameters={"probability": 1e-6})
    merged = segments.merge([MergeInput(small, stay), MergeInput(large, stay)], pa.array([5]), [7 << 32])
    assert merged.statistics()["number_of_items"] == 2
    assert [rows_of(merged, Among(pa.array([value]))) for value in (2, 3, 5)] == [
        [0, 1],
        [5 << 32, 5 << 32 | 1],
        [7 << 32],
    ]


def write(segments: Segments, metadata: dict[str, str], **columns: Any) -> BloomFilterIndex:
    """Write a handmade file."""
    plain: dict[str, Any] = {
        "fragment_id": pa.array([0], pa.uint64()),
        "zone_start": pa.array([0], pa.uint64()),
        "zone_length": pa.array([3], pa.uint64()),
        "has_null": pa.array([False]),
        "bloom_filter_data": pa.array([b"\xff" * 32]),
    }
    table = pa.table(plain | columns)
    with SegmentWriter(segments.store) as writer:
        file = writer.create(BLOOM_FILTER_FILE, table.schema)
        for batch in table.to_batches():
            file.write(batch)
        file.add_global_buffer(row_address_map(RowSet({})))
        for key, value in metadata.items():
            file.add_schema_metadata(key, value)
        writer.add(BLOOM_FILTER_FILE, file)
    found = BLOOM_FILTER.open(SegmentReader(segments.store, writer.directory), pa.int64(), Details(0))
    assert isinstance(found, BloomFilterIndex)
    return found


def test_missing_metadata_has_defaults(segments: Segments) -> None:
    index = write(segments, {"null_bitmap": "1"})
    assert (index.file.number_of_items, index.file.probability) == (8192, 0.00057)
    assert rows_of(index, Among(pa.array([1]))) == [0, 1, 2]


def test_files_without_null_positions_are_not_used(segments: Segments) -> None:
    with pytest.raises(UnsupportedError, match="written by an early version"):
        write(segments, {})


@pytest.mark.parametrize("data", [[b""], [b"\xff" * 31], [None]])
def test_filters_that_are_not_whole_blocks_are_corrupt(segments: Segments, data: list[bytes]) -> None:
    index = write(segments, {"null_bitmap": "1"}, bloom_filter_data=pa.array(data, pa.binary()))
    with pytest.raises(CorruptError, match="Bloom filter: expected blocks of 32 bytes"):
        index.search(Among(pa.array([1])))


@pytest.mark.parametrize(
    "metadata",
    [
        {"null_bitmap": "2"},
        {"null_bitmap": "-1"},
        {"null_bitmap": "x"},
        {"null_bitmap": "1", "bloomfilter_item": "0"},
        {"null_bitmap": "1", "bloomfilter_item": "many"},
        {"null_bitmap": "1", "bloomfilter_probability": "1"},
        {"null_bitmap": "1", "bloomfilter_probability": "x"},
    ],
)
def test_invalid_metadata_is_corrupt(segments: Segments, metadata: dict[str, str]) -> None:
    with pytest.raises(CorruptError):
        write(segments, metadata)


@given(data=st.data())
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_raise_lance_duck_errors(segments: Segments, data: st.DataObject) -> None:
    segments.build(pa.array(["a", None, "b", "c"]), parameters={"number_of_items": 2})
    check_damaged(segments, BLOOM_FILTER_FILE, data)
