"""Columns with several pages of the default size, and row counts at chunk and bit-packing boundaries."""

from __future__ import annotations

from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from oracle import nested_columns
from oracle.cases import Cases
from oracle.compare import assert_tables_same
from oracle.kinds import VERSIONS, build
from oracle.tables import KINDS

import lance_duck as ld

EDGES = (1, 2, 511, 512, 513, 1023, 1024, 1025, 2049, 4095, 4096, 4097, 8193)
EDGE_KINDS = """
    int64_random int64_small int8_small int32_sorted int16_runs int64_outliers uint8_random float32_random
    float64_few bool_random string_few string_many string_one_letter large_string_many binary_short date32
    decimal128_18_4_few fsl_float32_16 fsl_bool_3 fsl_int32_3_null_items list_int32_null_items list_string
    struct_null_children
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_row_counts_at_the_edges_of_chunks(version: str, tmp_path: Path, cases: Cases) -> None:
    kinds = [k for k in KINDS if k.name in EDGE_KINDS.split()]
    for rows in EDGES:
        table = pa.table(
            {k.name: build(k, "none" if k.is_refused(version, "nulls") else "nulls", rows, rows) for k in kinds}
        )
        uri = str(tmp_path / f"{rows}.lance")
        truth = lance.write_dataset(table, uri, data_storage_version=version).to_table()
        places = sorted({0, rows - 1, rows // 2, *range(max(0, rows - 3), rows), *range(min(rows, 3))})
        with cases.case(f"{rows} rows", len(kinds)):
            assert_tables_same(truth, ld.dataset(uri).to_table())
        with cases.case(f"{rows} rows, taken", len(kinds)):
            assert_tables_same(truth.take(places), ld.dataset(uri).take(places))
        with cases.case(f"{rows} rows, the last alone", len(kinds)):
            assert_tables_same(truth.slice(rows - 1), ld.dataset(uri).to_table(offset=rows - 1))


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_of_the_default_size(version: str, tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng(8)
    rows = 1_300_000
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 4, rows))]).astype("int32")
    codes = rng.integers(0, 10**6, rows)
    table = pa.table(
        {
            "number": pa.array(rng.integers(0, 2**62, rows), mask=rng.random(rows) < 0.1),
            "text": pa.array(codes).cast(pa.string()),
            "list": pa.ListArray.from_arrays(pa.array(ends), nested_columns.null_ints(rng, int(ends[-1]))),
        }
    )
    batches = table.to_reader(max_chunksize=100_000)
    uri = str(tmp_path / "t.lance")
    truth = lance.write_dataset(batches, uri, data_storage_version=version).to_table()
    places = rng.integers(0, rows, 500)
    ours = ld.dataset(uri)
    with cases.case("whole", 3):
        assert_tables_same(truth, ours.to_table())
    with cases.case("take", 3):
        assert_tables_same(truth.take(places), ours.take(places))
    for offset in (0, 349_520, 1_048_570, 1_299_990):
        with cases.case(f"from {offset}", 3):
            assert_tables_same(truth.slice(offset, 5000), ours.to_table(offset=offset, limit=5000))
