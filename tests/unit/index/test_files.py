from __future__ import annotations

import itertools
from pathlib import Path
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import CorruptError, NotFoundError
from lance_duck.index.files import SegmentFile, SegmentReader, SegmentWriter
from lance_duck.store import open_store
from lance_duck.store.request import watched
from lance_duck.wire import paths

SCHEMA = pa.schema([("a", pa.int64()), ("s", pa.string())], metadata={"written": "before"})


def write(root: Path, rows: int = 100) -> SegmentWriter:
    with SegmentWriter(open_store(str(root)), uuid=UUID(int=5)) as writer:
        file = writer.create("some.lance", SCHEMA)
        file.write(pa.record_batch({"a": np.arange(rows), "s": [f"s{i}" for i in range(rows)]}))
        file.add_schema_metadata("added", "later")
        file.add_global_buffer(b"extra")
        writer.add("some.lance", file)
    return writer


def opened(root: Path, sizes: dict[str, int] | None = None) -> SegmentFile:
    return SegmentReader(open_store(str(root)), paths.index_directory(UUID(int=5)), sizes).open("some.lance")


def test_a_written_index_file_reads_back(tmp_path: Path) -> None:
    writer = write(tmp_path)
    size = (tmp_path / writer.directory / "some.lance").stat().st_size
    assert writer.files == [("some.lance", size)]
    file = opened(tmp_path, dict(writer.files))
    assert (file.num_rows, file.schema.names) == (100, ["a", "s"])
    assert file.metadata == {"written": "before", "added": "later"}
    assert file.global_buffer(1) == b"extra"
    a, s = file.read(["a", "s"], slice(10, 12))
    assert (a.to_pylist(), s.to_pylist()) == ([10, 11], ["s10", "s11"])
    (some,) = file.read(["a"], np.array([3, 99]))
    assert some.to_pylist() == [3, 99]
    assert len(file.read(["s"])[0]) == 100
    reader = SegmentReader(open_store(str(tmp_path)), writer.directory)
    assert reader.size("some.lance") == size


def test_missing_columns_and_files_raise_errors(tmp_path: Path) -> None:
    write(tmp_path)
    file = opened(tmp_path)
    with pytest.raises(CorruptError, match=r"column 'b' is missing: found a, s"):
        file.column("b")
    with pytest.raises(CorruptError, match="column 'a' has the wrong type: expected string, found int64"):
        file.column("a", pa.string())
    for index in (-1, 0, 2):
        with pytest.raises(CorruptError, match="global buffer"):
            file.global_buffer(index)
    with pytest.raises(NotFoundError):
        SegmentReader(open_store(str(tmp_path)), "_indices/none").open("some.lance")


def test_a_file_with_an_unexpected_size_is_corrupt(tmp_path: Path) -> None:
    ((name, size),) = write(tmp_path).files
    assert opened(tmp_path, {name: 0}).num_rows == 100  # not known
    with pytest.raises(CorruptError, match="size"):
        opened(tmp_path, {name: size + 1})


def test_a_discarded_segment_leaves_no_files(tmp_path: Path) -> None:
    writer = SegmentWriter(open_store(str(tmp_path)))

    def begin() -> None:
        with writer:
            finished = writer.create("finished.lance", SCHEMA)
            writer.add("finished.lance", finished)
            begun = writer.create("begun.lance", SCHEMA)
            begun.write(pa.record_batch({"a": np.arange(200_000), "s": ["x"] * 200_000}))
            raise RuntimeError("given up")

    with pytest.raises(RuntimeError, match="given up"):
        begin()
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    writer.discard()


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_long_values_are_read_one_by_one(tmp_path: Path, compression: str) -> None:
    values = [bytes([i, i + 1]) * (i * 7) for i in range(200)]
    field = pa.field("v", pa.large_binary(), metadata={"lance-encoding:compression": compression})
    with SegmentWriter(open_store(str(tmp_path)), uuid=UUID(int=5)) as writer:
        file = writer.create("some.lance", pa.schema([field, ("short", pa.large_binary())]), page_bytes=1 << 16)
        for part in (values[:90], values[90:]):
            file.write(
                pa.record_batch(
                    [pa.array(part, pa.large_binary()), pa.array([b"s"] * len(part), pa.large_binary())],
                    names=["v", "short"],
                )
            )
        writer.add("some.lance", file)
    some = opened(tmp_path)
    found = some.read_values("v", np.array([0, 1, 89, 90, 199]))
    assert found is not None
    assert [value.tobytes() for value in found] == [values[i] for i in (0, 1, 89, 90, 199)]
    assert some.read_values("short", np.array([3])) is None
    with watched():
        assert some.read_values("v", np.array([3])) is None


def test_lists_of_long_values_are_read_as_bytes(tmp_path: Path) -> None:
    lists = [[bytes([i, j]) * (200 + i) for j in range(1 + i % 5)] for i in range(200)]
    type_ = pa.list_(pa.large_binary())
    with SegmentWriter(open_store(str(tmp_path)), uuid=UUID(int=5)) as writer:
        file = writer.create("some.lance", pa.schema([("v", type_), ("short", type_)]), page_bytes=1 << 16)
        for part in (lists[:90], lists[90:]):
            short = pa.array([[b"s"]] * len(part), type_)
            file.write(pa.record_batch([pa.array(part, type_), short], names=["v", "short"]))
        writer.add("some.lance", file)
    some = opened(tmp_path)
    for rows in ([7], [0, 1, 89, 90, 199]):
        found = some.read_lists("v", np.array(rows))
        assert found is not None
        data, bounds, first = found
        values = [data[a:b].tobytes() for a, b in itertools.pairwise(bounds)]
        assert [values[a:b] for a, b in itertools.pairwise(first)] == [lists[i] for i in rows]
    assert some.read_lists("short", np.array([3])) is None
    with watched():
        assert some.read_lists("v", np.array([3])) is None
