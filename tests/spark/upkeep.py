"""Tables for tests of indexes and upkeep: one for Spark, and its like for one machine."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.search import open_index

ROWS = 1600
DIM = 8


def rows(count: int = ROWS, first: int = 0) -> pa.Table:
    numbers = np.arange(first, first + count)
    vectors = np.random.default_rng(first).normal(size=count * DIM).astype(np.float32)
    return pa.table(
        {
            "id": numbers,
            "k": pa.array(numbers % 97, mask=numbers % 31 == 0),
            "s": [f"s{i % 7}" for i in numbers],
            "l": [[i % 5, i % 3] for i in numbers],
            "v": pa.FixedSizeListArray.from_arrays(vectors, DIM),
        }
    )


def make(path: Path, *, stable: bool = False, fragments: int = 8, data: pa.Table | None = None) -> str:
    """Write a table of equally large fragments, some of which have deleted rows."""
    data = rows() if data is None else data
    size = max(1, data.num_rows // fragments)
    ld.write_dataset(
        data, path, max_rows_per_file=size, enable_stable_row_ids=stable, storage_options={"fsync": "false"}
    ).delete("id % 11 = 4")
    return str(path)


def twins(tmp_path: Path, **options: Any) -> tuple[str, ld.LanceDataset]:
    """A table for Spark, and its like for one machine."""
    return make(tmp_path / "spark.lance", **options), ld.dataset(make(tmp_path / "one.lance", **options))


def pylance(uri: str) -> Any:
    """Return the table opened by pylance, imported late because it warns of Spark's fork."""
    return importlib.import_module("lance").dataset(uri)


def coverage(dataset: ld.LanceDataset) -> dict[str, set[int]]:
    """Fragments that each index covers."""
    found: dict[str, set[int]] = {}
    for segment in dataset.list_indices():
        mine = found.setdefault(segment["name"], set())
        assert not mine & segment["fragment_ids"]
        mine |= segment["fragment_ids"]
    return found


def same_rows(uri: str, expected: ld.LanceDataset, *filters: str) -> None:
    """Both tables hold the same rows, also as filters choose them and as pylance reads them."""
    dataset = ld.dataset(uri)
    assert _sorted(dataset) == _sorted(expected)
    for text in filters:
        chosen = _sorted(expected, filter=text, use_scalar_index=False)
        assert _sorted(dataset, filter=text) == chosen
        assert _sorted(pylance(uri), filter=text) == chosen
    dataset.validate()


def centroids(dataset: ld.LanceDataset) -> list[Any]:
    """Return the centroids of each segment of the index over v."""
    snapshot = dataset.handle.snapshot
    segments = [segment for index in catalog(snapshot).over("v") for segment in index.segments]
    return [open_index(snapshot, segment).files.centroids.tolist() for segment in segments]


def _sorted(dataset: Any, **options: Any) -> pa.Table:
    return dataset.to_table(**options).sort_by("id")


def orphans(uri: str) -> list[str]:
    """Files that no version refers to."""
    explained = ld.dataset(uri).explain_cleanup_old_versions(
        timedelta(0), delete_unverified=True, error_if_tagged_old_versions=False, include_files=True
    )
    return [file.path for file in explained.candidate_files if file.unverified]
