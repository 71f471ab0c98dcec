"""Nested types drawn at random, written by us, read by us and by pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.file import LanceFileReader as Theirs
from oracle.compare import assert_same
from oracle.kinds import Rng
from oracle.nested_random import types, values

from lance_duck.file import LanceFileReader
from lance_duck.file.write.writer import FileWriter
from lance_duck.store import open_store
from lance_duck.wire.schema_write import schema_from_arrow

ROWS = 60


def hidden_values(array: pa.Array, rng: Rng) -> pa.Array:
    """The same array, where some null lists still span items, and others are amid their buffers."""
    if pa.types.is_struct(array.type):
        children = [hidden_values(array.field(i), rng) for i in range(array.type.num_fields)]
        return pa.Array.from_buffers(array.type, len(array), [_bitmap(array)], children=children)
    if not (pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_map(array.type)):
        return array
    spare = array.values.slice(0, min(2, len(array.values)))
    offsets, parts, at = [], [array.values.slice(0, 0)], 0
    for place, valid in enumerate(np.asarray(array.is_valid()).tolist()):
        offsets.append(at)
        part = spare
        if valid:
            start, stop = array.offsets[place].as_py(), array.offsets[place + 1].as_py()
            part = array.values.slice(start, stop - start)
        parts.append(part)
        at += len(part)
    places = np.array([*offsets, at], np.int64 if pa.types.is_large_list(array.type) else np.int32)
    items = hidden_values(pa.concat_arrays(parts), rng)
    return pa.Array.from_buffers(array.type, len(array), [_bitmap(array), pa.py_buffer(places)], children=[items])


def _bitmap(array: pa.Array) -> pa.Buffer:
    return pa.py_buffer(np.packbits(np.asarray(array.is_valid()), bitorder="little"))


def write(path: Path, chunks: list[pa.Array], nullable: bool, version: str, page_bytes: int) -> None:
    schema = pa.schema([pa.field("x", chunks[0].type, nullable)])
    store = open_store(str(path.parent))
    with FileWriter(store.create(path.name), schema_from_arrow(schema, version), version, page_bytes=page_bytes) as out:
        for chunk in chunks:
            out.write(pa.record_batch([chunk], schema=schema))
        out.finish()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
    nulls=st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    page_bytes=st.sampled_from([1, 300, 3000, 1 << 20]),
    step=st.sampled_from([7, 1000]),
)
def test_written_columns_read_back(
    version: str, tmp_path: Path, data: Any, seed: int, nulls: float, page_bytes: int, step: int
) -> None:
    rng = np.random.default_rng(seed)
    type_ = data.draw(types(3, maps=version == "2.2"))
    array = values(type_, rng, ROWS, nulls)
    if seed % 2:
        array = hidden_values(array, rng)
    start = seed % 5
    truth = pa.concat_arrays([values(type_, rng, ROWS, nulls).slice(0, 0), array.slice(start)])
    path = tmp_path / f"{seed}.lance"
    chunks = [truth.slice(0, 0), *(array.slice(i, step) for i in range(start, ROWS, step))]
    write(path, chunks, True, version, page_bytes)
    check(path, truth, rng)


def check(path: Path, truth: pa.Array, rng: Rng) -> None:
    rows = np.unique(rng.integers(0, len(truth), 9)).tolist()
    start = int(rng.integers(0, len(truth)))
    ours = LanceFileReader(str(path))
    assert_same(truth, ours.read_all().to_table()["x"].combine_chunks())
    assert_same(truth.take(pa.array(rows)), ours.take_rows(rows).to_table()["x"].combine_chunks())
    assert_same(truth.slice(start), ours.read_range(start, len(truth) - start).to_table()["x"].combine_chunks())
    theirs = Theirs(str(path))
    assert_same(truth, theirs.read_all().to_table()["x"].combine_chunks())
    assert_same(truth.take(pa.array(rows)), theirs.take_rows(rows).to_table()["x"].combine_chunks())
