from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import ITEM, Memory, flat, layers_of, page_of, ravel, structure_of, variable

from lance_duck.encoding.block import FixedWidth, VariableWidth
from lance_duck.encoding.layouts.assemble import Structure
from lance_duck.encoding.layouts.fullzip import FullZipReader
from lance_duck.encoding.layouts.page import Leaf, Page
from lance_duck.encoding.layouts.structural import open_page
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.kernels.pages.unzip_entries import count_entries, split_entries, split_entries_reference
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings21_pb2 as pb


def zipped_page(rows: list[Any], structure: Structure, fixed: bool, has_def: bool = True) -> Page:
    """Numbers as 4 bytes each, or as texts of their digits."""
    levels = ravel(rows, structure)
    bits_rep, bits_def = structure.max_rep.bit_length(), 4 * has_def
    values = iter(levels.values)
    plain = [pb.REPDEF_ALL_VALID_LIST if is_list else pb.REPDEF_ALL_VALID_ITEM for is_list in structure.lists]
    entries, starts = [], []
    for rep, def_ in zip(levels.rep, levels.def_, strict=True):
        if rep == structure.max_rep:
            starts.append(sum(map(len, entries)))
        entry = (rep << bits_def | def_).to_bytes(1, "little") if bits_rep + bits_def else b""
        if def_ <= structure.visible[0]:
            value = next(values)
            if fixed:
                entry += (value or 0).to_bytes(4, "little")
            elif def_ == 0:
                text = str(value).encode()
                entry += len(text).to_bytes(4, "little") + text
        entries.append(entry)
    starts.append(sum(map(len, entries)))
    layout = pb.FullZipLayout(
        bits_rep=bits_rep,
        bits_def=bits_def,
        num_items=len(levels.rep),
        num_visible_items=len(levels.values),
        value_compression=flat(32) if fixed else variable(),
        layers=layers_of(structure) if has_def else plain,
    )
    buffers = [b"".join(entries)]
    if fixed:
        layout.bits_per_value = 32
    else:
        layout.bits_per_offset = 32
    if structure.max_rep or not fixed:
        buffers.append(np.array(starts, dtype="<u2").tobytes())
    return page_of(pb.PageLayout(full_zip_layout=layout), buffers, len(rows))


def values_of(leaf: Leaf) -> list[int | None]:
    if isinstance(leaf.block, FixedWidth):
        found = np.ascontiguousarray(leaf.block.data).view("<i4").tolist()
    else:
        assert isinstance(leaf.block, VariableWidth)
        ends = leaf.block.offsets.tolist()
        found = [int(leaf.block.data[a:b].tobytes() or b"0") for a, b in itertools.pairwise(ends)]
    if leaf.def_ is None:
        return found
    slots = leaf.def_[leaf.def_ <= leaf.layers.max_visible].tolist()
    return [None if level else value for value, level in zip(found, slots, strict=True)]


number = st.none() | st.integers(0, 99)
SHAPES: list[tuple[tuple[bool, ...], Any]] = [
    ((False,), number),
    ((False, False), st.none() | st.tuples(number)),
    ((False, True), st.none() | st.lists(number, max_size=4)),
    ((False, True, False, True), st.none() | st.lists(st.none() | st.tuples(st.lists(number, max_size=3)), max_size=3)),
]


@given(st.sampled_from(SHAPES), st.booleans(), st.data())
def test_rows_of_a_page(shape: tuple[tuple[bool, ...], Any], fixed: bool, data: st.DataObject) -> None:
    structure = structure_of(*shape[0])
    rows = data.draw(st.lists(shape[1], min_size=1, max_size=8))
    reader = open_page(zipped_page(rows, structure, fixed))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    picks = ((slice(start, stop), rows[start:stop]), (np.array(chosen, dtype=np.int64), [rows[i] for i in chosen]))
    for wanted, expected in picks:
        leaf = run(reader.read(wanted))
        levels = ravel(expected, structure)
        assert (leaf.rep.tolist() if leaf.rep is not None else levels.rep) == levels.rep
        assert leaf.def_ is not None
        assert leaf.def_.tolist() == levels.def_
        assert (values_of(leaf), leaf.num_slots, leaf.num_rows) == (levels.values, len(levels.values), len(expected))


def test_values_without_levels_are_views() -> None:
    page = zipped_page([5, 6, 7], structure_of(False), fixed=True, has_def=False)
    leaf = run(open_page(page).read(slice(1, 3)))
    assert leaf.def_ is None
    assert values_of(leaf) == [6, 7]
    assert isinstance(page.source, Memory)
    assert page.source.reads == [(4, 8)]


def test_a_take_reads_only_its_rows() -> None:
    page = zipped_page([5, 66, 777, 8888], structure_of(False), fixed=False)
    run(open_page(page).read(np.array([0, 2, 3])))
    assert isinstance(page.source, Memory)
    assert page.source.reads[1:] == [(0, 6), (6 + 7, 8 + 9)]


def test_read_values_requires_values_of_different_lengths() -> None:
    structure = structure_of(False)
    reader = open_page(zipped_page([5, 77, 6], structure, fixed=False, has_def=False))
    assert isinstance(reader, FullZipReader)
    found = reader.read_values(np.array([0, 1]))
    assert found is not None
    assert [value.tobytes() for value in found] == [b"5", b"77"]
    for fixed, has_def in ((False, True), (True, False)):
        reader = open_page(zipped_page([5, 77], structure, fixed=fixed, has_def=has_def))
        assert isinstance(reader, FullZipReader)
        assert reader.read_values(np.array([0])) is None


def test_read_lists_requires_items_of_different_lengths() -> None:
    rows = [[5, 77], [6], [888, 9, 1]]
    reader = open_page(zipped_page(rows, structure_of(False, True), fixed=False, has_def=False))
    assert isinstance(reader, FullZipReader)
    for wanted in ([2], [0, 2]):
        found = reader.read_lists(np.array(wanted))
        assert found is not None
        data, bounds, first = found
        values = [data[a:b].tobytes() for a, b in itertools.pairwise(bounds)]
        expected = [[str(value).encode() for value in rows[i]] for i in wanted]
        assert [values[a:b] for a, b in itertools.pairwise(first)] == expected
    others = (
        zipped_page(rows, structure_of(False, True), fixed=False),
        zipped_page(rows, structure_of(False, True), fixed=True, has_def=False),
        zipped_page([5, 6, 7], structure_of(False), fixed=False, has_def=False),
    )
    for page in others:
        reader = open_page(page)
        assert isinstance(reader, FullZipReader)
        assert reader.read_lists(np.array([0])) is None


def test_a_value_with_the_wrong_length_is_rejected() -> None:
    page = zipped_page([5, 77], structure_of(False), fixed=False, has_def=False)
    assert isinstance(page.source, Memory)
    page.source.data[0] ^= 1
    reader = open_page(page)
    assert isinstance(reader, FullZipReader)
    with pytest.raises(CorruptError, match="the stored length of a value is wrong"):
        reader.read_values(np.array([0]))


def test_a_page_with_missing_rows_is_rejected() -> None:
    page = zipped_page([5, 6, 7], structure_of(False), fixed=True)
    short = page_of(pb.PageLayout.FromString(page.encoding.value), [bytes(10)], 3)
    with pytest.raises(CorruptError):
        open_page(short)


def test_values_of_partial_bytes_are_rejected() -> None:
    layout = pb.FullZipLayout(bits_per_value=12, num_items=1, value_compression=flat(16), layers=[ITEM])
    with pytest.raises(UnsupportedError):
        open_page(page_of(pb.PageLayout(full_zip_layout=layout), [bytes(2)], 1))


@given(st.data(), st.booleans())
def test_flipped_bytes_decode_or_raise_an_error(data: st.DataObject, fixed: bool) -> None:
    page = zipped_page([[1, 2], None, [], [3, None], [44444]], structure_of(False, True), fixed)
    assert isinstance(page.source, Memory)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, page.source.size - 1))
        page.source.data[place] = data.draw(st.integers(0, 255))
    try:
        leaf = run(open_page(page).read(slice(0, 5)))
    except LanceDuckError:
        return
    assert leaf.block is not None
    assert leaf.block.count == leaf.num_slots
    if isinstance(leaf.block, VariableWidth):
        assert leaf.block.offsets[-1] <= len(leaf.block.data)


@given(st.binary(max_size=60), st.sampled_from([1, 2, 4]), st.integers(0, 3), st.booleans())
def test_split_entries_equals_its_reference(data: bytes, control: int, bits_def: int, fixed: bool) -> None:
    form = [control, bits_def, 255, 255, 1, 4, int(fixed)]
    stream = np.frombuffer(data, dtype=np.uint8)
    totals = np.zeros(4, dtype=np.int64)
    if count_entries(stream, np.array(form, dtype=np.int64), totals):
        return
    entries, slots, size, _ = totals.tolist()
    rep, def_ = np.empty(entries, dtype=np.uint8), np.empty(entries, dtype=np.uint8)
    offsets = np.zeros(0 if fixed else slots + 1, dtype=np.int64)
    values = np.empty(size, dtype=np.uint8)
    split_entries(stream, np.array(form, dtype=np.int64), rep, def_, offsets, values)
    expected = split_entries_reference(data, form)
    assert (rep.tolist(), def_.tolist(), values.tobytes()) == (*expected[:2], b"".join(expected[2]))
    if not fixed:
        assert np.diff(offsets).tolist() == [len(value) for value in expected[2]]
