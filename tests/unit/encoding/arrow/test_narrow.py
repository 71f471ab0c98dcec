from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.blocks import block_to_arrow
from lance_duck.encoding.block import FixedWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.numbers.narrow import low_words, low_words_reference

FORMS = {32: (pa.decimal32(9, 0), 9), 64: (pa.decimal64(18, 0), 18), 128: (pa.decimal128(38, 0), 38)}


def stored(values: list[int], bits: int) -> FixedWidth:
    data = b"".join(value.to_bytes(bits // 8, "little", signed=True) for value in values)
    return FixedWidth(bits, np.frombuffer(data, np.uint8), len(values))


@given(st.data(), st.sampled_from([(32, 128), (64, 128), (32, 256), (64, 256), (128, 256)]))
def test_decimals_keep_their_values_in_fewer_bits(data: st.DataObject, widths: tuple[int, int]) -> None:
    arrow_type, digits = FORMS[widths[0]]
    most = 10**digits - 1
    values = data.draw(st.lists(st.integers(-most, most)))
    found = block_to_arrow(stored(values, widths[1]), arrow_type, None, "column")
    found.validate(full=True)
    assert found.to_pylist() == [Decimal(value) for value in values]


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**64, 2**127 - 1])
def test_decimals_that_do_not_fit_are_corrupt(value: int) -> None:
    with pytest.raises(CorruptError):
        block_to_arrow(stored([1, value], 128), FORMS[32][0], None, "column")


@pytest.mark.parametrize("bits", [32, 64])
def test_null_decimals_may_hold_values_that_do_not_fit(bits: int) -> None:
    valid = np.array([1, 0, 1], np.uint8)
    found = block_to_arrow(stored([1, 2**100, -3], 128), FORMS[bits][0], valid, "column")
    assert found.to_pylist() == [Decimal(1), None, Decimal(-3)]


def test_half_floats_become_floats() -> None:
    values = np.array([1.5, -0.25, np.inf], "<f2")
    block = FixedWidth(16, values.view(np.uint8), 3)
    assert block_to_arrow(block, pa.float32(), None, "column", pa.float16()).to_pylist() == [1.5, -0.25, np.inf]


def test_brain_floats_become_floats() -> None:
    values = (np.array([1.5, -0.25], "<f4").view("<u4") >> 16).astype("<u2")
    block = FixedWidth(16, values.view(np.uint8), 2)
    assert block_to_arrow(block, pa.float32(), None, "column", pa.binary(2)).to_pylist() == [1.5, -0.25]


@given(
    st.lists(st.integers(-(2**255), 2**255 - 1) | st.integers(-(2**33), 2**33), max_size=6),
    st.sampled_from([(2, "<i4", 1), (4, "<i4", 1), (2, "<i8", 1), (4, "<i8", 1), (4, "<i8", 2)]),
)
def test_low_words_equal_their_reference(numbers: list[int], shape: tuple[int, str, int]) -> None:
    stride, kind, kept = shape
    raw = b"".join((n & (2 ** (64 * stride) - 1)).to_bytes(8 * stride, "little") for n in numbers)
    words = np.frombuffer(raw, "<i8")
    out, expected = np.zeros(len(numbers) * kept, kind), np.zeros(len(numbers) * kept, kind)
    lost, gone = np.zeros(len(numbers), np.uint8), np.zeros(len(numbers), np.uint8)

    assert low_words(words, stride, out, lost) == low_words_reference(words, stride, expected, gone)

    assert out.tolist() == expected.tolist()
    assert lost.tolist() == gone.tolist()
