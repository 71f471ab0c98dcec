from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap

from lance_duck.errors import CorruptError
from lance_duck.rows.roaring import roaring_bytes, roaring_values


@st.composite
def bitmaps(draw: st.DrawFn) -> BitMap:
    bitmap = BitMap()
    for _ in range(draw(st.integers(0, 6))):
        start = draw(st.integers(0, 400_000))
        step = draw(st.sampled_from([1, 2, 3, 17, 5000]))
        bitmap.update(range(start, start + step * draw(st.integers(1, 20_000 // step + 1)), step))
    bitmap.update(draw(st.sets(st.integers(0, 2**32 - 1), max_size=10)))
    if draw(st.booleans()):
        bitmap.run_optimize()
    return bitmap


@given(bitmaps())
@settings(deadline=None)
def test_values_equal_those_of_the_library(bitmap: BitMap) -> None:
    values = roaring_values(bitmap.serialize(), "here", 2**32)
    assert values.dtype == np.uint32
    assert values.tolist() == bitmap.to_array().tolist()


@given(bitmaps(), st.data())
@settings(deadline=None)
def test_damaged_bytes_give_a_valid_result_or_are_corrupt(bitmap: BitMap, data: st.DataObject) -> None:
    raw = bytearray(bitmap.serialize())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, min(len(raw) - 1, 200)))] = data.draw(st.integers(0, 255))
    kept = bytes(raw[: data.draw(st.integers(0, len(raw)))])
    with suppress(CorruptError):
        values = roaring_values(kept, "here", 2**32)
        assert np.all(values[1:] > values[:-1])


def test_more_values_than_the_limit_are_rejected() -> None:
    assert len(roaring_values(BitMap(range(10)).serialize(), "here", 10)) == 10
    with pytest.raises(CorruptError, match="at most 9"):
        roaring_values(BitMap(range(10)).serialize(), "here", 9)


def test_written_bitmaps_read_back() -> None:
    values = np.concatenate([np.arange(70_000), np.arange(200_000, 900_000, 7)]).astype(np.uint32)
    assert roaring_values(roaring_bytes(values), "here", 1_000_000).tolist() == values.tolist()
