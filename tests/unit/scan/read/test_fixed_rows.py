"""Vectors fetched in place equal those of a take, for all pages, types, nulls and fragments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.nearest.compare import Question
from lance_duck.scan.nearest.exact import Exact
from lance_duck.scan.nearest.options import vector_column

ROWS, DIM = 600, 160
METRICS = ("l2", "cosine", "dot")


def vectors(type_: pa.DataType, *, has_nulls: bool) -> pa.Array:
    numbers = np.random.default_rng(4).standard_normal((ROWS, DIM)) * 50
    values = (numbers.astype(np.uint8) if type_ == pa.uint8() else numbers).ravel()
    flat = pa.array(values.astype(type_.to_pandas_dtype()), type_)
    mask = pa.array(np.arange(ROWS) % 7 == 3) if has_nulls else None
    return pa.FixedSizeListArray.from_arrays(flat, DIM, mask=mask)


def table(path: Path, array: pa.Array, version: str) -> ld.LanceDataset:
    rows = pa.table({"id": np.arange(ROWS), "v": array})
    for start in range(0, ROWS, 200):
        mode = "append" if start else "create"
        ld.write_dataset(rows.slice(start, 200), path, mode=mode, data_storage_version=version)
    return ld.dataset(path)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("type_", [pa.float32(), pa.float64(), pa.float16(), pa.uint8()], ids=str)
@pytest.mark.parametrize("has_nulls", [False, True])
def test_rows_ranked_in_place_have_the_same_distances_as_rows_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, type_: pa.DataType, has_nulls: bool
) -> None:
    ds = table(tmp_path / "t.lance", vectors(type_, has_nulls=has_nulls), version)
    snapshot, column = ds.handle.snapshot, vector_column(ds.handle.table, "v")
    rng = np.random.default_rng(5)
    queries: Any = rng.integers(0, 9, (6, DIM)).astype(column.dtype)
    exact = Exact(snapshot, ds.handle.table.columns, column, 1)
    for metric in ("hamming",) if type_ == pa.uint8() else METRICS:
        question = Question(metric, queries, 30)
        candidates = exact.search(list(snapshot.fragments), None, Question(metric, queries, 60))
        assert len(candidates) == 360
        found = exact.rerank(question, candidates)
        with monkeypatch.context() as patched:
            patched.setattr(Exact, "_in_place", lambda *_: None)
            wanted = exact.rerank(question, candidates)
        np.testing.assert_array_equal(found.queries, wanted.queries)
        np.testing.assert_array_equal(found.addresses, wanted.addresses)
        np.testing.assert_array_equal(found.distances, wanted.distances)


def test_plain_pages_are_found_plain(tmp_path: Path) -> None:
    ds = table(tmp_path / "t.lance", vectors(pa.float32(), has_nulls=False), "2.2")
    column = vector_column(ds.handle.table, "v")
    exact = Exact(ds.handle.snapshot, ds.handle.table.columns, column, 1)
    queries = np.ones((2, DIM), np.float32)
    question = Question("l2", queries, 5)
    candidates = exact.search(list(ds.handle.snapshot.fragments), None, Question("l2", queries, 20))
    order = np.argsort(candidates.addresses, kind="stable")
    found = exact._in_place(question, candidates.queries[order], candidates.addresses[order])
    assert found is not None
    assert len(found) == 10
