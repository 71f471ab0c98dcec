from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.texts import looked_up_texts, texts_to_arrow
from lance_duck.encoding.block import Dictionary, VariableWidth
from lance_duck.errors import CorruptError
from lance_duck.kernels.texts.strings import is_ascii, is_ascii_reference

TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]


def block(*values: bytes) -> VariableWidth:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"".join(values) or b"\0", np.uint8))


@given(st.binary(max_size=40) | st.text(st.characters(max_codepoint=127), max_size=40).map(str.encode))
def test_is_ascii_equals_its_reference(data: bytes) -> None:
    content = np.frombuffer(data, np.uint8)
    assert is_ascii(content) == is_ascii_reference(content)


@pytest.mark.parametrize("place", [0, 1, 7, 65_535, 65_536, 199_999])
def test_one_non_ascii_byte_is_found_at_every_position(place: int) -> None:
    data = np.full(200_000, ord("a"), np.uint8)
    assert is_ascii(data)
    data[place] = 200
    assert not is_ascii(data)


@pytest.mark.parametrize("type_", TEXT_TYPES)
def test_non_ascii_strings_are_kept(type_: pa.DataType) -> None:
    values = block("é".encode(), b"", "日本, a text that is longer".encode())
    expected = ["é", "", "日本, a text that is longer"]

    assert texts_to_arrow(values, type_, None, "c").to_pylist() == expected
    looked_up = looked_up_texts(values, Dictionary(np.array([2, 0], np.uint8), values), type_, None, "c")
    assert looked_up.to_pylist() == [expected[2], expected[0]]


@pytest.mark.parametrize("type_", TEXT_TYPES)
@pytest.mark.parametrize("values", [(b"ok", b"\xff\xfe"), (b"\xc3", b"\xa9")], ids=["no text", "a letter cut in two"])
def test_invalid_utf8_is_corrupt_for_strings_but_not_for_binary(type_: pa.DataType, values: tuple[bytes, ...]) -> None:
    with pytest.raises(CorruptError, match="UTF-8"):
        texts_to_arrow(block(*values), type_, None, "c")
    with pytest.raises(CorruptError, match="UTF-8"):
        looked_up_texts(block(*values), Dictionary(np.array([1], np.uint8), block(*values)), type_, None, "c")
    assert texts_to_arrow(block(*values), pa.binary(), None, "c").to_pylist() == list(values)


def test_nulls_may_hold_invalid_utf8() -> None:
    bitmap = pa.py_buffer(b"\x01")
    assert texts_to_arrow(block(b"a", b"\xff"), pa.string(), bitmap, "c").to_pylist() == ["a", None]
