"""Cached columns return the same values as the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.read import column_cache


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    rng = np.random.default_rng(5)
    rows = pa.table(
        {
            "id": pa.array(np.arange(500)),
            "small": pa.array(rng.integers(-100, 100, 500), pa.int8()),
            "real": pa.array(rng.random(500), pa.float32()),
            "half": pa.array(rng.random(500).astype(np.float16)),
            "day": pa.array(rng.integers(0, 1000, 500).astype(np.int32), pa.date32()),
            "holes": pa.array([None if i % 7 == 0 else i for i in range(500)], pa.int64()),
            "flag": pa.array(rng.random(500) < 0.5),
            "text": pa.array([f"row {i}" for i in range(500)]),
        }
    )
    dataset = ld.write_dataset(rows, tmp_path / "t.lance", max_rows_per_file=200)
    dataset.delete("id % 10 = 3")
    return dataset


@pytest.mark.parametrize("columns", [["id"], ["real", "text", "day"], ["holes", "flag", "small"], None])
def test_repeatedly_taken_rows_equal_rows_taken_once(table: ld.LanceDataset, columns: Any) -> None:
    rng = np.random.default_rng(1)
    often = ld.dataset(table.uri)
    for turn in range(3 * column_cache.TAKES_BEFORE_CACHE):
        rows = rng.integers(0, 450, 9)
        expected = ld.dataset(table.uri).take(rows, columns) if turn % 5 == 0 else None
        found = often.take(rows, columns)
        if expected is not None:
            assert found.equals(expected)
            assert found.schema.equals(expected.schema)


def test_narrow_columns_without_nulls_and_columns_of_strings_are_cached(table: ld.LanceDataset) -> None:
    for _ in range(column_cache.TAKES_BEFORE_CACHE):
        table.take([1, 400, 7])
    kept = table.handle.table.taker.decoded
    texts = sum(len(f"row {i}") + 4 for i in range(500))
    assert kept.nbytes == 500 * (8 + 1 + 4 + 2 + 4) + texts


def test_a_hidden_column_can_be_taken_with_cached_columns(table: ld.LanceDataset) -> None:
    for _ in range(column_cache.TAKES_BEFORE_CACHE + 1):
        found = table.take([1, 400, 7], ["id", "_rowid"])
    assert found.to_pydict() == {"id": [1, 445, 8], "_rowid": [1, (2 << 32) + 45, 8]}


def test_a_column_is_not_cached_above_the_limit(table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_cache, "MOST_BYTES", 1000)
    for _ in range(column_cache.TAKES_BEFORE_CACHE):
        assert table.take([5, 2], ["id", "small"])["id"].to_pylist() == [6, 2]
    assert table.handle.table.taker.decoded.nbytes == 500


def test_a_column_of_long_strings_is_not_decoded_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_cache, "MOST_BYTES", 1000)
    dataset = ld.write_dataset(pa.table({"text": ["a" * 100] * 50}), tmp_path / "t.lance")
    for _ in range(column_cache.TAKES_BEFORE_CACHE + 1):
        assert dataset.take([5], ["text"])["text"].to_pylist() == ["a" * 100]
    assert dataset.handle.table.taker.decoded.nbytes == 0


def test_more_takes_come_before_a_large_column_of_strings_is_cached(
    table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(column_cache, "BYTES_DECODED_IN_A_TAKE", 100)
    for _ in range(column_cache.TAKES_BEFORE_CACHE + 1):
        table.take([5], ["text"])
    assert table.handle.table.taker.decoded.nbytes == 0
