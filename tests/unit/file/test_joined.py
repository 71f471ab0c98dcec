"""Files joined into one have the pages of each file, and one invalid file makes the join fail."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from unit.file.memory_file import MemorySink, MemorySource

from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.file.joined import JoinedFile, join_files
from lance_duck.file.reader import LanceFile, open_file
from lance_duck.file.write.writer import FileWriter
from lance_duck.store.checked import CheckedSource
from lance_duck.store.request import run
from lance_duck.wire.schema_write import schema_from_arrow


def written(rows: pa.RecordBatch, version: str = "2.2", *, checksums: bool = True, buffers: int = 0) -> bytes:
    sink = MemorySink()
    with FileWriter(sink, schema_from_arrow(rows.schema), version, checksums=checksums) as writer:
        writer.write(rows)
        for _ in range(buffers):
            writer.add_global_buffer(b"buffer")
        writer.finish()
    assert sink.data is not None
    return sink.data


def rows_of(start: int, count: int) -> pa.RecordBatch:
    ids = range(start, start + count)
    return pa.record_batch({"id": ids, "text": [f"text {i}" * (i % 3) for i in ids]})


def files_of(*, checksums: Sequence[bool] = (True, False, True), version: str = "2.2") -> list[tuple[str, bytes]]:
    return [
        (f"{place}.lance", written(rows_of(4 * place, 3 + place), version, checksums=each))
        for place, each in enumerate(checksums)
    ]


def alone(path: str, data: bytes) -> LanceFile:
    """Return a separately opened and fully checked file, as the reference."""
    file = run(open_file(MemorySource(data, path)))
    if isinstance(file.source, CheckedSource) and file.source.damaged():
        raise CorruptError("bytes that differ from their checksums", where=path)
    for column in file.column_numbers:
        file.column(column)
    return file


def together(contents: Sequence[tuple[str, bytes]]) -> JoinedFile:
    file = join_files("all", contents)
    for column in file.column_numbers:
        file.column(column)
    return file


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_joined_files_list_the_pages_of_each_file_at_their_offsets(version: str) -> None:
    contents = files_of(version=version)
    joined, parts = together(contents), [alone(*content) for content in contents]
    assert (joined.num_rows, joined.num_columns, joined.version) == (3 + 4 + 5, 2, parts[0].version)
    begins = np.cumsum([0, *(len(data) for _, data in contents)]).tolist()
    for column in range(2):
        expected = [
            (tuple((offset + begin, size) for offset, size in page.buffers), page.num_rows, page.encoding)
            for part, begin in zip(parts, begins, strict=False)
            for page in part.column(column).pages
        ]
        assert [(page.buffers, page.num_rows, page.encoding) for page in joined.column(column).pages] == expected
        assert joined.column(column).encoding == parts[0].column(column).encoding


def test_a_joined_file_holds_its_bytes_once() -> None:
    contents = files_of()
    joined = together(contents)
    (whole,) = joined.source.read([(0, joined.source.size)])
    for (path, data), (joined_path, view) in zip(contents, joined.contents, strict=True):
        assert (path, data) == (joined_path, bytes(view))
        assert np.shares_memory(np.frombuffer(view, np.uint8), whole)


def test_an_unknown_column_is_rejected() -> None:
    with pytest.raises(CorruptError, match="column index"):
        join_files("all", files_of()).column(2)


@pytest.mark.parametrize("checksums", [False, True])
def test_a_file_that_is_rejected_alone_is_rejected_when_joined(checksums: bool) -> None:
    contents = files_of(checksums=[checksums] * 3)
    path, data = contents[1]
    begin = run(open_file(MemorySource(data, path))).global_extents[0][0]  # what follows describes the file
    for place in range(0, len(data), 7) if checksums else range(begin, len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 0x41
        contents[1] = (path, bytes(damaged))
        try:
            alone(*contents[1])
        except LanceDuckError:
            with pytest.raises(LanceDuckError):
                together(contents)
    for size in (0, 39, 40, len(data) // 2, len(data) - 1):
        contents[1] = (path, data[:size])
        with pytest.raises(LanceDuckError):
            together(contents)


def test_a_truncated_file_with_shared_metadata_is_corrupt() -> None:
    whole = written(rows_of(0, 600), checksums=False)
    file = run(open_file(MemorySource(whole)))
    begin = min(start for start, _ in file.global_extents)
    cut = 512
    tables = np.frombuffer(whole, np.uint8)[begin:].copy()
    count = file.num_columns
    footer = tables[-40:].view("<u8")
    column_table, global_table = (int(footer[place]) - begin for place in (1, 2))
    tables[column_table : column_table + 16 * count].view("<u8")[::2] -= cut
    tables[global_table : global_table + 16].view("<u8")[::2] -= cut
    footer[:3] -= cut
    shorter = whole[: begin - cut] + tables.tobytes()
    with pytest.raises(CorruptError, match="beyond the end"):
        alone("1", shorter)
    with pytest.raises(CorruptError, match="beyond the end"):
        together([("0", whole), ("1", shorter)])


def test_files_with_different_layouts_are_not_joined() -> None:
    first = ("0.lance", written(rows_of(0, 3)))
    others = {
        "another version": written(rows_of(3, 3), "2.1"),
        "another number of columns": written(rows_of(3, 3).select(["id"])),
        "more global buffers": written(rows_of(3, 3), buffers=1),
    }
    for data in others.values():
        with pytest.raises(UnsupportedError, match="different kinds"):
            join_files("all", [first, ("1.lance", data)])
