from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as Packed
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import Memory

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.file.reader import LanceFile
from lance_duck.file.v20.columns import Column20, open_column20
from lance_duck.store.request import run
from lance_duck.wire.pb import encodings20_pb2 as pb
from lance_duck.wire.pb import file2_pb2, file_pb2
from lance_duck.wire.schema import Field

Encoding = pb.ArrayEncoding
PageSpec = tuple[Encoding, list[bytes], int]
Names = Callable[[str, str], "Field"]

STRUCT = Encoding(struct=pb.SimpleStruct())
DESCRIPTORS = pa.struct([("position", pa.uint64()), ("size", pa.uint64())])


@dataclass
class Builder:
    """Puts columns into a file; each field of a tree is the column with the number of its id."""

    memory: Memory = field(default_factory=Memory)
    columns: list[bytes] = field(default_factory=list)
    version: tuple[int, int] = (2, 0)

    def add(self, data: bytes) -> int:
        self.memory.data += bytes(-len(self.memory.data) % 64)
        offset = len(self.memory.data)
        self.memory.data += data
        return offset

    def column(self, *pages: PageSpec, blob: bool = False) -> Builder:
        message = file2_pb2.ColumnMetadata()
        kind = pb.ColumnEncoding(values={})
        message.encoding.CopyFrom(direct(pb.ColumnEncoding(blob=pb.Blob(inner=kind)) if blob else kind))
        for encoding, buffers, length in pages:
            page = message.pages.add(length=length, encoding=direct(encoding))
            for buffer in buffers:
                page.buffer_offsets.append(self.add(buffer))
                page.buffer_sizes.append(len(buffer))
        self.columns.append(message.SerializeToString())
        return self

    def open(self, top: Field, num_rows: int, arrow_type: pa.DataType | None = None) -> Column20:
        file = LanceFile(
            self.memory, self.version, num_rows, len(self.columns), file_pb2.FileDescriptor(), self.columns, []
        )
        return open_column20(top, lambda i: (file, i) if i < len(self.columns) else None, num_rows, arrow_type)


def direct(message: pb.ArrayEncoding | pb.ColumnEncoding) -> file2_pb2.Encoding:
    name = "ArrayEncoding" if isinstance(message, pb.ArrayEncoding) else "ColumnEncoding"
    packed = Packed(type_url=f"/lance.encodings.{name}", value=message.SerializeToString())
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=packed.SerializeToString()))


def make(number: int, logical_type: str, *children: Field, name: str = "f", **metadata: str) -> Field:
    return Field(number, name, -1, logical_type, True, metadata, children)


def flat(bits: int, index: int = 0) -> Encoding:
    return Encoding(flat=pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=index)))


def ints(*values: int) -> PageSpec:
    return flat(32), [np.array(values, "<i4").tobytes()], len(values)


def lists(ends: list[int | None], num_items: int) -> PageSpec:
    """A page of lists; None is an empty null list."""
    stored, last = [], 0
    for end in ends:
        last = last if end is None else end
        stored.append(last + (num_items + 1 if end is None else 0))
    message = pb.List(offsets=flat(64), null_offset_adjustment=num_items + 1, num_items=num_items)
    return Encoding(list=message), [np.array(stored, "<u8").tobytes()], len(ends)


def texts(*values: str, index_from: int = 0) -> PageSpec:
    ends = np.cumsum([len(v.encode()) for v in values]).astype("<u8")
    message = pb.Binary(indices=flat(64), bytes=flat(8, 1), null_adjustment=int(ends[-1]) + 1)
    return Encoding(binary=message), [ends.tobytes(), "".join(values).encode()], len(values)


def check(column: Column20, expected: list[Any]) -> None:
    """The whole column, each slice and each pair of rows."""
    count = len(expected)
    assert column.num_rows == count
    for a in range(count + 1):
        for b in range(a, count + 1):
            got = run(column.read(slice(a, b)))
            got.validate(full=True)
            assert got.type == column.arrow_type
            assert got.to_pylist() == expected[a:b]
    for a in range(count):
        for b in range(a, count):
            rows = np.array(sorted({a, b}))
            assert run(column.read(rows)).to_pylist() == [expected[i] for i in rows]


def test_values_of_several_pages_form_one_column() -> None:
    check(Builder().column(ints(1, 2), ints(), ints(3, 4, 5)).open(make(0, "int32"), 5), [1, 2, 3, 4, 5])


def test_only_the_pages_of_the_rows_are_read() -> None:
    builder = Builder().column(ints(1, 2), ints(3, 4, 5))
    column = builder.open(make(0, "int32"), 5)
    assert run(column.read(slice(3, 5))).to_pylist() == [4, 5]
    assert builder.memory.reads == [(64 + 4, 8)]


def test_lists_read_their_ends_then_their_items() -> None:
    builder = Builder().column(lists([2, None, 2, 3], 3)).column(ints(7, 8, 9))
    check(builder.open(make(0, "list", make(1, "int32")), 4), [[7, 8], None, [], [9]])
    builder.memory.reads.clear()
    run(builder.open(make(0, "list", make(1, "int32")), 4).read(slice(3, 4)))
    assert builder.memory.reads == [(16, 16), (64 + 8, 4)]


def test_list_pages_continue_the_items_of_the_previous_page() -> None:
    builder = Builder().column(lists([2], 2), lists([None, 1], 1), lists([3], 3)).column(ints(1, 2, 3), ints(4, 5, 6))
    check(builder.open(make(0, "large_list", make(1, "int32")), 4), [[1, 2], None, [3], [4, 5, 6]])


def test_nested_lists_are_read() -> None:
    outer, inner = lists([2, 2, 3], 3), lists([1, None, 4], 4)
    builder = Builder().column(outer).column(inner).column(texts("a", "b", "", "d"))
    top = make(0, "list", make(1, "list", make(2, "string")))
    check(builder.open(top, 3), [[["a"], None], [], [["b", "", "d"]]])


def test_structs_are_their_children_and_missing_children_are_null() -> None:
    builder = Builder().column((STRUCT, [], 2)).column(ints(1, 2)).column(lists([1, 1], 1)).column(ints(5))
    fields = [make(1, "int32", name="a"), make(2, "list", make(3, "int32"), name="b"), make(9, "string", name="c")]
    expected = [{"a": 1, "b": [5], "c": None}, {"a": 2, "b": [], "c": None}]
    check(builder.open(make(0, "struct", *fields), 2), expected)


def test_lists_of_empty_structs_keep_their_lengths() -> None:
    builder = Builder().column(lists([2, 3], 3)).column((STRUCT, [], 3))
    check(builder.open(make(0, "list", make(1, "struct")), 2), [[{}, {}], [{}]])


def test_a_missing_column_is_null() -> None:
    check(Builder().open(make(0, "list", make(1, "int32")), 2), [None, None])


def test_packed_structs_are_one_column() -> None:
    rows = np.array([(1, 2), (3, 4)], [("a", "<i4"), ("b", "<i2")]).tobytes()
    packed = Encoding(packed_struct=pb.PackedStruct(inner=[flat(32), flat(16)], buffer=pb.Buffer()))
    top = make(0, "struct", make(8, "int32", name="a"), make(9, "int16", name="b"))
    check(Builder().column((packed, [rows], 2)).open(top, 2), [{"a": 1, "b": 2}, {"a": 3, "b": 4}])


def test_strings_of_early_files_are_stored_as_lists_of_bytes() -> None:
    builder = Builder().column(lists([2, None, 2, 3], 3)).column((flat(8), [b"abc"], 3))
    check(builder.open(make(0, "string"), 4), ["ab", None, "", "c"])


def blobs(builder: Builder) -> None:
    extents = [(builder.add(b"hello"), 5), (1, 0), (0, 0), (builder.add(b"!"), 1)]
    packed = Encoding(packed_struct=pb.PackedStruct(inner=[flat(64), flat(64)], buffer=pb.Buffer()))
    builder.column((packed, [np.array(extents, "<u8").tobytes()], 4), blob=True)


BLOB = {"lance-encoding:blob": "true"}


def test_blobs_are_read_as_bytes_on_request() -> None:
    builder = Builder()
    blobs(builder)
    check(builder.open(make(0, "large_binary", **BLOB), 4, pa.large_binary()), [b"hello", None, b"", b"!"])


def test_blobs_are_read_as_descriptors_by_default() -> None:
    builder = Builder()
    blobs(builder)
    column = builder.open(make(0, "large_binary", **BLOB), 4)
    assert column.arrow_type == DESCRIPTORS
    assert run(column.read(slice(0, 2))).to_pylist() == [{"position": 0, "size": 5}, {"position": 1, "size": 0}]


def test_dictionary_pages_may_be_read_as_dictionary_arrays() -> None:
    def page(items: str, indices: bytes) -> PageSpec:
        encoding, buffers, _ = texts(*items)
        message = pb.Dictionary(indices=flat(8, 2), items=encoding, num_dictionary_items=len(items))
        return Encoding(dictionary=message), [*buffers, indices], len(indices)

    builder = Builder().column(page("ab", bytes([1, 0, 2])), page("xb", bytes([2, 1])))
    column = builder.open(make(0, "string"), 5)
    assert column.is_dictionary()
    check(column, ["a", None, "b", "b", "x"])
    check(builder.open(make(0, "string"), 5, pa.dictionary(pa.int32(), pa.string())), ["a", None, "b", "b", "x"])


def test_plain_pages_are_not_dictionaries() -> None:
    assert not Builder().column(ints(1)).open(make(0, "int32"), 1).is_dictionary()


def test_a_column_with_a_wrong_row_count_is_corrupt() -> None:
    with pytest.raises(CorruptError, match="wrong row count in column"):
        Builder().column(ints(1, 2)).open(make(0, "int32"), 3)


def test_children_with_a_wrong_row_count_are_corrupt() -> None:
    top = make(0, "struct", make(1, "int32", name="a"))
    with pytest.raises(CorruptError, match="row count of 'a'"):
        Builder().column((STRUCT, [], 2)).column(ints(1)).open(top, 2)


def test_lists_with_missing_items_are_corrupt() -> None:
    with pytest.raises(CorruptError, match="item count"):
        Builder().column(lists([3], 3)).column(ints(1, 2)).open(make(0, "list", make(1, "int32")), 1)


def test_ends_beyond_the_items_of_their_page_are_corrupt() -> None:
    page = lists([3], 2)
    page[0].list.null_offset_adjustment = 10
    builder = Builder().column(page, lists([1], 1)).column(ints(1, 2, 3))
    with pytest.raises(CorruptError, match=r"memory: column 0, page 0"):
        run(builder.open(make(0, "list", make(1, "int32")), 2).read(slice(0, 1)))


@pytest.mark.parametrize("extent", [(0, 1000), (2**64 - 1, 2), (70, 0xFFFF_FFFF_FFFF_FFFF)])
def test_blobs_beyond_the_file_are_corrupt(extent: tuple[int, int]) -> None:
    packed = Encoding(packed_struct=pb.PackedStruct(inner=[flat(64), flat(64)], buffer=pb.Buffer()))
    builder = Builder().column((packed, [np.array([extent], "<u8").tobytes()], 1), blob=True)
    with pytest.raises(CorruptError, match="blob"):
        run(builder.open(make(0, "large_binary"), 1, pa.large_binary()).read(slice(0, 1)))


def test_values_that_do_not_match_the_type_are_corrupt() -> None:
    with pytest.raises(CorruptError, match="type of the column"):
        run(Builder().column(ints(1)).open(make(0, "int64"), 1).read(slice(0, 1)))


def test_pages_with_a_wrong_encoding_are_corrupt() -> None:
    with pytest.raises(CorruptError, match="struct"):
        Builder().column(ints(1)).open(make(0, "struct", make(1, "int32")), 1)
    with pytest.raises(CorruptError, match="list"):
        Builder().column(ints(1)).column(ints(1)).open(make(0, "list", make(1, "int32")), 1)


def test_children_in_later_files_are_rejected() -> None:
    with pytest.raises(UnsupportedError, match="file of version"):
        Builder(version=(2, 1)).column(ints(1)).open(make(0, "int32"), 1)


def test_rows_outside_the_column_are_rejected() -> None:
    with pytest.raises(InvalidInputError):
        run(Builder().column(ints(1)).open(make(0, "int32"), 1).read(slice(0, 2)))


def everything() -> tuple[Builder, Field, int]:
    """A struct of columns of all kinds, two rows."""
    builder = Builder().column((STRUCT, [], 2)).column(ints(1, 2)).column(texts("ab", "c"))
    builder.column(lists([1, None], 1)).column(texts("item"))
    encoding, buffers, _ = texts("x", "y")
    words = pb.Dictionary(indices=flat(8, 2), items=encoding, num_dictionary_items=2)
    builder.column((Encoding(dictionary=words), [*buffers, bytes([2, 0])], 2))
    validity = pb.Nullable.SomeNull(validity=flat(1), values=flat(16, 1))
    pairs = pb.FixedSizeList(dimension=2, items=Encoding(nullable=pb.Nullable(some_nulls=validity)))
    builder.column((Encoding(fixed_size_list=pairs), [bytes([0b0111]), bytes(8)], 2))
    packed = pb.Bitpacked(compressed_bits_per_value=3, uncompressed_bits_per_value=8, buffer=pb.Buffer())
    builder.column((Encoding(bitpacked=packed), [bytes([0b101_011])], 2))
    fields = [make(1, "int32", name="i"), make(2, "string", name="s"), make(3, "list", make(4, "string"), name="l")]
    fields += [make(5, "string", name="d"), make(6, "fixed_size_list:int16:2", name="p"), make(7, "uint8", name="b")]
    return builder, make(0, "struct", *fields), 2


def test_columns_of_every_type_are_read_together() -> None:
    builder, top, count = everything()
    rows = [
        {"i": 1, "s": "ab", "l": ["item"], "d": "y", "p": [0, 0], "b": 3},
        {"i": 2, "s": "c", "l": None, "d": None, "p": [0, None], "b": 5},
    ]
    check(builder.open(top, count), rows)


@given(st.data())
def test_changed_bytes_decode_or_raise_an_error(data: st.DataObject) -> None:
    builder, top, count = everything()
    for _ in range(data.draw(st.integers(1, 4))):
        column = data.draw(st.integers(-1, len(builder.columns) - 1))
        target = builder.memory.data if column < 0 else bytearray(builder.columns[column])
        place = data.draw(st.integers(0, len(target) - 1))
        target[place] = data.draw(st.one_of(st.sampled_from([0, 1, 127, 128, 255]), st.integers(0, 255)))
        if column >= 0:
            builder.columns[column] = bytes(target)
    try:
        column20 = builder.open(top, count)
        for rows in (slice(0, count), np.array([1])):
            run(column20.read(rows)).validate()
    except LanceDuckError:
        pass
