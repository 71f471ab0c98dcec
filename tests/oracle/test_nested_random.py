"""Nested types drawn at random, written by pylance, read by both."""

from __future__ import annotations

import tempfile

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle.cases import Cases
from oracle.compare import assert_fields_same, assert_same
from oracle.kinds import VERSIONS
from oracle.nested_random import types, values

import lance_duck as ld

CASE_KIND = "nested"
ROWS = 60


@pytest.mark.parametrize("version", VERSIONS)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much]
)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), nulls=st.sampled_from([0.0, 0.1, 0.5]))
def test_random_nested_columns_read_the_same_as_in_pylance(
    version: str, cases: Cases, data: st.DataObject, seed: int, nulls: float
) -> None:
    type_ = data.draw(types(4, maps=version == "2.2"))
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        truth = _written(f"{folder}/t.lance", version, type_, rng, nulls)
        assume(truth is not None)
        _compare(f"{folder}/t.lance", truth, rng)
    cases.count += 4


def _written(uri: str, version: str, type_: pa.DataType, rng: np.random.Generator, nulls: float) -> pa.Table | None:
    """Write two fragments.

    Returns None if pylance cannot write them or read them again.
    """
    try:
        for rows in (ROWS, 7):
            table = pa.table(
                {"x": values(type_, rng, rows, nulls), "n": np.arange(rows) if rows == ROWS else np.arange(rows) + ROWS}
            )
            dataset = lance.write_dataset(table, uri, mode="append", data_storage_version=version)
        return dataset.to_table()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def _compare(uri: str, truth: pa.Table, rng: np.random.Generator) -> None:
    dataset = ld.dataset(uri)
    found = dataset.to_table()
    assert_fields_same(truth.schema.field(0), found.schema.field(0))
    assert_same(truth["x"], found["x"])
    rows = rng.integers(0, truth.num_rows, 9).tolist()
    assert_same(truth["x"].take(rows), dataset.take(rows)["x"])
    start = int(rng.integers(0, ROWS))
    assert_same(truth["x"].slice(start, 20), dataset.to_table(offset=start, limit=20)["x"])
    keep = pa.array(np.arange(truth.num_rows) == start)
    assert_same(truth["x"].filter(keep), dataset.to_table(filter=f"n = {start}")["x"])
