from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.file import LanceFileReader, LanceFileWriter
from lance_duck.file.write.leaf import come_again


def long_texts(count: int, size: int = 1000) -> pa.Array:
    data = np.random.default_rng(0).integers(32, 127, count * size, np.uint8)
    offsets = np.arange(0, (count + 1) * size, size, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_binary()])
def test_a_sample_with_duplicates_marks_strings_as_repeated(kind: pa.DataType) -> None:
    texts = long_texts(6000, 40).cast(kind)
    assert come_again([texts, texts], worth=100_000)
    assert not come_again([texts, texts], worth=1_000_000)
    assert not come_again([texts], worth=1)
    assert not come_again([texts.slice(0, 100), texts.slice(0, 100)], worth=1)


def test_nulls_and_numbers_are_not_repeated_strings() -> None:
    assert not come_again([], worth=1)
    assert not come_again([pa.nulls(9000, pa.string())], worth=1)
    assert not come_again([pa.array(np.zeros(9000))], worth=1)


def test_distant_repeated_strings_are_stored_once(tmp_path: Path) -> None:
    texts = long_texts(5000)
    table = pa.table({"x": pa.concat_arrays([texts] * 6)})
    path = tmp_path / "x.lance"
    with LanceFileWriter(path, table.schema, storage_options={"fsync": "false"}) as writer:
        for batch in table.to_batches(max_chunksize=3000):
            writer.write_batch(batch)
    assert path.stat().st_size < 1.1 * texts.nbytes
    assert LanceFileReader(path).read_all().to_table().equals(table)


def test_small_pages_are_not_enlarged_for_a_dictionary(tmp_path: Path) -> None:
    texts = long_texts(5000)
    table = pa.table({"x": pa.concat_arrays([texts] * 3)})
    path = tmp_path / "x.lance"
    options = {"max_page_bytes": 4 << 20, "storage_options": {"fsync": "false"}}
    with LanceFileWriter(path, table.schema, **options) as writer:
        writer.write_batch(table.to_batches()[0])
    assert path.stat().st_size > 2 * texts.nbytes
