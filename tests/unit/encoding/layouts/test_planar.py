"""Handmade pages of 2.3: dense pages are renamed 2.2 pages, sparse pages list nulls and list positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.encoding.hand_pages import ITEM, LIST, Memory, chunk, chunk_words, flat, u16

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.layouts.page import EncodingDescription, Leaf, Page, PageReader
from lance_duck.encoding.layouts.planar.dense import page_layout, without_levels
from lance_duck.encoding.layouts.structural import open_page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings21_pb2 as pb
from lance_duck.wire.pb import encodings23_pb2 as pb23

NULLS, VALID = pb23.SparseValidity.NULL_POSITIONS, pb23.SparseValidity.VALID_POSITIONS
CHUNKED = pb23.Values(chunked=pb23.ChunkedValues(value_compression=flat(16), num_buffers=1))
NO_NULLS = pb23.SparseValidity(meaning=NULLS)


def u64(numbers: Sequence[int]) -> bytes:
    return np.array(numbers, "<u8").tobytes()


def page(planar: pb23.PlanarLayout, buffers: Sequence[bytes], num_rows: int) -> PageReader:
    source, extents = Memory(), []
    for buffer in buffers:
        extents.append((len(source.data), len(buffer)))
        source.data += buffer
    description = EncodingDescription("/lance.encodings23.PlanarLayout", planar.SerializeToString())
    return open_page(Page(source, "memory: page", tuple(extents), num_rows, 0, description))


def validity(places: Sequence[int], meaning: Any = NULLS) -> pb23.SparseValidity:
    return pb23.SparseValidity(meaning=meaning, positions=flat(64), num_positions=len(places))


def item(of: pb23.SparseValidity) -> pb23.SparseLayer:
    return pb23.SparseLayer(item=of)


def lists(places: Sequence[int], counts: Sequence[int], of: pb23.SparseValidity = NO_NULLS) -> pb23.SparseLayer:
    proto = pb23.SparseList(num_child_slots=sum(counts), num_positions=len(places), validity=of)
    if places:
        proto.positions.CopyFrom(flat(64))
        proto.counts.CopyFrom(flat(64))
    return pb23.SparseLayer(list=proto)


def fixed(dimension: int, of: pb23.SparseValidity = NO_NULLS) -> pb23.SparseLayer:
    return pb23.SparseLayer(fixed_size_list=pb23.SparseFixedSizeList(dimension=dimension, validity=of))


def sparse(
    layers: Sequence[pb23.SparseLayer],
    values: Sequence[int],
    numbers: Sequence[Sequence[int]],
    num_rows: int,
    stated: int = 0,
) -> PageReader:
    """A sparse page of 16-bit values in one chunk."""
    layout = pb23.PlanarLayout(values=CHUNKED)
    layout.values.chunked.num_items = stated
    layout.structure.sparse.layers.extend(layers)
    one = chunk([u16(values)])
    buffers = [chunk_words([one], [0]), one] if values else [b"", b""]
    return page(layout, [*buffers, *map(u64, numbers)], num_rows)


def values_of(leaf: Leaf) -> list[int]:
    assert isinstance(leaf.block, FixedWidth)
    return leaf.block.data.view("<u2").tolist()


def levels_of(leaf: Leaf) -> tuple[list[int] | None, list[int] | None]:
    return None if leaf.rep is None else leaf.rep.tolist(), None if leaf.def_ is None else leaf.def_.tolist()


class TestDense:
    def test_a_chunked_page_is_a_miniblock(self) -> None:
        chunked = pb23.ChunkedValues(value_compression=flat(16), num_buffers=1, num_items=3)
        chunked.levels.def_compression.CopyFrom(flat(16))
        layout = pb23.PlanarLayout(values=pb23.Values(chunked=chunked))
        layout.structure.dense.layers.append(ITEM)
        mini = page_layout(layout, "page").mini_block_layout
        assert mini.has_large_chunk
        assert (list(mini.layers), mini.num_items, mini.num_buffers) == ([ITEM], 3, 1)
        assert (mini.def_compression, mini.value_compression) == (flat(16), flat(16))
        assert not mini.HasField("rep_compression")
        assert not mini.HasField("dictionary")
        one = chunk([u16([7, 0, 9])], None, [0, 1, 0])
        leaf = run(page(layout, [chunk_words([one], [0]), one], 3).read(slice(0, 3)))
        assert (values_of(leaf), leaf.def_ is not None and leaf.def_.tolist()) == ([7, 0, 9], [0, 1, 0])

    @pytest.mark.parametrize("details", ["bits_per_value", "bits_per_offset"])
    def test_a_zipped_page_is_a_full_zip(self, details: str) -> None:
        zipped = pb23.ZippedValues(value_compression=flat(64), num_items=9, num_visible_items=7)
        zipped.levels.bits_rep, zipped.levels.bits_def = 1, 2
        setattr(zipped, details, 64)
        layout = pb23.PlanarLayout(values=pb23.Values(zipped=zipped))
        layout.structure.dense.layers.extend([ITEM, LIST])
        full = page_layout(layout, "page").full_zip_layout
        assert (full.WhichOneof("details"), getattr(full, details)) == (details, 64)
        assert (full.bits_rep, full.bits_def, full.num_items, full.num_visible_items) == (1, 2, 9, 7)
        assert (list(full.layers), full.value_compression) == ([ITEM, LIST], flat(64))

    def test_a_constant_page_has_an_inline_value_or_only_nulls(self) -> None:
        layout = pb23.PlanarLayout(values=pb23.Values(constant=pb23.ConstantValue(value=b"\5\0")))
        layout.structure.dense.layers.append(pb.REPDEF_ALL_VALID_ITEM)
        assert page_layout(layout, "page").constant_layout.inline_value == b"\5\0"
        leaf = run(page(layout, [], 4).read(slice(1, 3)))
        assert leaf.num_slots == 2
        layout = pb23.PlanarLayout(values=pb23.Values(nothing=pb23.NoValues()))
        layout.structure.dense.layers.append(ITEM)
        assert not page_layout(layout, "page").constant_layout.HasField("inline_value")
        assert run(page(layout, [], 4).read(slice(1, 3))).block is None

    def test_a_page_without_values_is_rejected(self) -> None:
        layout = pb23.PlanarLayout()
        layout.structure.dense.layers.append(ITEM)
        with pytest.raises(CorruptError, match="does not have values"):
            page(layout, [], 4)

    def test_unknown_value_kinds_are_rejected(self) -> None:
        layout = pb23.PlanarLayout.FromString(b"\x12\x02\x2a\x00")  # values: field 5, empty
        with pytest.raises(UnsupportedError, match="values"):
            page_layout(layout, "page")

    def test_a_zipped_page_with_too_many_slots_is_rejected(self) -> None:
        layout = pb23.PlanarLayout(values=pb23.Values(zipped=pb23.ZippedValues()))
        assert without_levels(layout, (1 << 32) - 1).values.zipped.num_items == (1 << 32) - 1
        with pytest.raises(CorruptError, match="slots"):
            without_levels(layout, 1 << 32)


class TestSparse:
    @pytest.mark.parametrize(("places", "meaning"), [([1, 3], NULLS), ([0, 2, 4], VALID)])
    def test_validity_lists_null_or_valid_positions(self, places: list[int], meaning: Any) -> None:
        reader = sparse([item(validity(places, meaning))], [10, 0, 12, 0, 14], [places], 5)
        leaf = run(reader.read(slice(0, 5)))
        assert (values_of(leaf), levels_of(leaf)[1]) == ([10, 0, 12, 0, 14], [0, 1, 0, 1, 0])
        leaf = run(reader.read(np.array([1, 2, 4])))
        assert (values_of(leaf)[1:], levels_of(leaf)[1]) == ([12, 14], [1, 0, 0])
        assert reader.is_prepared

    @pytest.mark.parametrize(("places", "meaning"), [([1, 3], NULLS), ([0, 2, 4], VALID)])
    def test_a_sparse_page_may_store_only_non_null_values(self, places: list[int], meaning: Any) -> None:
        reader = sparse([item(validity(places, meaning))], [10, 12, 14], [places], 5, stated=3)
        leaf = run(reader.read(slice(1, 5)))
        found = values_of(leaf)
        assert levels_of(leaf)[1] == [1, 0, 1, 0]
        assert (found[1], found[3]) == (12, 14)
        assert run(reader.read(np.array([1, 3]))).block is None

    def test_nulls_of_outer_layers_have_a_higher_level(self) -> None:
        reader = sparse([item(validity([0])), item(validity([2]))], [0, 11, 0, 13], [[0], [2]], 4)
        assert levels_of(run(reader.read(slice(0, 4))))[1] == [2, 0, 1, 0]

    def test_list_positions_hold_items_and_other_lists_are_empty_or_null(self) -> None:
        layers = [lists([1, 3], [2, 1], validity([2])), item(NO_NULLS)]
        reader = sparse(layers, [5, 6, 7], [[1, 3], [2, 1], [2]], 4)  # [], [5, 6], null, [7]
        leaf = run(reader.read(slice(0, 4)))
        assert (values_of(leaf), leaf.num_slots, leaf.num_rows) == ([5, 6, 7], 3, 4)
        rep, def_ = levels_of(leaf)
        assert (rep, def_) == ([1, 1, 0, 1, 1], [3, 0, 0, 2, 0])  # 3: empty, 2: null
        leaf = run(reader.read(np.array([0, 3])))
        assert (values_of(leaf), *levels_of(leaf)) == ([7], [1, 1], [3, 0])

    def test_nested_lists_are_read(self) -> None:
        layers = [lists([0], [2]), lists([0, 1], [1, 2]), item(NO_NULLS)]
        reader = sparse(layers, [5, 6, 7], [[0], [2], [0, 1], [1, 2]], 2)  # [[5], [6, 7]], []
        leaf = run(reader.read(slice(0, 2)))
        assert values_of(leaf) == [5, 6, 7]
        assert levels_of(leaf)[0] == [2, 1, 0, 2]

    def test_rows_of_fixed_size_lists_match_their_items(self) -> None:
        reader = sparse([fixed(2, validity([1])), item(validity([0]))], [0, 5, 0, 0], [[1], [0]], 4)
        assert levels_of(run(reader.read(slice(0, 4))))[1] == [1, 0, 2, 2]

    @pytest.mark.parametrize(
        ("layers", "numbers"),
        [
            ([item(validity([1, 1]))], [[1, 1]]),
            ([item(validity([3, 1]))], [[3, 1]]),
            ([item(validity([4]))], [[4]]),
            ([item(validity([2**63]))], [[2**63]]),
            ([item(validity([1], 0))], [[1]]),
            ([item(pb23.SparseValidity(meaning=NULLS, num_positions=1))], []),
            ([lists([0], [2**41]), item(NO_NULLS)], [[0], [2**41]]),
            ([lists([4], [1]), item(NO_NULLS)], [[4], [1]]),
            ([fixed(3), item(NO_NULLS)], []),
            ([fixed(0), item(NO_NULLS)], []),
        ],
        ids=[
            *("twice", "descending", "behind the last", "negative", "no meaning", "no numbers"),
            *("too many items", "a list behind the last", "no whole lists", "lists of nothing"),
        ],
    )
    def test_contradictory_sparse_pages_are_rejected(self, layers: list[Any], numbers: list[list[int]]) -> None:
        with pytest.raises(CorruptError):
            run(sparse(layers, [1, 2, 3, 4], numbers, 4).read(slice(0, 4)))

    def test_list_items_must_match_the_declared_count(self) -> None:
        layer = lists([0], [2])
        layer.list.num_child_slots = 3
        with pytest.raises(CorruptError, match="the item count of the lists is wrong"):
            run(sparse([layer, item(NO_NULLS)], [1, 2, 3], [[0], [2]], 1).read(slice(0, 1)))

    def test_value_counts_must_match_the_slots_or_the_non_null_slots(self) -> None:
        with pytest.raises(CorruptError, match="the value count of a sparse page is wrong"):
            run(sparse([item(validity([1]))], [1, 2], [[1]], 4, stated=2).read(slice(0, 4)))

    def test_numbers_without_their_buffers_are_rejected(self) -> None:
        layout = pb23.PlanarLayout(values=CHUNKED)
        layout.structure.sparse.layers.append(item(validity([1])))
        with pytest.raises(CorruptError, match="buffers"):
            run(page(layout, [], 2).read(slice(0, 2)))

    def test_a_layer_without_a_kind_is_rejected(self) -> None:
        with pytest.raises((CorruptError, UnsupportedError)):
            run(sparse([pb23.SparseLayer()], [1], [], 1).read(slice(0, 1)))
