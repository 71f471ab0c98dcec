from __future__ import annotations

from collections.abc import Generator, Sequence

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.scan.costs import SMALL_BATCH_BYTES, SMALL_BATCH_ROWS
from lance_duck.scan.read.small_batches import join_batches


def numbers(start: int, count: int) -> pa.RecordBatch:
    return pa.record_batch({"i": pa.array(range(start, start + count), pa.int64())})


def pieces(*sizes: Sequence[int]) -> Generator[list[pa.RecordBatch], None, None]:
    start = 0
    for piece in sizes:
        batches = []
        for count in piece:
            batches.append(numbers(start, count))
            start += count
        yield batches


def sizes(batches: Generator[pa.RecordBatch, None, None]) -> list[int]:
    return [batch.num_rows for batch in batches]


def test_the_first_row_is_returned_immediately_and_batches_grow() -> None:
    assert sizes(join_batches(pieces(*[[1]] * 30))) == [1, 4, 16, 9]


def test_the_first_row_needs_no_further_work() -> None:
    begun = []

    def work() -> Generator[list[pa.RecordBatch], None, None]:
        for place in range(9):
            begun.append(place)
            yield [] if place < 3 else [numbers(place, 1)]

    batches = join_batches(work())
    assert next(batches).num_rows == 1
    assert begun == [0, 1, 2, 3]
    batches.close()


def test_large_batches_are_not_copied_to_join_small_ones() -> None:
    large = pa.record_batch({"i": pa.array(range(SMALL_BATCH_ROWS), pa.int64())})
    found = list(join_batches(piece for piece in [[numbers(0, 1)], [numbers(1, 1)], [large], [numbers(2, 2)]]))
    assert [batch.num_rows for batch in found] == [1, 1, SMALL_BATCH_ROWS, 2]
    assert found[2] is large


def test_wide_rows_are_returned_once_they_reach_the_byte_limit() -> None:
    wide = pa.record_batch({"v": pa.array([b"x" * (SMALL_BATCH_BYTES // 2)], pa.binary())})
    assert sizes(join_batches(piece for piece in [[wide]] * 7)) == [1, 2, 2, 2]
    assert sizes(join_batches((piece for piece in [[wide]] * 4), bytes_=1000)) == [1, 1, 1, 1]


def test_batches_reach_but_do_not_exceed_the_row_limit() -> None:
    assert sizes(join_batches(pieces(*[[30]] * 8), most_rows=50)) == [30, 30, 30, 50, 50, 50]
    assert sizes(join_batches(pieces(*[[30]] * 8, [7]), most_rows=50)) == [30, 30, 30, 50, 50, 50, 7]


def test_dictionaries_are_merged() -> None:
    parts = [pa.array(texts).dictionary_encode() for texts in (["a"], ["b", "a"], ["c", None, "b"])]
    first, second = join_batches([pa.record_batch({"d": part})] for part in parts)
    assert first["d"].to_pylist() == ["a"]
    assert second["d"].to_pylist() == ["b", "a", "c", None, "b"]
    assert sorted(second["d"].dictionary.to_pylist()) == ["a", "b", "c"]


def dictionary(texts: list[str | None], indices: list[int]) -> pa.RecordBatch:
    return pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(texts))})


@pytest.mark.parametrize(
    "batches",
    [
        [dictionary([f"{part} {i}" for i in range(100)], list(range(100))) for part in range(4)],
        [dictionary([None, str(part)], [0, 1]) for part in range(4)],
    ],
    ids=["more entries than the index counts", "nulls among the entries"],
)
def test_dictionaries_that_cannot_be_merged_stay_separate(batches: list[pa.RecordBatch]) -> None:
    found = list(join_batches([batch] for batch in batches))
    assert [value for batch in found for value in batch["d"].to_pylist()] == [
        value for batch in batches for value in batch["d"].to_pylist()
    ]


def test_closing_ends_the_work() -> None:
    work = pieces(*[[1]] * 9)
    batches = join_batches(work)
    next(batches)
    batches.close()
    assert next(work, None) is None


@given(
    st.lists(st.lists(st.integers(1, 40), max_size=3), max_size=30),
    st.none() | st.integers(1, 60),
    st.none() | st.integers(1, 300),
)
def test_all_rows_are_returned_in_order(plan: list[list[int]], most_rows: int | None, bytes_: int | None) -> None:
    found = list(join_batches(pieces(*plan), most_rows, bytes_))
    assert [i for batch in found for i in batch["i"].to_pylist()] == list(range(sum(map(sum, plan))))
    assert all(0 < batch.num_rows <= (most_rows or SMALL_BATCH_ROWS) for batch in found)
