from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.encoding.layouts.chunk_decoder import join_ranges
from lance_duck.encoding.layouts.page_rows import adjacent_runs, expand_ranges
from lance_duck.errors import ArrayLimitError, CorruptError, LanceDuckError
from lance_duck.kernels.texts.strings import (
    SLACK,
    expand_bytes,
    expand_bytes_reference,
    expand_offsets,
    expand_offsets_reference,
    expand_views,
    expand_views_reference,
    string_views,
    string_views_reference,
)
from lance_duck.store.request import ByteRange, Bytes

VALID = np.array([True, False, True])


def numbers(values: list[int], dtype: str = "<i4") -> FixedWidth:
    data = np.array(values, dtype=dtype)
    return FixedWidth(data.itemsize * 8, data.view(np.uint8), len(values))


def words(*values: bytes) -> VariableWidth:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"".join(values), dtype=np.uint8))


def arrow(block: Block, arrow_type: pa.DataType, valid: np.ndarray | None = VALID) -> pa.Array:  # type: ignore[type-arg]
    found = block_to_arrow(block, arrow_type, valid, "column")
    found.validate(full=True)
    assert found.type == arrow_type
    return found


def test_fixed_width_values_are_not_copied() -> None:
    block = numbers([1, 2, 3])
    assert arrow(block, pa.int32()).to_pylist() == [1, None, 3]
    assert arrow(block, pa.int32()).buffers()[1].address == block.data.ctypes.data
    assert arrow(block, pa.float32(), None).null_count == 0


def test_flags_become_bits() -> None:
    assert arrow(FixedWidth(1, np.array([1, 0, 1], dtype=np.uint8), 3), pa.bool_(), None).to_pylist() == [
        True,
        False,
        True,
    ]
    assert arrow(FixedWidth(8, np.array([1, 0, 0], dtype=np.uint8), 3), pa.bool_()).to_pylist() == [True, None, False]


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.string_view()),
    ],
)
def test_strings_decode_to_every_string_type(arrow_type: pa.DataType) -> None:
    block = words(b"short", b"", b"a text of more than twelve bytes")
    expected = ["short", None, "a text of more than twelve bytes"]
    assert arrow(block, arrow_type).to_pylist() == expected
    in_dictionary = Dictionary(
        np.array([0, 2, 1], dtype=np.uint32), words(b"short", b"a text of more than twelve bytes", b"")
    )
    assert arrow(in_dictionary, arrow_type).to_pylist() == expected


def test_a_dictionary_is_passed_through() -> None:
    block = Dictionary(np.array([1, 0, 1], dtype=np.uint32), words(b"a", b"b"))
    found = arrow(block, pa.dictionary(pa.int32(), pa.string()))
    assert found.dictionary.to_pylist() == ["a", "b"]
    assert found.indices.to_pylist() == [1, None, 1]


def test_dictionary_entries_are_reduced_to_those_in_use_if_indices_overflow() -> None:
    items = words(*[b"%d" % i for i in range(200)])
    narrow = pa.dictionary(pa.int8(), pa.string())
    few = arrow(Dictionary(np.array([199, 7, 150], dtype=np.uint32), items), narrow)
    assert few.to_pylist() == ["199", None, "150"]
    assert few.dictionary.to_pylist() == ["150", "199"]
    with pytest.raises(ArrayLimitError, match="found 200 entries of dictionary<values=string, indices=int8"):
        arrow(Dictionary(np.arange(200, dtype=np.uint32), items), narrow, None)


def test_fixed_size_lists_with_null_items_are_converted() -> None:
    block = FixedSizeList(2, numbers([1, 2, 3, 4, 5, 6]), np.array([1, 0, 1, 1, 1, 1], dtype=np.uint8), 3)
    assert arrow(block, pa.list_(pa.int32(), 2)).to_pylist() == [[1, None], None, [5, 6]]
    plain = FixedWidth(64, numbers([1, 2, 3, 4, 5, 6]).data, 3)
    assert arrow(plain, pa.list_(pa.int32(), 2)).to_pylist() == [[1, 2], None, [5, 6]]


def test_packed_structs_become_structs() -> None:
    block = PackedStruct((numbers([1, 2, 3]), words(b"a", b"b", b"c")), 3)
    arrow_type = pa.struct([("x", pa.int32()), ("y", pa.string())])
    assert arrow(block, arrow_type).to_pylist() == [{"x": 1, "y": "a"}, None, {"x": 3, "y": "c"}]


def test_half_floats_of_both_kinds() -> None:
    half = np.array([1.5, -2.0, 0.25], dtype="<f2")
    block = FixedWidth(16, half.view(np.uint8), 3)
    assert arrow(block, pa.float32()).to_pylist() == [1.5, None, 0.25]
    brain = (np.array([1.5, -2.0, 0.25], dtype="<f4").view("<u4") >> 16).astype("<u2")
    found = block_to_arrow(FixedWidth(16, brain.view(np.uint8), 3), pa.float32(), None, "column", pa.binary(2))
    assert found.to_pylist() == [1.5, -2.0, 0.25]


@pytest.mark.parametrize(
    ("block", "arrow_type"),
    [
        (numbers([1, 2, 3]), pa.int64()),
        (numbers([1, 2, 3]), pa.string()),
        (numbers([1, 2, 3]), pa.struct([("x", pa.int32())])),
        (numbers([1, 2, 3]), pa.list_(pa.int32(), 3)),
        (words(b"a", b"b", b"c"), pa.int32()),
        (VariableWidth(np.array([0, 1, 2, 9], dtype=np.int32), np.zeros(3, dtype=np.uint8)), pa.string()),
        (VariableWidth(np.array([-1, 1, 2, 3], dtype=np.int32), np.zeros(3, dtype=np.uint8)), pa.string_view()),
        (FixedWidth(32, np.zeros(11, dtype=np.uint8), 3), pa.int32()),
        (FixedSizeList(2, numbers([1, 2]), None, 1), pa.list_(pa.int32(), 3)),
        (PackedStruct((numbers([1, 2, 3]),), 3), pa.struct([("x", pa.int32()), ("y", pa.int32())])),
    ],
)
def test_blocks_that_do_not_match_the_type_are_rejected(block: Block, arrow_type: pa.DataType) -> None:
    with pytest.raises(LanceDuckError):
        block_to_arrow(block, arrow_type, None, "column")


@given(st.lists(st.binary(max_size=20)), st.binary(max_size=3), st.sampled_from([np.int32, np.int64]))
def test_views_equal_their_reference(values: list[bytes], head: bytes, kind: type) -> None:
    data = np.frombuffer(head + b"".join(values), dtype=np.uint8)
    offsets = np.cumsum([len(head), *map(len, values)]).astype(kind)
    views = np.empty((len(values), 2), dtype=np.uint64)
    assert string_views(data, offsets, views)
    assert views.tobytes() == string_views_reference(data.tobytes(), offsets.tolist())


def test_views_with_descending_offsets_are_rejected() -> None:
    for offsets in ([0, 5, 3], [0, 9, 9], [-1, 2, 3]):
        views = np.empty((2, 2), dtype=np.uint64)
        assert not string_views(np.zeros(8, dtype=np.uint8), np.array(offsets, dtype=np.int32), views)


@given(st.sets(st.integers(0, 30), min_size=1))
def test_runs_of_adjacent_numbers(numbers_: set[int]) -> None:
    ids = np.array(sorted(numbers_), dtype=np.int64)
    first, last = adjacent_runs(ids)
    assert expand_ranges(first, last + 1).tolist() == ids.tolist()
    assert all(b > a + 1 for a, b in zip(last[:-1].tolist(), first[1:].tolist(), strict=True))


class Source:
    remote = False

    path = "memory"

    def __init__(self, data: bytes) -> None:
        self.array = np.frombuffer(data, dtype=np.uint8)
        self.size = len(data)

    def read(self, ranges: list[tuple[int, int]]) -> list[Bytes]:
        return [self.array[offset : offset + size] for offset, size in ranges]


@given(st.lists(st.integers(0, 20), min_size=2, max_size=6), st.booleans())
def test_ranges_are_slices_of_one_array(cuts: list[int], mapped: bool) -> None:
    source = Source(bytes(range(20)))
    pairs = list(pairwise(sorted(cuts)))
    ranges = [ByteRange(source, a, b - a) for a, b in pairs]
    found = source.read([(a, b - a) for a, b in pairs])
    data, starts = join_ranges(ranges, found if mapped else [part.copy() for part in found])
    assert [data[s : s + r.size].tolist() for s, r in zip(starts.tolist(), ranges, strict=True)] == [
        part.tolist() for part in found
    ]
    if mapped and len(found) > 1 and found[0].size and found[-1].size:
        assert data is source.array


@pytest.mark.parametrize("kind", [pa.int32(), pa.bool_(), pa.string(), pa.binary(4), pa.list_(pa.int32(), 3)])
def test_zero_width_values_are_rejected_for_types_with_a_width(kind: pa.DataType) -> None:
    nothing = FixedWidth(0, np.empty(0, np.uint8), 1)
    for block in (nothing, Dictionary(np.zeros(1, np.uint32), nothing)):
        with pytest.raises(CorruptError, match="without bytes"):
            block_to_arrow(block, kind, None, "page")
        assert block_to_arrow(block, kind, np.zeros(1, np.uint8), "page").to_pylist() == [None]
        assert block_to_arrow(block, pa.binary(0), None, "page").to_pylist() == [b""]


def test_a_corrupt_dictionary_value_is_rejected() -> None:
    block = Dictionary(np.array([3], dtype=np.uint32), words(b"a"))
    with pytest.raises(CorruptError):
        block_to_arrow(block, pa.string(), None, "column")


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=5), st.lists(st.integers(0, 4)), st.sampled_from("BHI"))
def test_expanded_strings_equal_their_references(values: list[bytes], picks: list[int], kind: str) -> None:
    indices = np.array([pick % len(values) for pick in picks], dtype=kind)
    items = words(*values)
    offsets, expected_offsets = (np.empty(len(indices) + 1, dtype=np.int32) for _ in range(2))
    expand_offsets(items.offsets, indices, offsets)
    expand_offsets_reference(items.offsets, indices, expected_offsets)
    assert np.array_equal(offsets, expected_offsets)
    out, expected = (np.zeros(int(offsets[-1]) + SLACK, dtype=np.uint8) for _ in range(2))
    expand_bytes(items.data, items.offsets, indices, offsets, out)
    expand_bytes_reference(items.data, items.offsets, indices, offsets, expected)
    assert np.array_equal(out[: offsets[-1]], expected[: offsets[-1]])
    views = np.arange(2 * len(values), dtype=np.uint64).reshape(-1, 2)
    both = [np.empty((len(indices), 2), dtype=np.uint64) for _ in range(2)]
    expand_views(views, indices, both[0])
    expand_views_reference(views, indices, both[1])
    assert np.array_equal(*both)
    for arrow_type in (pa.binary(), pa.binary_view(), pa.large_binary()):
        found = arrow(Dictionary(indices, items), arrow_type, None)
        assert found.to_pylist() == [values[i] for i in indices]
