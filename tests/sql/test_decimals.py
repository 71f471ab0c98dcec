"""Decimals of any width and scale have the order and equality of Python's Decimals in SQL, or are refused by column."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import cast

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

FITTING = {
    pa.decimal128(5, -2): "DECIMAL(7,0)",
    pa.decimal128(10, -28): "DECIMAL(38,0)",
    pa.decimal256(30, -5): "DECIMAL(35,0)",
    pa.decimal256(5, -2): "DECIMAL(7,0)",
    pa.decimal256(38, 10): "DECIMAL(38,10)",
    pa.decimal256(9, 2): "DECIMAL(9,2)",
    pa.decimal128(38, 38): "DECIMAL(38,38)",
}
WIDE = (
    pa.decimal256(60, 10),
    pa.decimal256(39, 0),
    pa.decimal256(76, 70),
    pa.decimal128(37, -5),
    pa.decimal256(4, -40),
)
NUMBERS = (9, 10, None, -50, 0, 9, -3, 100)


def unit(type_: pa.DataType) -> Decimal:
    """Return the smallest positive value of a type, times 10 if there is room."""
    return Decimal(1).scaleb(-type_.scale)


def values_of(type_: pa.DataType) -> list[Decimal | None]:
    return [None if number is None else number * unit(type_) for number in NUMBERS]


def nested(type_: pa.DataType) -> pa.Table:
    values = pa.array(values_of(type_), type_)
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return pa.table(
        {
            "i": range(len(values)),
            "d": values,
            "s": pa.StructArray.from_arrays([values], ["d"]),
            "l": pa.ListArray.from_arrays(offsets, values),
            "f": pa.FixedSizeListArray.from_arrays(values, 1),
            "m": pa.MapArray.from_arrays(offsets, pa.array(["k"] * len(values)), values),
        }
    )


@pytest.fixture(params=FITTING, ids=str)
def fitting(request: pytest.FixtureRequest) -> pa.DataType:
    return cast("pa.DataType", request.param)


@pytest.fixture
def con(tmp_path: Path) -> Iterator[ld.Connection]:
    with ld.connect(tmp_path) as connection:
        yield connection


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_decimal_values_equal_those_of_python(
    tmp_path: Path, con: ld.Connection, fitting: pa.DataType, version: str
) -> None:
    table = nested(fitting)
    columns = table.column_names if version == "2.2" else table.column_names[:-1]
    if version == "2.0":
        columns.remove("f")
    ld.write_dataset(table.select(columns), tmp_path / "t.lance", data_storage_version=version)
    rows = con.execute("SELECT * FROM lance.t ORDER BY i").fetchall()
    for row, (i, value) in zip(rows, enumerate(values_of(fitting)), strict=True):
        shown = {"i": i, "d": value, "s": {"d": value}, "l": [value], "f": (value,), "m": {"k": value}}
        assert dict(zip(columns, row, strict=True)) == {name: shown[name] for name in columns}
    types = dict(row[:2] for row in con.execute("DESCRIBE lance.t").fetchall())
    assert types["d"] == FITTING[fitting]


@pytest.mark.parametrize("index", [None, "BTREE", "BITMAP", "ZONEMAP"])
def test_conditions_equal_those_of_python(
    tmp_path: Path, con: ld.Connection, fitting: pa.DataType, index: str | None
) -> None:
    dataset = ld.write_dataset(nested(fitting), tmp_path / "t.lance", max_rows_per_file=3)
    if index is not None:
        con.execute(f"CREATE INDEX d_index ON lance.t USING {index} (d)")
        dataset.checkout_latest()
    values = values_of(fitting)
    between = [] if fitting.scale >= 0 else [9 * unit(fitting) + 1, -50 * unit(fitting) - 1, Decimal(1)]
    for constant in [values[0], values[3], Decimal(0), *between]:
        text = f"{constant:f}::{FITTING[fitting]}"
        for op, holds in {
            "=": Decimal.__eq__,
            "<>": Decimal.__ne__,
            "<": Decimal.__lt__,
            "<=": Decimal.__le__,
            ">": Decimal.__gt__,
            ">=": Decimal.__ge__,
        }.items():
            expected = [i for i, value in enumerate(values) if value is not None and holds(value, constant)]
            for column in ("d", "s.d"):
                found = con.execute(f"SELECT i FROM lance.t WHERE {column} {op} {text} ORDER BY i").fetchall()
                assert [i for (i,) in found] == expected, (column, op, constant)
            found = dataset.to_table(filter=f"d {op} {constant:f}")["i"].to_pylist()
            assert sorted(found) == expected, (op, constant)
        among = f"d IN ({text}, {10 * unit(fitting):f})"
        expected = [i for i, value in enumerate(values) if value in (constant, 10 * unit(fitting))]
        assert [i for (i,) in con.execute(f"SELECT i FROM lance.t WHERE {among} ORDER BY i").fetchall()] == expected
    assert con.execute("SELECT i FROM lance.t WHERE d IS NULL").fetchall() == [(2,)]


def test_aggregates_orders_and_joins_equal_those_of_python(
    tmp_path: Path, con: ld.Connection, fitting: pa.DataType
) -> None:
    ld.write_dataset(nested(fitting), tmp_path / "t.lance")
    known = [value for value in values_of(fitting) if value is not None]
    assert con.execute("SELECT min(d), max(d), count(d) FROM lance.t").fetchall() == [(min(known), max(known), 7)]
    ordered = con.execute("SELECT d FROM lance.t ORDER BY d DESC NULLS LAST").fetchall()
    assert [value for (value,) in ordered] == [*sorted(known, reverse=True), None]
    pairs = con.execute("SELECT a.i, b.i FROM lance.t a JOIN lance.t b ON a.d = b.d ORDER BY ALL").fetchall()
    values = values_of(fitting)
    assert pairs == [(i, j) for i in range(8) for j in range(8) if values[i] is not None and values[i] == values[j]]
    assert con.execute("SELECT count(DISTINCT d) FROM lance.t").fetchall() == [(6,)]


def test_changes_keep_values_and_type(tmp_path: Path, con: ld.Connection, fitting: pa.DataType) -> None:
    ld.write_dataset(nested(fitting).select(["i", "d"]), tmp_path / "t.lance")
    one = f"{unit(fitting):f}::{FITTING[fitting]}"
    assert con.execute(f"INSERT INTO lance.t VALUES (8, 7 * {one}) RETURNING d").fetchall() == [(7 * unit(fitting),)]
    updated = con.execute(f"UPDATE lance.t SET d = d + {one} WHERE d = 10 * {one} RETURNING i, d").fetchall()
    assert updated == [(1, 11 * unit(fitting))]
    con.execute(
        f"MERGE INTO lance.t USING (SELECT 2 AS i, 4 * {one} AS d) s ON t.i = s.i WHEN MATCHED THEN UPDATE SET d = s.d"
    )
    con.execute(f"MERGE INTO lance.t USING (SELECT 9 * {one} AS d) s ON t.d = s.d WHEN MATCHED THEN DELETE")
    assert con.execute(f"DELETE FROM lance.t WHERE d = -50 * {one} RETURNING d").fetchall() == [(-50 * unit(fitting),)]
    found = ld.dataset(tmp_path / "t.lance").to_table().sort_by("i")
    assert found.schema.field("d").type == fitting
    assert dict(zip(found["i"].to_pylist(), found["d"].to_pylist(), strict=True)) == {
        number: times * unit(fitting) for number, times in ((1, 11), (2, 4), (4, 0), (6, -3), (7, 100), (8, 7))
    }


def test_values_that_do_not_fit_a_negative_scale_are_rejected(tmp_path: Path, con: ld.Connection) -> None:
    ld.write_dataset(pa.table({"d": pa.array([Decimal(900)], pa.decimal128(5, -2))}), tmp_path / "t.lance")
    for statement in ("INSERT INTO lance.t VALUES (950)", "UPDATE lance.t SET d = 950"):
        with pytest.raises(InvalidInputError, match="column 'd', row 0: the value does not fit the column"):
            con.execute(statement)
    assert con.execute("SELECT d FROM lance.t").fetchall() == [(Decimal(900),)]


REFUSED = (
    *(
        "SELECT d FROM lance.t",
        "SELECT * FROM lance.t",
        "SELECT max(d) FROM lance.t",
        "SELECT i FROM lance.t ORDER BY d",
    ),
    *("SELECT count(*) FROM lance.t WHERE d > 1", "SELECT i FROM lance.t WHERE d = '900'"),
    *("SELECT i FROM lance.t WHERE d IS NULL", "SELECT i FROM lance.t WHERE d IN (1, 2)"),
    *("SELECT a.i FROM lance.t a JOIN lance.t b ON a.d = b.d", "UPDATE lance.t SET i = 7 WHERE d > 1"),
    *("UPDATE lance.t SET d = d + 1", "UPDATE lance.t SET i = 7 RETURNING *", "UPDATE lance.t SET i = 7 RETURNING d"),
    *("DELETE FROM lance.t WHERE d > 1", "DELETE FROM lance.t RETURNING *", "CREATE TABLE lance.u AS FROM lance.t"),
    "MERGE INTO lance.t USING (SELECT 0 AS d) s ON t.d = s.d WHEN MATCHED THEN DELETE",
    "INSERT INTO lance.t SELECT * FROM lance.t",
)


@pytest.mark.parametrize("type_", WIDE, ids=str)
def test_statements_that_read_wide_decimals_are_rejected_by_column(
    tmp_path: Path, con: ld.Connection, type_: pa.DataType
) -> None:
    before = ld.write_dataset(nested(type_), tmp_path / "t.lance")
    nests = [f"SELECT {column} FROM lance.t" for column in ("s", "l", "f", "m")]
    for statement in (*REFUSED, *nests):
        with pytest.raises(UnsupportedError, match=r"column '[dslfm]': SQL cannot represent decimal.*EXCLUDE"):
            con.execute(statement).fetchall()
        assert con.execute("SELECT 1").fetchall() == [(1,)]
    after = ld.dataset(tmp_path / "t.lance")
    assert after.version == before.version
    assert after.to_table()["d"].to_pylist() == values_of(type_)


@pytest.mark.parametrize("type_", WIDE, ids=str)
def test_other_columns_of_tables_with_wide_decimals_stay_usable(
    tmp_path: Path, con: ld.Connection, type_: pa.DataType
) -> None:
    ld.write_dataset(nested(type_), tmp_path / "t.lance")
    assert con.execute("SELECT count(*), max(i) FROM lance.t").fetchall() == [(8, 7)]
    assert con.execute("SELECT * EXCLUDE (d, s, l, f, m) FROM lance.t WHERE i = 3").fetchall() == [(3,)]
    assert [row[0] for row in con.execute("DESCRIBE lance.t").fetchall()] == ["i", "d", "s", "l", "f", "m"]
    assert con.execute("UPDATE lance.t SET i = 70 WHERE i = 7 RETURNING i").fetchall() == [(70,)]
    assert con.execute("DELETE FROM lance.t WHERE i = 0 RETURNING i").fetchall() == [(0,)]
    con.execute("INSERT INTO lance.t (i) VALUES (80)")
    con.execute("INSERT INTO lance.t (i, d) VALUES (81, NULL)")
    con.execute("MERGE INTO lance.t USING (SELECT 1 AS i) s ON t.i = s.i WHEN MATCHED THEN UPDATE SET i = 10")
    table = ld.dataset(tmp_path / "t.lance").to_table()
    rows = dict(zip(table["i"].to_pylist(), table["d"].to_pylist(), strict=True))
    values = dict(enumerate(values_of(type_)))
    assert rows == {
        **{key: values[key] for key in (2, 3, 4, 5, 6)},
        10: values[1],
        70: values[7],
        80: None,
        81: None,
    }


def test_alter_table_casts_wide_decimals(tmp_path: Path, con: ld.Connection) -> None:
    type_ = pa.decimal256(60, 10)
    ld.write_dataset(nested(type_).select(["i", "d"]), tmp_path / "t.lance")
    con.execute("INSERT INTO lance.t VALUES (8, 12.5)")
    con.execute("ALTER TABLE lance.t ALTER d TYPE DECIMAL(38, 10)")
    known = [value for value in values_of(type_) if value is not None]
    assert con.execute("SELECT max(d), min(d) FROM lance.t").fetchall() == [(Decimal("12.5"), min(known))]


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="earlier versions read the types of the dataset's own schema")
def test_duckdb_reads_the_table_of_a_dataset(tmp_path: Path) -> None:
    dataset = ld.write_dataset(nested(pa.decimal128(5, -2)), tmp_path / "t.lance")
    with duckdb.connect() as connection:
        connection.register("t", dataset)
        found = connection.sql("SELECT max(d), typeof(max(d)) FROM t").fetchall()
    assert found == [(Decimal(10000), "DECIMAL(7,0)")]
