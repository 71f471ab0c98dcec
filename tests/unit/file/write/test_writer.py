from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.file.memory_file import MemorySink, MemorySource

from lance_duck.encoding.layouts.page import EncodingDescription
from lance_duck.encoding.write.layouts.page import EncodedPage
from lance_duck.errors import InvalidInputError, StoreError, UnsupportedError
from lance_duck.file.costs import MAX_PAGE_BYTES, PAGE_BYTES
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.file.write import writer as module
from lance_duck.file.write.contract import page_bytes
from lance_duck.file.write.writer import FileWriter
from lance_duck.store.request import run
from lance_duck.wire.schema import schema_from_proto
from lance_duck.wire.schema_write import schema_from_arrow

BATCH = pa.record_batch({"a": [1, 2, 3], "b": ["x", "y", None]})
SCHEMA = schema_from_arrow(BATCH.schema.with_metadata({"k": "v"}))


def opened(sink: MemorySink) -> LanceFile:
    assert sink.data is not None
    return run(open_file(MemorySource(sink.data)))


@pytest.mark.parametrize(
    ("version", "footer", "of_file"), [("2.0", (0, 3), (2, 0)), ("2.1", (2, 1), (2, 1)), ("2.2", (2, 2), (2, 2))]
)
def test_the_container_has_the_documented_layout(
    version: str, footer: tuple[int, int], of_file: tuple[int, int]
) -> None:
    sink = MemorySink()
    writer = FileWriter(sink, SCHEMA, version)
    writer.write(BATCH)
    written = writer.finish()
    assert sink.data is not None
    assert struct.unpack("<HH4s", sink.data[-8:]) == (*footer, b"LANC")
    assert (written.num_rows, written.size, written.version) == (3, len(sink.data), of_file)
    file = opened(sink)
    assert (file.version, file.num_rows, file.num_columns, file.num_global_buffers) == (of_file, 3, 2, 1)
    assert schema_from_proto(file.descriptor.schema.fields, file.descriptor.schema.metadata) == SCHEMA
    pages = [page for i in range(2) for page in file.column(i).pages]
    extents = [extent for page in pages for extent in page.buffers] + list(file.global_extents)
    assert all(offset % 64 == 0 for offset, _ in extents)
    assert [page.num_rows for page in pages] == [3, 3]
    assert [file.column(i).encoding for i in range(2)] == [
        EncodingDescription("/lance.encodings.ColumnEncoding", b"\x0a\x00")
    ] * 2


def test_global_buffers_and_metadata_are_added() -> None:
    sink = MemorySink()
    with FileWriter(sink, SCHEMA) as writer:
        assert [writer.add_global_buffer(b"one"), writer.add_global_buffer(np.arange(3))] == [1, 2]
        writer.add_schema_metadata("more", "ü")
        writer.finish()
    file = opened(sink)
    assert run(file.global_buffer(1)).tobytes() == b"one"
    assert run(file.global_buffer(2)).tobytes() == np.arange(3).tobytes()
    assert dict(file.descriptor.schema.metadata) == {"k": b"v", "more": "ü".encode()}


def test_an_empty_file_is_readable() -> None:
    for schema in (SCHEMA, schema_from_arrow(pa.schema([]))):
        sink = MemorySink()
        with FileWriter(sink, schema) as writer:
            assert writer.finish().num_rows == 0
        assert opened(sink).num_rows == 0


def test_an_unfinished_writer_leaves_no_file() -> None:
    sink = MemorySink()
    with FileWriter(sink, SCHEMA) as writer:
        writer.write(BATCH)
    assert sink.aborted
    assert sink.data is None


def test_other_versions_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match=r"2\.0, 2\.1, 2\.2"):
        FileWriter(MemorySink(), SCHEMA, "2.3")


def test_sidecars_need_a_table() -> None:
    opened_ids: list[int] = []

    def open_sidecar(blob_id: int) -> MemorySink:
        opened_ids.append(blob_id)
        return sidecar

    sidecar = MemorySink()
    writer = FileWriter(MemorySink(), SCHEMA, open_sidecar=open_sidecar)
    assert [writer._space.sidecar()[0], writer._space.sidecar()[0]] == [1, 2]
    writer.abort()
    assert sidecar.aborted
    with pytest.raises(UnsupportedError, match="too large for the data file"):
        FileWriter(MemorySink(), SCHEMA)._space.sidecar()


class FakeColumn:
    """Returns a one-buffer page for each array immediately."""

    def __init__(self, name: str, fails: bool) -> None:
        self.name, self.fails, self.row = name, fails, 0
        self.num_columns = 1

    def write(self, array: pa.Array) -> list[tuple[int, EncodedPage]]:
        if self.fails and self.row:
            raise StoreError("column failed")
        page = EncodedPage(
            (np.frombuffer(self.name.encode(), np.uint8),), EncodingDescription("/x", b""), len(array), self.row
        )
        self.row += len(array)
        return [(0, page)]

    def finish(self) -> list[tuple[int, EncodedPage]]:
        return []


@pytest.mark.parametrize("threads", [1, 4])
def test_pages_follow_the_column_order_with_parallel_encoding(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(module, "open_v21_column", lambda field, *_: FakeColumn(field.name, fails=False))
    sink = MemorySink()
    big = pa.record_batch({"a": np.zeros(1 << 18), "b": np.zeros(1 << 18)})
    with FileWriter(sink, SCHEMA, threads=threads) as writer:
        for _ in range(3):
            writer.write(big)
        written = writer.finish()
    assert sink.data is not None
    assert [sink.data[at : at + 1] for at in range(0, 6 * 64, 64)] == [b"a", b"b"] * 3
    assert [page.first_row for page in opened(sink).column(1).pages] == [0, 1 << 18, 2 << 18]
    assert written.num_rows == 3 << 18


def test_large_batches_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_v21_column", lambda field, *_: FakeColumn(field.name, fails=False))
    sink = MemorySink()
    with FileWriter(sink, SCHEMA) as writer:
        writer.write(pa.record_batch({"a": np.zeros(1 << 20), "b": np.zeros(1 << 20)}))
        writer.finish()
    assert [page.num_rows for page in opened(sink).column(0).pages] == [1 << 18] * 4


@pytest.mark.parametrize("threads", [1, 4])
def test_deferred_pages_are_encoded_and_their_errors_end_the_file(
    monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    class LateColumn(FakeColumn):
        def __init__(self, name: str, late: bool) -> None:
            super().__init__(name, fails=False)
            self.late = late

        def write(self, array: pa.Array) -> Any:
            pages = FakeColumn.write(self, array)

            def encode() -> list[EncodedPage]:
                if self.late and pages[0][1].first_row:
                    raise StoreError("late")
                return [page for _, page in pages]

            return [(0, encode)]

    big = pa.record_batch({"a": np.zeros(1 << 18), "b": np.zeros(1 << 18)})

    def write_all(fails: bool) -> MemorySink:
        monkeypatch.setattr(module, "open_v21_column", lambda field, *_: LateColumn(field.name, fails))
        sink = MemorySink()
        with FileWriter(sink, SCHEMA, threads=threads) as writer:
            for _ in range(3):
                writer.write(big)
            writer.finish()
        return sink

    assert [page.first_row for page in opened(write_all(False)).column(1).pages] == [0, 1 << 18, 2 << 18]
    with pytest.raises(StoreError, match="late"):
        write_all(True)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_column_that_fails_stops_the_file(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(module, "open_v21_column", lambda field, *_: FakeColumn(field.name, fails=field.name == "b"))
    sink = MemorySink()
    big = pa.record_batch({"a": np.zeros(1 << 18), "b": np.zeros(1 << 18)})

    def write_all() -> None:
        with FileWriter(sink, SCHEMA, threads=threads) as writer:
            for _ in range(3):
                writer.write(big)
            writer.finish()

    with pytest.raises(StoreError, match="column failed"):
        write_all()
    assert sink.data is None
    assert sink.aborted


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3,), PAGE_BYTES),
        ((4, 1 << 20), 1 << 18),
        ((0, 100), 100),
        ((1, 1 << 30), MAX_PAGE_BYTES),
        ((1, None, 1000), 1000),
        ((1000, 10), 1),
    ],
)
def test_bytes_of_a_page(arguments: Any, expected: int) -> None:
    assert page_bytes(*arguments) == expected
