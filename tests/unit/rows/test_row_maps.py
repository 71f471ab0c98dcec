from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.rows.row_maps import LARGEST, array_maps, read_array_maps
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import read_row_address_map, row_address_map

near = st.integers(0, 3).map(lambda n: n << 32) | st.just(2**64 - 2**32)
row = st.builds(int.__add__, near, st.integers(0, 300) | st.integers(65_530, 65_540) | st.integers(0, 2**32 - 1))
sets = st.lists(st.lists(row, max_size=40, unique=True).map(sorted), max_size=8)


def flat(lists: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    counts = np.array([len(each) for each in lists], np.int64)
    return counts, np.array([one for each in lists for one in each], np.uint64)


def joined(maps: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer(b"".join(maps), np.uint8), np.cumsum([0, *map(len, maps)])


@given(sets)
def test_maps_written_together_equal_maps_written_one_by_one(lists: list[list[int]]) -> None:
    data, offsets = array_maps(*flat(lists))

    maps = [data[a:b].tobytes() for a, b in pairwise(offsets)]
    assert [list(read_row_address_map(each, "here")) for each in maps] == lists


@given(sets)
def test_maps_written_together_can_be_read_together(lists: list[list[int]]) -> None:
    counts, rows = flat(lists)

    good, found, values = read_array_maps(*array_maps(counts, rows))

    assert good.all()
    assert found.tolist() == counts.tolist()
    assert values.tolist() == rows.tolist()


@given(sets, st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_maps_are_read_equally_or_left_to_the_general_reader(
    lists: list[list[int]], changes: list[tuple[int, int]]
) -> None:
    data, offsets = array_maps(*flat(lists))
    for place, byte in changes:
        data[place % max(len(data), 1) : place % max(len(data), 1) + 1] = byte

    good, counts, rows = read_array_maps(data, offsets)

    ends = np.cumsum(counts)
    for i, sound in enumerate(good):
        if sound:
            one = read_row_address_map(data[offsets[i] : offsets[i + 1]].tobytes(), "here")
            assert list(one) == rows[ends[i] - counts[i] : ends[i]].tolist()
        else:
            assert counts[i] == 0


def test_maps_with_runs_bitsets_and_whole_fragments_use_the_general_reader() -> None:
    plain = row_address_map(RowSet.of(np.array([3, 9], np.uint64)))
    runs = row_address_map(RowSet.of_ranges([(0, 5, 4000)]))
    bits = row_address_map(RowSet.of(np.arange(0, 65536, 3, dtype=np.uint64)))
    whole = b"\x01\0\0\0" + bytes(8)

    good, counts, rows = read_array_maps(*joined([runs, plain, bits, whole, b"", plain]))

    assert good.tolist() == [False, True, False, False, False, True]
    assert counts.tolist() == [0, 2, 0, 0, 0, 2]
    assert rows.tolist() == [3, 9, 3, 9]


def test_the_largest_array_map_is_written_correctly() -> None:
    rows = np.arange(LARGEST, dtype=np.uint64) * np.uint64(16) + np.uint64(7 << 32)

    data, offsets = array_maps(np.array([LARGEST]), rows)

    assert offsets.tolist() == [0, len(data)]
    assert read_row_address_map(data.tobytes(), "here") == RowSet.of(rows)


def test_invalid_maps_are_rejected_by_the_general_reader() -> None:
    data, _ = array_maps(*flat([[1, 2]]))
    swapped = data.copy()
    swapped[-4:-2], swapped[-2:] = data[-2:], data[-4:-2]

    assert not read_array_maps(swapped, np.array([0, len(swapped)]))[0].any()
    with pytest.raises(CorruptError, match="out of order"):
        read_row_address_map(swapped.tobytes(), "here")
