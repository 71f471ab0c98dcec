"""The methods of a dataset that compute another dataset in memory, with pyarrow.

They are functions outside the class because `dataset.py` would otherwise exceed 500 lines.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.errors import InvalidInputError


def sort_by(self: pads.Dataset, sorting: Any, **options: Any) -> pads.InMemoryDataset:
    """Sort the rows in memory. See `pyarrow.dataset.Dataset.sort_by`."""
    return _in_memory("sort_by", self.to_table().sort_by, sorting, **options)


def join(
    self: pads.Dataset, right_dataset: pads.Dataset, keys: Any, *args: Any, **options: Any
) -> pads.InMemoryDataset:
    """Join with another dataset in memory. See `pyarrow.dataset.Dataset.join`."""
    return _in_memory("join", self.to_table().join, right_dataset.to_table(), keys, *args, **options)


def join_asof(self: pads.Dataset, right_dataset: pads.Dataset, *args: Any, **options: Any) -> pads.InMemoryDataset:
    """Join with another dataset on the nearest key, in memory. See `pyarrow.dataset.Dataset.join_asof`."""
    return _in_memory("join_asof", self.to_table().join_asof, right_dataset.to_table(), *args, **options)


def _in_memory(what: str, compute: Callable[..., pa.Table], *args: Any, **options: Any) -> pads.InMemoryDataset:
    try:
        return pads.InMemoryDataset(compute(*args, **options))
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise InvalidInputError(f"pyarrow cannot compute this {what}", found=str(error)) from error
