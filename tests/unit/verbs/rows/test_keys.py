from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.scan.predicate.kernels import hash_texts
from lance_duck.verbs.rows.keys import KeyIndex

VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int8(): st.integers(-128, 127),
    pa.int64(): st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 10**12, 7, 8, 9]),
    pa.uint64(): st.sampled_from([0, 1, 2**64 - 1, 2**63, 5]),
    pa.float32(): st.sampled_from([0.0, -0.0, 1.5, float("inf")]),
    pa.string(): st.sampled_from(["", "a", "b", "é"]),
    pa.string_view(): st.sampled_from(["", "a", "b", "long enough to be out of line"]),
    pa.binary(2): st.sampled_from([b"aa", b"ab"]),
    pa.bool_(): st.booleans(),
    pa.date32(): st.sampled_from([date(1960, 1, 1), date(2020, 1, 1)]),
    pa.timestamp("us", "UTC"): st.sampled_from([datetime(1960, 1, 1), datetime(2020, 1, 1)]),
    pa.decimal128(9, 2): st.sampled_from([Decimal("1.00"), Decimal("-2.50")]),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["x", "y"]),
}


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[pa.DataType], list[list[Any]], list[list[Any]]]:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | VALUES[type_] for type_ in types))
    source, target = draw(st.lists(row, max_size=12)), draw(st.lists(row, max_size=12))
    return types, [list(r) for r in source], [list(r) for r in target]


def columns(rows: list[list[Any]], types: list[pa.DataType]) -> list[pa.ChunkedArray]:
    half = len(rows) // 2
    parts = (rows[:half], rows[half:])
    return [
        pa.chunked_array([pa.array([r[i] for r in part], type_) for part in parts], type_)
        for i, type_ in enumerate(types)
    ]


@given(sides())
@settings(max_examples=200, deadline=None)
def test_keys_are_found_like_in_a_dict(case: tuple[list[pa.DataType], list[list[Any]], list[list[Any]]]) -> None:
    types, source, target = case
    names = [f"c{i}" for i in range(len(types))]
    keys = KeyIndex(columns(source, types), names)
    first: dict[tuple[Any, ...], int] = {}
    repeated = []
    for i, row in enumerate(source):
        if None in row:
            assert keys.codes[i] == -1
        elif tuple(row) in first:
            repeated.append(i)
        else:
            first[tuple(row)] = i
    assert keys.repeated.tolist() == repeated
    assert sorted(keys.first_rows.tolist()) == sorted(first.values())
    expected = [-1 if None in row else first.get(tuple(row), -1) for row in target]
    found = keys.find(columns(target, types))
    assert [-1 if code < 0 else keys.first_rows[code] for code in found] == expected
    sieve = keys.sieve([(name,) for name in names])
    assert sieve is not None
    arrays = {name: column.combine_chunks() for name, column in zip(names, columns(target, types), strict=True)}
    passed = sieve.mask(arrays, len(target)).to_pylist()
    assert all(ok for ok, place in zip(passed, expected, strict=True) if place >= 0)


@pytest.mark.parametrize("step", [3, 10**11])
def test_the_sieve_lets_few_other_rows_pass(step: int) -> None:
    keys = KeyIndex([pa.chunked_array([np.arange(-500, 500) * 100 * step])], ["id"])
    sieve = keys.sieve([("id",)])
    assert sieve is not None
    values = np.arange(-50_000, 50_000) * step
    mask = np.asarray(sieve.mask({"id": pa.array(values)}, len(values)))
    assert mask[values % (100 * step) == 0].all()
    assert mask.sum() < 25_000


@pytest.mark.parametrize("type_", [pa.list_(pa.int8()), pa.struct([("a", pa.int8())])])
def test_nested_values_cannot_be_keys(type_: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="column_a"):
        KeyIndex([pa.chunked_array([pa.nulls(1, type_)])], ["column_a"])


@given(st.lists(st.binary(max_size=12), max_size=20), st.integers(0, 5))
def test_string_hashes_depend_on_length_and_ends(texts: list[bytes], skip: int) -> None:
    array = pa.array([b"x" * 3] * skip + texts, pa.binary()).slice(skip)
    expected = []
    for text in texts:
        found = len(text)
        for byte in text[-8:]:
            found = ((found << 8) & (2**64 - 1)) ^ (found >> 56) ^ byte
        expected.append(found)
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    hashes = np.zeros(len(texts), np.uint64)
    data = b"".join([b"x" * 3] * skip + texts)
    hash_texts(readonly(offsets), readonly(np.frombuffer(data, np.uint8)), hashes)
    assert hashes.tolist() == expected
