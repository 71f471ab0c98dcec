from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf.any_pb2 import Any as Packed
from unit.encoding.hand_pages import Memory, nested_page, structure_of

from lance_duck.encoding.layouts.page import Page
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.file import LanceFileReader
from lance_duck.file.physical import physical_columns
from lance_duck.file.reader import FOOTER
from lance_duck.wire.pb import file2_pb2, file_pb2
from lance_duck.wire.schema import PACKED_KEY, schema_from_proto

A, S, X, Y, Z = range(5)


def fields() -> list[file_pb2.Field]:
    rows = [("a", A, -1, "int32"), ("s", S, -1, "struct"), ("x", X, S, "int32"), ("y", Y, S, "struct")]
    rows.append(("z", Z, Y, "int32"))
    return [
        file_pb2.Field(name=name, id=id_, parent_id=parent, logical_type=kind, nullable=True)
        for name, id_, parent, kind in rows
    ]


def table_of(extents: Sequence[tuple[int, int]]) -> bytes:
    return b"".join(struct.pack("<QQ", *extent) for extent in extents)


def file_bytes(columns: Sequence[Page], num_rows: int) -> bytes:
    """Return a 2.2 file with one page per column, and an additional global buffer after the descriptor."""
    data = bytearray()
    metadata = []
    for page in columns:
        assert isinstance(page.source, Memory)
        encoding = Packed(type_url=page.encoding.type_url, value=page.encoding.value).SerializeToString()
        message = file2_pb2.ColumnMetadata()
        message.pages.add(
            buffer_offsets=[len(data) + offset for offset, _ in page.buffers],
            buffer_sizes=[size for _, size in page.buffers],
            length=page.num_rows,
            encoding=file2_pb2.Encoding(direct=file2_pb2.DirectEncoding(encoding=encoding)),
        )
        data += page.source.data
        metadata.append(message.SerializeToString())
    descriptor = file_pb2.FileDescriptor(schema=file_pb2.Schema(fields=fields()), length=num_rows)
    extents: list[list[tuple[int, int]]] = [[], []]
    for found, group in zip(extents, ([descriptor.SerializeToString(), b"mine"], metadata), strict=True):
        for part in group:
            found.append((len(data), len(part)))
            data += part
    tables = len(data)
    data += table_of(extents[1]) + table_of(extents[0])
    ends = tables, tables + 16 * len(metadata)
    return bytes(data) + FOOTER.pack(extents[1][0][0], *ends, 2, len(metadata), 2, 2, b"LANC")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    flat, inside, deep = structure_of(False), structure_of(False, False), structure_of(False, False, False)
    pages = [
        nested_page([1, None, 3, 4, 5], flat),
        nested_page([(10,), None, (30,), (40,), (None,)], inside),
        nested_page([((7,),), None, (None,), ((8,),), ((9,),)], deep),
    ]
    file = tmp_path / "one.lance"
    file.write_bytes(file_bytes(pages, 5))
    return file


def test_all_rows_in_batches(path: Path) -> None:
    reader = LanceFileReader(path)
    assert reader.num_rows() == 5
    assert [batch.num_rows for batch in reader.read_all(batch_size=2).to_batches()] == [2, 2, 1]
    table = reader.read_all().to_table()
    assert table["a"].to_pylist() == [1, None, 3, 4, 5]
    rows = [{"x": 10, "y": {"z": 7}}, None, {"x": 30, "y": None}, {"x": 40, "y": {"z": 8}}, {"x": None, "y": {"z": 9}}]
    assert table["s"].to_pylist() == rows


def test_small_batches_are_cut_from_spans(path: Path) -> None:
    reader = LanceFileReader(path, columns=["a"])
    batches = list(reader.read_range(1, 4, batch_size=1).to_batches())
    assert [batch["a"].to_pylist() for batch in batches] == [[None], [3], [4], [5]]


def test_a_relative_path_is_opened(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    assert LanceFileReader("one.lance", columns=["a"]).read_range(3, 2).to_table()["a"].to_pylist() == [4, 5]


def test_columns_in_the_order_that_they_are_named(path: Path) -> None:
    found = LanceFileReader(path, columns=["s.y.z", "a"]).read_range(0, 1).to_table()
    assert found.to_pylist() == [{"s": {"y": {"z": 7}}, "a": 1}]
    assert LanceFileReader(path, columns=["a", "a"]).read_all().to_table().column_names == ["a"]


@pytest.mark.parametrize("columns", [["b"], ["s.b"], [], "a"])
def test_missing_columns_are_rejected(path: Path, columns: Any) -> None:
    with pytest.raises(InvalidInputError):
        LanceFileReader(path, columns=columns)


@pytest.mark.parametrize("rows", [[0, 2, 4], np.array([0, 2, 4], np.uint64), pa.array([0, 2, 4])])
def test_rows_are_taken_by_position(path: Path, rows: Any) -> None:
    reader = LanceFileReader(path, columns=["a"])
    assert reader.take_rows(rows, batch_size=2).to_table()["a"].to_pylist() == [1, 3, 5]


def test_no_rows_keep_the_schema(path: Path) -> None:
    reader = LanceFileReader(path, columns=["a"])
    for found in (reader.take_rows([]), reader.read_range(5, 0)):
        assert found.to_table().schema == pa.schema([("a", pa.int32())])


@pytest.mark.parametrize("rows", [[2, 1], [1, 1], [0, 5], [-1], [0.5], [[1]]])
def test_invalid_positions_are_rejected(path: Path, rows: Any) -> None:
    with pytest.raises(InvalidInputError, match="positions"):
        LanceFileReader(path).take_rows(rows)


@pytest.mark.parametrize(("start", "count"), [(0, 6), (5, 1), (-1, 2), (3, -1)])
def test_invalid_ranges_are_rejected(path: Path, start: int, count: int) -> None:
    with pytest.raises(InvalidInputError, match="the row range is outside the file"):
        LanceFileReader(path).read_range(start, count)


def test_a_batch_size_of_zero_is_rejected(path: Path) -> None:
    with pytest.raises(InvalidInputError, match="batch_size"):
        LanceFileReader(path).read_all(batch_size=0)


def test_file_metadata_accounts_for_every_byte(path: Path) -> None:
    reader = LanceFileReader(path, columns=["a"])
    found = reader.metadata()
    assert found.schema.names == ["a", "s"]
    assert (found.num_rows, found.major_version, found.minor_version) == (5, 2, 2)
    assert found.global_buffers[1].size == 4
    assert reader.read_global_buffer(1) == b"mine"
    assert len(found.columns) == 3
    page = found.columns[0].pages[0]
    assert "mini_block_layout" in page.encoding
    sizes = [sum(buffer.size for page in column.pages for buffer in page.buffers) for column in found.columns]
    assert found.num_data_bytes == sum(sizes)
    assert [(column.num_pages, column.size_bytes) for column in reader.file_statistics().columns] == [
        (1, size) for size in sizes
    ]
    total = found.num_data_bytes + found.num_column_metadata_bytes + found.num_global_buffer_bytes
    assert total == path.stat().st_size - FOOTER.size - 16 * 2


def test_a_missing_global_buffer_is_rejected(path: Path) -> None:
    with pytest.raises(InvalidInputError, match="global buffer 2"):
        LanceFileReader(path).read_global_buffer(2)


def test_a_missing_file_raises_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        LanceFileReader(tmp_path / "none.lance")


def test_file_with_fewer_columns_than_its_schema(path: Path) -> None:
    pages = [nested_page([1], structure_of(False))]
    path.write_bytes(file_bytes(pages, 1))
    with pytest.raises(CorruptError, match="column"):
        LanceFileReader(path).read_all().to_table()


def test_physical_columns_are_numbered_by_file_version() -> None:
    schema = schema_from_proto(fields())
    assert physical_columns(schema.fields, (2, 2)) == {A: 0, X: 1, Z: 2}
    assert physical_columns(schema.fields, (2, 0)) == {A: 0, S: 1, X: 2, Y: 3, Z: 4}
    packed = fields()
    packed[S].metadata[PACKED_KEY] = b"true"
    assert physical_columns(schema_from_proto(packed).fields, (2, 0)) == {A: 0, S: 1}
