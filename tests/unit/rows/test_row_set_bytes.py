from __future__ import annotations

import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from lance_duck.errors import CorruptError
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map, read_treemap, row_address_map, treemap


@st.composite
def row_sets(draw: st.DrawFn) -> RowSet:
    parts = {}
    for key in draw(st.sets(st.sampled_from([0, 1, 9, 2**32 - 1]))):
        part = BitMap(draw(st.sets(st.integers(0, 2**32 - 1), max_size=5)))
        start, step = draw(st.integers(0, 200_000)), draw(st.sampled_from([1, 2, 9]))
        part.update(range(start, start + draw(st.integers(1, 30_000)), step))
        parts[key] = part
    return RowSet(parts)


@given(row_sets())
@settings(deadline=None, max_examples=40)
def test_row_sets_round_trip(rows: RowSet) -> None:
    assert read_row_address_map(row_address_map(rows), "here") == rows
    assert read_treemap(treemap(rows), "here") == rows


@given(row_sets())
@settings(deadline=None, max_examples=20)
def test_treemaps_equal_those_of_the_library(rows: RowSet) -> None:
    ours = treemap(rows)
    assert BitMap64.deserialize(ours) == BitMap64(rows.rows().tolist())
    assert read_treemap(BitMap64(rows.rows().tolist()).serialize(), "here") == rows


@given(row_sets(), st.data())
@settings(deadline=None, max_examples=60)
def test_damaged_bytes_give_a_valid_set_or_are_corrupt(rows: RowSet, data: st.DataObject) -> None:
    for raw, read in ((row_address_map(rows), read_row_address_map), (treemap(rows), read_treemap)):
        changed = bytearray(raw)
        for _ in range(data.draw(st.integers(1, 3))):
            changed[data.draw(st.integers(0, min(len(changed) - 1, 120)))] = data.draw(st.integers(0, 255))
        kept = bytes(changed[: data.draw(st.integers(0, len(changed)))])
        with suppress(CorruptError):
            found = read(kept, "here")
            for part in found.parts.values():
                values = np.array(part.to_array())
                assert len(values) == len(part)
                assert (values[1:] > values[:-1]).all()


def whole(*keys: int) -> bytes:
    return struct.pack("<I", len(keys)) + b"".join(struct.pack("<II", key, 0) for key in keys)


def test_a_whole_fragment_is_expanded_to_its_rows() -> None:
    rows = {3: 5, 4: 0}
    found = read_row_address_map(whole(3, 4), "here", rows.get)
    assert list(found) == [(3 << 32) + i for i in range(5)]


@pytest.mark.parametrize("rows_of", [None, lambda key: None])
def test_a_whole_fragment_of_unknown_size_is_corrupt(rows_of: object) -> None:
    with pytest.raises(CorruptError, match="all rows of fragment 3"):
        read_row_address_map(whole(3), "here", rows_of)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0",
        struct.pack("<I", 1),
        struct.pack("<III", 1, 0, 100),
        whole(1) + b"x",
        struct.pack("<I", 0xFFFFFFFF),
        row_address_map(RowSet({1: BitMap([1])}))[:-1],
        struct.pack("<III", 1, 0, 21) + BitMap([1]).serialize() + b"12345",
        struct.pack("<I", 2) + 2 * (struct.pack("<II", 7, 18) + BitMap([1]).serialize()),
    ],
)
def test_a_damaged_row_address_map_is_rejected(data: bytes) -> None:
    with pytest.raises(CorruptError, match="here: the set of rows is corrupt"):
        read_row_address_map(data, "here", lambda key: 1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack("<Q", 1),
        struct.pack("<Q", 1 << 60),
        treemap(RowSet({1: BitMap([1])})) + b"x",
        struct.pack("<Q", 2) + 2 * (struct.pack("<I", 7) + BitMap([1]).serialize()),
    ],
)
def test_a_damaged_treemap_is_rejected(data: bytes) -> None:
    with pytest.raises(CorruptError, match="here: the set of rows is corrupt"):
        read_treemap(data, "here")


def test_writing_does_not_change_the_set() -> None:
    part = BitMap(range(1000))
    before = part.get_statistics()
    row_address_map(RowSet({0: part}))
    assert part.get_statistics() == before
