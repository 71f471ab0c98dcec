"""Tables for `costs.py`, which are written on first use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_duck as ld
from benchmarks._texts import texts

PICKED = 1 << 20
"""`pick` is evenly distributed between 0 and this."""

RUN_LENGTHS = (96, 192, 384, 768, 1_536)
"""Run lengths. Each length has a column in which one run in ten is 1, and the others are 0."""


@dataclass(frozen=True)
class CostTables:
    """Paths of the tables.

    Attributes:
        folder: Folder of the tables.
    """

    folder: Path

    @cached_property
    def numbers(self) -> str:
        """A million rows of numbers and texts in four fragments; `id` and `shuffled` have B-trees."""
        return self._indexed(self._write("numbers", _numbers(1_000_000), 250_000))

    @cached_property
    def middle(self) -> str:
        """The same, with 200,000 rows in one fragment."""
        return self._indexed(self._write("middle", _numbers(200_000), 200_000))

    @cached_property
    def small(self) -> str:
        """The same, with 1,000 rows and no index."""
        return self._write("small", _numbers(1_000), 1_000)

    @cached_property
    def pieces(self) -> str:
        """The same, with 256 fragments of 2,000 rows. `spot` is a shuffled position in a fragment, with a B-tree."""
        path = self._write("pieces", _with_spots(_numbers(512_000), 2_000), 2_000)
        ld.dataset(path).create_scalar_index("spot", "BTREE")
        return path

    @cached_property
    def lots(self) -> str:
        """The same, with 16 fragments of 20,000 rows, and columns of runs that have bitmaps."""
        data = _with_spots(_numbers(320_000), 20_000)
        rng = np.random.default_rng(3)
        for length in RUN_LENGTHS:
            is_chosen = rng.random(len(data) // length + 1) < 0.1
            data = data.append_column(f"run{length}", pa.array(np.repeat(is_chosen, length)[: len(data)].astype(int)))
        path = self._write("lots", data, 20_000)
        dataset = ld.dataset(path)
        dataset.create_scalar_index("spot", "BTREE")
        for length in RUN_LENGTHS:
            dataset.create_scalar_index(f"run{length}", "BITMAP")
        return path

    def fragments(self, count: int, rows: int) -> str:
        """Return a table of random int64 values with this number of fragments and rows per fragment."""
        rng = np.random.default_rng(6)
        data = pa.table({"y": rng.integers(-(1 << 63), (1 << 63) - 1, count * rows)})
        return self._write(f"fragments{count}x{rows}", data, rows)

    def vectors(self, rows: int, dim: int, *, indexed: bool = False) -> str:
        """Return a table of vectors with `id`, `pick` and `shuffled`, and optionally an IVF_PQ index."""
        name = f"vectors{rows}x{dim}{'indexed' if indexed else ''}"
        rng = np.random.default_rng(5)
        values = pa.array(rng.standard_normal(rows * dim, np.float32))
        data = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, dim), **_keys(rows, rng)})
        is_new = not (self.folder / f"{name}.lance").exists()
        path = self._write(name, data, rows)
        if indexed and is_new:
            partitions = max(16, int(rows**0.5) // 2)
            ld.dataset(path).create_index("v", "IVF_PQ", num_partitions=partitions, num_sub_vectors=dim // 4)
        return path

    def text_fragments(self, count: int) -> str:
        """Return a table with fragments of 10,000 rows, and a dictionary-encoded string column of 24 values."""
        rng = np.random.default_rng(11)
        words = pa.array([f"{i:08d}" for i in range(24)])
        rows = count * 10_000
        data = pa.table({"text": words.take(pa.array(rng.integers(0, 24, rows))), "y": np.arange(rows)})
        return self._write(f"text_fragments{count}", data, 10_000)

    def paged_vectors(self, page_bytes: int) -> str:
        """Return a table of 200,000 vectors with 32 dimensions, in pages of this size."""
        rng = np.random.default_rng(13)
        values = pa.array(rng.standard_normal(200_000 * 32, np.float32))
        data = pa.table({"id": np.arange(200_000), "v": pa.FixedSizeListArray.from_arrays(values, 32)})
        path = self.folder / f"paged{page_bytes}.lance"
        if not path.exists():
            ld.write_dataset(data, str(path), max_page_bytes=page_bytes)
        return str(path)

    @cached_property
    def multivectors(self) -> str:
        """20,000 rows of 1 to 15 vectors of 16 numbers."""
        rng = np.random.default_rng(14)
        counts = rng.integers(1, 16, 20_000)
        values = pa.array(rng.standard_normal(int(counts.sum()) * 16, np.float32))
        ends = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
        lists = pa.ListArray.from_arrays(ends, pa.FixedSizeListArray.from_arrays(values, 16))
        return self._write("multivectors", pa.table({"id": np.arange(20_000), "v": lists}), 20_000)

    def documents(self, rows: int, *, indexed: bool) -> str:
        """Return a table of strings with `id` and `pick`, in fragments of 100,000, with an optional full-text index."""
        name = f"documents{rows}{'indexed' if indexed else ''}"
        is_new = not (self.folder / f"{name}.lance").exists()
        data = pa.table({"text": texts(rows), **_keys(rows, np.random.default_rng(15))})
        path = self._write(name, data, 100_000)
        if indexed and is_new:
            ld.dataset(path).create_scalar_index("text", "INVERTED", with_position=True)
        return path

    def _write(self, name: str, data: pa.Table, rows_of_a_file: int, data_storage_version: str | None = None) -> str:
        path = self.folder / f"{name}.lance"
        if not path.exists():
            ld.write_dataset(
                data, str(path), max_rows_per_file=rows_of_a_file, data_storage_version=data_storage_version
            )
        return str(path)

    def _indexed(self, path: str) -> str:
        dataset = ld.dataset(path)
        for column in ("id", "shuffled"):
            dataset.create_scalar_index(column, "BTREE")
        return path


def _numbers(rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    words = pa.array([f"driver number {i:06d}" for i in range(5_000)])
    texts = words.take(pa.array(rng.integers(0, len(words), rows)))
    return pa.table({**_keys(rows, rng), "y": rng.integers(0, 1 << 40, rows), "text": texts})


def _keys(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {"id": np.arange(rows), "pick": rng.integers(0, PICKED, rows), "shuffled": rng.permutation(rows)}


def _with_spots(data: pa.Table, rows_of_a_file: int) -> pa.Table:
    rng = np.random.default_rng(2)
    spots = np.concatenate([rng.permutation(rows_of_a_file) for _ in range(len(data) // rows_of_a_file)])
    return data.append_column("spot", pa.array(spots))
