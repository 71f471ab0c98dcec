from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as Packed
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.encoding.hand_pages import (
    Memory,
    chunk,
    chunk_words,
    flat,
    nested_page,
    page_of,
    ravel,
    structure_of,
    variable,
)

from lance_duck.encoding.layouts.page import Page, Rows
from lance_duck.errors import CorruptError, InternalError, LanceDuckError
from lance_duck.file.column import Locate, open_column
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import run, watched
from lance_duck.wire.pb import encodings21_pb2 as pb
from lance_duck.wire.pb import file2_pb2, file_pb2
from lance_duck.wire.schema import Field


def file_of(*columns: Sequence[Page], version: tuple[int, int] = (2, 2)) -> LanceFile:
    """A file with these pages, each copied to its memory."""
    source = Memory(path="file")
    metadata = []
    for pages in columns:
        message = file2_pb2.ColumnMetadata()
        for page in pages:
            place = source.size
            assert isinstance(page.source, Memory)
            source.data += page.source.data
            packed = Packed(type_url=page.encoding.type_url, value=page.encoding.value).SerializeToString()
            message.pages.add(
                buffer_offsets=[place + offset for offset, _ in page.buffers],
                buffer_sizes=[size for _, size in page.buffers],
                length=page.num_rows,
                encoding=file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=packed)),
            )
        metadata.append(message.SerializeToString())
    return LanceFile(source, version, 0, len(metadata), file_pb2.FileDescriptor(), metadata, [])


def located(file: LanceFile, *ids: int) -> Locate:
    """Field ids in the order of the physical columns."""
    return {field_id: (file, column) for column, field_id in enumerate(ids)}.get


def field(field_id: int, name: str, kind: str, *children: Field) -> Field:
    return Field(field_id, name, -1, kind, True, children=children)


INT = field(1, "a", "int32")
LIST = field(1, "l", "list", field(2, "item", "int32"))


def read(
    column: Field, locate: Locate, count: int, rows: Rows | None = None, kind: pa.DataType | None = None
) -> list[Any]:
    reader = open_column(column, locate, count, kind)
    found = run(reader.read(slice(0, count) if rows is None else rows))
    found.validate(full=True)
    assert found.type == reader.arrow_type
    result: list[Any] = found.to_pylist()
    return result


def flat_pages(*pages: Sequence[int | None]) -> list[Page]:
    return [nested_page(page, structure_of(False)) for page in pages]


def test_rows_are_read_across_pages() -> None:
    locate = located(file_of(flat_pages([1, None, 3], [4, 5], [None, 7])), 1)
    assert read(INT, locate, 7) == [1, None, 3, 4, 5, None, 7]
    assert read(INT, locate, 7, slice(2, 6)) == [3, 4, 5, None]
    assert read(INT, locate, 7, slice(3, 3)) == []
    assert read(INT, locate, 7, np.array([1, 2, 5, 6])) == [None, 3, None, 7]
    assert read(INT, locate, 7, np.array([], dtype=np.int64)) == []


def test_only_pages_with_chosen_rows_are_touched() -> None:
    file = file_of(flat_pages([1, 2], [3, 4], [5, 6]))
    assert read(INT, located(file, 1), 6, np.array([2])) == [3]
    assert isinstance(file.source, Memory)
    first, last = file.column(0).pages[1].buffers[0][0], sum(file.column(0).pages[1].buffers[-1])
    assert all(first <= offset and offset + size <= last for offset, size in file.source.reads)


def test_pages_that_describe_their_layers_differently() -> None:
    plain = nested_page([[1], [2, 3]], structure_of(False, True))
    layout = pb.PageLayout.FromString(plain.encoding.value)
    layout.mini_block_layout.ClearField("layers")
    layout.mini_block_layout.layers.extend([pb.REPDEF_ALL_VALID_ITEM, pb.REPDEF_EMPTYABLE_LIST])
    assert isinstance(plain.source, Memory)
    other = page_of(layout, [bytes(plain.source.data[a : a + n]) for a, n in plain.buffers], 2)
    pages = [nested_page([[None, 4], None, []], structure_of(False, True)), other]
    assert read(LIST, located(file_of(pages), 2), 5) == [[None, 4], None, [], [1], [2, 3]]


number = st.none() | st.integers(0, 9)
kinds_of_lists: dict[str, tuple[Field, tuple[bool, ...], Any]] = {
    "list": (LIST, (False, True), st.none() | st.lists(number, max_size=6)),
    "list of lists": (
        field(1, "l", "list", field(3, "item", "list", field(2, "item", "int32"))),
        (False, True, True),
        st.none() | st.lists(st.none() | st.lists(number, max_size=5), max_size=3),
    ),
    "struct of lists": (
        field(1, "s", "struct", field(3, "l", "list", field(2, "item", "int32"))),
        (False, True, False),
        st.none() | st.tuples(st.none() | st.lists(number, max_size=6)),
    ),
}


@pytest.mark.parametrize("kind", kinds_of_lists)
@settings(max_examples=40)
@given(data=st.data())
def test_list_pages_are_read_as_one(kind: str, data: st.DataObject) -> None:
    column, lists, row = kinds_of_lists[kind]
    structure = structure_of(*lists)
    some_rows = st.lists(row, min_size=1, max_size=6).filter(lambda rows: any(ravel(rows, structure).values))
    by_page = data.draw(st.lists(some_rows, min_size=2, max_size=5))
    file = file_of([nested_page(rows, structure, data.draw(st.integers(0, 2))) for rows in by_page])
    rows = [row if not isinstance(row, tuple) else {"l": row[0]} for page in by_page for row in page]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    chosen = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))
    locate = located(file, 2)
    assert read(column, locate, len(rows), slice(start, stop)) == rows[start:stop]
    assert read(column, locate, len(rows), np.array(chosen, np.int64)) == [rows[i] for i in chosen]


class WholeFile(LanceFile):
    """A file whose bytes are all in memory."""

    is_in_memory = True


@pytest.mark.parametrize("is_joined", [False, True])
def test_neighbouring_chunks_of_several_pages_are_fetched_together(is_joined: bool) -> None:
    part = file_of([nested_page([[1], [2, 3]], structure_of(False, True)) for _ in range(5)])
    joined = WholeFile(part.source, part.version, 0, 1, part.descriptor, [], [], {0: part.column(0)})
    reader = open_column(LIST, located(joined if is_joined else part, 2), 10)
    with watched() as counts:
        run(reader.read(slice(0, 10)))
    assert counts.ranges == 5 * 2 + 5  # tables and indexes of five pages, then their chunks


def test_a_damaged_page_is_named() -> None:
    file = file_of([nested_page([[1], [2, 3]], structure_of(False, True)) for _ in range(3)])
    assert isinstance(file.source, Memory)
    start, size = file.column(0).pages[1].buffers[1]
    file.source.data[start : start + size] = b"\xff" * size
    with pytest.raises(CorruptError, match="page 1"):
        read(LIST, located(file, 2), 6)


def test_structs_and_lists_are_assembled_from_leaves() -> None:
    rows = [[({"x": 1}), None], None, [], [{"x": None}]]
    as_leaf = [None if row is None else [None if v is None else (v["x"],) for v in row] for row in rows]
    page = nested_page(as_leaf, structure_of(False, False, True))
    other = nested_page(
        [None if r is None else [None if v is None else ([7],) for v in r] for r in as_leaf],
        structure_of(False, True, False, True),
    )
    inner = field(2, "item", "struct", field(3, "x", "int32"), field(4, "y", "list", field(5, "item", "int32")))
    column = field(1, "l", "list", inner)
    found = read(column, located(file_of([page], [other]), 3, 5), 4)
    assert found == [[{"x": 1, "y": [7]}, None], None, [], [{"x": None, "y": [7]}]]


def test_missing_columns_and_children_are_nulls() -> None:
    nowhere: Locate = {}.get
    assert read(INT, nowhere, 3, slice(1, 3)) == [None, None]
    page = nested_page([(1,), None, (None,)], structure_of(False, False))
    column = field(1, "s", "struct", field(2, "x", "int32"), field(3, "new", "string"), field(4, "n", "list", INT))
    expected = [{"x": 1, "new": None, "n": None}, None, {"x": None, "new": None, "n": None}]
    assert read(column, located(file_of([page]), 2), 3) == expected


def test_maps_are_read() -> None:
    keys = nested_page([[(1,), (2,)], None, []], structure_of(False, False, True))
    values = nested_page([[(10,), (None,)], None, []], structure_of(False, False, True))
    entries = field(2, "entries", "struct", field(3, "key", "int32"), field(4, "value", "int32"))
    locate = located(file_of([keys], [values]), 3, 4)
    assert read(field(1, "m", "map", entries), locate, 3) == [[(1, 10), (2, None)], None, []]


def test_fixed_size_lists_of_structs() -> None:
    levels = nested_page([((1,),), ((2,),), (None,), ((None,),), None, None], structure_of(False, False, False))
    item = field(2, "item", "struct", field(3, "x", "int32"))
    column = field(1, "f", "fixed_size_list:struct:2", item)
    locate = located(file_of([levels]), 3)
    rows = [[{"x": 1}, {"x": 2}], [None, {"x": None}], None]
    assert read(column, locate, 3) == rows
    assert read(column, locate, 3, np.array([0, 2])) == [rows[0], rows[2]]


def test_empty_structs_are_never_null() -> None:
    layout = pb.PageLayout(constant_layout=pb.ConstantLayout(layers=[pb.REPDEF_NULLABLE_ITEM]))
    locate = located(file_of([page_of(layout, [], 2)]), 1)
    assert read(field(1, "e", "struct"), locate, 2) == [{}, {}]


def text_page(values: Sequence[str], dictionary: bool = False) -> Page:
    data = [v.encode() for v in values]
    offsets = np.cumsum([4 * (len(data) + 1), *map(len, data)]).astype("<i4").tobytes()
    layout = pb.MiniBlockLayout(
        value_compression=variable(), layers=[1], num_buffers=1, num_items=len(data), has_large_chunk=True
    )
    buffers = [chunk([offsets + b"".join(data)])]
    if dictionary:
        layout.value_compression.CopyFrom(flat(32))
        layout.dictionary.CopyFrom(variable())
        layout.num_dictionary_items = len(data)
        head = np.array([32, 8 + len(offsets)], dtype="<u4").tobytes()
        starts = np.cumsum([0, *map(len, data)]).astype("<i4").tobytes()
        buffers = [chunk([np.arange(len(data), dtype="<u4").tobytes()]), head + starts + b"".join(data)]
    words = chunk_words(buffers[:1], [0])
    return page_of(pb.PageLayout(mini_block_layout=layout), [words, *buffers], len(values))


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
@pytest.mark.parametrize("dictionary", [False, True])
def test_strings_are_read_in_the_requested_type(kind: pa.DataType, dictionary: bool) -> None:
    pages = [text_page(["a", "a text of more than twelve"], dictionary), text_page(["b", "a"], dictionary)]
    column = field(1, "t", "string")
    locate = located(file_of(pages), 1)
    assert open_column(column, locate, 4).is_dictionary() == dictionary
    assert read(column, locate, 4, None, kind) == ["a", "a text of more than twelve", "b", "a"]


def test_columns_with_too_few_rows_are_rejected() -> None:
    file = file_of(flat_pages([1, 2, 3]))
    with pytest.raises(CorruptError, match="wrong row count in the pages"):
        open_column(INT, located(file, 1), 4)
    with pytest.raises(InternalError):
        read(INT, located(file, 1), 3, slice(0, 4))


def test_layers_missing_in_the_schema_are_rejected() -> None:
    with pytest.raises(CorruptError, match="layers"):
        read(LIST, located(file_of(flat_pages([1, 2, 3])), 2), 3)


def test_contradictory_leaves_are_rejected() -> None:
    one = nested_page([[(1,)], [(2,)]], structure_of(False, False, True))
    other = nested_page([[(1,), (2,)], [(3,)]], structure_of(False, False, True))
    inner = field(2, "item", "struct", field(3, "x", "int32"), field(4, "y", "int32"))
    column = field(1, "l", "list", inner)
    with pytest.raises(CorruptError, match="have different lengths"):
        read(column, located(file_of([one], [other]), 3, 4), 2)


def test_values_that_do_not_match_the_type_are_rejected() -> None:
    with pytest.raises(LanceDuckError):
        read(field(1, "a", "int64"), located(file_of(flat_pages([1, 2, 3])), 1), 3)
