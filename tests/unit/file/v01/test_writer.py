from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.file.memory_file import MemorySink, MemorySource
from unit.file.v01.test_columns import TABLE

from lance_duck.errors import UnsupportedError
from lance_duck.file.column import open_column
from lance_duck.file.open import open_data_file
from lance_duck.file.v01.container import LegacyFile
from lance_duck.file.v01.writer import MOST_SPARE_IDS, LegacyFileWriter
from lance_duck.store.request import run
from lance_duck.wire.files.dictionaries import values_of, values_page
from lance_duck.wire.schema_write import schema_from_arrow

LEGACY = "0.1"


def written(table: pa.Table, rows_per_group: int = 10, first_id: int = 0, batch: int = 7, **options: Any) -> LegacyFile:
    schema = schema_from_arrow(table.schema, LEGACY, first_id)
    sink = MemorySink()
    with LegacyFileWriter(sink, schema, rows_per_group=rows_per_group, **options) as writer:
        for part in table.to_batches(batch):
            writer.write(part)
        assert writer.num_rows == table.num_rows
        assert writer.reaches(writer.tell())
        done = writer.finish()
    assert sink.data is not None
    assert (done.num_rows, done.size, done.version) == (table.num_rows, len(sink.data), (0, 2))
    file = run(open_data_file(MemorySource(sink.data)))
    assert isinstance(file, LegacyFile)
    assert done.fields == tuple(file.column_numbers)
    return file


def read(file: LegacyFile, table: pa.Table, first_id: int = 0) -> pa.Table:
    schema = schema_from_arrow(table.schema, LEGACY, first_id)
    columns = [open_column(f, lambda i: (file, i), file.num_rows) for f in schema.fields]
    return pa.table([run(column.read(slice(0, file.num_rows))) for column in columns], schema.names)


@pytest.mark.parametrize(("group", "batch"), [(10, 7), (1, 41), (1024, 3), (41, 41), (7, 14)])
def test_written_tables_read_back(group: int, batch: int) -> None:
    file = written(TABLE, group, batch=batch)
    assert file.bounds.tolist() == [*range(0, 41, group), 41]
    found = read(file, TABLE)
    for name in TABLE.column_names:
        assert found[name].to_pylist() == TABLE[name].to_pylist(), name


def test_field_ids_may_start_above_0() -> None:
    table = TABLE.select(["struct", "list", "words"])
    assert read(written(table, first_id=900), table, 900).to_pylist() == table.to_pylist()


def test_distant_field_ids_are_rejected_instead_of_filling_the_disk() -> None:
    schema = schema_from_arrow(TABLE.select(["struct", "words"]).schema, LEGACY)
    far = replace(schema, fields=(schema.fields[0], replace(schema.fields[1], id=2**31 - 1)))
    with pytest.raises(UnsupportedError, match=r"field ids.*2\.2"):
        LegacyFileWriter(MemorySink(), far)
    near = replace(schema, fields=(schema.fields[0], replace(schema.fields[1], id=MOST_SPARE_IDS)))
    LegacyFileWriter(MemorySink(), near).abort()


def test_a_file_without_rows() -> None:
    file = written(TABLE.slice(0, 0))
    assert file.num_rows == 0
    assert read(file, TABLE).num_rows == 0


def test_items_outside_lists_are_not_written() -> None:
    items = pa.array(["no", "a", "b", "c", "no"])
    lists = pa.ListArray.from_arrays(pa.array([1, 2, 2, 4], pa.int32()), items)
    table = pa.table({"l": lists})
    assert read(written(table, 2), table)["l"].to_pylist() == [["a"], [], ["b", "c"]]
    assert read(written(table.slice(1), 2), table)["l"].to_pylist() == [[], ["b", "c"]]


LOSSY = {
    "number": pa.array([1, None]),
    "boolean": pa.array([True, None]),
    "struct": pa.array([{"a": 1}, None]),
    "list": pa.array([[1], None]),
    "item": pa.array([[1, None]]),
    "vector": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
    "vector item": pa.array([[1.0, None]], pa.list_(pa.float32(), 2)),
    "member": pa.array([{"a": {"b": 1}}, {"a": {"b": None}}]),
    "dictionary of numbers": pa.array([7, None]).dictionary_encode(),
    "empty text": pa.array(["a", ""]),
    "empty bytes in a list": pa.array([[b"a"], [b""]]),
    "empty text in a dictionary": pa.array(["a", ""]).dictionary_encode(),
}


@pytest.mark.parametrize("name", LOSSY)
def test_values_that_would_read_back_differently_are_rejected(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot store .*2\.2"):
        written(pa.table({"x": LOSSY[name]}))


def test_lists_that_exceed_the_offsets_of_a_batch_are_rejected() -> None:
    count = 2**31 - 1  # nulls, which need little memory
    half = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.nulls(count))
    table = pa.table({"list": pa.chunked_array([half, half])})
    with pytest.raises(UnsupportedError, match=r"column 'list': .* at most 2147483647, found 4294967294.*max_rows_per"):
        written(table)
    assert written(table, rows_per_group=1).num_rows == 2


def test_null_strings_have_no_bytes_and_empty_strings_require_a_non_nullable_column() -> None:
    hidden = pa.StringArray.from_buffers(
        3, pa.py_buffer(np.array([0, 2, 5, 6], "i4")), pa.py_buffer(b"aaBBBc"), pa.py_buffer(b"\x05")
    )
    table = pa.table({"x": hidden})
    assert read(written(table), table)["x"].to_pylist() == ["aa", None, "c"]
    strict = pa.table([pa.array(["a", "", "c"])], schema=pa.schema([pa.field("x", pa.string(), nullable=False)]))
    assert read(written(strict), strict)["x"].to_pylist() == ["a", "", "c"]


def dictionary(values: list[Any], items: pa.Array | None = None) -> pa.Table:
    if items is None:
        return pa.table({"x": pa.array(values, pa.string()).dictionary_encode()})
    places = [None if v is None else items.to_pylist().index(v) for v in values]
    return pa.table({"x": pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), items)})


def test_all_batches_use_the_first_dictionary() -> None:
    first, second = dictionary(["a", None, "b"]), dictionary(["b", None, "a"], pa.array(["unused", None, "b", "a"]))
    table = pa.Table.from_batches([*first.to_batches(), *second.cast(first.schema).to_batches()])
    dictionaries: dict[int, pa.Array] = {}
    file = written(table, dictionaries=dictionaries)
    assert read(file, table)["x"].to_pylist() == ["a", None, "b", "b", None, "a"]
    assert dictionaries[0].to_pylist() == ["a", "b", ""]
    again = written(dictionary(["b"]), dictionaries=dictionaries)
    assert again.dictionary_extent(0)[1] == 3
    with pytest.raises(UnsupportedError, match=r"dictionary of the column does not contain the value.*'c'"):
        written(dictionary(["c"]), dictionaries=dictionaries)


def test_the_table_dictionary_is_kept() -> None:
    schema = schema_from_arrow(dictionary([]).schema, LEGACY)
    assert schema.fields[0].dictionary is None
    with pytest.raises(UnsupportedError, match="index type can address"):
        written(dictionary(["a"], pa.array(["a"])), dictionaries={0: pa.array([f"{i}" for i in range(128)] + ["a"])})


REFUSED: list[Callable[[], pa.Field]] = [
    lambda: pa.field("x", pa.map_(pa.string(), pa.int32())),
    lambda: pa.field("x", pa.struct([])),
    lambda: pa.field("x", pa.list_(pa.struct([]))),
    lambda: pa.field("x", pa.binary(0)),
    lambda: pa.field("x", pa.list_(pa.struct([("a", pa.int8())]), 2)),
    lambda: pa.field("x", pa.dictionary(pa.int8(), pa.float64())),
    lambda: pa.field("x", pa.dictionary(pa.int8(), pa.bool_())),
    lambda: pa.field("x", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
]


@pytest.mark.parametrize("make", REFUSED)
def test_types_unknown_to_the_version_are_rejected(make: Callable[[], pa.Field]) -> None:
    with pytest.raises(UnsupportedError, match=r"column 'x.*0\.1"):
        schema_from_arrow(pa.schema([make()]), LEGACY)


@given(
    texts=st.lists(st.text(max_size=5), max_size=9, unique=True),
    before=st.binary(max_size=9),
    cut=st.integers(0, 90),
    length=st.integers(0, 1 << 62),
)
def test_dictionary_values_are_written(texts: list[str], before: bytes, cut: int, length: int) -> None:
    for values in (pa.array(texts, pa.string()), pa.array(range(len(texts)), pa.int16())):
        page, position = values_page(values, len(before))
        data = before + page
        found = values_of(data, position, len(values), values.type)
        assert found is not None
        assert found.equals(values)
        whole = values_of(data[: max(0, len(data) - cut)], position + cut % 3, length, values.type)
        assert whole is None or len(whole) == length
