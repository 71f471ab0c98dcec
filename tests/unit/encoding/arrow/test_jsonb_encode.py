from __future__ import annotations

import itertools
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lance_duck.encoding.arrow import jsonb_encode
from lance_duck.encoding.arrow.jsonb import jsonb_to_text
from lance_duck.encoding.arrow.jsonb_encode import encode_jsonb, encode_jsonb_reference
from lance_duck.errors import InvalidInputError

NUMBERS = st.integers(-(2**66), 2**66) | st.floats() | st.sampled_from([-128, -129, 255, 256, 2**63, -(2**63), -0.0])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner, max_size=20),
    max_leaves=40,
)


def encoded(texts: list[str | None], **kwargs: Any) -> list[bytes]:
    block = encode_jsonb(pa.array(texts, pa.string()), **kwargs)
    starts = block.offsets.tolist()
    return [block.data[a:b].tobytes() for a, b in itertools.pairwise(starts)]


@given(st.lists(VALUES, max_size=5), st.booleans(), st.sampled_from([None, 1]))
@example([{f"{i}": i for i in range(2000)}], True, None)
@example([[0.5] * 3000], True, None)
def test_encoding_equals_the_reference_encoder(values: list[Any], ascii_only: bool, indent: int | None) -> None:
    texts = [json.dumps(value, ensure_ascii=ascii_only, indent=indent) for value in values]
    assert encoded([*texts]) == [encode_jsonb_reference(text) for text in texts]


@given(st.text(max_size=12) | st.text('[]{},:"\\u019e+-. \tnulltrefas', max_size=12))
def test_any_string_is_encoded_or_rejected(text: str) -> None:
    try:
        (value,) = encoded([text])
    except InvalidInputError:
        return
    json.loads(text or "null", strict=False)
    assert len(value) <= 8 + 4 * len(text.encode())


def test_known_json_strings_encode_to_known_bytes() -> None:
    assert encoded(['{"b": [], "a": 1.0}', "-0", "-1", "256", "1e400", "-1e400", "NaN", "", None]) == [
        b"@\0\0\2\x10\0\0\1\x10\0\0\1 \0\0\x09P\0\0\4ab`\x3f\xf0\0\0\0\0\0\0\x80\0\0\0",
        b" \0\0\0 \0\0\1\0",
        b" \0\0\0 \0\0\2@\xff",
        b" \0\0\0 \0\0\3P\1\0",
        b" \0\0\0 \0\0\1 ",
        b" \0\0\0 \0\0\0010",
        b" \0\0\0 \0\0\1\x10",
        b" \0\0\0\0\0\0\0",
        b"",
    ]


@pytest.mark.parametrize("text", [r'"\ud800"', r'"\ud800A\u0041"', r'"\ud800\u0041"', r'"\udc00"'])
def test_a_lone_surrogate_escape_is_kept(text: str) -> None:
    assert encoded([text])[0][8:].startswith(text[1:7].encode())


def test_floats_at_the_edge_of_infinity() -> None:
    texts = ["1.7976931348623157e308", "1.7976931348623159e308", "0." + "0" * 99 + "1e409", "0.0e999", "99999e304"]
    assert encoded([*texts]) == [encode_jsonb_reference(text) for text in texts]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1,]", "expected a value at byte 3, found '[1,]'"),
        ("01", "expected a number at byte 2"),
        ('"a', "expected more text at byte 2"),
        (r'"\x"', "expected an escape that JSON knows at byte 1"),
        ("{a:1}", "expected a quoted key, a colon, a comma or a closing bracket at byte 1"),
        ("1 2", "expected nothing after the value at byte 2"),
        (r'{"a":1,"b":2,"\u0061":3}', "expected an object whose keys differ"),
        ("[" * 600 + "]" * 600, "expected at most 512 levels at byte 513, found '[[["),
    ],
)
def test_invalid_json_is_rejected_with_its_row(text: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match="col, row 2: the string is not JSON") as caught:
        encoded(["1", None, text], where="col")
    assert reason in str(caught.value)


def test_array_slices_and_work_slices_are_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsonb_encode, "_SLICE", 16)
    texts = [json.dumps({"k": [i, "x" * (i % 40), i / 7]}) if i % 5 else None for i in range(200)]
    block = encode_jsonb(pa.array(texts, pa.large_string())[10:150])
    assert block.count == 140
    starts, data = block.offsets, block.data
    expected = [b"" if text is None else encode_jsonb_reference(text) for text in texts[10:150]]
    assert [data[a:b].tobytes() for a, b in itertools.pairwise(starts)] == expected
    with pytest.raises(InvalidInputError, match="row 90"):
        encode_jsonb(pa.array(["1234"] * 90 + ["x"]))


def test_encoded_json_decodes_to_the_same_values() -> None:
    texts = ['{"z":[1,2.5,null,true],"a":{"é":"\\n"}}', "[]", "-7"]
    block = jsonb_to_text(encode_jsonb(pa.array(texts)), "")
    starts = block.offsets.tolist()
    found = [json.loads(block.data[a:b].tobytes()) for a, b in itertools.pairwise(starts)]
    assert found == [json.loads(text) for text in texts]


def test_arrays_of_other_types_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="expected strings, found int64"):
        encode_jsonb(pa.array([1]))
    assert encode_jsonb(pa.array([], pa.string())).count == 0
