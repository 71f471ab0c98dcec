"""Old addresses to new ones, against a plain dict; runs of bitmaps, against their values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.rows import roaring_bytes, roaring_values
from lance_duck.rows.address_map import AddressMap, MovedGroup, join_runs, live_runs
from lance_duck.rows.roaring import roaring_runs
from lance_duck.rows.row_positions import Slots
from lance_duck.rows.row_set import RowSet
from lance_duck.rows.row_set_bytes import treemap, treemap_runs

BITS = np.uint64(32)


def address(fragment: int, offset: int) -> int:
    return fragment << 32 | offset


def addresses(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array([address(*pair) for pair in pairs], np.uint64)


def group(old: list[tuple[int, int, list[int]]], new: list[tuple[int, int]]) -> MovedGroup:
    """Fragments (id, rows, deleted offsets), and what became of them (id, rows)."""
    runs = join_runs(live_runs(i, rows, np.array(sorted(deleted), np.int64)) for i, rows, deleted in old)
    return MovedGroup(tuple(i for i, _, _ in old), tuple(new), *runs)


def test_rows_are_remapped_in_order_across_fragments() -> None:
    moved = AddressMap([group([(0, 4, [1]), (1, 3, [0, 2])], [(5, 2), (6, 2)])])
    found, lives = moved.follow(addresses((0, 0), (0, 1), (0, 2), (0, 3), (1, 0), (1, 1), (1, 2), (2, 7)))
    assert lives.tolist() == [True, False, True, True, False, True, False, True]
    assert found[lives].tolist() == addresses((5, 0), (5, 1), (6, 0), (6, 1), (2, 7)).tolist()


def test_a_fragment_without_live_rows_maps_to_nothing() -> None:
    moved = AddressMap([group([(3, 2, [0, 1])], [])])
    assert moved.follow(addresses((3, 0), (3, 1), (4, 0)))[1].tolist() == [False, False, True]


def test_offsets_beyond_a_fragment_are_dead() -> None:
    moved = AddressMap([group([(0, 2, [])], [(9, 2)])])
    assert moved.follow(addresses((0, 2), (0, 5)))[1].tolist() == [False, False]


def test_groups_are_remapped_independently() -> None:
    moved = AddressMap([group([(0, 2, []), (3, 1, [])], [(8, 3)]), group([(1, 2, [0])], [(9, 1)])])
    found, lives = moved.follow(addresses((0, 1), (1, 1), (3, 0)))
    assert lives.all()
    assert found.tolist() == addresses((8, 1), (9, 0), (8, 2)).tolist()


def test_coverage_moves_only_for_fully_covered_groups() -> None:
    moved = AddressMap([group([(0, 2, []), (1, 2, [])], [(5, 4)]), group([(2, 2, []), (3, 2, [])], [(6, 4)])])
    assert moved.coverage(np.array([0, 1, 2, 9], np.uint32)).tolist() == [5, 9]


@pytest.mark.parametrize("new", [[(5, 3)], [(5, 1)], []])
def test_the_row_count_of_a_group_must_not_change(new: list[tuple[int, int]]) -> None:
    with pytest.raises(CorruptError):
        AddressMap([group([(0, 2, [])], new)])


def test_rows_must_belong_to_fragments_of_their_group() -> None:
    with pytest.raises(CorruptError):
        AddressMap([MovedGroup((0,), ((5, 2),), addresses((1, 0)), np.array([2]))])


@given(st.data())
def test_remapping_equals_a_dictionary_lookup(data: st.DataObject) -> None:
    old = [
        (i, rows, sorted(data.draw(st.sets(st.integers(0, rows - 1)))))
        for i, rows in enumerate(data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    ]
    live = [address(i, o) for i, rows, deleted in old for o in range(rows) if o not in deleted]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(live)), max_size=3)))
    sizes = np.diff([0, *cuts, len(live)]).tolist()
    new = [(10 + i, rows) for i, rows in enumerate(sizes)]
    places = [address(i, o) for i, rows in new for o in range(rows)]
    expected = dict(zip(live, places, strict=True))
    moved = AddressMap([group(old, new)])
    asked = addresses(*((i, o) for i, rows, _ in old for o in range(rows + 2)))
    few = data.draw(st.booleans())
    pieces = np.array_split(asked, len(asked)) if few else [asked]
    found, lives = (np.concatenate(each) for each in zip(*map(moved.follow, pieces), strict=True))
    answers = [int(f) if lives_ else None for f, lives_ in zip(found, lives, strict=True)]
    assert answers == [expected.get(int(a)) for a in asked]
    assert moved.follow(addresses((77, 3), (2**31, 2**31)))[1].all()


@given(
    st.sets(st.integers(0, 2**32 - 1) | st.integers(0, 70_000)),
    st.lists(st.tuples(st.integers(0, 2**18), st.integers(1, 2**17))),
)
def test_runs_of_a_bitmap_are_its_values(values: set[int], ranges: list[tuple[int, int]]) -> None:
    every = np.unique(np.concatenate([np.array(sorted(values), np.int64), *(np.arange(a, a + n) for a, n in ranges)]))
    data = roaring_bytes(every.astype(np.uint32))
    first, length, end = roaring_runs(b"xx" + data, "test", 2)
    assert end == len(data) + 2
    assert (first[1:] > (first + length)[:-1]).all()
    laid_out = np.concatenate(
        [np.empty(0, np.int64), *(np.arange(f, f + n) for f, n in zip(first, length, strict=True))]
    )
    assert np.array_equal(laid_out, roaring_values(data, "test", 1 << 32))


def test_treemap_runs_include_their_fragment() -> None:
    first, length = treemap_runs(treemap(RowSet.of_ranges([(0, 0, 1000), (7, 5, 6), (7, 9, 70_000)])), "test")
    assert first.tolist() == addresses((0, 0), (7, 5), (7, 9)).tolist()
    assert length.tolist() == [1000, 1, 69_991]


@pytest.mark.parametrize("cut", [0, 4, 8, 11, 20])
def test_a_truncated_treemap_is_rejected(cut: int) -> None:
    data = treemap(RowSet.of_ranges([(0, 0, 10), (1, 0, 10)]))
    with pytest.raises(CorruptError):
        treemap_runs(data[:cut], "test")


@pytest.mark.parametrize("shift", [0, 2**22])
def test_slots_number_rows_fragment_by_fragment(shift: int) -> None:
    slots = Slots(np.array([2, 5]) + shift, np.array([3, 2]))
    asked = addresses(*((i + shift, o) for i, o in ((2, 0), (2, 2), (2, 3), (5, 0), (5, 1), (5, 2), (3, 0), (9, 1))))
    place, within, known = slots.find(asked)
    assert slots.total == 5
    assert place.tolist() == [0, 2, 0, 3, 4, 0, 0, 0]
    assert within.tolist() == [True, True, False, True, True, False, False, False]
    assert known.tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize("fragment", [0, 5, 2**22, 2**32 - 1])
def test_slots_of_a_fragment_do_not_depend_on_other_fragments(fragment: int) -> None:
    others = {0, 4, 5, 6, 2**22, 2**32 - 1}
    offsets = (0, 1, 2, 3, 2**32 - 1)
    asked = addresses(*((each, offset) for each in others for offset in offsets))
    alone = Slots(np.array([fragment]), np.array([3]))
    beside = Slots(np.array(sorted({fragment, 7})), np.array([3, 3] if fragment < 7 else [0, 3]))

    place, within, known = alone.find(asked)

    assert alone.total == 3
    assert place.tolist() == [offset if each == fragment and offset < 3 else 0 for each in others for offset in offsets]
    assert within.tolist() == [each == fragment and offset < 3 for each in others for offset in offsets]
    assert known.tolist() == [each == fragment for each in others for _ in offsets]
    for found, expected in zip((place, within, known), beside.find(asked), strict=True):
        np.testing.assert_array_equal(found, expected)
