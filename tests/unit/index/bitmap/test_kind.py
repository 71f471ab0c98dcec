from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments, stay
from unit.index.zone_cases import satisfies

from lance_duck.errors import CorruptError, LanceDuckError
from lance_duck.index.bitmap.kind import BITMAP
from lance_duck.index.bitmap.layout import FILE
from lance_duck.index.bitmap.search import BitmapIndex
from lance_duck.index.files import SegmentReader
from lance_duck.index.kind import MergeInput
from lance_duck.index.query import Among, Between, ContainsAny, Except, HasPrefix, Null, Query

NEGATIVE_NAN = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
FLOATS = [0.0, -0.0, 1.5, -1.5, math.inf, -math.inf, math.nan, NEGATIVE_NAN, 5e-324]
Key = Callable[[Any], Any]


def found(index: Any, query: Query) -> list[int]:
    answer = index.search(query)
    assert answer.is_exact
    return list(answer.sure)


VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-5, 5) | st.sampled_from([-(2**63), 2**63 - 1])),
    "uint64": (pa.uint64(), st.integers(0, 5) | st.just(2**64 - 1)),
    "bool": (pa.bool_(), st.booleans()),
    "float": (pa.float32(), st.sampled_from([*FLOATS[:8], 2.0**-149])),
    "double": (pa.float64(), st.sampled_from(FLOATS)),
    "half": (pa.float16(), st.sampled_from(FLOATS[:8])),
    "string": (pa.string(), st.sampled_from(["", "a", "ab", "b", "é", "z\U0001f600", "\uffff", "A"])),
    "large_string": (pa.large_string(), st.sampled_from(["", "a", "ab", "é"])),
    "binary": (pa.binary(), st.sampled_from([b"", b"\xff", b"\xff\xff\x01", b"a", b"a\xff", b"b"])),
    "fixed": (pa.binary(2), st.sampled_from([b"aa", b"\xff\0", b"\0\0"])),
    "decimal": (pa.decimal128(10, 2), st.sampled_from([Decimal("-1.50"), Decimal("0.00"), Decimal("12345678.90")])),
    "decimal256": (pa.decimal256(50, 1), st.sampled_from([Decimal("-1e48"), Decimal("0.1"), Decimal("1e48")])),
    "date": (pa.date32(), st.sampled_from([dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)])),
    "time": (pa.time64("us"), st.sampled_from([dt.time(0), dt.time(23, 59, 59, 999_999)])),
    "timestamp": (pa.timestamp("us", "UTC"), st.integers(-3, 3)),
    "duration": (pa.duration("s"), st.integers(-3, 3)),
}


@st.composite
def columns(draw: st.DrawFn) -> tuple[pa.Array, Query]:
    type_, values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    column = pa.array(draw(st.lists(st.none() | values, max_size=30)), type_)
    bounds = st.none() | values.map(lambda value: pa.scalar(value, type_))
    queries: list[st.SearchStrategy[Any]] = [
        st.just(Null()),
        st.builds(Between, bounds, bounds, st.booleans(), st.booleans()),
        st.lists(values, max_size=4).map(lambda some: Among(pa.array(some, type_))),
    ]
    if type_ in (pa.string(), pa.large_string(), pa.binary()):
        queries.append(values.map(lambda value: HasPrefix(pa.scalar(value, type_))))
    query = draw(st.one_of(queries))
    return column, Except(query) if draw(st.booleans()) else query


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(columns(), st.data())
def test_a_search_equals_checking_each_value(
    tmp_path: Path, drawn: tuple[pa.Array, Query], data: st.DataObject
) -> None:
    column, query = drawn
    names = data.draw(st.lists(st.integers(0, 2**64 - 1), min_size=len(column), max_size=len(column), unique=True))
    index = Segments(BITMAP, tmp_path).build(
        column, names, batch=7, memory_limit=data.draw(st.sampled_from([1, 1 << 20]))
    )

    assert BITMAP.supports(column.type)
    assert BITMAP.answers(query, column.type)
    expected = sorted(n for n, value in zip(names, column.to_pylist(), strict=True) if satisfies(value, query))
    assert found(index, query) == expected
    assert found(index, query) == expected
    estimated = index.estimate(query)
    assert estimated is None or estimated >= len(expected)


def test_keys_are_ordered_with_null_first_and_by_their_bits(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    segments.build(pa.array([1.5, None, *FLOATS, math.nan, None], pa.float64()))

    file = SegmentReader(segments.store, segments.directory).open(FILE)
    keys, maps = file.read(["keys", "bitmaps"])

    bits = keys.to_numpy(zero_copy_only=False)[1:].view(np.uint64).tolist()
    wanted = [NEGATIVE_NAN, -math.inf, -1.5, -0.0, 0.0, 5e-324, 1.5, math.inf, math.nan]
    assert not keys[0].is_valid
    assert bits == np.array(wanted).view(np.uint64).tolist()
    assert maps[0].as_py().hex() == "0100000000000000140000003a30000001000000000001001000000001000c00"
    assert file.metadata == {"lance:index_stats": '{"num_bitmaps":10}'}
    assert file.schema.types == [pa.float64(), pa.binary()]


@pytest.mark.parametrize("memory_limit", [1, 40_000, 1 << 30])
def test_the_memory_limit_does_not_change_the_files(tmp_path: Path, memory_limit: int) -> None:
    rng = np.random.default_rng(3)
    values = pa.array([None if v % 13 == 0 else f"v{v}" for v in rng.integers(0, 3000, 12_000).tolist()])
    names = rng.permutation(1 << 20)[:12_000].astype(np.uint64) << np.uint64(13)
    segments = Segments(BITMAP, tmp_path)

    index = segments.build(values, names, batch=500, memory_limit=memory_limit)

    assert index.statistics() == {"num_bitmaps": len(values.unique())}
    assert found(index, Null()) == sorted(names[values.is_null().to_numpy(zero_copy_only=False)].tolist())
    assert found(index, Except(Null())) == sorted(names[values.is_valid().to_numpy(zero_copy_only=False)].tolist())
    alike = [n for n, v in zip(names.tolist(), values.to_pylist(), strict=True) if v == "v77"]
    assert found(index, Among(pa.array(["v77"]))) == sorted(alike)
    assert not list(Path(tmp_path).glob("*.arrow"))


def test_few_values_with_many_rows_are_found(tmp_path: Path) -> None:
    values = pa.array(np.arange(300_000) % 3)
    index = Segments(BITMAP, tmp_path).build(values, batch=65_536, memory_limit=4 << 20)

    assert found(index, Among(pa.array([1, 7]))) == list(range(1, 300_000, 3))
    assert index.estimate(Among(pa.array([1]))) == 100_000
    assert index.estimate(Among(pa.array([7]))) == 0
    assert index.estimate(Null()) == 0
    assert index.estimate(Between(pa.scalar(2))) is None
    before = index.nbytes
    index.prewarm()
    assert index.estimate(Between(pa.scalar(2))) == 100_000
    assert index.nbytes > before


def test_a_merge_keeps_remapped_rows_and_adds_new_ones(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    first = segments.build(pa.array(["a", "b", None, "a", "gone"]), [1, 2, 3, 4, 5])
    second = segments.build(pa.array(["b", "c", None]), [1 << 32, (1 << 32) + 1, (1 << 32) + 2])

    def move(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.uint64(100) - names, names != 5

    index = segments.merge([MergeInput(first, move), MergeInput(second, stay)], pa.array(["a", "d"]), [7, 8])

    assert isinstance(index, BitmapIndex)
    assert index.statistics() == {"num_bitmaps": 5}
    assert found(index, Among(pa.array(["a"]))) == [7, 96, 99]
    assert found(index, Among(pa.array(["b"]))) == [98, 1 << 32]
    assert found(index, Null()) == [97, (1 << 32) + 2]
    assert found(index, Except(Null())) == [7, 8, 96, 98, 99, 1 << 32, (1 << 32) + 1]


def test_a_merge_remaps_large_bitmaps(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    index = segments.build(pa.array(np.arange(40_000) % 2))

    def move(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return names[::-1] + np.uint64(9 << 32), names[::-1] % 4 < 2

    moved = segments.merge([MergeInput(index, move)])

    assert found(moved, Among(pa.array([1]))) == [(9 << 32) + i for i in range(40_000) if i % 4 == 1]
    assert found(moved, Between(pa.scalar(0))) == [(9 << 32) + i for i in range(40_000) if i % 4 < 2]


def test_a_merge_may_drop_every_row(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    index = segments.build(pa.array([1, 2]))

    empty = segments.merge([MergeInput(index, lambda names: (names, np.zeros(len(names), np.bool_)))])

    assert empty.statistics() == {"num_bitmaps": 0}
    assert found(empty, Except(Null())) == []


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_every_file_version_can_store_an_index(tmp_path: Path, version: str) -> None:
    index = Segments(BITMAP, tmp_path, version).build(pa.array(["x", None, "", "x"]))

    assert found(index, Among(pa.array(["x"]))) == [0, 3]
    assert found(index, Between(high=pa.scalar("a"))) == [2]


def test_keys_in_any_order_and_repeated_are_found(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    segments.build(pa.array(["b", "a", None, "c"]))
    reader = SegmentReader(segments.store, segments.directory)
    keys, maps = reader.open(FILE).read(["keys", "bitmaps"])
    from_others = Segments(BITMAP, tmp_path)
    from lance_duck.index.files import SegmentWriter

    with SegmentWriter(segments.store) as writer:
        schema = pa.schema([("keys", pa.string()), ("bitmaps", pa.binary())])
        file = writer.create(FILE, schema)
        shuffled = pa.array([3, 0, 1, 2, 2])
        file.write(pa.record_batch([keys.take(shuffled), maps.take(pa.array([3, 0, 1, 2, 0]))], schema))
        writer.add(FILE, file)
    from_others.details = segments.details
    index = from_others.open(writer.directory, pa.string())

    assert found(index, Among(pa.array(["b"]))) == [0, 2]
    assert found(index, Between(pa.scalar("b"))) == [0, 2, 3]
    assert found(from_others.merge([MergeInput(index, stay)]), Except(Null())) == [0, 1, 2, 3]


def test_unsupported_predicates_are_not_answered() -> None:
    assert not BITMAP.answers(ContainsAny(pa.array([1])), pa.int64())
    assert not BITMAP.answers(HasPrefix(pa.scalar("a")), pa.int64())
    assert not BITMAP.supports(pa.list_(pa.int64()))
    assert not BITMAP.supports(pa.null())
    assert not BITMAP.supports(pa.struct([("a", pa.int64())]))
    assert not BITMAP.supports(pa.month_day_nano_interval())


def test_keys_of_another_type_are_corrupt(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    segments.build(pa.array([1, 2]))

    with pytest.raises(CorruptError, match="column 'keys' has the wrong type"):
        segments.open(segments.directory, pa.int32())


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=3), st.integers(0, 4000))
def test_damaged_bytes_are_rejected_or_harmless(tmp_path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    segments = Segments(BITMAP, tmp_path)
    segments.build(pa.array(["a", "b", None, "a"] * 20))
    data = bytearray(segments.path(FILE).read_bytes())
    for place, byte in changes:
        data[place % len(data)] = byte
    segments.path(FILE).write_bytes(data[: len(data) - cut] if cut < 100 else data)

    try:
        index = segments.open(segments.directory, pa.string())
        index.prewarm()
        found(index, Among(pa.array(["a"])))
        segments.merge([MergeInput(index, stay)])
    except LanceDuckError:
        pass


def test_negated_predicates_are_answered(tmp_path: Path) -> None:
    values = pa.array([None if i % 11 == 0 else i % 7 for i in range(5000)])
    index = Segments(BITMAP, tmp_path).build(values)

    for query in (Except(Among(pa.array([3]))), Except(Between(pa.scalar(5))), Except(Null())):
        expected = [i for i, value in enumerate(values.to_pylist()) if satisfies(value, query)]
        assert found(index, query) == expected
        assert found(index, query) == expected


def test_rows_with_several_keys_need_a_recheck(tmp_path: Path) -> None:
    segments = Segments(BITMAP, tmp_path)
    index = segments.build(pa.array(["a", "b", "c", "a"]), [1, 1, 2, 3])
    assert found(index, Among(pa.array(["a"]))) == [1, 3]

    answer = index.search(Except(Among(pa.array(["a"]))))

    assert (list(answer.sure), list(answer.maybe)) == ([], [1, 2])
    assert not index.search(Among(pa.array(["a"]))).is_exact
