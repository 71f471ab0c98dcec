from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from lance_duck.encoding.layouts.page import Rows
from lance_duck.errors import UnsupportedError
from lance_duck.file.column import MixedColumn, located_in, part_versions
from lance_duck.file.reader import LanceFile
from lance_duck.store.request import Request, run
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import Field


class Part:
    """A column that returns the same rows for every request."""

    def __init__(self, rows: list[Any], arrow_type: pa.DataType) -> None:
        self.array = pa.array(rows, arrow_type)

    def read(self, rows: Rows) -> Request[pa.Array]:
        yield from ()
        return self.array


def file_of(version: tuple[int, int]) -> LanceFile:
    return LanceFile(None, version, 2, 1, file_pb2.FileDescriptor(), [], [])  # type: ignore[arg-type]


def field(field_id: int, name: str, kind: str, *children: Field) -> Field:
    return Field(field_id, name, -1, kind, True, children=children)


OLD, NEW = (file_of((2, 0)), 0), (file_of((2, 2)), 0)
COLUMN = field(1, "s", "struct", field(2, "x", "int32"), field(3, "y", "struct", field(4, "z", "int32")))


def test_each_field_is_read_from_its_file() -> None:
    locate = {1: OLD, 2: OLD, 4: NEW}.get
    arrow_type = COLUMN.arrow_type
    older = Part([{"x": 1, "y": None}, {"x": 2, "y": None}], arrow_type)
    newer = Part([{"x": None, "y": {"z": 7}}, None], arrow_type)
    column = MixedColumn(COLUMN, locate, 2, arrow_type, older, newer)
    assert run(column.read(slice(0, 2))).to_pylist() == [{"x": 1, "y": {"z": 7}}, None]
    assert not column.is_dictionary()


def test_file_versions_and_files_of_a_field_are_found() -> None:
    locate = {1: OLD, 2: OLD, 4: NEW}.get
    assert part_versions(COLUMN, locate) == {(2, 0), (2, 2)}
    older, newer = (located_in(locate, COLUMN, older=older) for older in (True, False))
    assert [older(i) is not None for i in (1, 2, 4)] == [True, True, False]
    assert [newer(i) is not None for i in (1, 2, 4)] == [False, False, True]


def test_lists_in_several_file_versions_are_rejected() -> None:
    column = field(1, "l", "list", field(5, "item", "struct", field(2, "x", "int32"), field(4, "z", "int32")))
    part = Part([], pa.null())
    with pytest.raises(UnsupportedError):
        MixedColumn(column, {2: OLD, 4: NEW}.get, 2, column.arrow_type, part, part)
