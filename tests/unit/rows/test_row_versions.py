from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.rows import read_versions
from lance_duck.wire.pb import rowids_pb2


def message(runs: list[tuple[int, int]]) -> bytes:
    spans = [{"span": {"range": {"start": 40, "end": 40 + n}}, "version": v} for n, v in runs]
    return rowids_pb2.RowDatasetVersionSequence(runs=spans).SerializeToString()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**64 - 1)), max_size=6), st.data())
def test_runs_assign_a_version_to_each_row(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    rows = [v for n, v in runs for _ in range(n)]
    sequence = read_versions(message(runs), "here", len(rows))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert sequence.slice(start, stop).tolist() == rows[start:stop]
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=10)) if rows else []
    assert sequence.take(np.array(places, np.int64)).tolist() == [rows[p] for p in places]


def test_versions_depend_on_the_row_count_of_a_span() -> None:
    span = {"range_with_bitmap": {"start": 0, "end": 8, "bitmap": b"\x0f"}}
    data = rowids_pb2.RowDatasetVersionSequence(runs=[{"span": span, "version": 3}]).SerializeToString()
    assert read_versions(data, "here", 4).slice(0, 4).tolist() == [3, 3, 3, 3]
    with pytest.raises(CorruptError):
        read_versions(data, "here", 8)


def test_versions_of_runs_are_replaced_and_equal_runs_are_joined() -> None:
    sequence = read_versions(message([(2, 7), (1, 9), (0, 4), (3, 1)]), "here", 6)
    replaced = sequence.with_versions(lambda versions: np.where(versions > 6, np.uint64(2), versions))
    assert replaced.slice(0, 6).tolist() == [2, 2, 2, 1, 1, 1]
    assert replaced.to_bytes() == read_versions(message([(3, 2), (3, 1)]), "here", 6).to_bytes()
