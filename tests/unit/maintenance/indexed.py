"""A table with an index over x, and the index coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from unit.index.plain import PlainKind, built, indexed

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.query import Among
from lance_duck.index.search import search
from lance_duck.rows import roaring_values

VALUES = 7


def write(path: Path, fragments: int = 6, rows: int = 10, *, stable: bool = False) -> ld.LanceDataset:
    """A table with key = 0, 1, 2, … and x = key % 7."""
    dataset = ld.write_dataset(batch(0, rows), path, enable_stable_row_ids=stable)
    for i in range(1, fragments):
        dataset.insert(batch(i * rows, rows))
    return dataset


def batch(start: int, rows: int) -> pa.Table:
    keys = range(start, start + rows)
    return pa.table({"key": keys, "x": [k % VALUES for k in keys], "y": [k % 3 for k in keys]})


def with_index(dataset: ld.LanceDataset, kind: PlainKind, *parts: list[int], column: str = "x") -> ld.LanceDataset:
    """The table with one segment for each list of fragments; one for all without."""
    snapshot = dataset.handle.snapshot
    segments = [built(snapshot, kind, column, part) for part in parts] or [built(snapshot, kind, column)]
    indexed(snapshot, *segments)
    return ld.dataset(dataset.uri)


def covers(dataset: ld.LanceDataset, name: str = "x_idx") -> list[list[int]]:
    """Fragments in the bitmap of each segment."""
    found = [s for s in dataset.handle.snapshot.indices if s.name == name]
    return [roaring_values(s.fragment_bitmap or b"", "test", 1 << 32).tolist() for s in found]


def check(dataset: ld.LanceDataset, column: str = "x") -> set[int]:
    """Check that each segment finds exactly the rows of its fragments, and return these fragments."""
    snapshot = dataset.handle.snapshot
    rows = dataset.to_table(columns=[column, "_rowaddr"])
    values, addresses = rows[column].to_numpy(), rows["_rowaddr"].to_numpy().astype(np.uint64)
    answered: set[int] = set()
    for segment in (s for index in catalog(snapshot).over(column) for s in index.segments):
        mine = np.isin(addresses >> np.uint64(32), segment.fragments)
        assert answered.isdisjoint(segment.fragments.tolist())
        answered.update(segment.fragments.tolist())
        for value in range(VALUES):
            answer = search(snapshot, segment, Among(pa.array([value], pa.int64())))
            assert answer is not None
            living = np.intersect1d(answer.sure.rows(), addresses)
            assert living.tolist() == np.sort(addresses[mine & (values == value)]).tolist()
    return answered


def directories(path: Path) -> set[str]:
    """Names of the directories of segments."""
    return {p.name for p in (path / "_indices").iterdir() if any(p.iterdir())}


def compact(dataset: ld.LanceDataset, **options: Any) -> ld.LanceDataset:
    dataset.optimize.compact_files(**options)
    return ld.dataset(dataset.uri)
