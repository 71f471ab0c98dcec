from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import Memory
from unit.file.v01.hand_files import Built, legacy_file

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.file.column import ColumnReader, Locate, open_column
from lance_duck.file.open import open_data_file
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import run
from lance_duck.wire.schema import Schema

ROWS = 41
NUMBERS = np.arange(ROWS)
TEXTS = [f"{i}" * (i % 4) for i in NUMBERS]
LISTS = [[int(i)] * (i % 3) for i in NUMBERS]
COLUMNS = {
    "int16": pa.array(NUMBERS, pa.int16()),
    "bool": pa.array(NUMBERS % 3 == 0),
    "double": pa.array(NUMBERS / 4),
    "decimal": pa.array(NUMBERS).cast(pa.decimal128(25, 2)),
    "fixed": pa.array([bytes([i, 1, 2]) for i in NUMBERS], pa.binary(3)),
    "vector": pa.array([[i, i + 1, i + 2] for i in NUMBERS / 2], pa.list_(pa.float32(), 3)),
    "flags": pa.array([[i % 2 == 0, True, i % 5 == 0] for i in NUMBERS], pa.list_(pa.bool_(), 3)),
    "grid": pa.array([[[int(i)], [2]] for i in NUMBERS], pa.list_(pa.list_(pa.int8(), 1), 2)),
    "text": pa.array([text or None for text in TEXTS]),
    "list": pa.array(LISTS, pa.list_(pa.int32())),
    "large": pa.array([[["a", "bb"]] * (i % 3) for i in NUMBERS], pa.large_list(pa.list_(pa.string()))),
    "structs": pa.array([[{"a": i, "b": [x]} for x in row] for i, row in enumerate(LISTS)]),
    "words": pa.DictionaryArray.from_arrays(pa.array(NUMBERS % 3, pa.int8()), pa.array(["x", "yy", "z"])),
    "codes": pa.DictionaryArray.from_arrays(pa.array(NUMBERS % 2, pa.uint16()), pa.array([7, 9])),
    "null": pa.nulls(ROWS),
    "struct": pa.array([{"p": int(i), "q": {"r": f"r{i}"}} for i in NUMBERS]),
}
TABLE = pa.table(COLUMNS)
SIZES = (10, 1, 16, 14)


def batches_of(table: pa.Table, sizes: Sequence[int] = SIZES) -> list[pa.RecordBatch]:
    starts = np.cumsum([0, *sizes])
    return [table.slice(a, n).combine_chunks().to_batches()[0] for a, n in zip(starts, sizes, strict=False)]


def open_(source: Memory) -> LanceFile:
    return run(open_data_file(source))


def located(*files: tuple[LanceFile, Schema]) -> Locate:
    places = {f.id: (file, f.id) for file, schema in reversed(files) for f in schema.walk()}
    return places.get


BUILT = legacy_file(batches_of(TABLE))
FILE = open_(BUILT.source)


def column(name: str, built: Built = BUILT, file: LanceFile = FILE) -> ColumnReader:
    return open_column(built.schema.by_path(name), located((file, built.schema)), file.num_rows)


@pytest.mark.parametrize("name", COLUMNS)
def test_rows_of_every_type_are_read(name: str) -> None:
    expected, reader = COLUMNS[name], column(name)
    assert reader.arrow_type == expected.type
    assert run(reader.read(slice(0, ROWS))).equals(expected)
    assert run(reader.read(slice(9, 30))).equals(expected[9:30])
    rows = np.array([0, 9, 10, 11, 12, 26, 27, 40])
    assert run(reader.read(rows)).equals(expected.take(rows))
    assert len(run(reader.read(slice(5, 5)))) == 0


@given(rows=st.sets(st.integers(0, ROWS - 1)), name=st.sampled_from([*COLUMNS]))
def test_any_rows_can_be_read(rows: set[int], name: str) -> None:
    places = np.array(sorted(rows), np.int64)
    found = run(column(name).read(places))
    assert found.to_pylist() == COLUMNS[name].take(pa.array(places)).to_pylist()


def test_an_empty_string_reads_as_null_in_a_nullable_column() -> None:
    rows = pa.record_batch(
        [pa.array(["", "a"]), pa.array(["", "b"])],
        pa.schema([pa.field("may", pa.string()), pa.field("not", pa.string(), nullable=False)]),
    )
    built = legacy_file([rows])
    file = open_(built.source)
    assert run(column("may", built, file).read(slice(0, 2))).to_pylist() == [None, "a"]
    assert run(column("not", built, file).read(slice(0, 2))).to_pylist() == ["", "b"]


def test_values_are_read_in_other_arrow_types() -> None:
    forms = {"text": pa.string_view(), "words": pa.string(), "vector": pa.list_(pa.float32(), 3)}
    for name, form in forms.items():
        reader = open_column(BUILT.schema.by_path(name), located((FILE, BUILT.schema)), ROWS, form)
        assert run(reader.read(slice(0, ROWS))).to_pylist() == COLUMNS[name].to_pylist()


def test_dictionary_columns_are_recognised() -> None:
    assert column("words").is_dictionary()
    assert not column("text").is_dictionary()


def test_rows_outside_the_column_are_rejected() -> None:
    for rows in (slice(0, ROWS + 1), np.array([-1]), np.array([ROWS])):
        with pytest.raises(InvalidInputError):
            run(column("text").read(rows))


def test_a_struct_with_fields_in_several_files_is_read() -> None:
    whole = Schema((BUILT.schema.by_path("struct"),))
    second = legacy_file(batches_of(pa.table({"r2": TEXTS}), (30, 11)), first_id=90)
    top = whole.fields[0]
    added = replace(second.schema.fields[0], parent_id=top.id)
    field = replace(top, children=(*top.children, added))
    locate = located((FILE, whole), (open_(second.source), Schema((added,))))
    found = run(open_column(field, locate, ROWS).read(slice(7, 33)))
    assert found.field("r2").to_pylist() == [text or None for text in TEXTS[7:33]]
    assert found.field("p").to_pylist() == [*range(7, 33)]


def test_columns_of_more_rows_than_bytes() -> None:
    table = pa.table({"null": pa.nulls(9000), "bool": pa.array([True, False, False] * 3000)})
    built = legacy_file(batches_of(table, (4000, 5000)))
    assert built.source.size < 4000
    file = open_(built.source)
    for name in table.column_names:
        assert run(column(name, built, file).read(slice(0, 9000))).equals(table[name].combine_chunks())


def test_a_missing_field_reads_as_null() -> None:
    missing = replace(BUILT.schema.by_path("text"), id=500)
    assert run(open_column(missing, located((FILE, BUILT.schema)), ROWS).read(slice(0, 3))).to_pylist() == [None] * 3


def test_a_file_with_another_row_count_is_corrupt() -> None:
    with pytest.raises(CorruptError, match="wrong row count in column 'text'"):
        open_column(BUILT.schema.by_path("text"), located((FILE, BUILT.schema)), ROWS + 1)


def test_gaps_in_field_ids_are_allowed() -> None:
    built = legacy_file(batches_of(TABLE.select(["int16", "list"])), first_id=5)
    file = open_(built.source)
    assert run(column("list", built, file).read(slice(0, ROWS))).equals(COLUMNS["list"])


def test_a_page_table_from_id_0_on() -> None:
    built = legacy_file(batches_of(TABLE.select(["text"])), first_id=5, table_from=0, minor=1)
    assert run(column("text", built, open_(built.source)).read(slice(0, ROWS))).equals(COLUMNS["text"])


def test_a_legacy_file_reports_version_rows_and_pages() -> None:
    assert (FILE.version, FILE.num_rows) == ((0, 1), ROWS)
    pages = FILE.column(BUILT.schema.by_path("double").id).pages
    assert [(page.num_rows, page.first_row) for page in pages] == [(10, 0), (1, 10), (16, 11), (14, 27)]
    assert [size for page in pages for _, size in page.buffers] == [80, 8, 128, 112]
    text = FILE.column(BUILT.schema.by_path("text").id).pages
    assert sum(size for page in text for _, size in page.buffers) == sum(map(len, TEXTS)) + 8 * (ROWS + len(SIZES))
    described = [size for i in FILE.column_numbers for p in FILE.column(i).pages for _, size in p.buffers]
    assert sum(described) == BUILT.table


def test_a_take_reads_only_its_rows() -> None:
    reader = column("double")
    BUILT.source.reads.clear()
    run(reader.read(np.array([3, 20])))
    assert sorted(size for _, size in BUILT.source.reads) == [8, 8]


def changed(position: int, data: bytes) -> Memory:
    whole = bytearray(BUILT.source.data)
    whole[position : position + len(data)] = data
    return Memory(whole)


def read_all(source: Memory) -> None:
    file = open_(source)
    for name in COLUMNS:
        for rows in (slice(0, file.num_rows), np.arange(0, file.num_rows, 3)):
            array = run(column(name, BUILT, file).read(rows))
            array.validate(full=name != "decimal")


@given(place=st.integers(0, BUILT.source.size - 1), value=st.integers(0, 255))
def test_any_changed_byte_decodes_or_raises_an_error(place: int, value: int) -> None:
    with suppress(LanceDuckError):
        read_all(changed(place, bytes([value])))


WORDS = st.sampled_from([0, 1, 7, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, -1, -(1 << 63)])


@given(entry=st.integers(0, (BUILT.manifest - BUILT.table) // 8 - 1), word=WORDS)
def test_any_changed_page_table_entry_decodes_or_raises_an_error(entry: int, word: int) -> None:
    with suppress(LanceDuckError):
        read_all(changed(BUILT.table + 8 * entry, word.to_bytes(8, "little", signed=True)))


@pytest.mark.parametrize("name", ["text", "list", "words", "int16", "flags"])
def test_pages_outside_the_file_are_corrupt(name: str) -> None:
    number = BUILT.schema.by_path(name).id
    entry = BUILT.table + 16 * len(SIZES) * number
    for place, word in ((entry, BUILT.source.size - 3), (entry, -5), (entry + 8, 1 << 50), (entry + 8, 9)):
        source = changed(place, word.to_bytes(8, "little", signed=True))
        with pytest.raises(CorruptError):
            run(column(name, BUILT, open_(source)).read(slice(0, ROWS)))


def test_pages_with_overlapping_bytes_are_corrupt() -> None:
    long = pa.table({"text": ["x" * 1000] * 50})
    built = legacy_file(batches_of(long, [1] * 50))
    first = built.pages[0][0]
    for i in range(50):
        built.source.data[built.table + 16 * i : built.table + 16 * i + 8] = first[0].to_bytes(8, "little")
    file = open_(built.source)
    assert len(run(column("text", built, file).read(slice(0, 40)))) == 40
    huge = legacy_file(batches_of(pa.table({"text": ["x" * 1000, *[""] * 300]}), [1] * 301))
    first = huge.pages[0][0]
    for i in range(301):
        huge.source.data[huge.table + 16 * i : huge.table + 16 * i + 8] = first[0].to_bytes(8, "little")
    with pytest.raises(CorruptError, match="the pages overlap"):
        run(column("text", huge, open_(huge.source)).read(slice(0, 301)))


def test_a_list_outside_its_batch_is_corrupt() -> None:
    number = BUILT.schema.by_path("list").id
    position, _ = BUILT.pages[number][0]
    for word in (1000, -1):
        source = changed(position + 40, word.to_bytes(4, "little", signed=True))
        with pytest.raises(CorruptError, match="offsets"):
            run(column("list", BUILT, open_(source)).read(slice(0, ROWS)))


def test_an_index_beyond_its_dictionary_is_damage() -> None:
    position, _ = BUILT.pages[BUILT.schema.by_path("words").id][0]
    with pytest.raises(CorruptError, match="a dictionary index is too high"):
        run(column("words", BUILT, open_(changed(position + 2, b"\xff"))).read(slice(0, ROWS)))


def test_types_unknown_to_legacy_files_are_rejected() -> None:
    top = replace(BUILT.schema.by_path("structs"), logical_type="map")
    with pytest.raises(UnsupportedError, match=r"0\.1"):
        open_column(top, located((FILE, BUILT.schema)), ROWS, pa.map_(pa.string(), pa.int8()))
