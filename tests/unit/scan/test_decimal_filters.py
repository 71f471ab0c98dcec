"""A filter on a decimal column that the scan does not return compares like Python's Decimals, at any precision."""

from __future__ import annotations

import operator
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.predicate.tree import Compare, Op, all_of

ROWS = 400
COMPARISONS: dict[Op, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    ">": operator.gt,
}


def scaled(number: int, digits: int) -> Decimal:
    return Decimal(f"{number}E-{digits // 3}")


def number(rng: Random, digits: int) -> Decimal:
    most = 10**digits - 1
    return scaled(rng.choice([-most, most, rng.randint(-most, most), rng.randint(-3, 3)]), digits)


@pytest.fixture(scope="module")
def values() -> dict[int, list[Decimal | None]]:
    rng = Random(2)
    return {n: [None if rng.random() < 0.1 else number(rng, n) for _ in range(ROWS)] for n in range(1, 39)}


@pytest.fixture(scope="module")
def table(values: dict[int, list[Decimal | None]], tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    columns = {f"d{n}": pa.array(each, pa.decimal128(n, n // 3)) for n, each in values.items()}
    uri = str(tmp_path_factory.mktemp("decimals") / "t.lance")
    ds = ld.write_dataset(pa.table({"id": pa.array(range(ROWS), pa.int64()), **columns}), uri, max_rows_per_file=250)
    ds.delete("id % 5 = 2")
    return ds


@pytest.mark.parametrize("digits", range(1, 39))
def test_the_rows_are_those_that_python_finds(
    table: ld.LanceDataset, values: dict[int, list[Decimal | None]], digits: int
) -> None:
    rng = Random(digits)
    for _ in range(4):
        parts = [(rng.choice(list(COMPARISONS)), number(rng, digits)) for _ in range(rng.randint(1, 3))]
        constants = ((op, pa.scalar(bound, pa.decimal128(digits, digits // 3))) for op, bound in parts)
        predicate = all_of(*(Compare(op, (f"d{digits}",), constant) for op, constant in constants))

        found = table.duckdb_reader(pa.schema([pa.field("id", pa.int64())]), predicate).read_all()

        expected = [
            i
            for i, value in enumerate(values[digits])
            if i % 5 != 2 and value is not None and all(COMPARISONS[op](value, bound) for op, bound in parts)
        ]
        assert found["id"].to_pylist() == expected, predicate
