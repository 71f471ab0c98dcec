from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.file.memory_file import WrittenTable

from lance_duck.errors import ArrayLimitError, InvalidInputError, UnsupportedError

PACKED = {"lance-encoding:packed": "true"}
FLAT = [
    pa.int8(),
    pa.uint64(),
    pa.float32(),
    pa.bool_(),
    pa.null(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(3),
    pa.timestamp("us", "UTC"),
    pa.decimal128(9, 2),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint16(), pa.int64()),
    pa.list_(pa.int16(), 3),
    pa.list_(pa.bool_(), 2),
    pa.list_(pa.list_(pa.float64(), 1), 2),
]
TYPES = st.recursive(
    st.sampled_from(FLAT),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(pa.large_list)
        | st.lists(inner, min_size=0, max_size=3).map(
            lambda kinds: pa.struct([(f"f{i}", k) for i, k in enumerate(kinds)])
        )
    ),
    max_leaves=4,
)


def value(kind: pa.DataType, rng: random.Random, nulls: float) -> Any:
    if pa.types.is_struct(kind):
        return {f.name: value(f.type, rng, nulls) for f in kind}
    if rng.random() < nulls or pa.types.is_null(kind):
        return None
    if pa.types.is_fixed_size_list(kind):
        return [value(kind.value_type, rng, nulls) for _ in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [value(kind.value_type, rng, nulls) for _ in range(rng.choice([0, 1, 2, 5]))]
    if pa.types.is_dictionary(kind):
        return value(kind.value_type, rng, 0)
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return rng.randbytes(3)
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    number = rng.randrange(100)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "é" * rng.randrange(4) + str(number % 10 if nulls < 0.3 else number * 1000003)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return rng.randbytes(number % 7)
    return number


@settings(deadline=None)
@given(
    TYPES,
    st.integers(0, 150),
    st.sampled_from([0, 0.2, 0.5, 1]),
    st.sampled_from([20, 300, 8 << 20]),
    st.sampled_from([1, 7, 1000]),
    st.integers(0, 5),
    st.integers(),
)
def test_written_columns_read_back(
    kind: pa.DataType, rows: int, nulls: float, page_bytes: int, batch: int, skip: int, seed: int
) -> None:
    rng = random.Random(seed)
    values = [value(kind, rng, nulls) for _ in range(rows + skip)]
    array = pa.array(values, kind).slice(skip)
    written = WrittenTable(pa.table({"c": array}), "2.0", page_bytes, batch)
    found = written.column("c")
    assert found.type == array.type
    assert found.to_pylist() == array.to_pylist()
    places = np.array(sorted(rng.sample(range(rows), rows // 3)), np.int64)
    assert written.column("c", places).to_pylist() == array.take(pa.array(places)).to_pylist()


@pytest.mark.parametrize("scheme", ["zstd", "lz4", "none", "fsst"])
@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_compressed_strings_round_trip(scheme: str, kind: pa.DataType) -> None:
    metadata = {"lance-encoding:compression": scheme, "lance-encoding:compression-level": "2"}
    array = pa.array([None if i % 9 == 0 else f"a text that is not short {i}" for i in range(2000)]).cast(kind)
    table = pa.table([array], schema=pa.schema([pa.field("c", kind, metadata=metadata)]))
    written = WrittenTable(table, "2.0")
    assert written.column("c").equals(array)
    assert (written.written.size < 50_000) == (scheme != "none")


def test_repeated_strings_are_dictionary_encoded() -> None:
    few = pa.array([None if i % 9 == 0 else f"text {i % 250}" for i in range(3000)])
    written = WrittenTable(pa.table({"c": few}), "2.0")
    assert written.written.size < 9000
    assert written.column("c").equals(few)


def test_packed_structs_round_trip() -> None:
    kind = pa.struct([("a", pa.int32()), ("v", pa.list_(pa.float32(), 2)), ("b", pa.uint8())])
    array = pa.array([{"a": i, "v": [i, -i], "b": i % 200} for i in range(300)], kind)
    table = pa.table([array], schema=pa.schema([pa.field("c", kind, metadata=PACKED)]))
    written = WrittenTable(table.slice(7), "2.0", batch=90)
    assert written.column("c").to_pylist() == array.to_pylist()[7:]
    assert written.written.fields == (0,)


def test_fixed_size_lists_of_structs_are_rejected() -> None:
    kind = pa.list_(pa.struct([("a", pa.int32()), ("b", pa.int64())]), 2)
    with pytest.raises(
        UnsupportedError,
        match=r"column 'c': data files of version 2.0 cannot store type .*; write with data_storage_version='2\.2'",
    ):
        WrittenTable(pa.table({"c": pa.array([[{"a": 1, "b": 1}, {"a": 2, "b": 2}]], kind)}), "2.0")


def outgrown_dictionaries() -> pa.Table:
    """Chunks whose dictionaries together have more entries than their indices can count."""
    parts = [pa.array([f"{k}-{i}" for i in range(100)]).dictionary_encode() for k in range(4)]
    kind = pa.dictionary(pa.int8(), pa.string())
    return pa.table({"c": pa.chunked_array([part.cast(kind) for part in parts])})


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_file_with_an_overflowing_dictionary_is_rejected(version: str) -> None:
    with pytest.raises(ArrayLimitError, match=r"column 'c': a data file has more dictionary entries .*found 200; cast"):
        WrittenTable(outgrown_dictionaries(), version)


def test_a_combined_dictionary_that_overflows_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_duck.file.write.writer.has_narrow_dictionary", lambda _: False)
    table = outgrown_dictionaries()
    written = WrittenTable(table, "2.0")
    found = [written.column("c", slice(start, start + 100)).to_pylist() for start in range(0, 400, 100)]
    assert [text for part in found for text in part] == table["c"].to_pylist()


def test_json_is_stored_as_jsonb() -> None:
    texts = pa.array(['{"b": [1, 2.5],  "a": null}', None, "[]"])
    field = pa.field("c", pa.string(), metadata={"ARROW:extension:name": "arrow.json"})
    written = WrittenTable(pa.table([texts], schema=pa.schema([field])), "2.0")
    found = written.column("c")
    assert (found.storage if isinstance(found, pa.ExtensionArray) else found).to_pylist() == [
        '{"a":null,"b":[1,2.5]}',
        None,
        "[]",
    ]
    with pytest.raises(InvalidInputError, match="column 'c', row 1: the string is not JSON"):
        WrittenTable(pa.table([pa.array(["1", "x"])], schema=pa.schema([field])), "2.0")


STRUCT = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("x", pa.int8())])))])


@pytest.mark.parametrize(
    ("values", "field", "message"),
    [
        (
            [None],
            pa.field("c", STRUCT),
            "column 'c': data files of version 2.0 cannot store null structs: found 1 nulls; write",
        ),
        (
            [{"b": [None]}],
            pa.field("c", STRUCT),
            "column 'c.b.item': .* cannot store null structs",
        ),
        ([[("k", 1)]], pa.field("c", pa.map_(pa.string(), pa.int8())), "column 'c': .*map"),
        (
            [None],
            pa.field("c", pa.struct([("a", pa.int8())]), metadata=PACKED),
            "column 'c': .*this packed struct.* null structs",
        ),
        ([{"a": None}], pa.field("c", pa.struct([("a", pa.int8())]), metadata=PACKED), "found nulls in 'a'"),
        ([{"a": "x"}], pa.field("c", pa.struct([("a", pa.string())]), metadata=PACKED), "found 'a' of type string"),
    ],
)
def test_types_that_2_0_cannot_store_are_rejected_by_name(values: list[Any], field: pa.Field, message: str) -> None:
    table = pa.table([pa.array(values, field.type)], schema=pa.schema([field]))
    with pytest.raises(UnsupportedError, match=message) as caught:
        WrittenTable(table, "2.0")
    assert "2.2" in str(caught.value)


def test_a_full_dictionary_with_nulls_is_rejected() -> None:
    indices = pa.array([*range(128), None], pa.int8())
    array = pa.DictionaryArray.from_arrays(indices, pa.array([str(i) for i in range(128)]))
    with pytest.raises(UnsupportedError, match="use a wider index"):
        WrittenTable(pa.table({"c": array}), "2.0")


def test_null_structs_in_null_lists_are_dropped() -> None:
    kind = pa.list_(pa.struct([("x", pa.int8())]))
    array = pa.ListArray.from_arrays(
        pa.array([0, 1, 2], pa.int32()), pa.array([None, {"x": 1}], kind.value_type), kind, mask=pa.array([True, False])
    )
    assert WrittenTable(pa.table({"c": array}), "2.0").column("c").to_pylist() == [None, [{"x": 1}]]
