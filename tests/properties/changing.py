"""A small table that changes, for what remembers something of a version."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import lance_duck as ld

DIM = 4
FAST = {"fsync": "false"}


def rows(first: int, count: int, seed: int) -> pa.Table:
    """Return rows with narrow columns of many types, some with nulls, a text, a struct and vectors."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-100, 100, count)
    vectors = rng.integers(-3, 4, count * DIM).astype(np.float32)  # few numbers: distances that are the same
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "n": pa.array(numbers % 5, pa.int8()),
            "real": pa.array(numbers / 4, pa.float32()),
            "half": pa.array(numbers.astype(np.float16)),
            "day": pa.array(numbers.astype(np.int32), pa.date32()),
            "at": pa.array(numbers, pa.timestamp("us", "UTC")),
            "holes": pa.array([None if number % 7 == 0 else number for number in numbers.tolist()], pa.int64()),
            "flag": pa.array(numbers > 0),
            "text": pa.array([f"row {number}" for number in numbers]),
            "st": pa.StructArray.from_arrays([pa.array(numbers), pa.array(numbers.astype(np.int16))], ["x", "y"]),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIM),
        }
    )


def create(uri: str, *, stable_row_ids: bool) -> ld.LanceDataset:
    """Return a table of 60 rows in three fragments."""
    return ld.write_dataset(
        rows(0, 60, 0),
        uri,
        max_rows_per_file=20,
        enable_stable_row_ids=stable_row_ids,
        storage_options=FAST,
    )


def delete(dataset: ld.LanceDataset, number: int) -> None:
    dataset.delete(f"id % 11 = {number % 11}")


def update(dataset: ld.LanceDataset, number: int) -> None:
    dataset.update({"n": "(n + 1) % 5", "real": "real + 1"}, where=f"id % 4 = {number % 4}")


def append(dataset: ld.LanceDataset, number: int) -> None:
    dataset.insert(rows(1000 * number, 7, number))


def compact(dataset: ld.LanceDataset, number: int) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=30 + 10 * (number % 5))


def widen(dataset: ld.LanceDataset, number: int) -> None:
    dataset.alter_columns({"path": "n", "data_type": pa.int64() if number % 2 else pa.int16()})


def restore(dataset: ld.LanceDataset, number: int) -> None:
    versions = [each["version"] for each in dataset.versions()]
    older = dataset.checkout_version(versions[number % len(versions)])
    older.restore()
    dataset.checkout_latest()


CHANGES: dict[str, Callable[[ld.LanceDataset, int], None]] = {
    each.__name__: each for each in (delete, update, append, compact, widen, restore)
}


def steps(*more: str) -> st.SearchStrategy[list[tuple[str, int]]]:
    """Return changes by name, in random order, each with a number."""
    return st.lists(st.tuples(st.sampled_from([*CHANGES, *more]), st.integers(1, 50)), min_size=1, max_size=4)
