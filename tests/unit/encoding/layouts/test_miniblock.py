from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import (
    ITEM,
    Memory,
    chunk,
    chunk_words,
    flat,
    nested_page,
    page_of,
    ravel,
    structure_of,
    variable,
)

from lance_duck.encoding.block import Dictionary, FixedWidth
from lance_duck.encoding.codecs.flat import Flat
from lance_duck.encoding.layouts.chunk_decoder import plain_width
from lance_duck.encoding.layouts.chunks import parse_chunk_table
from lance_duck.encoding.layouts.miniblock import parse_rep_index
from lance_duck.encoding.layouts.page import Leaf, Page, Rows
from lance_duck.encoding.layouts.structural import open_page
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.kernels.pages.chunk_headers import (
    group_by_chunk,
    group_by_chunk_reference,
    read_headers,
    read_headers_reference,
)
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings21_pb2 as pb


def flat_page(values: list[int], nulls: list[int] | None = None, log: int = 2, width: int = 4) -> Page:
    """int32 values in chunks of 2 ** log, with definition levels when there are nulls."""
    cuts = [*range(0, len(values), 1 << log), len(values)]
    chunks = []
    for a, b in itertools.pairwise(cuts):
        data = np.array(values[a:b], dtype="<i4").tobytes()
        chunks.append(chunk([data], None, None if nulls is None else nulls[a:b]))
    layout = pb.MiniBlockLayout(
        value_compression=flat(32), layers=[ITEM], num_buffers=1, num_items=len(values), has_large_chunk=width == 4
    )
    if nulls is not None:
        layout.def_compression.CopyFrom(flat(16))
    words = chunk_words(chunks, [log] * (len(chunks) - 1) + [0], width)
    return page_of(pb.PageLayout(mini_block_layout=layout), [words, b"".join(chunks)], len(values))


def numbers(leaf: Leaf) -> list[int | None]:
    block = leaf.block
    if isinstance(block, Dictionary):
        assert isinstance(block.items, FixedWidth)
        found = block.items.data.view("<i4")[block.indices].tolist()
    else:
        assert isinstance(block, FixedWidth)
        found = np.ascontiguousarray(block.data).view("<i4").tolist()
    if leaf.def_ is None:
        return found
    slots = leaf.def_[leaf.def_ <= leaf.layers.max_visible]
    return [None if level else value for value, level in zip(found, slots.tolist(), strict=True)]


def read(page: Page, rows: Rows) -> Leaf:
    return run(open_page(page).read(rows))


def offsets(*rows: int) -> Rows:
    return np.array(rows, dtype=np.int64)


def source_of(page: Page) -> Memory:
    assert isinstance(page.source, Memory)
    return page.source


def test_rows_of_a_flat_page() -> None:
    page = flat_page(list(range(10)), [0, 1, 0, 0, 0, 0, 0, 0, 0, 1])
    assert numbers(read(page, slice(0, 10))) == [0, None, 2, 3, 4, 5, 6, 7, 8, None]
    assert numbers(read(page, slice(3, 6))) == [3, 4, 5]
    assert numbers(read(page, slice(4, 4))) == []
    assert numbers(read(page, offsets(1, 2, 8, 9))) == [None, 2, 8, None]
    assert numbers(read(page, offsets())) == []


def test_only_the_chunks_that_hold_the_rows_are_fetched() -> None:
    page = flat_page(list(range(40)))
    reader = open_page(page)
    run(reader.read(slice(0, 0)))
    source_of(page).reads.clear()
    run(reader.read(offsets(1, 5, 6, 21)))
    base = page.buffers[1][0]
    assert source_of(page).reads == [(base, 48), (base + 5 * 24, 24)]


def test_page_metadata_is_fetched_once() -> None:
    page = flat_page(list(range(40)))
    reader = open_page(page)
    run(reader.read(slice(0, 4)))
    run(reader.read(slice(0, 4)))
    assert source_of(page).reads.count(page.buffers[0]) == 1


def test_rows_must_ascend_within_the_page() -> None:
    page = flat_page([1, 2, 3])
    for rows in (offsets(2, 1), offsets(0, 3), offsets(-1), slice(0, 4), slice(2, 1), slice(None)):
        with pytest.raises(LanceDuckError):
            read(page, rows)


values = st.none() | st.integers(0, 9)
rows_of: dict[str, tuple[tuple[bool, ...], Any]] = {
    "list": ((False, True), st.none() | st.lists(values, max_size=6)),
    "list of lists": ((False, True, True), st.none() | st.lists(st.none() | st.lists(values, max_size=5), max_size=3)),
    "struct of lists": ((False, True, False), st.none() | st.tuples(st.none() | st.lists(values, max_size=6))),
    "list of structs": ((False, False, True), st.none() | st.lists(st.none() | st.tuples(values), max_size=6)),
}


@pytest.mark.parametrize("kind", rows_of)
@given(data=st.data())
def test_rows_of_nested_pages(kind: str, data: st.DataObject) -> None:
    lists, row = rows_of[kind]
    structure = structure_of(*lists)
    rows = data.draw(st.lists(row, min_size=1, max_size=12).filter(lambda r: any(ravel(r, structure).values)))
    reader = open_page(nested_page(rows, structure, data.draw(st.integers(0, 3))))
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    for wanted, expected in ((slice(start, stop), rows[start:stop]), (offsets(*chosen), [rows[i] for i in chosen])):
        leaf = run(reader.read(wanted))
        levels = ravel(expected, structure)
        assert leaf.rep is not None
        assert leaf.rep.tolist() == levels.rep
        assert (leaf.def_.tolist() if leaf.def_ is not None else []) == levels.def_
        assert (numbers(leaf), leaf.num_slots, leaf.num_rows) == (levels.values, len(levels.values), len(expected))


def dictionary_page(indices: list[int], nulls: list[int], items: list[int]) -> Page:
    data = np.array(indices, dtype=np.uint8).tobytes()
    layout = pb.MiniBlockLayout(
        def_compression=flat(16),
        value_compression=flat(8),
        dictionary=flat(32),
        num_dictionary_items=len(items),
        layers=[ITEM],
        num_buffers=1,
        num_items=len(indices),
        has_large_chunk=True,
    )
    chunks = [chunk([data], None, nulls)]
    dictionary = np.array(items, dtype="<i4").tobytes()
    words = chunk_words(chunks, [0])
    return page_of(pb.PageLayout(mini_block_layout=layout), [words, chunks[0], dictionary], len(indices))


def test_indices_of_nulls_may_be_arbitrary() -> None:
    page = dictionary_page([1, 200, 0], [0, 1, 0], [70, 80])
    assert open_page(page).is_dictionary
    assert numbers(read(page, slice(0, 3))) == [80, None, 70]


def test_indices_of_values_are_checked() -> None:
    with pytest.raises(CorruptError, match="a dictionary index is too high"):
        read(dictionary_page([1, 2], [0, 0], [70, 80]), slice(0, 2))


def mutated(change: Callable[[pb.MiniBlockLayout], object]) -> Page:
    good = flat_page(list(range(10)), [0] * 10)
    layout = pb.PageLayout()
    layout.ParseFromString(good.encoding.value)
    change(layout.mini_block_layout)
    buffers = [bytes(source_of(good).data[a : a + n]) for a, n in good.buffers]
    return page_of(layout, buffers, 10)


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.ClearField("layers"),
        lambda m: m.ClearField("value_compression"),
        lambda m: m.ClearField("def_compression"),
        lambda m: setattr(m, "num_buffers", 2),
        lambda m: setattr(m, "num_items", 9),
        lambda m: setattr(m, "num_items", 2**63),
        lambda m: setattr(m, "repetition_index_depth", 1),
        lambda m: setattr(m, "has_large_chunk", False),
        lambda m: m.rep_compression.CopyFrom(flat(16)),
        lambda m: m.value_compression.CopyFrom(flat(64)),
        lambda m: m.value_compression.CopyFrom(variable()),
    ],
)
def test_inconsistent_descriptions_are_rejected(change: Callable[[pb.MiniBlockLayout], object]) -> None:
    with pytest.raises(LanceDuckError):
        read(mutated(change), slice(0, 10))


@given(st.data())
def test_flipped_bytes_decode_or_raise_an_error(data: st.DataObject) -> None:
    rows = [[1, 2, 3], None, [], [4], [5, None, 6, 7], [8]]
    page = nested_page(rows, structure_of(False, True), 1)
    memory = source_of(page).data
    for _ in range(data.draw(st.integers(1, 3))):
        memory[data.draw(st.integers(0, len(memory) - 1))] = data.draw(st.integers(0, 255))
    for wanted in (slice(0, 6), slice(2, 5), offsets(0, 3, 5)):
        try:
            leaf = read(page, wanted)
        except LanceDuckError:
            continue
        assert leaf.block is not None
        assert leaf.block.count == leaf.num_slots


def test_the_chunk_table_must_fill_the_buffer() -> None:
    words = np.array([0 << 4 | 1, 2 << 4], dtype="<u2").view(np.uint8)
    table = parse_chunk_table(words, False, 5, 32, "page")
    assert (table.offsets.tolist(), table.items.tolist()) == ([0, 8, 32], [0, 2, 5])
    for size, items in ((40, 5), (32, 1)):
        with pytest.raises(CorruptError):
            parse_chunk_table(words, False, items, size, "page")
    with pytest.raises(CorruptError):
        parse_chunk_table(words[:3], False, 5, 32, "page")


def test_the_repetition_index_maps_rows_to_chunks() -> None:
    table = np.array([2, 1, 0, 3, 0, 2, 3, 0], dtype="<u8").view(np.uint8)
    index = parse_rep_index(table, 1, 4, 5, "page")
    assert index.first_row.tolist() == [0, 3, 3, 3, 5]
    assert index.continues.tolist() == [False, True, True, True, False]
    assert index.chunk_of(np.arange(5)).tolist() == [0, 0, 0, 3, 3]
    assert index.chunk_end(np.arange(1, 6)).tolist() == [1, 1, 4, 4, 4]
    for rows, chunks in ((6, 4), (5, 3)):
        with pytest.raises(CorruptError):
            parse_rep_index(table, 1, chunks, rows, "page")


@given(st.binary(max_size=200), st.integers(0, 2), st.integers(0, 3), st.sampled_from([2, 4]), st.data())
def test_headers_equal_their_reference(data: bytes, levels: int, buffers: int, width: int, draw: st.DataObject) -> None:
    small = np.frombuffer(bytes(b % 16 if i % 2 == 0 else 0 for i, b in enumerate(data)), dtype=np.uint8)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(small)), max_size=4)))
    begins, lengths = np.array(cuts[:-1], dtype=np.int64), np.diff(np.array(cuts, dtype=np.int64))
    results = []
    for read_ in (read_headers, read_headers_reference):
        starts, sizes = np.zeros((2, levels + buffers, len(begins)), dtype=np.int64)
        counts = np.zeros(len(begins), dtype=np.int64)
        status = read_(small, begins, lengths, levels, buffers, width, starts, sizes, counts)
        results.append((status, starts.tolist(), sizes.tolist(), counts.tolist()) if status else status)
    assert results[0] == results[1]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.data())
def test_group_by_chunk_equals_its_reference(sizes: list[int], draw: st.DataObject) -> None:
    items = np.cumsum([0, *sizes], dtype=np.int64)
    total = int(items[-1])
    rows = np.array(sorted(draw.draw(st.sets(st.integers(0, total - 1)))) if total else [], np.int64)
    results = []
    for group in (group_by_chunk, group_by_chunk_reference):
        chunks, (chunk, place) = np.zeros(len(sizes), np.int64), np.zeros((2, len(rows)), np.int64)
        found = group(rows, items, chunks, chunk, place)
        results.append((chunks[:found].tolist(), chunk.tolist(), place.tolist()))
    assert results[0] == results[1]


def test_plain_width_is_defined_for_whole_bytes() -> None:
    assert plain_width(Flat(32)) == 4
    assert plain_width(Flat(1)) is None


def test_an_unknown_layout_is_rejected() -> None:
    with pytest.raises(UnsupportedError):
        open_page(page_of(pb.PageLayout(), [], 0))
