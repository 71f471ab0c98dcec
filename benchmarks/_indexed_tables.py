"""Large tables with indexes, stored in the data folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Any

import lance
import pyarrow as pa

from benchmarks._harness import DATA

_STEP = 500_000
"""Rows of a batch."""


def indexed_table(
    name: str, library: Any, batch: Callable[[int, int, int], pa.RecordBatch], rows: int, indexes: Mapping[str, str]
) -> str:
    """Return the path of a table in the data folder. If it is not there, pylance writes it, and a library its indexes.

    Args:
        name: Of the table.
        library: Builds the indexes.
        batch: Returns rows, from the number of the first, how many, and the number of all.
        rows: Number of all.
        indexes: Kinds by column.
    """
    path = DATA / f"{name}.lance"
    if not path.exists():
        batches = (batch(start, min(_STEP, rows - start), rows) for start in range(0, rows, _STEP))
        unfinished = path.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        reader = pa.RecordBatchReader.from_batches(batch(0, 1, rows).schema, batches)
        lance.write_dataset(reader, unfinished, max_rows_per_file=1_000_000)
        dataset = library.dataset(unfinished)
        for column, kind in indexes.items():
            dataset.create_scalar_index(column, kind)
        unfinished.rename(path)
    return str(path)
