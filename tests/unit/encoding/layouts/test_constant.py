from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from unit.encoding.hand_pages import ITEM, LIST, flat, page_of, u16

from lance_duck.encoding.block import Dictionary, FixedWidth, VariableWidth
from lance_duck.encoding.layouts.constant import parse_scalar
from lance_duck.encoding.layouts.page import PageReader
from lance_duck.encoding.layouts.structural import open_page
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings21_pb2 as pb

ROWS = np.array([0, 2], dtype=np.int64)


def reader(buffers: Sequence[bytes], num_rows: int, layers: Sequence[int] = (ITEM,), **fields: Any) -> PageReader:
    layout = pb.ConstantLayout(layers=layers, **fields)
    return open_page(page_of(pb.PageLayout(constant_layout=layout), buffers, num_rows))


def test_a_page_without_a_value_and_buffers_is_all_null() -> None:
    leaf = run(reader([], 3).read(slice(1, 3)))
    assert (leaf.block, leaf.num_slots) == (None, 2)


def test_memory_use_depends_on_the_requested_rows() -> None:
    leaf = run(reader([], 2**62, inline_value=b"\7\0\0\0").read(slice(2**61, 2**61 + 2)))
    assert (
        leaf.block == Dictionary(leaf.block.indices, leaf.block.items) if isinstance(leaf.block, Dictionary) else False
    )
    assert leaf.num_slots == 2


def test_an_inline_value_with_nulls() -> None:
    leaf = run(reader([b"", u16([0, 1, 0])], 3, inline_value=b"\7\0\0\0").read(ROWS))
    assert isinstance(leaf.block, Dictionary)
    assert isinstance(leaf.block.items, FixedWidth)
    assert (leaf.block.items.bits, leaf.block.items.data.tobytes()) == (32, b"\7\0\0\0")
    assert leaf.def_ is not None
    assert leaf.def_.tolist() == [0, 0]


def test_lists_of_a_value() -> None:
    page = reader([u16([1, 0, 1, 1, 1]), u16([0, 0, 2, 3, 0])], 4, [ITEM, LIST], inline_value=b"\7")
    leaf = run(page.read(slice(1, 4)))
    assert leaf.rep is not None
    assert leaf.def_ is not None
    assert (leaf.rep.tolist(), leaf.def_.tolist(), leaf.num_slots) == ([1, 1, 1], [2, 3, 0], 1)
    leaf = run(page.read(ROWS))
    assert leaf.rep is not None
    assert (leaf.rep.tolist(), leaf.num_slots, leaf.num_rows) == ([1, 0, 1], 2, 2)


def test_levels_may_have_a_separate_encoding() -> None:
    fields = {"def_compression": flat(16), "num_def_values": 3}
    leaf = run(reader([b"", u16([1, 0, 1])], 3, [ITEM, ITEM], **fields).read(slice(0, 3)))
    assert leaf.def_ is not None
    assert leaf.def_.tolist() == [1, 0, 1]


def scalar(*buffers: bytes) -> bytes:
    return np.array([len(buffers), *map(len, buffers)], dtype="<u4").tobytes() + b"".join(buffers)


def test_a_string_can_be_a_scalar_value() -> None:
    offsets = np.array([0, 3], dtype="<i4").tobytes()
    leaf = run(reader([scalar(offsets, b"abc")], 3).read(ROWS))
    assert isinstance(leaf.block, Dictionary)
    assert isinstance(leaf.block.items, VariableWidth)
    assert leaf.block.items.data.tobytes() == b"abc"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\1\0",
        scalar(),
        scalar(b"abc")[:-1],
        scalar(b"1234567", b"abc"),
        scalar(np.array([0, 4], dtype="<i4").tobytes(), b"abc"),
        scalar(np.array([2, 1], dtype="<i4").tobytes(), b"abc"),
        scalar(np.array([-1, 1], dtype="<i4").tobytes(), b"abc"),
    ],
)
def test_inconsistent_scalars_are_rejected(data: bytes) -> None:
    with pytest.raises((CorruptError, UnsupportedError)):
        parse_scalar(np.frombuffer(data, dtype=np.uint8), "page")


@pytest.mark.parametrize(
    ("buffers", "layers"),
    [
        ([b"", u16([0, 1])], [ITEM]),
        ([b"", u16([0, 1, 2])], [ITEM]),
        ([u16([1, 0, 0]), u16([0, 0, 0])], [ITEM, LIST]),
        ([u16([0, 1, 1]), b""], [ITEM, LIST]),
        ([u16([1, 1, 1]), u16([0, 0])], [ITEM, LIST]),
        ([b"", b""], [ITEM, LIST]),
        ([b""] * 4, [ITEM]),
    ],
)
def test_levels_that_do_not_match_the_rows_are_rejected(buffers: list[bytes], layers: list[int]) -> None:
    with pytest.raises(CorruptError):
        run(reader(buffers, 3, layers, inline_value=b"\7").read(slice(0, 3)))
