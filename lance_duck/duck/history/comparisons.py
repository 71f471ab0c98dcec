"""Functions that compare rows: near duplicates in one version, and two branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.history.source import BatchRows
from lance_duck.errors import InvalidInputError

_PAIRS: Final = pa.schema({"left": pa.uint64(), "right": pa.uint64(), "similarity": pa.float64()})


def near_duplicates(
    dataset: LanceDataset, column: str | None, threshold: str | None, equal_texts: str | None
) -> BatchRows:
    """Return pairs of rows with similar texts. They are computed when DuckDB scans them."""
    if column is None or threshold is None or equal_texts is None:
        raise InvalidInputError(
            "lance_near_duplicates needs a column, a threshold and equal_texts",
            where="lance_near_duplicates",
            found="NULL",
        )
    name, least, equal = column, float(threshold), equal_texts

    def batches(names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        pairs = dataset.near_duplicates(name, least, equal_texts=equal)
        return iter(pairs.select(list(names)).to_batches())

    return BatchRows(_PAIRS, batches)


def branch_diff(dataset: LanceDataset, first: str | None, second: str | None, *key: str | None) -> pa.Table:
    """Return the rows that differ between two branches."""
    if first is None or second is None or None in key:
        raise InvalidInputError("lance_branch_diff needs two branches", where="lance_branch_diff", found="NULL")
    on = [name for name in key if name is not None]
    return dataset.branches.diff(first, second, on or None)
