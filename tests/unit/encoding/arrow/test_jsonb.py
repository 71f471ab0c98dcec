from __future__ import annotations

import itertools
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.arrow.jsonb import float_text, jsonb_to_text, jsonb_to_text_reference
from lance_duck.encoding.block import Dictionary, VariableWidth
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError


def member(value: Any) -> tuple[int, bytes]:
    if value is None or isinstance(value, bool):
        return {None: 0, False: 3, True: 4}[value], b""
    if isinstance(value, str):
        return 1, value.encode()
    if isinstance(value, float):
        return 2, b"\x60" + struct.pack(">d", value)
    if isinstance(value, int):
        if value == 0:
            return 2, b"\0"
        width = next(w for w in (1, 2, 4, 8) if value < 1 << 8 * w and -value <= 1 << 8 * w - 1)
        return 2, (b"\x50" if value > 0 else b"\x40") + value.to_bytes(width, "big", signed=value < 0)
    return 5, encode(value)


def encode(value: Any) -> bytes:
    if isinstance(value, dict):
        parts = [member(key) for key in value] + [member(item) for item in value.values()]
        head = 4 << 28 | len(value)
    elif isinstance(value, list):
        parts = [member(item) for item in value]
        head = 8 << 28 | len(value)
    else:
        parts, head = [member(value)], 2 << 28
    words = [head, *(kind << 28 | len(data) for kind, data in parts)]
    return struct.pack(f">{len(words)}I", *words) + b"".join(data for _, data in parts)


def block_of(values: list[bytes]) -> VariableWidth:
    offsets = np.cumsum([0, *map(len, values)]).astype(np.int32)
    return VariableWidth(offsets, np.frombuffer(b"".join(values), dtype=np.uint8))


def texts(block: VariableWidth) -> list[str]:
    found = jsonb_to_text(block, "column")
    assert isinstance(found, VariableWidth)
    ends = found.offsets.tolist()
    return [found.data[a:b].tobytes().decode() for a, b in itertools.pairwise(ends)]


integers = st.integers(-(2**63), 2**64 - 1)
leaves = st.none() | st.booleans() | st.text() | integers | st.floats(allow_nan=False, allow_infinity=False)
documents = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)


@given(st.lists(documents, max_size=6))
def test_decoded_json_equals_the_values(values: list[Any]) -> None:
    raw = [encode(value) for value in values]
    found = texts(block_of(raw))
    assert [json.loads(text) for text in found] == values
    assert found == [jsonb_to_text_reference(data) for data in raw]


def test_decoded_json_has_no_spaces_and_minimal_escapes() -> None:
    value = {"": [1, -1, 1.5, 'é\n"\\/\x01\x7f'], "a": {}}
    assert texts(block_of([encode(value)])) == ['{"":[1,-1,1.5,"é\\n\\"\\\\/\\u0001\x7f"],"a":{}}']


def test_empty_jsonb_values_decode_to_empty_strings() -> None:
    assert texts(block_of([b"", encode(1), b""])) == ["", "1", ""]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (1000000000000000.0, "1000000000000000.0"),
        (1e16, "1e+16"),
        (1.5e300, "1.5e+300"),
        (0.0001, "0.0001"),
        (1e-05, "0.00001"),
        (-1.2345e-05, "-0.000012345"),
        (1e-06, "1e-6"),
        (-0.0, "-0.0"),
        (float("inf"), "null"),
    ],
)
def test_floats_have_an_exponent_only_if_needed(value: float, text: str) -> None:
    assert float_text(value) == text


def test_dictionaries_stay_dictionaries() -> None:
    block = Dictionary(np.array([0, 0], dtype=np.uint32), block_of([encode([1])]))
    found = jsonb_to_text(block, "column")
    assert isinstance(found, Dictionary)
    assert isinstance(found.items, VariableWidth)
    assert found.items.data.tobytes() == b"[1]"


def test_deeply_nested_jsonb_is_rejected() -> None:
    data = encode([])
    for _ in range(600):
        data = struct.pack(">2I", 8 << 28 | 1, 5 << 28 | len(data)) + data
    with pytest.raises(UnsupportedError, match="nested too deeply"):
        texts(block_of([data]))


@given(st.lists(documents, min_size=1, max_size=3), st.data())
def test_flipped_jsonb_bytes_decode_or_raise_an_error(values: list[Any], data: st.DataObject) -> None:
    raw = [bytearray(encode(value)) for value in values]
    place = data.draw(st.sampled_from(raw))
    place[data.draw(st.integers(0, len(place) - 1))] = data.draw(st.integers(0, 255))
    try:
        jsonb_to_text(block_of([bytes(r) for r in raw]), "column")
    except LanceDuckError:
        return


def test_a_truncated_value_is_rejected() -> None:
    for cut in (2, 6, 9):
        with pytest.raises(CorruptError):
            texts(block_of([encode(["abc"])[:cut]]))
