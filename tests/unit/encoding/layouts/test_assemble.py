from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import ITEM, LIST, Raveled, ravel, structure_of

from lance_duck.encoding.layouts.assemble import LevelEntries, Structure, item_slots, list_slots
from lance_duck.encoding.layouts.layers import (
    ALL_VALID_ITEM,
    ALL_VALID_LIST,
    EMPTYABLE_LIST,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
    parse_layers,
)
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.kernels.pages.assemble import (
    choose_entries,
    choose_entries_reference,
    fold_items,
    fold_items_reference,
    fold_list,
    fold_list_reference,
    map_levels,
    map_levels_reference,
    row_bounds,
    row_bounds_reference,
)


def values_of(structure: Structure, layer: int) -> st.SearchStrategy[Any]:
    if layer == 0:
        return st.none() | st.integers(0, 9)
    inner = values_of(structure, layer - 1)
    return st.none() | (st.lists(inner, max_size=3) if structure.lists[layer] else st.tuples(inner))


@st.composite
def nested(draw: st.DrawFn) -> tuple[Structure, list[Any]]:
    structure = structure_of(False, *draw(st.lists(st.booleans(), max_size=4)))
    return structure, draw(st.lists(values_of(structure, len(structure.lists) - 1), max_size=8))


def unravel(structure: Structure, levels: Raveled) -> list[Any]:
    rep = np.array(levels.rep, dtype=np.uint8) if structure.max_rep else None
    entries = LevelEntries(rep, np.array(levels.def_, dtype=np.uint8), len(levels.def_))
    slots: list[Any] = []
    for layer, is_list in enumerate(structure.lists):
        if is_list:
            offsets, flags = list_slots(structure, layer, entries)
            assert offsets[-1] == len(slots)
            found: list[Any] = [slots[a:b] for a, b in itertools.pairwise(offsets)]
        else:
            count, flags = item_slots(structure, layer, entries)
            found = levels.values if layer == 0 else [(slot,) for slot in slots]
            assert count == len(found)
        slots = found if flags is None else [v if flag else None for v, flag in zip(found, flags, strict=True)]
    return slots


@given(nested())
def test_unravel_reverses_ravel(case: tuple[Structure, list[Any]]) -> None:
    structure, rows = case
    assert unravel(structure, ravel(rows, structure)) == rows


def test_lists_with_nulls_and_empties() -> None:
    structure = structure_of(False, True)
    levels = ravel([[1, None], None, [], [2]], structure)
    assert (levels.rep, levels.def_) == ([1, 0, 1, 1, 1], [0, 1, 2, 3, 0])
    entries = LevelEntries(np.array(levels.rep, dtype=np.uint8), np.array(levels.def_, dtype=np.uint8), 5)
    offsets, flags = list_slots(structure, 1, entries)
    assert offsets.tolist() == [0, 2, 2, 2, 3]
    assert offsets.dtype == np.int32
    assert flags is not None
    assert flags.tolist() == [1, 0, 1, 1]


def test_missing_flags_mean_no_nulls() -> None:
    structure = structure_of(False, True)
    entries = LevelEntries(np.array([1, 0, 1], dtype=np.uint8), None, 3)
    offsets, flags = list_slots(structure, 1, entries)
    assert offsets.tolist() == [0, 2, 3]
    assert flags is None
    assert item_slots(structure, 0, entries) == (3, None)


def test_a_fixed_size_list_has_one_slot_per_group_of_entries() -> None:
    structure = Structure((False, False, False), (1, 1, 3))
    entries = LevelEntries(None, np.array([0, 1, 2, 3, 3, 3], dtype=np.uint8), 6)
    count, flags = item_slots(structure, 2, entries)
    assert count == 2
    assert flags is not None
    assert flags.tolist() == [1, 0]
    assert structure.strides == (1, 1, 3)


def test_layers_number_their_levels_from_the_inside_out() -> None:
    layers = parse_layers([NULLABLE_ITEM, NULL_AND_EMPTY_LIST, ALL_VALID_ITEM, EMPTYABLE_LIST], "page")
    assert (layers.max_rep, layers.max_def, layers.max_visible) == (2, 4, 1)
    table = layers.to_full()
    assert table is not None
    assert table.tolist() == [0, 1, 2, 3, 6]


def test_a_list_without_nulls_maps_to_the_empty_level() -> None:
    for kind, expected in ((ALL_VALID_LIST, [0]), (NULLABLE_LIST, [0, 2]), (EMPTYABLE_LIST, [0, 3])):
        table = parse_layers([ALL_VALID_ITEM, kind], "page").to_full()
        assert (table.tolist() if table is not None else [0]) == expected
    assert parse_layers([ITEM, LIST], "page").to_full() is None


def test_unknown_layers_are_rejected() -> None:
    for bad in ([], [0], [7]):
        with pytest.raises(CorruptError):
            parse_layers(bad, "page")
    with pytest.raises(UnsupportedError):
        parse_layers([ITEM] * 200, "page")


level_arrays = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), max_size=50).map(
    lambda pairs: np.array(pairs, dtype=np.uint8).reshape(-1, 2).T.copy()
)


@given(level_arrays, st.booleans(), st.integers(0, 3), st.integers(0, 7), st.integers(0, 7))
def test_fold_items_equals_its_reference(levels: Any, has_rep: bool, begins: int, base: int, visible: int) -> None:
    rep = levels[0] if has_rep else np.empty(0, dtype=np.uint8)
    outs = [np.zeros(len(levels[1]) + 1, dtype=np.uint8) for _ in range(2)]
    counts = [f(rep, levels[1], begins, base, visible, out) for f, out in zip(BOTH_ITEMS, outs, strict=True)]
    assert counts[0] == counts[1]
    assert np.array_equal(outs[0][: counts[0]], outs[1][: counts[1]])


BOTH_ITEMS = (fold_items, fold_items_reference)


@given(level_arrays, st.booleans(), st.lists(st.integers(0, 4), min_size=5, max_size=5))
def test_fold_list_equals_its_reference(levels: Any, has_def: bool, form: list[int]) -> None:
    def_ = levels[1] if has_def else np.empty(0, dtype=np.uint8)
    results = []
    for fold in (fold_list, fold_list_reference):
        offsets, valid = np.zeros(len(levels[0]) + 1, dtype=np.int32), np.zeros(len(def_) + 1, dtype=np.uint8)
        slots, nulls = fold(levels[0], def_, np.array(form, dtype=np.int64), offsets, valid)
        results.append((slots, nulls, offsets[: slots + 1].tolist(), valid[: slots if has_def else 0].tolist()))
    assert results[0] == results[1]


@given(st.lists(st.integers(0, 5)), st.lists(st.integers(0, 255), min_size=6, max_size=6))
def test_map_levels_equals_its_reference(levels: list[int], table: list[int]) -> None:
    outs = [np.empty(len(levels), dtype=np.uint8) for _ in range(2)]
    for apply, out in zip((map_levels, map_levels_reference), outs, strict=True):
        apply(np.array(levels, dtype=np.uint8), np.array(table, dtype=np.uint8), out)
    assert np.array_equal(*outs)


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), min_size=1, max_size=6), st.data())
def test_row_bounds_equal_their_reference(chunks: list[list[int]], data: st.DataObject) -> None:
    rep = np.array([level for chunk in chunks for level in chunk], dtype=np.uint8)
    before = np.array([0, *np.cumsum([len(chunk) for chunk in chunks])], dtype=np.int64)
    rows = np.array([0, *np.cumsum([chunk.count(2) for chunk in chunks])], dtype=np.int64)
    if data.draw(st.booleans()):
        rows[data.draw(st.integers(1, len(chunks))) :] += 1
    wanted = np.array(sorted(data.draw(st.lists(st.integers(0, int(rows[-1]))))), dtype=np.int64)
    kernel, plain = wanted.copy(), wanted.copy()
    status = row_bounds(rep, 2, before, rows, kernel)
    assert status == row_bounds_reference(rep, 2, before, rows, plain)
    if status:
        assert np.array_equal(kernel, plain)


@given(level_arrays, st.booleans(), st.integers(0, 7), st.data())
def test_choose_entries_equals_its_reference(levels: Any, has_def: bool, visible: int, data: st.DataObject) -> None:
    rep, def_ = levels[0], levels[1] if has_def else np.empty(0, dtype=np.uint8)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rep)), min_size=2, max_size=8)))
    cuts = cuts[: len(cuts) // 2 * 2]
    starts, stops = (np.array(cuts[i::2], dtype=np.int64) for i in range(2))
    size = int((stops - starts).sum())
    results = []
    for choose in (choose_entries, choose_entries_reference):
        rep_out, def_out = np.empty(size, dtype=np.uint8), np.empty(size if has_def else 0, dtype=np.uint8)
        items = np.empty(size + 1, dtype=np.int64)
        slots = choose(rep, def_, visible, starts, stops, rep_out, def_out, items)
        results.append((slots, rep_out.tolist(), def_out.tolist(), items[:slots].tolist()))
    assert results[0] == results[1]
