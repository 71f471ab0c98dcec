"""Null-item information in page metadata matches the vectors."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lance_duck as ld

KINDS = {"f32": pa.float32(), "f16": pa.float16(), "u8": pa.uint8()}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Any], str, int]:
    """Rows of vectors that may be null, and may hold nulls, their item type, and their length."""
    length = draw(st.sampled_from([1, 3, 64, 300]))
    chance = draw(st.sampled_from([0, 0, 1, 30]))
    random = draw(st.randoms(use_true_random=False))
    rows: list[Any] = []
    for _ in range(draw(st.integers(1, 40))):
        items = [None if random.randrange(1000) < chance else random.randrange(100) for _ in range(length)]
        rows.append(None if random.random() < 0.1 else items)
    return rows, draw(st.sampled_from(sorted(KINDS))), length


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@settings(deadline=None, max_examples=12)
@given(table=tables(), pieces=st.integers(1, 3))
def test_metadata_never_denies_existing_null_items(
    version: str, table: tuple[list[Any], str, int], pieces: int
) -> None:
    rows, item, length = table
    vectors = pa.array(rows, pa.list_(KINDS[item], length))
    with tempfile.TemporaryDirectory() as folder:
        ds = ld.write_dataset(
            pa.table({"v": vectors}),
            folder + "/t",
            max_rows_per_file=-(-len(rows) // pieces),
            data_storage_version=version,
        )
        denied = ds.handle.table.has_no_null_items("v")
        assert ds.to_table()["v"].to_pylist() == rows
    has_nulls = any(row is not None and None in row for row in rows)
    assert not (denied and has_nulls)
    if version != "2.0" and len({tuple(row) for row in rows if row is not None}) != 1:
        assert denied == (not has_nulls)


def test_only_vector_columns_are_declared_without_null_items(tmp_path: Any) -> None:
    columns = {"id": [1], "l": pa.array([[1.0]], pa.list_(pa.float32())), "s": [{"v": 1}]}
    ds = ld.write_dataset(pa.table(columns), tmp_path / "t")
    assert not any(ds.handle.table.has_no_null_items(name) for name in columns)
