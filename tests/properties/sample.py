"""A sample table: every type that filters compare, nulls, NaN, both zeros, deleted rows."""

from __future__ import annotations

import datetime
import decimal
import random
from dataclasses import dataclass

import lance
import pyarrow as pa
from properties.conditions import COLUMNS, TYPES

import lance_duck as ld

CHOICES: dict[str, list[object]] = {
    "i": [-3, -1, 0, 1, 2, 7],
    "big": [-(2**40), 0, 5, 2**53, 2**53 + 1],
    "u": [0, 1, 200, 255],
    "f": [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.25],
    "g": [float("nan"), float("inf"), 0.0, -0.0, 0.5, -2.25],
    "s": ["", "a", "b", "bb", "it's", "ü"],
    "b": [True, False],
    "d": [datetime.date(1969, 12, 31), datetime.date(2020, 2, 29), datetime.date(2021, 1, 1)],
    "t": [datetime.datetime(1970, 1, 1), datetime.datetime(2020, 2, 29, 12, 0, 0, 1)],
    "m": [decimal.Decimal("-1.50"), decimal.Decimal("0.00"), decimal.Decimal("99999.99")],
    "c": ["", "a", "b", "zz"],
}


@dataclass(frozen=True, repr=False)
class Sample:
    """A table on disk, our handle on it, and its rows."""

    dataset: ld.LanceDataset
    rows: pa.Table

    def __repr__(self) -> str:
        return repr(self.dataset)


def write(uri: str, version: str, *, deletions: bool) -> Sample:
    """Write 500 rows in fragments of 120 with a column `n` that counts them."""
    rng = random.Random(version)
    count = 500
    columns = {
        name: pa.array([rng.choice([None, *CHOICES[name], *CHOICES[name]]) for _ in range(count)], TYPES[name])
        for name in COLUMNS
    }
    dataset = lance.write_dataset(
        pa.table({"n": pa.array(range(count)), **columns}), uri, max_rows_per_file=120, data_storage_version=version
    )
    if deletions:
        dataset.delete("n % 7 = 2 OR n BETWEEN 120 AND 180 OR n >= 485")
    return Sample(ld.dataset(uri), dataset.to_table())
