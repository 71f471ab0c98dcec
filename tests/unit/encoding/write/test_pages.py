from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.encoding.block import Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.layouts.layers import (
    ALL_VALID_ITEM,
    ALL_VALID_LIST,
    EMPTYABLE_LIST,
    NULL_AND_EMPTY_LIST,
    NULLABLE_ITEM,
    NULLABLE_LIST,
)
from lance_duck.encoding.layouts.miniblock import parse_rep_index
from lance_duck.encoding.write.blocks import array_to_block, valid_flags
from lance_duck.encoding.write.layouts.leaf import LeafRows, encode_leaf
from lance_duck.encoding.write.layouts.levels import FLAT, LeafShape, page_levels
from lance_duck.encoding.write.layouts.miniblock import rep_index
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.encoding.write.shred import Outline, unfold_fixed, unfold_items, unfold_list
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

LIST = LeafShape((False, True), (False, False))
LISTS = LeafShape((False, True, True), (False,) * 3)


def unfolded(array: pa.Array) -> tuple[Outline, pa.Array]:
    outline = Outline(len(array))
    while pa.types.is_list(array.type):
        outline, array = unfold_list(outline, array, "x")
    return unfold_items(outline, array), array


def levels_of(values: Any, type_: pa.DataType, shape: LeafShape) -> tuple[Any, Any, Any]:
    outline, items = unfolded(pa.array(values, type_))
    levels = page_levels(shape, outline.begins, outline.holes, len(items), len(values))
    return (
        levels.layers.kinds,
        None if levels.rep is None else levels.rep.tolist(),
        None if levels.def_ is None else levels.def_.tolist(),
    )


def pages_of(array: pa.Array, shape: LeafShape = FLAT, **asked: Any) -> list[tuple[EncodedPage, Any]]:
    outline, items = unfolded(array)
    block = array_to_block(items, "x")
    rows = LeafRows(block, shape, outline.begins, outline.holes, outline.hidden, len(array))
    return [(page, _layout(page)) for page in encode_leaf(rows, 100, EncodingOptions(**asked))]


def _layout(page: EncodedPage) -> Any:
    layout = pb.PageLayout.FromString(page.encoding.value)
    return getattr(layout, layout.WhichOneof("layout"))


@pytest.mark.parametrize(
    ("values", "kinds", "def_"),
    [
        ([[1], [2, 3]], (ALL_VALID_ITEM, ALL_VALID_LIST), None),
        ([[1], [None, 3]], (NULLABLE_ITEM, ALL_VALID_LIST), [0, 1, 0]),
        ([[1], []], (ALL_VALID_ITEM, EMPTYABLE_LIST), [0, 1]),
        ([None, [1, 2]], (ALL_VALID_ITEM, NULLABLE_LIST), [1, 0, 0]),
        ([None, [1], []], (ALL_VALID_ITEM, NULL_AND_EMPTY_LIST), [1, 0, 2]),
        ([None, [None], []], (NULLABLE_ITEM, NULL_AND_EMPTY_LIST), [2, 1, 3]),
    ],
)
def test_layers_describe_the_page_content(values: Any, kinds: Any, def_: Any) -> None:
    found = levels_of(values, pa.list_(pa.int32()), LIST)
    assert found[0] == kinds
    assert found[2] == def_


def test_levels_count_from_the_innermost_layer() -> None:
    found = levels_of([[[1, 2], [], None], None, [], [[None]]], pa.list_(pa.list_(pa.int8())), LISTS)
    assert found == (
        (NULLABLE_ITEM, NULL_AND_EMPTY_LIST, NULL_AND_EMPTY_LIST),
        [2, 0, 1, 1, 2, 2, 2],
        [0, 0, 3, 2, 4, 5, 1],
    )


def test_structs_around_lists_have_all_levels_in_every_page() -> None:
    shape = LeafShape.of((False, True, False), (True, True, True))
    assert shape.fixed == (False, True, True)
    levels = page_levels(shape, np.zeros(2, np.uint8), None, 2, 2)
    assert levels.layers.kinds == (ALL_VALID_ITEM, NULL_AND_EMPTY_LIST, NULLABLE_ITEM)
    assert levels.def_ is not None
    assert levels.def_.tolist() == [0, 0]
    assert LeafShape.of((False, False, True), (True, True, True)).fixed == (False, False, False)


def test_values_below_a_null_are_dropped() -> None:
    items = pa.array([1, 2, 3, 4, 5, 6])
    array = pa.ListArray.from_arrays(
        pa.array([0, 2, 4, 4, 6], pa.int32()), items, mask=pa.array([False, True, False, False])
    )
    inside, shown = unfold_list(Outline(4), array, "x")
    assert shown.to_pylist() == [1, 2, 5, 6]
    assert inside.holes is not None
    assert inside.holes.tolist() == [0, 0, 1, 2, 0, 0]
    sliced, shown = unfold_list(Outline(2), array.slice(2), "x")
    assert shown.to_pylist() == [5, 6]
    assert sliced.begins is not None
    assert sliced.begins.tolist() == [0, 0, 1]


def test_fixed_size_lists_of_structs_have_one_entry_per_item() -> None:
    array = pa.array([[1, 2], None], pa.list_(pa.int32(), 2))
    inside, items = unfold_fixed(Outline(2), array, "x")
    assert (inside.count, len(items)) == (4, 4)
    assert inside.holes is not None
    assert inside.holes.tolist() == [0, 0, 1, 1]
    with pytest.raises(UnsupportedError, match="lists and fixed-size lists"):
        unfold_fixed(Outline(2, begins=np.zeros(2, np.uint8)), array, "x")


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_all_null_pages_have_no_buffers(version: str) -> None:
    ((page, layout),) = pages_of(pa.nulls(5, pa.string()), version=version)
    assert (page.buffers, page.num_rows, page.first_row) == ((), 5, 100)
    assert list(layout.layers) == [NULLABLE_ITEM]
    assert not layout.HasField("inline_value")


def test_pages_of_empty_lists_store_levels() -> None:
    array = pa.array([None, [], []], pa.list_(pa.int8()))
    ((page, layout),) = pages_of(array, LIST, version="2.1")
    assert [buffer.tobytes() for buffer in page.buffers] == [b"\1\0\1\0\1\0", b"\1\0\2\0\2\0"]
    ((page, layout),) = pages_of(array, LIST)
    assert (layout.num_rep_values, layout.num_def_values) == (3, 3)


@pytest.mark.parametrize(
    ("values", "inline", "buffers"),
    [
        (pa.array([7, 7], pa.int16()), b"\7\0", []),
        (pa.array([True, True]), b"\1", []),
        (pa.array([7, None], pa.int16()), b"\7\0", [b"", b"\0\0\1\0"]),
        (pa.array([None, b"a" * 40], pa.binary(40)), None, [b"\1\0\0\0\x28\0\0\0" + b"a" * 40, b"", b"\1\0\0\0"]),
        (pa.array(["ab", "ab"]), None, [b"\2\0\0\0\x08\0\0\0\2\0\0\0" + bytes(4) + b"\2\0\0\0ab"]),
        (pa.array(["", None]), None, [b"\2\0\0\0\x08\0\0\0\0\0\0\0" + bytes(8), b"", b"\0\0\1\0"]),
    ],
)
def test_a_page_with_one_distinct_value_is_constant(
    values: pa.Array, inline: bytes | None, buffers: list[bytes]
) -> None:
    ((page, layout),) = pages_of(values)
    assert (layout.inline_value if layout.HasField("inline_value") else None) == inline
    assert [buffer.tobytes() for buffer in page.buffers] == buffers


@pytest.mark.parametrize(
    "values",
    [
        pa.array([7, 8]),
        pa.array(["ab", "ba"]),
        pa.array(["aa", "a", "aaa"]),
        pa.array(["ab"] * 40 + ["ba"] + ["ab"] * 40),
        pa.array([1] * 40 + [2] + [1] * 40),
    ],
)
def test_pages_of_several_values_are_not_constant(values: pa.Array) -> None:
    ((_, layout),) = pages_of(values)
    assert isinstance(layout, pb.MiniBlockLayout)


def test_older_versions_do_not_write_constant_pages() -> None:
    ((_, layout),) = pages_of(pa.array([7, 7]), version="2.1")
    assert isinstance(layout, pb.MiniBlockLayout)
    assert not layout.has_large_chunk


def test_large_values_are_zipped_with_their_levels() -> None:
    ((page, layout),) = pages_of(pa.array(["a" * 400, None, "b" * 399]), compression="none")
    assert (layout.bits_def, layout.bits_per_offset, layout.num_items, layout.num_visible_items) == (1, 32, 3, 3)
    entries = [b"\0\x90\1\0\0" + b"a" * 400, b"\1", b"\0\x8f\1\0\0" + b"b" * 399]
    assert page.buffers[0].tobytes() == b"".join(entries)
    assert page.buffers[1].view("<u2").tolist() == [0, 405, 406, 810]


def test_vectors_without_nulls_are_zipped_without_a_copy() -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(384, dtype=np.float32)), 128)
    ((page, layout),) = pages_of(vectors)
    assert (layout.bits_per_value, layout.num_items) == (4096, 3)
    assert np.shares_memory(page.buffers[0], np.frombuffer(vectors.values.buffers()[1], np.uint8))


def test_field_metadata_selects_the_layout() -> None:
    ((page, layout),) = pages_of(pa.array([5, 6, None], pa.uint8()), structural="fullzip")
    assert (layout.bits_per_value, page.buffers[0].tolist()[:4]) == (8, [0, 5, 0, 6])
    ((_, layout),) = pages_of(pa.array([True, False, None]), structural="fullzip")
    assert isinstance(layout, pb.MiniBlockLayout)
    ((_, layout),) = pages_of(pa.array(["a" * 300, "b" * 300]), structural="miniblock")
    assert isinstance(layout, pb.MiniBlockLayout)


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_many_empty_lists_start_new_pages(version: str) -> None:
    lists = [[1, 2], *[[]] * 70_000, [3, 4]]
    found = pages_of(pa.array(lists, pa.list_(pa.int8())), LIST, version=version)
    assert sum(page.num_rows for page, _ in found) == len(lists)
    starts = np.cumsum([100, *(page.num_rows for page, _ in found)]).tolist()
    assert [page.first_row for page, _ in found] == starts[:-1]
    assert all(isinstance(layout, pb.MiniBlockLayout | pb.ConstantLayout) for _, layout in found)


def test_a_row_with_too_many_empty_lists_uses_the_zipped_layout() -> None:
    row = [[[1, 2], *[[]] * 70_000, [3, 4]]]
    ((page, layout),) = pages_of(pa.array(row, pa.list_(pa.list_(pa.int8()))), LISTS)
    assert (layout.num_items, layout.num_visible_items, page.num_rows) == (70_004, 4, 1)
    assert page.buffers[1].view("<u4").tolist() == [0, 70_008]


def test_sparse_lists_have_smaller_chunks() -> None:
    lists = [[i % 7] if i % 20 == 0 else [] for i in range(200_000)]
    ((page, layout),) = pages_of(pa.array(lists, pa.list_(pa.int8())), LIST)
    assert isinstance(layout, pb.MiniBlockLayout)
    assert page.num_rows == len(lists)


def test_the_repetition_index_marks_row_ends() -> None:
    rep = np.array([1, 0, 1, 1, 0, 0, 0, 0, 1], np.uint8)
    found = rep_index(rep, 1, np.array([2, 4, 7, 9]))
    assert found.view("<u8").reshape(-1, 2).tolist() == [[1, 0], [1, 1], [0, 3], [2, 0]]
    index = parse_rep_index(found, 1, 4, 4, "x")
    assert index.first_row.tolist() == [0, 1, 3, 3, 4]
    assert index.continues.tolist() == [False, False, True, True, False]


def test_blocks_are_views_of_arrays() -> None:
    numbers = pa.array(np.arange(10, dtype=np.int32)).slice(3, 4)
    block = array_to_block(numbers, "x")
    assert isinstance(block, FixedWidth)
    assert block.data.view("<i4").tolist() == [3, 4, 5, 6]
    assert np.shares_memory(block.data, np.frombuffer(numbers.buffers()[1], np.uint8))
    texts = array_to_block(pa.array(["a", "bc", "d"]).slice(1), "x")
    assert isinstance(texts, VariableWidth)
    assert texts.offsets.tolist() == [1, 3, 4]
    flags = array_to_block(pa.array([True, False, True, True]).slice(1), "x")
    assert isinstance(flags, FixedWidth)
    assert (flags.bits, flags.data.tolist()) == (1, [0, 1, 1])


def test_bytes_below_nulls_are_dropped() -> None:
    texts = pa.StringArray.from_buffers(
        3, pa.py_buffer(np.array([0, 2, 4, 6], np.int32)), pa.py_buffer(b"aabbcc"), pa.py_buffer(b"\5")
    )
    block = array_to_block(texts, "x")
    assert isinstance(block, VariableWidth)
    assert (block.offsets.tolist(), block.data.tobytes()) == ([0, 2, 2, 4], b"aacc")


def test_indices_of_nulls_are_replaced_by_valid_ones() -> None:
    indices = pa.Array.from_buffers(pa.int8(), 3, [pa.py_buffer(b"\5"), pa.py_buffer(np.array([1, 99, 0], np.int8))])
    block = array_to_block(pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"]), safe=False), "x")
    assert isinstance(block, Dictionary)
    assert block.indices.tolist() == [1, 0, 0]


def test_null_items_below_null_lists_are_dropped() -> None:
    items = pa.array([1, 2, None, None])
    mask = pa.array([False, True])
    block = array_to_block(pa.FixedSizeListArray.from_arrays(items, 2, mask=mask), "x")
    assert isinstance(block, FixedSizeList)
    assert block.validity is None
    block = array_to_block(pa.FixedSizeListArray.from_arrays(items, 2), "x")
    assert isinstance(block, FixedSizeList)
    assert block.validity is not None
    assert block.validity.tolist() == [1, 1, 0, 0]


def test_packed_structs_have_nulls_only_below_nulls() -> None:
    members = [pa.array([1, None], pa.int32())]
    packed = array_to_block(pa.StructArray.from_arrays(members, ["a"], mask=pa.array([False, True])), "x")
    assert isinstance(packed, PackedStruct)
    with pytest.raises(InvalidInputError, match=r"x\.a: packed structs cannot contain nulls"):
        array_to_block(pa.StructArray.from_arrays(members, ["a"]), "x")


def test_unsupported_types_are_rejected() -> None:
    with pytest.raises(UnsupportedError, match="fixed-size lists of this type cannot be encoded"):
        array_to_block(pa.array([["a"]], pa.list_(pa.string(), 1)), "x")
    with pytest.raises(UnsupportedError, match="values of this type cannot be encoded"):
        array_to_block(pa.array([[1]], pa.list_view(pa.int8())), "x")


def test_null_flags_of_slices_are_extracted() -> None:
    assert valid_flags(pa.array([1, 2])) is None
    assert valid_flags(pa.nulls(0)) is None
    for array, flags in ((pa.array([1, None, 3]).slice(1), [0, 1]), (pa.nulls(2), [0, 0])):
        found = valid_flags(array)
        assert found is not None
        assert found.tolist() == flags
