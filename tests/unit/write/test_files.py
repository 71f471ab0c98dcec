from __future__ import annotations

import os
import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, StoreError, UnsupportedError
from lance_duck.file import LanceFileReader
from lance_duck.store import Sink, open_store
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.schema_write import schema_from_arrow
from lance_duck.write import Base, WriteOptions, WriteProgress, discard_fragments, write_columns, write_new_fragments

TABLE = pa.table({"i": range(10), "s": [str(i) for i in range(10)], "l": [[i] * (i % 3) for i in range(10)]})
SCHEMA = schema_from_arrow(TABLE.schema)


def write(root: Path, data: Any = TABLE, **options: Any) -> list[Fragment]:
    batches = data.to_batches() if isinstance(data, pa.Table) else data
    return write_new_fragments(store(root), SCHEMA, batches, WriteOptions(**options))


def store(root: Path) -> Any:
    return open_store(root, {"fsync": "false"})


def read(root: Path, fragments: list[Fragment]) -> pa.Table:
    return pa.concat_tables(LanceFileReader(root / "data" / f.files[0].path).read_all().to_table() for f in fragments)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_a_fragment_is_written_to_one_file(tmp_path: Path, version: str) -> None:
    (fragment,) = write(tmp_path, data_storage_version=version)
    (file,) = fragment.files
    assert (fragment.id, fragment.physical_rows, fragment.deletion_file, fragment.row_ids) == (0, 10, None, None)
    assert file.version == version
    assert file.file_size == (tmp_path / "data" / file.path).stat().st_size
    assert (file.fields, file.column_indices) == (
        ((0, 1, 2, 3), (0, 1, 2, 3)) if version == "2.0" else ((0, 1, 3), (0, 1, 2))
    )
    assert read(tmp_path, [fragment]).equals(TABLE)


def test_file_names_are_random_and_unique(tmp_path: Path) -> None:
    names = [f.files[0].path for f in write(tmp_path, max_rows_per_file=1)]
    assert all(re.fullmatch(r"[01]{24}[0-9a-f]{26}\.lance", name) for name in names)
    assert len(set(names)) == 10


@pytest.mark.parametrize(("limit", "rows"), [(1, [1] * 10), (3, [3, 3, 3, 1]), (5, [5, 5]), (10, [10]), (11, [10])])
def test_files_are_split_by_rows(tmp_path: Path, limit: int, rows: list[int]) -> None:
    batches = [TABLE.slice(0, 4).to_batches()[0], TABLE.slice(4).to_batches()[0]]
    fragments = write(tmp_path, batches, max_rows_per_file=limit)
    assert [f.physical_rows for f in fragments] == rows
    assert read(tmp_path, fragments).equals(TABLE)


def test_files_are_split_by_bytes(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 2**60, 3 << 20)
    schema = schema_from_arrow(pa.schema([("i", pa.int64())]))
    batches = [pa.record_batch({"i": values[at : at + 65536]}) for at in range(0, len(values), 65536)]
    fragments = write_new_fragments(
        store(tmp_path), schema, batches, WriteOptions(max_bytes_per_file=8 << 20, max_rows_per_file=1 << 40)
    )
    assert len(fragments) > 1
    assert all((f.files[0].file_size or 0) < 24 << 20 for f in fragments)
    assert np.array_equal(read(tmp_path, fragments)["i"].to_numpy(), values)


@pytest.mark.parametrize("version", ["2.0", "2.2"])
def test_file_boundaries_do_not_depend_on_threads(tmp_path: Path, version: str) -> None:
    """Partly filled pages of 128 KiB and buffered rows, in files of 6 MiB."""
    values = np.random.default_rng(3).integers(0, 1 << 40, 1 << 20)
    schema = schema_from_arrow(pa.schema([("i", pa.int64()), ("s", pa.struct([("j", pa.list_(pa.int64(), 1))]))]))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(values), 1)
    table = pa.table({"i": values, "s": pa.StructArray.from_arrays([lists], ["j"])})
    options = WriteOptions(
        max_bytes_per_file=6 << 20, data_cache_bytes=1 << 18, data_storage_version=version, max_rows_per_file=1 << 40
    )
    rows = []
    for place in ("a", "b"):
        batches = table.to_batches(max_chunksize=1 << 14)
        found = write_new_fragments(store(tmp_path / place), schema, batches, options)
        rows.append([f.physical_rows for f in found])
    assert rows[0] == rows[1]
    assert rows[0] == ([393216, 393216, 262144] if version == "2.0" else [442368, 442368, 163840])


def test_no_rows_write_no_files(tmp_path: Path) -> None:
    assert write(tmp_path, TABLE.slice(0, 0)) == []
    assert write(tmp_path, []) == []
    assert files(tmp_path) == []


def test_batches_are_cast_to_the_schema(tmp_path: Path) -> None:
    (fragment,) = write(tmp_path, [pa.record_batch({"s": ["a"], "i": pa.array([1], pa.int8())})])
    assert read(tmp_path, [fragment]).to_pylist() == [{"i": 1, "s": "a", "l": None}]


class CancelledError(BaseException):
    """An error that does not inherit from Exception."""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, CancelledError])
def test_a_failure_deletes_written_files(tmp_path: Path, error: type[BaseException]) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches()
        raise error("stop")

    with pytest.raises(error, match="stop"):
        write(tmp_path, failing(), max_rows_per_file=4)
    assert files(tmp_path) == []


def test_a_mismatched_batch_deletes_written_files(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="row 10"):
        write(tmp_path, [*TABLE.to_batches(), pa.record_batch({"i": [0.5]})], max_rows_per_file=4)
    assert files(tmp_path) == []


def test_a_full_disk_deletes_written_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Sink.write
    written = []

    def full(self: Sink, data: Any) -> None:
        written.append(1)
        if len(written) > 40:
            raise StoreError("no space left")
        whole(self, data)

    monkeypatch.setattr(Sink, "write", full)
    with pytest.raises(StoreError, match="no space"):
        write(tmp_path, max_rows_per_file=1)
    assert files(tmp_path) == []


def test_discarded_fragments_are_deleted(tmp_path: Path) -> None:
    kept = write(tmp_path)
    discard_fragments(store(tmp_path), write(tmp_path, max_rows_per_file=3))
    assert files(tmp_path) == [f"data/{kept[0].files[0].path}"]


def test_files_rotate_over_base_paths(tmp_path: Path) -> None:
    bases = [Base(3, store(tmp_path / "a")), Base(7, store(tmp_path / "b"), is_dataset_root=False)]
    fragments = write(tmp_path / "t", max_rows_per_file=4, bases=bases)
    names = [f.files[0].path for f in fragments]
    assert [f.files[0].base_id for f in fragments] == [3, 7, 3]
    assert files(tmp_path) == sorted([f"a/data/{names[0]}", f"a/data/{names[2]}", f"b/{names[1]}"])
    discard_fragments(store(tmp_path / "t"), fragments, bases)
    assert files(tmp_path) == []


def test_progress_is_reported(tmp_path: Path) -> None:
    told: list[WriteProgress] = []
    fragments = write(tmp_path, max_rows_per_file=4, progress=told.append)
    size = sum(f.files[0].file_size or 0 for f in fragments)
    assert told[-1] == WriteProgress(10, size, 3)
    assert [p.rows for p in told] == sorted(p.rows for p in told)


def test_metadata_of_schema_and_options_are_in_the_file(tmp_path: Path) -> None:
    schema = schema_from_arrow(TABLE.schema.with_metadata({"a": "1"}))
    (fragment,) = write_new_fragments(store(tmp_path), schema, TABLE.to_batches(), WriteOptions(metadata={"b": "2"}))
    assert read(tmp_path, [fragment]).schema.metadata == {b"a": b"1", b"b": b"2"}


def test_new_columns_of_a_fragment_are_written_to_one_file(tmp_path: Path) -> None:
    schema = schema_from_arrow(pa.schema([("x", pa.int32()), ("st", pa.struct([("y", pa.int8())]))]), first_id=7)
    batches = [pa.record_batch({"x": pa.array([1, 2], pa.int32())}), pa.record_batch({"x": pa.array([3], pa.int32())})]
    file = write_columns(store(tmp_path), schema, batches, 3, WriteOptions(max_rows_per_file=1))
    assert (file.fields, file.column_indices, file.file_version) == ((7, 9), (0, 1), (2, 2))
    found = LanceFileReader(tmp_path / "data" / file.path).read_all().to_table()
    assert found["x"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(("rows", "found"), [(2, "found more"), (11, "found 10"), (0, "found more")])
def test_new_columns_need_the_row_count_of_the_fragment(tmp_path: Path, rows: int, found: str) -> None:
    with pytest.raises(InvalidInputError, match=found):
        write_columns(store(tmp_path), SCHEMA, TABLE.to_batches(), rows)
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        *(({"max_rows_per_file": 0}, InvalidInputError), ({"max_bytes_per_file": -1}, InvalidInputError)),
        *(({"max_rows_per_file": 2.5}, InvalidInputError), ({"max_rows_per_file": True}, InvalidInputError)),
        *(({"data_cache_bytes": 0}, InvalidInputError), ({"max_page_bytes": 0}, InvalidInputError)),
        *(({"data_storage_version": "3.0"}, InvalidInputError), ({"data_storage_version": "next"}, UnsupportedError)),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        WriteOptions(**options)


def test_memory_use_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = rng.random(1 << 17)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(1 << 20, np.float32)), 8)
    schema = schema_from_arrow(pa.schema([("f", pa.float64()), ("v", vectors.type)]))
    held: list[int] = []

    def batches(count: int) -> Iterator[pa.RecordBatch]:
        for i in range(count):
            held.append(pa.default_memory_pool().bytes_allocated())
            yield pa.record_batch({"f": values + i, "v": vectors})

    tracemalloc.start()
    before = pa.default_memory_pool().bytes_allocated()
    try:
        (fragment,) = write_new_fragments(store(tmp_path), schema, batches(64), WriteOptions(max_rows_per_file=1 << 30))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert fragment.physical_rows == 64 << 17
    assert os.path.getsize(tmp_path / "data" / fragment.files[0].path) > 300 << 20
    assert peak < 128 << 20
    assert held[-1] - before < 64 << 20
