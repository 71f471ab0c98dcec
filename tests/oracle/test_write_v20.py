"""Files of version 2.0 written by us: any nesting, read by pylance, and no larger than its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import tables
from oracle.cases import Cases
from oracle.compare import assert_same
from oracle.nested_random import types, value
from oracle.tables import ID, make_table

import lance_duck as ld
from lance_duck.errors import UnsupportedError

CASE_KIND = "written"
ROWS = 60
LOCAL = {"fsync": "false"}


def values(kind: pa.DataType, rng: np.random.Generator, rows: int, nulls: float) -> pa.Array:
    """Return values without null structs at any level, which 2.0 cannot store."""
    return pa.array([filled(kind, rng, nulls, True) for _ in range(rows)], kind)


def filled(kind: pa.DataType, rng: np.random.Generator, nulls: float, nullable: bool) -> object:
    if pa.types.is_struct(kind):
        return {f.name: filled(f.type, rng, nulls, f.nullable) for f in kind}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if nullable and rng.random() < nulls:
            return None
        size = int(rng.choice([0, 1, 2, 5]))
        return [filled(kind.value_type, rng, nulls, kind.value_field.nullable) for _ in range(size)]
    return value(kind, rng, nulls, nullable)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
    deadline=None,
)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), nulls=st.sampled_from([0.0, 0.1, 0.5]))
def test_random_nested_columns_round_trip_in_2_0(cases: Cases, data: st.DataObject, seed: int, nulls: float) -> None:
    kind = data.draw(types(4, maps=False))
    rng = np.random.default_rng(seed)
    table = pa.table({"x": values(kind, rng, ROWS, nulls), "n": np.arange(ROWS)})
    with tempfile.TemporaryDirectory() as folder:
        try:
            cache = data.draw(st.sampled_from([None, 200]))
            ld.write_dataset(table, folder, data_storage_version="2.0", data_cache_bytes=cache, storage_options=LOCAL)
        except UnsupportedError:
            assume(False)
        theirs, ours = lance.dataset(folder), ld.dataset(folder)
        assert_same(table["x"], theirs.to_table()["x"])
        assert_same(table["x"], ours.to_table()["x"])
        rows = sorted(rng.integers(0, ROWS, 9).tolist())
        assert_same(table["x"].take(rows), theirs.take(rows)["x"])
        assert_same(table["x"].slice(7, 20), theirs.to_table(offset=7, limit=20)["x"])
    cases.count += 4


def bytes_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in (folder / "data").rglob("*") if file.is_file())


@pytest.mark.parametrize("pattern", ["none", "nulls"])
def test_files_are_not_larger_than_those_of_pylance(pattern: str, tmp_path: Path, cases: Cases) -> None:
    for kind in tables.KINDS:
        if pattern not in kind.patterns() or kind.is_refused("2.0", pattern):
            continue
        table = make_table([kind], pattern, 60 if kind.wide else 1000).drop_columns([ID])
        ours, theirs = tmp_path / f"{kind.name}-ours", tmp_path / f"{kind.name}-theirs"
        with cases.case(kind.name):
            options = {**LOCAL, "checksums": "false"}
            ld.write_dataset(table, ours, data_storage_version="2.0", storage_options=options)
            lance.write_dataset(table, theirs, data_storage_version="2.0")
            assert bytes_of(ours) <= 1.05 * bytes_of(theirs) + 100


def test_pages_have_the_same_size_as_in_pylance(tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "i": rng.integers(0, 2**60, 2_500_000),
            "b": rng.random(2_500_000) < 0.5,
            "l": pa.ListArray.from_arrays(
                pa.array(np.arange(0, 2_500_001, dtype=np.int32)), pa.array(rng.random(2_500_000))
            ),
        }
    )
    ld.write_dataset(table, tmp_path / "t", data_storage_version="2.0", storage_options=LOCAL)
    with cases.case("large", 2):
        dataset = lance.dataset(tmp_path / "t")
        assert dataset.to_table().equals(table)
        assert dataset.take([0, 1_048_575, 2_499_999]).equals(table.take([0, 1_048_575, 2_499_999]))
