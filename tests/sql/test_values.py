from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld

ROWS = 3000
NAN = float("nan")


def some(make: Callable[[int], Any], every: int = 7) -> list[Any]:
    """A value a row, null in every so-manieth."""
    return [None if i % every == 0 else make(i) for i in range(ROWS)]


COLUMNS = {
    "i32": pa.array(some(lambda i: i), pa.int32()),
    "u64": pa.array(some(lambda i: 2**64 - 1 - i), pa.uint64()),
    "flag": pa.array(some(lambda i: i % 3 == 0)),
    "text": pa.array(some(lambda i: f"text {i * 7919 % ROWS}")),
    "few": pa.array(some(lambda i: "NRA"[i % 3])),
    "bytes": pa.array(some(lambda i: bytes([i % 256]) * (i % 5))),
    "d9": pa.array(some(lambda i: Decimal(i) / 100), pa.decimal128(9, 2)),
    "d18": pa.array(some(lambda i: -Decimal(i) / 100), pa.decimal128(18, 2)),
    "d38": pa.array(some(lambda i: Decimal(i) * 10**20), pa.decimal128(38, 2)),
    "day": pa.array(some(lambda i: datetime.date(2020, 1, 1) + datetime.timedelta(i))),
    "ts": pa.array(some(lambda i: datetime.datetime(2020, 1, 1, 5) + datetime.timedelta(i)), pa.timestamp("us")),
    "at": pa.array(some(lambda i: datetime.time(i % 24, 1, 2)), pa.time64("us")),
    "list": pa.array(some(lambda i: [i] * (i % 4)), pa.list_(pa.int64())),
    "st": pa.array(some(lambda i: {"a": i, "b": {"c": None if i % 5 == 0 else f"c{i}"}})),
    "items": pa.array(some(lambda i: [{"k": f"k{i}", "v": i}] * (i % 3))),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "v.lance"
    lance.write_dataset(pa.table(COLUMNS), path, max_rows_per_file=1100, data_storage_version="2.1")
    return path


def plain(value: Any) -> Any:
    """Arrays of fixed length are tuples in DuckDB."""
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", COLUMNS)
def test_values_round_trip(table: Path, name: str) -> None:
    values = COLUMNS[name].to_pylist()
    dataset = ld.dataset(table)  # noqa: F841
    with ld.connect({"v": table}) as con:
        for source in ("v", "dataset"):
            found = con.execute(f'SELECT "{name}" FROM {source} ORDER BY i32 NULLS FIRST').fetchall()
            assert [plain(row[0]) for row in found if row[0] is not None] == [v for v in values if v is not None]
            nulls = con.execute(f'SELECT count(*) FROM {source} WHERE "{name}" IS NULL').fetchall()
            assert nulls == [(values.count(None),)]


@pytest.mark.parametrize(
    "where",
    [
        "i32 = 1234",
        "i32 IN (5, 1700, 2999) AND flag IS NOT NULL",
        "text = 'text 17'",
        "few = 'R' AND d9 < 1",
        "d18 = -17.01",
        "d38 > 299900000000000000000000",
        "day = DATE '2021-05-05'",
        "ts < TIMESTAMP '2020-01-03'",
        "st.b.c = 'c999'",
        "st.a IN (8, 9)",
        "u64 >= 18446744073709551610",
        "bytes = '\\x10'::BLOB OR i32 = 3",
    ],
)
def test_filters_equal_those_of_duckdb(table: Path, where: str) -> None:
    own = pa.table(COLUMNS)  # noqa: F841
    expected = duckdb.sql(f"SELECT i32, few FROM own WHERE {where} ORDER BY i32").fetchall()
    with ld.connect({"v": table}) as con:
        assert con.execute(f"SELECT i32, few FROM v WHERE {where} ORDER BY i32").fetchall() == expected
        assert con.execute(f"SELECT count(*) FROM v WHERE {where}").fetchall() == [(len(expected),)]


def test_a_filter_on_a_field_can_return_the_whole_struct(table: Path) -> None:
    with ld.connect({"v": table}) as con:
        found = con.execute("SELECT st FROM v WHERE st.b.c = 'c999'").fetchall()
        assert found == [({"a": 999, "b": {"c": "c999"}},)]
        assert con.execute("SELECT st.a FROM v WHERE st.b.c = 'c999'").fetchall() == [(999,)]


@pytest.mark.parametrize("where", ["f > 2.5", "f >= 1", "f <> 1", "NOT (f <= 1)", "f = 1 OR f > 1e300", "f < 1"])
def test_nan_is_the_greatest_number_in_every_access_path(tmp_path: Path, where: str) -> None:
    floats = pa.table({"f": [1.0, NAN, None, -1.0, 3.0]})
    lance.write_dataset(floats, tmp_path / "f.lance")
    dataset = ld.dataset(tmp_path / "f.lance")
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE own AS FROM floats")
        expected = con.execute(f"SELECT f::VARCHAR FROM own WHERE {where}").fetchall()
        path = f"'{tmp_path}/f.lance'"
        for source in ("f", "dataset", path, f"lance_scan({path})"):
            assert con.execute(f"SELECT f::VARCHAR FROM {source} WHERE {where}").fetchall() == expected
    with duckdb.connect() as con:
        con.register("registered", dataset)
        assert con.execute(f"SELECT f::VARCHAR FROM registered WHERE {where}").fetchall() == expected


def test_half_floats_are_floats(tmp_path: Path) -> None:
    halves = pa.array(np.arange(8).astype(np.float16))
    data = pa.table({"h": halves.slice(0, 2), "v": pa.FixedSizeListArray.from_arrays(halves, 4)})
    lance.write_dataset(data, tmp_path / "h.lance")
    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT h, v, typeof(v) FROM h WHERE h > 0.5").fetchall() == [
            (1.0, (4.0, 5.0, 6.0, 7.0), "FLOAT[4]")
        ]


def test_limit_reads_little_and_ends_the_scan(table: Path) -> None:
    with ld.connect({"v": table}) as con:
        assert len(con.execute("SELECT * FROM v LIMIT 10").fetchall()) == 10
        assert con.execute("SELECT i32 FROM v WHERE i32 > 2990 LIMIT 2").fetchall() == [(2991,), (2992,)]
        assert con.execute("SELECT count(*) FROM (FROM v LIMIT 3)").fetchall() == [(3,)]


def test_deleted_rows_are_not_returned(tmp_path: Path) -> None:
    written = lance.write_dataset(pa.table({"i": range(1000)}), tmp_path / "t.lance", max_rows_per_file=300)
    written.delete("i % 3 = 0")
    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT count(*), sum(i), min(i) FROM t").fetchall() == [(666, 332667, 1)]
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(666,)]
        assert con.execute("SELECT i FROM t WHERE i IN (3, 4)").fetchall() == [(4,)]
