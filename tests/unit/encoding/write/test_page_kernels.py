from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.pages.join_chunks import cut_levels, cut_levels_reference, place_parts, place_parts_reference
from lance_duck.kernels.pages.shred import (
    ENTRIES,
    FIRST,
    HAS_HOLES,
    IS_DENSE,
    ITEMS,
    levels_present,
    levels_present_reference,
    mark_nulls,
    mark_nulls_reference,
    measure_lists,
    unfold_lists,
    unfold_lists_reference,
)
from lance_duck.kernels.pages.zip_entries import zip_fixed, zip_reference, zip_variable

flags = st.integers(0, 1)
levels = st.integers(0, 5)


def u8(values: Any) -> np.ndarray:
    return readonly(np.array(values, dtype=np.uint8))


@given(def_=st.lists(levels, min_size=1), visible=st.integers(0, 4), size=st.integers(1, 4))
def test_chunks_of_levels_end_with_their_last_value(def_: list[int], visible: int, size: int) -> None:
    slots = sum(level <= visible for level in def_)
    values = np.array([*range(size, slots, size), slots], dtype=np.int64)
    found, expected = np.empty_like(values), np.empty_like(values)
    cut_levels(u8(def_), visible, values, found)
    cut_levels_reference(u8(def_), visible, values, expected)
    assert found.tolist() == expected.tolist()


@given(parts=st.lists(st.tuples(st.binary(max_size=5), st.integers(0, 3)), min_size=1))
def test_parts_are_copied_to_their_offsets(parts: list[tuple[bytes, int]]) -> None:
    data = u8(list(b"".join(part for part, _ in parts)))
    sizes = np.array([len(part) for part, _ in parts])
    places = np.cumsum(sizes + [gap for _, gap in parts]) - sizes
    found, expected = np.zeros(places[-1] + sizes[-1], np.uint8), np.zeros(places[-1] + sizes[-1], np.uint8)
    assert place_parts(data, readonly(np.cumsum(sizes)), places, found)
    assert place_parts_reference(data, np.cumsum(sizes), places, expected)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("ends", "places", "size"),
    [([5], [0], 9), ([3, 2], [0, 4], 9), ([4], [6], 9), ([4], [-1], 9), ([4], [0], 3)],
)
def test_parts_that_do_not_fit_are_rejected(ends: list[int], places: list[int], size: int) -> None:
    out = np.zeros(size, np.uint8)
    assert not place_parts(u8([1, 2, 3, 4]), readonly(np.array(ends)), np.array(places), out)


@given(st.lists(st.integers(0, 255)))
def test_levels_present_equals_its_reference(values: list[int]) -> None:
    found, expected = np.zeros(256, np.uint8), np.zeros(256, np.uint8)
    levels_present(u8(values), found)
    levels_present_reference(u8(values), expected)
    assert found.tolist() == expected.tolist()


@given(holes=st.lists(levels), hidden=st.integers(0, 4), data=st.data())
def test_null_marking_equals_its_reference(holes: list[int], hidden: int, data: st.DataObject) -> None:
    slots = sum(hole == 0 or hole > hidden for hole in holes)
    valid = data.draw(st.lists(flags, min_size=slots, max_size=slots))
    found, expected = np.empty(len(holes), np.uint8), np.empty(len(holes), np.uint8)
    count = mark_nulls(u8(holes), u8(valid), hidden, 6, found)
    assert count == mark_nulls_reference(u8(holes), u8(valid), hidden, 6, expected) == slots
    assert found.tolist() == expected.tolist()


@given(data=st.data(), hidden=st.integers(0, 3), rooted=st.booleans(), plain=st.booleans())
def test_list_unfolding_equals_its_reference(data: st.DataObject, hidden: int, rooted: bool, plain: bool) -> None:
    holes = data.draw(st.lists(st.just(0) if plain else st.integers(0, 4)))
    begins = [0] * len(holes) if rooted else data.draw(st.lists(flags, min_size=len(holes), max_size=len(holes)))
    slots = sum(hole == 0 or hole > hidden for hole in holes)
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=slots, max_size=slots))
    valid = data.draw(st.lists(flags, min_size=slots, max_size=slots) | st.just([]))
    first = data.draw(st.integers(0, 4))
    offsets = np.cumsum([first, *sizes]).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    lists = [list(range(offsets[i], offsets[i + 1])) if not valid or valid[i] else None for i in range(slots)]
    form = [hidden, 5, 2]
    expected = unfold_lists_reference(begins, holes, lists, form)

    given_holes, given_begins = u8([] if plain else holes), u8([] if rooted else begins)
    totals = np.zeros(5, np.int64)
    assert measure_lists(given_holes, readonly(offsets), u8(valid), hidden, totals)
    assert totals[ENTRIES] == len(expected[0])
    assert totals[ITEMS] == len(expected[2])
    assert totals[HAS_HOLES] == any(expected[1])
    if expected[2]:
        assert totals[FIRST] == expected[2][0]
    assert totals[IS_DENSE] == (expected[2] == list(range(totals[FIRST], totals[FIRST] + totals[ITEMS])))
    begins_out, holes_out = (np.empty(totals[ENTRIES], np.uint8) for _ in range(2))
    places = np.empty(totals[ITEMS], np.int64)
    unfold_lists(given_begins, given_holes, readonly(offsets), u8(valid), np.array(form), begins_out, holes_out, places)
    assert (begins_out.tolist(), holes_out.tolist(), places.tolist()) == expected


@pytest.mark.parametrize(("holes", "offsets"), [([], [3, 1]), ([0, 0], [0, 1]), ([0], [])])
def test_descending_or_missing_offsets_are_rejected(holes: list[int], offsets: list[int]) -> None:
    if not offsets:
        offsets = [0]
    assert not measure_lists(u8(holes), readonly(np.array(offsets, np.int32)), u8([]), 0, np.zeros(5, np.int64))


@given(data=st.data(), control=st.sampled_from([0, 1, 2]), visible=st.integers(0, 2), fixed=st.booleans())
def test_values_are_zipped_with_their_levels(data: st.DataObject, control: int, visible: int, fixed: bool) -> None:
    def_ = data.draw(st.lists(st.integers(0, 3)))
    width = data.draw(st.integers(1, 4)) if fixed else data.draw(st.sampled_from([4, 8]))
    one = st.binary(min_size=width, max_size=width) if fixed else st.binary(max_size=4)
    words = [data.draw(st.binary(min_size=control, max_size=control)) for _ in def_]
    slots = sum(level <= visible for level in def_)
    values = [data.draw(one) for _ in range(slots)]
    expected, places = zip_reference(words, def_, visible, width, values, fixed)
    found, found_places = np.zeros(len(expected), np.uint8), np.zeros(len(def_) + 1, np.int64)
    form = np.array([control, visible, width])
    levels_ = u8(def_ if any(def_) else [])
    joined = u8(list(b"".join(values)))
    if fixed:
        size = zip_fixed(u8(list(b"".join(words))), levels_, form, joined, found_places, found)
    else:
        offsets = readonly(np.cumsum([0, *map(len, values)]).astype(np.int32 if width == 4 else np.int64))
        size = zip_variable(u8(list(b"".join(words))), levels_, form, offsets, joined, found_places, found)
    assert (found.tobytes(), found_places.tolist(), size) == (expected, places, len(expected))
