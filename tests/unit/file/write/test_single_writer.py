from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.file import LanceFileReader, LanceFileWriter

TABLE = pa.table({"a": [1, 2, 3], "s": [{"x": "u"}, None, {"x": None}], "l": [[1], None, []]})


@pytest.mark.parametrize("version", ["2.1", "2.2", "stable", None])
def test_a_file_is_written_and_read(tmp_path: Path, version: str | None) -> None:
    path = tmp_path / "f.lance"
    with LanceFileWriter(path, TABLE.schema, version=version) as writer:
        writer.write_batch(TABLE)
        writer.write_batch(TABLE.to_batches()[0])
        writer.add_schema_metadata("k", "v")
        assert writer.add_global_buffer(b"extra") == 1
        assert not path.exists()
        assert writer.close() == 6
    assert writer.closed
    assert writer.size_bytes == path.stat().st_size
    assert writer.close() is None
    reader = LanceFileReader(path)
    assert reader.read_all().to_table().equals(pa.concat_tables([TABLE, TABLE]))
    assert reader.metadata().schema.metadata == {b"k": b"v"}
    assert reader.read_global_buffer(1) == b"extra"


def test_the_first_batch_determines_the_schema(tmp_path: Path) -> None:
    with LanceFileWriter(tmp_path / "f.lance") as writer:
        writer.write_batch(TABLE)
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().equals(TABLE)


def test_view_and_extension_types_are_accepted(tmp_path: Path) -> None:
    table = pa.table({"v": pa.array(["a"], pa.string_view()), "u": pa.array([bytes(16)], pa.uuid())})
    with LanceFileWriter(tmp_path / "f.lance") as writer:
        writer.write_batch(table)
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().to_pylist() == table.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_blobs_and_json_are_accepted(tmp_path: Path, version: str) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([blob, ("j", pa.json_())])
    table = pa.table([[b"ab", None, b""], pa.array(["[1]", None, "{}"], pa.json_())], schema=schema)
    with LanceFileWriter(tmp_path / "f.lance", version=version) as writer:
        writer.write_batch(table)
    assert LanceFileReader(tmp_path / "f.lance").read_all().to_table().to_pylist() == table.to_pylist()


def test_a_small_cache_limit_makes_small_pages(tmp_path: Path) -> None:
    for name, limits in {"a": {"data_cache_bytes": 8000}, "b": {"max_page_bytes": 8000}}.items():
        with LanceFileWriter(tmp_path / name, **limits) as writer:
            for _ in range(10):
                writer.write_batch(pa.record_batch({"x": np.random.default_rng(0).random(1000)}))
        assert 5 <= LanceFileReader(tmp_path / name).file_statistics().columns[0].num_pages <= 20


def test_an_exception_in_the_with_block_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with LanceFileWriter(tmp_path / "f.lance", TABLE.schema) as writer:
            writer.write_batch(TABLE)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "batch",
    [
        pa.record_batch({"a": [1]}),
        pa.record_batch({"b": [1], "a": ["x"]}),
        pa.record_batch({"a": pa.array([None], pa.int64()), "b": ["x"]}),
        {"a": [1]},
    ],
    ids=["columns", "types", "null", "dict"],
)
def test_a_rejected_batch_is_not_written(tmp_path: Path, batch: object) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False), ("b", pa.string())])
    with LanceFileWriter(tmp_path / "f.lance", schema) as writer:
        with pytest.raises(InvalidInputError):
            writer.write_batch(batch)  # type: ignore[arg-type]
        assert writer.close() == 0


def test_invalid_files_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="version"):
        LanceFileWriter(tmp_path / "f", TABLE.schema, version="9")
    with pytest.raises(UnsupportedError, match="interval"):
        LanceFileWriter(tmp_path / "f", pa.schema([("x", pa.month_day_nano_interval())]))
    with pytest.raises(InvalidInputError, match="ends with a file name"):
        LanceFileWriter("memory://")
    with pytest.raises(InvalidInputError, match="schema="):
        LanceFileWriter(tmp_path / "f").close()
    assert list(tmp_path.iterdir()) == []
