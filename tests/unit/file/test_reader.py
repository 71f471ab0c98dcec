from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from google.protobuf.any_pb2 import Any as Packed
from hypothesis import given
from hypothesis import strategies as st
from unit.encoding.hand_pages import Memory

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, UnsupportedError
from lance_duck.file.reader import FOOTER, LanceFile, open_file
from lance_duck.store.request import run
from lance_duck.wire.pb import file2_pb2, file_pb2

Page = file2_pb2.ColumnMetadata.Page


def encoding(url: str = "/lance.encodings21.PageLayout") -> file2_pb2.Encoding:
    packed = Packed(type_url=url, value=b"xyz").SerializeToString()
    return file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=packed))


def file_of(
    columns: Sequence[file2_pb2.ColumnMetadata] = (),
    version: tuple[int, int] = (2, 2),
    data: bytes = b"\0" * 64,
    magic: bytes = b"LANC",
    globals_: Sequence[bytes] | None = None,
) -> Memory:
    source = Memory(bytearray(data))
    if globals_ is None:
        globals_ = [file_pb2.FileDescriptor(length=7).SerializeToString()]
    tables: list[bytes] = []
    starts = []
    for group in (globals_, [column.SerializeToString() for column in columns]):
        starts.append(source.size)
        table = b""
        for part in group:
            table += struct.pack("<QQ", source.size, len(part))
            source.data += part
        tables.append(table)
    column_table = source.size
    source.data += tables[1]
    global_table = source.size
    source.data += tables[0]
    source.data += FOOTER.pack(starts[1], column_table, global_table, len(globals_), len(columns), *version, magic)
    return source


def opened(source: Memory) -> LanceFile:
    return run(open_file(source))


COLUMN = file2_pb2.ColumnMetadata(
    pages=[Page(buffer_offsets=[0, 8], buffer_sizes=[8, 56], length=5, priority=2, encoding=encoding())]
)


def test_a_file_reports_version_rows_columns_and_buffers() -> None:
    file = opened(file_of([COLUMN]))
    assert (file.version, file.num_rows, file.num_columns, file.num_global_buffers) == ((2, 2), 7, 1, 1)
    (page,) = file.column(0).pages
    assert (page.num_rows, page.first_row, page.buffers) == (5, 2, ((0, 8), (8, 56)))
    assert (page.encoding.name, page.encoding.value) == ("lance.encodings21.PageLayout", b"xyz")
    assert file.column(0).encoding is None
    assert file.column(0).num_rows == 5
    assert file_pb2.FileDescriptor.FromString(run(file.global_buffer(0)).tobytes()).length == 7


def test_a_small_file_needs_one_read() -> None:
    source = file_of([COLUMN])
    opened(source)
    assert source.reads == [(0, source.size)]


def test_metadata_beyond_the_tail_needs_another_read() -> None:
    columns = [file2_pb2.ColumnMetadata(pages=COLUMN.pages[:] * 40) for _ in range(60)]
    source = file_of(columns, data=b"\0" * 1000)
    file = opened(source)
    assert file.column(59).pages == file.column(59).pages
    assert len(source.reads) <= 3
    assert source.reads[0][1] == 64 * 1024


@pytest.mark.parametrize(
    ("footer", "version"), [((0, 3), (2, 0)), ((2, 0), (2, 0)), ((2, 1), (2, 1)), ((2, 3), (2, 3))]
)
def test_versions_that_are_read(footer: tuple[int, int], version: tuple[int, int]) -> None:
    assert opened(file_of(version=footer)).version == version


@pytest.mark.parametrize(("footer", "name"), [((0, 2), "0.1"), ((2, 4), "2.4"), ((7, 1), "7.1")])
def test_other_versions_are_rejected_by_name(footer: tuple[int, int], name: str) -> None:
    with pytest.raises(UnsupportedError, match=name):
        opened(file_of(version=footer))


def test_files_of_other_formats_are_rejected() -> None:
    with pytest.raises(CorruptError, match="Parquet"):
        opened(file_of(magic=b"PAR1"))
    with pytest.raises(CorruptError, match="may be truncated"):
        opened(file_of(magic=b"ABCD"))
    with pytest.raises(CorruptError, match="too short"):
        opened(Memory(bytearray(b"LANC")))


def test_a_file_needs_a_descriptor() -> None:
    with pytest.raises(CorruptError, match="descriptor"):
        opened(file_of(globals_=[]))
    with pytest.raises(CorruptError, match="descriptor"):
        opened(file_of(globals_=[b"\xff\xff"]))


@pytest.mark.parametrize(
    ("page", "error"),
    [
        (Page(buffer_offsets=[0], buffer_sizes=[10_000], encoding=encoding()), CorruptError),
        (Page(buffer_offsets=[2**64 - 1], buffer_sizes=[2], encoding=encoding()), CorruptError),
        (Page(buffer_offsets=[0, 1], buffer_sizes=[1], encoding=encoding()), CorruptError),
        (Page(), CorruptError),
        (Page(encoding=file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=b"\xff"))), CorruptError),
        (Page(encoding=file2_pb2.Encoding(indirect=file2_pb2.DeferredEncoding())), UnsupportedError),
    ],
)
def test_impossible_pages_are_rejected(page: Page, error: type[Exception]) -> None:
    with pytest.raises(error):
        opened(file_of([file2_pb2.ColumnMetadata(pages=[page])])).column(0)


def test_missing_columns_and_buffers_raise_errors() -> None:
    file = opened(file_of([COLUMN]))
    with pytest.raises(CorruptError):
        file.column(1)
    with pytest.raises(InvalidInputError):
        run(file.global_buffer(1))


@given(st.data())
def test_flipped_and_truncated_bytes_open_or_raise_an_error(data: st.DataObject) -> None:
    source = file_of([COLUMN])
    for _ in range(data.draw(st.integers(1, 4))):
        place = source.size - 1 - data.draw(st.integers(0, min(source.size - 1, 150)))
        source.data[place] = data.draw(st.integers(0, 255))
    source.data = source.data[data.draw(st.integers(0, 20)) : source.size - data.draw(st.sampled_from([0, 0, 1, 40]))]
    try:
        file = opened(source)
        found: list[Any] = [file.column(i) for i in range(min(file.num_columns, 3))]
    except LanceDuckError:
        return
    assert len(found) <= 3
