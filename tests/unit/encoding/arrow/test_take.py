from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.arrow.take import look_up, slice_block, take
from lance_duck.encoding.block import Block, Dictionary, FixedSizeList, FixedWidth, PackedStruct, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.texts import take as kernels


def fixed(values: list[int], bits: int = 32) -> FixedWidth:
    data = np.array(values, f"<u{max(bits, 8) // 8}").view(np.uint8)
    return FixedWidth(bits, data, len(values))


def variable(values: list[bytes]) -> VariableWidth:
    offsets = np.cumsum([2, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"__" + b"".join(values), np.uint8))


def plain(block: Block) -> list[object]:
    """A block's values as Python objects, each by its own short rule."""
    match block:
        case FixedWidth(bits, data, count):
            width = 1 if bits == 1 else bits // 8
            return [data[i * width : (i + 1) * width].tobytes() for i in range(count)]
        case VariableWidth(offsets, data):
            return [data[offsets[i] : offsets[i + 1]].tobytes() for i in range(block.count)]
        case Dictionary(indices, items):
            return [plain(items)[i] for i in indices]
        case FixedSizeList(dimension, items, validity, count):
            valid = [1] * (count * dimension) if validity is None else validity.tolist()
            values = list(zip(plain(items), valid, strict=True))
            return [values[i * dimension : (i + 1) * dimension] for i in range(count)]
        case PackedStruct(fields):
            return list(zip(*map(plain, fields), strict=True))


BLOCKS: list[Block] = [
    fixed([1, 0, 1, 1, 0], bits=1),
    fixed([1, 2, 3, 4, 5], bits=16),
    FixedWidth(24, np.arange(15, dtype=np.uint8), 5),
    FixedWidth(128, np.arange(80, dtype=np.uint8), 5),
    variable([b"a", b"", b"ccc", b"d" * 40, b"eeeeeeeee"]),
    Dictionary(np.array([1, 0, 1, 1, 0], np.uint16), variable([b"x", b"yy"])),
    FixedSizeList(2, fixed(list(range(10))), np.array([1, 0] * 5, np.uint8), 5),
    FixedSizeList(1, FixedSizeList(2, fixed(list(range(10))), None, 5), None, 5),
    PackedStruct((fixed([1, 2, 3, 4, 5]), variable([b"a", b"bb", b"", b"d", b"e"])), 5),
]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: type(b).__name__)
def test_take_returns_the_requested_rows(block: Block) -> None:
    for indices in ([], [4, 0, 0, 2, 3, 1], [1, 2, 3]):
        taken = take(block, np.array(indices, np.int64))
        assert taken.count == len(indices)
        assert plain(taken) == [plain(block)[i] for i in indices]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: type(b).__name__)
def test_slices_are_rows_in_order(block: Block) -> None:
    for start in range(6):
        for stop in range(start, 6):
            cut = slice_block(block, start, stop)
            assert cut.count == stop - start
            assert plain(cut) == plain(block)[start:stop]


def test_slices_share_memory() -> None:
    block = fixed([1, 2, 3])
    cut = slice_block(block, 1, 3)
    assert isinstance(cut, FixedWidth)
    assert np.shares_memory(cut.data, block.data)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda b: type(b).__name__)
def test_rows_outside_the_block_are_rejected(block: Block) -> None:
    for index in (-1, 5):
        with pytest.raises(CorruptError):
            take(block, np.array([0, index], np.int64))
    for start, stop in ((-1, 2), (0, 6), (3, 2)):
        with pytest.raises(CorruptError):
            slice_block(block, start, stop)


def test_truncated_blocks_are_rejected() -> None:
    small: list[Block] = [
        FixedWidth(32, np.zeros(7, np.uint8), 2),
        VariableWidth(np.array([0, 1, 9], np.int64), np.zeros(3, np.uint8)),
        FixedSizeList(2, fixed([1, 2, 3]), None, 2),
        FixedSizeList(2, fixed([1, 2, 3, 4]), np.zeros(3, np.uint8), 2),
    ]
    for block in small:
        with pytest.raises(CorruptError):
            take(block, np.array([1], np.int64))


@settings(deadline=None)
@given(st.sampled_from([1, 2, 3, 4, 8, 16, 40]), st.lists(st.integers(0, 9), max_size=9))
def test_gather_fixed_equals_its_reference(width: int, indices: list[int]) -> None:
    data = np.random.default_rng(0).integers(0, 256, 10 * width, np.uint8)
    starts = np.array(indices, np.int64) * width
    out, expected = (np.zeros(len(indices) * width, np.uint8) for _ in range(2))
    kernels.gather_fixed(data, starts, width, out)
    kernels.gather_fixed_reference(data, starts, width, expected)
    assert out.tolist() == expected.tolist()


@settings(deadline=None)
@given(st.lists(st.binary(max_size=50), min_size=1, max_size=6), st.data())
def test_variable_kernels_equal_their_references(values: list[bytes], data: st.DataObject) -> None:
    indices = np.array(data.draw(st.lists(st.integers(0, len(values) - 1), max_size=8)), np.int64)
    block = variable(values)
    results = []
    for select, gather in (
        (kernels.select_extents, kernels.gather_variable),
        (kernels.select_extents_reference, kernels.gather_variable_reference),
    ):
        starts, ends = np.zeros(len(indices), np.int64), np.zeros(len(indices) + 1, np.int64)
        assert select(block.offsets, indices, len(block.data), starts, ends) == 0
        out = np.zeros(int(ends[-1]), np.uint8)
        gather(block.data, starts, ends, out)
        results.append((starts.tolist(), ends.tolist(), out.tobytes()))
    assert results[0] == results[1]
    assert results[0][2] == b"".join(values[i] for i in indices)


@given(st.lists(st.integers(-1, 5), min_size=2, max_size=5), st.data())
def test_select_extents_rejects_the_same_input_as_its_reference(offsets: list[int], data: st.DataObject) -> None:
    indices = np.array(data.draw(st.lists(st.integers(0, len(offsets) - 2), max_size=4)), np.int64)
    results = []
    for select in (kernels.select_extents, kernels.select_extents_reference):
        starts, ends = np.zeros(len(indices), np.int64), np.zeros(len(indices) + 1, np.int64)
        status = select(np.array(offsets, np.int64), indices, 4, starts, ends)
        results.append((status, ends.tolist() if status == 0 else None))
    assert results[0] == results[1]


@given(
    st.sampled_from([1, 3, 4, 8, 16, 32]),
    st.integers(1, 6),
    st.lists(st.integers(0, 7), max_size=9),
    st.sampled_from(["<u1", "<u2", "<u4", "<u8"]),
)
def test_look_up_equals_its_reference(width: int, count: int, indices: list[int], kind: str) -> None:
    items = np.arange(count * width, dtype=np.uint8)
    places = np.array(indices, kind)
    out, expected = np.zeros(len(indices) * width, np.uint8), np.zeros(len(indices) * width, np.uint8)

    found = kernels.look_up_fixed(items, count, width, places, out)

    assert found == kernels.look_up_fixed_reference(items, count, width, places, expected)
    assert out.tolist() == expected.tolist()


def test_dictionary_lookup_returns_the_indexed_values() -> None:
    places = np.array([1, 0, 1], np.uint16)

    assert plain(look_up(Dictionary(places, fixed([5, 6], 64)))) == plain(fixed([6, 5, 6], 64))
    assert plain(look_up(Dictionary(places, variable([b"x", b"yy"])))) == [b"yy", b"x", b"yy"]
    with pytest.raises(CorruptError):
        look_up(Dictionary(np.array([2], np.uint8), fixed([5, 6])))
