"""Clustered vectors in a table, and queries from the same clusters.

Imports no library that is measured before it has to.
"""

from __future__ import annotations

import importlib
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks._harness import DATA

K = 10
BATCH = 1000  # queries
CHECKED = 50  # of these, to measure recall with
FILTERS = {"1/50": "fiftieth = 7", "1/5,000": "rare = 7"}

_STEP = 100_000


@dataclass(frozen=True)
class Data:
    """Vectors, and columns with an index to filter by.

    Attributes:
        rows: Of the table.
        dim: Numbers of a vector.
    """

    rows: int
    dim: int

    @classmethod
    def of(cls, text: str) -> Data:
        """From "1000000x128"."""
        rows, _, dim = text.partition("x")
        return cls(int(rows), int(dim))

    def __str__(self) -> str:
        return f"{self.rows:,} x {self.dim}"

    @property
    def stem(self) -> str:
        """Return the common prefix of file names."""
        return f"vectors-{self.rows}-{self.dim}"

    @cached_property
    def path(self) -> Path:
        """The table without indexes of vectors, written unless it is there."""
        path = DATA / f"{self.stem}.lance"
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            batches = (self._batch(at, min(_STEP, self.rows - at)) for at in range(0, self.rows, _STEP))
            reader = pa.RecordBatchReader.from_batches(self._batch(0, 1).schema, batches)
            dataset = _lance().write_dataset(reader, unfinished, max_rows_per_file=1_000_000)
            for column in ("fiftieth", "rare"):
                dataset.create_scalar_index(column, "BTREE")
            unfinished.rename(path)
        return path

    def _batch(self, start: int, count: int) -> pa.RecordBatch:
        rng = np.random.default_rng([start, self.dim])
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(self._clustered(rng, count).ravel()), self.dim)
        flags = {"fiftieth": rng.integers(0, 50, count), "rare": rng.integers(0, 5000, count)}
        return pa.record_batch({"id": np.arange(start, start + count), **flags, "vec": vectors})

    @cached_property
    def _centres(self) -> np.ndarray:
        count = max(16, self.rows // 500)
        return np.random.default_rng(self.dim).standard_normal((count, self.dim), np.float32)

    def _clustered(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Vectors around centres; the clusters overlap, and are of different sizes and widths."""
        chosen = (len(self._centres) * rng.random(count) ** 1.5).astype(np.int64)
        widths = 0.3 + 0.5 * (chosen % 7)[:, None].astype(np.float32) / 7
        return self._centres[chosen] + widths * rng.standard_normal((count, self.dim), np.float32)

    @cached_property
    def vectors(self) -> np.ndarray:
        """(rows, dim), in memory."""
        column = _lance().dataset(str(self.path)).to_table(columns=["vec"])["vec"].combine_chunks()
        return np.ascontiguousarray(column.values.to_numpy().reshape(-1, self.dim))

    @cached_property
    def queries(self) -> np.ndarray:
        """(batch, dim), from the same clusters, and not in the table."""
        return self._clustered(np.random.default_rng(10**9), BATCH)

    def flags(self, condition: str) -> np.ndarray:
        """Which rows pass a filter."""
        column, value = condition.split(" = ")
        return _lance().dataset(str(self.path)).to_table(columns=[column])[column].to_numpy() == int(value)

    @property
    def partitions(self) -> int:
        """Number of partitions in the indexes of all libraries."""
        return max(1, int(self.rows**0.5))


def _lance() -> Any:
    return importlib.import_module("lance")
