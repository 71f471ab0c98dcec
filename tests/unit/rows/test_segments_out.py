from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.rows import RowIdSequence, VersionSequence, read_row_ids, read_versions
from lance_duck.wire.pb import rowids_pb2

U64 = 2**64 - 1


def forms(data: bytes) -> list[str]:
    return [s.WhichOneof("segment") for s in rowids_pb2.RowIdSequence.FromString(data).segments]


@st.composite
def some_ids(draw: st.DrawFn) -> list[int]:
    start = draw(st.one_of(st.integers(0, 2000), st.integers(2**40, 2**40 + 9), st.integers(U64 - 9000, U64 - 6000)))
    present = np.random.default_rng(draw(st.integers(0, 99))).random(draw(st.integers(0, 3000)))
    ids = [start + i for i in np.flatnonzero(present < draw(st.sampled_from([0.002, 0.1, 0.5, 0.99, 1.0]))).tolist()]
    if draw(st.booleans()) and ids:
        turn = draw(st.integers(0, len(ids) - 1))
        ids = ids[turn:] + ids[:turn]
    return ids if draw(st.booleans()) else [ids[i] for i in np.random.default_rng(1).permutation(len(ids)).tolist()]


@given(some_ids(), some_ids(), st.data())
@settings(max_examples=150, deadline=None)
def test_row_ids_round_trip_after_concat_and_select(one: list[int], other: list[int], data: st.DataObject) -> None:
    parts = [RowIdSequence.from_ids(np.array(ids, np.uint64)) for ids in (one, other)]
    both = RowIdSequence.concat(parts)
    ids = one + other
    assert read_row_ids(both.to_bytes(), "here", len(ids)).slice(0, len(ids)).tolist() == ids
    kept = sorted(data.draw(st.sets(st.integers(0, len(ids) - 1), max_size=50))) if ids else []
    selected = both.select(np.array(kept, np.int64))
    assert read_row_ids(selected.to_bytes(), "here", len(kept)).slice(0, len(kept)).tolist() == [ids[i] for i in kept]


@pytest.mark.parametrize(
    ("ids", "form"),
    [
        (range(7, 1000), "range"),
        ([i for i in range(10_000) if i % 1000], "range_with_holes"),
        ([i for i in range(10_000) if i % 3], "range_with_bitmap"),
        (range(0, 100_000, 500), "sorted_array"),
        ([int(i) for i in np.random.default_rng(0).permutation(2000)], "array"),
    ],
)
def test_the_smallest_encoding_is_chosen(ids: list[int], form: str) -> None:
    assert forms(RowIdSequence.from_ids(np.array(ids, np.uint64)).to_bytes()) == [form]


def test_distant_row_ids_are_written_as_separate_ranges() -> None:
    ids = np.concatenate([np.arange(1000), np.arange(5_000_000, 5_001_000), np.arange(3000, 4000)])
    assert forms(RowIdSequence.from_ids(ids).to_bytes()) == ["range"] * 3


def test_ranges_that_adjoin_are_joined() -> None:
    joined = RowIdSequence.concat([RowIdSequence.range_of(5, 3), RowIdSequence.range_of(8, 2)])
    assert joined.slice(0, 5).tolist() == [5, 6, 7, 8, 9]
    assert len(joined.segments) == 1


@given(st.lists(st.integers(1, 4), max_size=60), st.lists(st.integers(1, 4), max_size=60), st.data())
def test_row_versions_round_trip_after_concat_and_select(one: list[int], other: list[int], data: st.DataObject) -> None:
    both = VersionSequence.concat([VersionSequence.from_versions(np.array(v, np.int64)) for v in (one, other)])
    versions = one + other
    again = read_versions(both.to_bytes(), "here", len(versions))
    assert again.slice(0, len(versions)).tolist() == versions
    kept = sorted(data.draw(st.sets(st.integers(0, len(versions) - 1)))) if versions else []
    assert both.select(np.array(kept, np.int64)).slice(0, len(kept)).tolist() == [versions[i] for i in kept]


def test_equal_versions_are_stored_as_one_run() -> None:
    message = rowids_pb2.RowDatasetVersionSequence.FromString(VersionSequence.constant(4, 1000).to_bytes())
    assert [(run.version, run.span.range.end) for run in message.runs] == [(4, 1000)]
    assert VersionSequence.constant(4, 0).to_bytes() == b""
