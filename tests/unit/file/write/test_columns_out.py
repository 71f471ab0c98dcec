from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.file.memory_file import WrittenTable

from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.file.write.column import open_v21_column
from lance_duck.file.write.contract import ColumnWriter
from lance_duck.wire.schema_write import schema_from_arrow

VERSIONS = ("2.1", "2.2")
SPACE: Any = None


def writer(type_: pa.DataType, page_bytes: int = 8 << 20, version: str = "2.2", **field: Any) -> ColumnWriter:
    schema = schema_from_arrow(pa.schema([pa.field("x", type_, **field)]), version)
    return open_v21_column(schema.fields[0], version, SPACE, page_bytes)


def pages_of(out: ColumnWriter, *arrays: pa.Array) -> list[tuple[int, EncodedPage]]:
    """The pages of arrays, each with its physical column."""
    found = [pages for array in arrays for pages in out.write(array)] + out.finish()
    return [(i, one) for i, page in found for one in ([page] if isinstance(page, EncodedPage) else page())]


def read_back(array: pa.Array, version: str = "2.2", **options: Any) -> pa.Array:
    return WrittenTable(pa.table({"x": array}), version, **options).column("x")


def numbers(count: int) -> pa.Array:
    return pa.array(np.random.default_rng(1).integers(0, 1 << 60, count))


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_are_split_at_the_page_size(version: str) -> None:
    out = writer(pa.int64(), 8000, version)
    pages = [page for _, page in pages_of(out, *(numbers(700).slice(part) for part in range(5)))]
    assert sum(page.num_rows for page in pages) == 3490
    assert [page.first_row for page in pages] == np.cumsum([0, *(page.num_rows for page in pages[:-1])]).tolist()
    assert {page.num_rows for page in pages[:-1]} <= {982, 983, 984, 985}
    assert all(page.num_bytes < 8500 for page in pages)


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_of_uneven_values_are_split_by_bytes(version: str) -> None:
    texts = pa.array(["a" * 6000 if i % 50 == 0 else "b" * (i % 7) for i in range(500)])
    out = writer(pa.string(), 20_000, version)
    pages = pages_of(out, texts)
    assert 3 <= len(pages) <= 5
    assert read_back(texts, version, page_bytes=20_000).equals(texts)


def test_list_rows_are_not_split_over_pages() -> None:
    lists = pa.array([[1, 2, 3] * 400, [], [4] * 10, None, [5, 6] * 900], pa.list_(pa.int32()))
    out = writer(lists.type, 1000)
    pages = [page for _, page in pages_of(out, lists)]
    assert [page.num_rows for page in pages] == [1, 3, 1]
    assert read_back(lists, page_bytes=1000).equals(lists)


def test_leaf_columns_fill_their_pages_independently() -> None:
    rows = 4000
    struct = pa.StructArray.from_arrays([pa.array(np.arange(rows) % 7).cast(pa.int8()), numbers(rows)], ["a", "b"])
    out = writer(struct.type, 8000)
    assert out.num_columns == 2
    pages = pages_of(out, struct)
    assert sum(i == 0 for i, _ in pages) == 1
    assert sum(i == 1 for i, _ in pages) == 5


def test_buffered_rows_do_not_keep_their_parent_array_in_memory() -> None:
    out = writer(pa.int64())
    before = pa.total_allocated_bytes()
    large = pa.concat_arrays([numbers(1 << 20)])
    assert out.write(large.slice(1000, 10)) == []
    del large
    assert pa.total_allocated_bytes() - before < 1 << 20
    ((_, page),) = pages_of(out)
    assert page.num_rows == 10


def test_small_arrays_without_a_larger_parent_are_not_copied() -> None:
    array = numbers(1000)
    out = writer(pa.int64())
    before = pa.total_allocated_bytes()
    assert out.write(array) == []
    assert pa.total_allocated_bytes() - before < array.nbytes
    ((_, page),) = pages_of(out)
    assert page.num_rows == 1000


def test_no_rows_write_no_page() -> None:
    out = writer(pa.list_(pa.string()))
    assert pages_of(out, pa.array([], pa.list_(pa.string()))) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_dictionaries_of_several_arrays_are_merged(version: str) -> None:
    parts = [pa.array(["a", None, "b"]).dictionary_encode(), pa.array(["c", "b"]).dictionary_encode()]
    out = writer(parts[0].type, version=version)
    assert [page.num_rows for _, page in pages_of(out, *parts)] == [5]


def test_an_overflowing_dictionary_starts_a_new_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_duck.file.write.writer.has_narrow_dictionary", lambda _: False)
    parts = [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), pa.array([f"{name}{i}" for i in range(100)]))
        for name in "abc"
    ]
    table = pa.table({"x": pa.chunked_array(parts)})
    written = WrittenTable(table, "2.2")
    assert len(written.file.column(0).pages) == 3
    for start in (0, 100, 200):
        assert written.column("x", slice(start, start + 100)).to_pylist() == table["x"].slice(start, 100).to_pylist()


def test_null_and_unused_dictionary_items_are_dropped() -> None:
    with_null = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["a", None, "c"]))
    assert read_back(with_null).to_pylist() == ["a", None, "c", None]
    large = pa.DictionaryArray.from_arrays(pa.array([7, 5, 7]), pa.array([f"item {i}" for i in range(1000)]))
    written = WrittenTable(pa.table({"x": large}), "2.2")
    assert written.column("x").to_pylist() == ["item 7", "item 5", "item 7"]
    assert written.written.size < 2000


@pytest.mark.parametrize(
    ("array", "stored"),
    [
        (pa.array(["a", None, "bc"], pa.string_view()), pa.string()),
        (pa.array([b"a", None], pa.binary_view()), pa.binary()),
        (pa.array([[True, None], None, [False, True]], pa.list_(pa.bool_(), 2)), None),
        (pa.array([None, "x"], pa.large_string()).slice(1), None),
        (pa.array([{"a": {"b": None}}, None, {"a": None}], pa.struct([("a", pa.struct([("b", pa.null())]))])), None),
        (pa.array([1.5, None], pa.float16()), None),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_types_of_arrow_are_stored(array: pa.Array, stored: pa.DataType | None, version: str) -> None:
    found = read_back(array, version)
    assert found.type == (stored or array.type)
    assert found.to_pylist() == array.to_pylist()


def test_json_is_accepted_as_string_and_as_jsonb() -> None:
    text = pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(['{"a": [1, null]}', None, '"x"']))
    assert read_back(text).cast(pa.string()).to_pylist() == ['{"a":[1,null]}', None, '"x"']
    out = writer(text.type)
    ((_, page),) = pages_of(out, pa.array([b"\x20\0\0\0\x30\0\0\0"], pa.large_binary()))
    assert page.num_rows == 1


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (pa.map_(pa.string(), pa.int8()), "data files of version 2.1 cannot store type map"),
        (pa.list_(pa.map_(pa.string(), pa.int8())), "data files of version 2.1 cannot store type map"),
        (
            pa.list_(pa.struct([("a", pa.int8())]), 2),
            "data files of version 2.1 cannot store type fixed_size_list:struct:2",
        ),
    ],
)
def test_types_unknown_to_2_1_are_rejected(type_: pa.DataType, message: str) -> None:
    field = schema_from_arrow(pa.schema([pa.field("x", type_)])).fields[0]
    with pytest.raises(UnsupportedError, match=message):
        open_v21_column(field, "2.1", SPACE)


@pytest.mark.parametrize(
    ("type_", "array", "message"),
    [
        (pa.int8(), pa.array(["a"]), "column x: values do not fit the column"),
        (pa.int8(), pa.array([300]), "column x: values do not fit the column"),
        (pa.list_(pa.int8()), pa.array([1]), "column x: the array has a different type"),
        (pa.struct([("a", pa.int8())]), pa.array([{"b": 1}]), "a struct does not have the field: expected a"),
        (pa.list_(pa.int8(), 2), pa.array([[1]], pa.list_(pa.int8(), 1)), "values do not fit the column"),
    ],
)
def test_arrays_that_do_not_match_the_column_are_rejected(type_: pa.DataType, array: pa.Array, message: str) -> None:
    out = writer(type_)
    with pytest.raises(InvalidInputError, match=message):
        out.write(array)


def test_structs_without_fields_are_never_null() -> None:
    empty = pa.array([{}, {}], pa.struct([]))
    assert read_back(empty).to_pylist() == [{}, {}]
    for array in (pa.array([{}, None], pa.struct([])), pa.array([[{}]], pa.list_(pa.struct([])))):
        with pytest.raises(UnsupportedError, match="structs without fields"):
            writer(array.type).write(array)


def test_invalid_offsets_and_indices_are_rejected() -> None:
    texts = pa.StringArray.from_buffers(2, pa.py_buffer(np.array([0, 9, 3], np.int32)), pa.py_buffer(b"abc"))
    items = pa.array(["a"])
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 3, 0]), items, safe=False)
    lists = pa.Array.from_buffers(
        pa.list_(pa.int8()),
        2,
        [None, pa.py_buffer(np.array([0, 5, 2], np.int32))],
        children=[pa.array([1, 2], pa.int8())],
    )
    for array, message in (
        (texts, "the offsets of the values are invalid"),
        (coded, "a dictionary index is too high: expected below 1, found 3"),
        (lists, "the offsets of the lists are invalid"),
    ):
        out = writer(array.type)
        with pytest.raises(InvalidInputError, match=message):
            pages_of(out, array)
