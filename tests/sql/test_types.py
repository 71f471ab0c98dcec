"""Every DuckDB type is stored exactly, or is rejected by name and column."""

from __future__ import annotations

import decimal
import uuid
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError

ALL = dict(zip((_r := duckdb.sql("FROM test_all_types()")).columns, map(str, _r.types), strict=True))

KEPT_AS = {
    "HUGEINT": "DECIMAL(38,0)",
    "UHUGEINT": "DECIMAL(38,0)",
    "TUPLE(INTEGER, VARCHAR)": "STRUCT(element1 INTEGER, element2 VARCHAR)",
}
REFUSED = {
    "bignum": "BIGNUM",
    "time_tz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "bit": "BIT",
    "union": "UNION",
    "small_enum": "ENUM",
    "medium_enum": "ENUM",
    "large_enum": "ENUM",
    "empty_struct": "structs without fields",
    "fixed_varchar_array": "fixed_size_list<: string>",
    "fixed_nested_varchar_array": "fixed_size_list<: string>",
    "struct_of_fixed_array": "fixed_size_list<: string>",
    "fixed_array_of_int_list": "fixed_size_list<: list<l: int32>>",
}
"""Columns of `test_all_types()`, and the type that the error names."""
NOT_ALL_VALUES = {
    "hugeint": ("HUGEINT", "more than 38 digits", "c BETWEEN -10::HUGEINT AND 10::HUGEINT"),
    "uhugeint": ("UHUGEINT", "more than 38 digits", "c < 1e37"),
    "time": ("TIME", "24:00:00", "c < TIME '24:00:00'"),
    "time_ns": ("TIME_NS", "24:00:00", "c::TIME < TIME '24:00:00'"),
}
"""Columns with some rejected values: type, error text, and the condition for the other values."""


@pytest.fixture
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


def come_back(con: duckdb.DuckDBPyConnection, query: str, path: Path) -> None:
    """Compare the values of a query's column c with those read from a table that it filled, one by one."""
    source = con.sql(f"SELECT c, row_number() OVER () AS i FROM ({query})")
    kind = str(con.sql(f"SELECT c FROM ({query})").types[0])
    ld.write_dataset(source, path / "t.lance")
    with ld.connect(path) as ours:
        ours.execute("SET TimeZone = 'UTC'")
        found = ours.execute("SELECT typeof(c), c::VARCHAR FROM t ORDER BY i").fetchall()
    wanted = KEPT_AS.get(kind, kind)
    values = con.execute(
        f"SELECT c::{wanted}::VARCHAR FROM (SELECT c, row_number() OVER () AS i FROM ({query})) ORDER BY i"
    ).fetchall()
    assert found == [(wanted, value) for (value,) in values]


@pytest.mark.parametrize("name", [name for name in ALL if name not in REFUSED and name not in NOT_ALL_VALUES])
def test_values_of_every_type_round_trip(con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    come_back(con, f'SELECT "{name}" AS c FROM test_all_types()', tmp_path)


@pytest.mark.parametrize("name", [name for name in REFUSED if name in ALL])
def test_types_missing_in_lance_are_rejected(con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    with pytest.raises(UnsupportedError) as error:
        ld.write_dataset(con.sql(f'SELECT "{name}" FROM test_all_types()'), tmp_path / "t.lance")
    assert name in str(error.value)
    assert REFUSED[name] in str(error.value)
    assert not (tmp_path / "t.lance" / "_versions").exists()


@pytest.mark.parametrize("name", NOT_ALL_VALUES)
def test_values_missing_in_arrow_are_rejected(con: duckdb.DuckDBPyConnection, tmp_path: Path, name: str) -> None:
    kind, why, others = NOT_ALL_VALUES[name]
    query = f'SELECT "{name}" AS c FROM test_all_types()'
    with pytest.raises(InvalidInputError, match=why) as error:
        ld.write_dataset(con.sql(query), tmp_path / "no.lance")
    assert f"column 'c' of type {kind}" in str(error.value)
    come_back(con, f"SELECT c FROM ({query}) WHERE c IS NULL OR {others}", tmp_path)


NINES = 10**38 - 1


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (f"{NINES}::HUGEINT", True),
        (f"({-NINES})::HUGEINT", True),
        (f"{NINES + 1}::HUGEINT", False),
        (f"({-NINES - 1})::HUGEINT", False),
        ("0::HUGEINT", True),
        ("(-1)::HUGEINT", True),
        (f"{NINES}::UHUGEINT", True),
        (f"{NINES + 1}::UHUGEINT", False),
        (f"{2**127}::UHUGEINT", False),
        (f"{2**128 - 1}::UHUGEINT", False),
        (f"{2**64}::UHUGEINT", True),
    ],
)
@pytest.mark.parametrize(
    "shape", ["{}", "[NULL, {}]", "{{'a': {}}}", "MAP {{'k': {}}}", "[[{}], []]", "[{}, {}]::{t}[2]"]
)
def test_integers_keep_their_value_at_every_level(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, value: str, fits: bool, shape: str
) -> None:
    text = shape.format(value, value, t=value.rpartition("::")[2])
    source = con.sql(f"SELECT {text} AS c UNION ALL SELECT NULL")
    if not fits:
        with pytest.raises(InvalidInputError, match=r"column 'c' of type .*more than 38 digits"):
            ld.write_dataset(source, tmp_path / "t.lance")
        return
    ld.write_dataset(source, tmp_path / "t.lance")
    with ld.connect(tmp_path) as ours:
        kind = str(source.types[0]).replace("UHUGEINT", "HUGEINT").replace("HUGEINT", "DECIMAL(38,0)")
        expected = con.execute(f"SELECT ({text})::{kind}::VARCHAR").fetchall()
        assert ours.execute("SELECT c::VARCHAR FROM t WHERE c IS NOT NULL").fetchall() == expected


@pytest.mark.parametrize("shape", ["{}", "[{}]", "{{'a': {}}}", "MAP {{1: {}}}", "[{{'a': [{}]}}]"])
@pytest.mark.parametrize(
    "value", ["INTERVAL 1 DAY", "'01'::BIT", "'10:00+02'::TIMETZ", "union_value(n := 1)", "'a'::ENUM ('b', 'a')"]
)
def test_rejected_types_are_rejected_at_every_level(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, value: str, shape: str
) -> None:
    with pytest.raises(UnsupportedError, match="column 'deep'"):
        ld.write_dataset(con.sql(f"SELECT {shape.format(value)} AS deep"), tmp_path / "t.lance")


IDS = [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.UUID("0f8fad5b-d9cd-469f-a165-70867728950e")]


@pytest.mark.parametrize(
    "setting", ["", "arrow_lossless_conversion", "arrow_large_buffer_size", "arrow_output_list_view"]
)
def test_uuids_stay_uuids(con: duckdb.DuckDBPyConnection, tmp_path: Path, setting: str) -> None:
    if setting:
        con.execute(f"SET {setting} = true")
    con.execute("CREATE TABLE ids AS SELECT unnest(?::UUID[]) AS u", [[*map(str, IDS), None]])
    query = "SELECT u, [u, NULL] AS us, {'u': u} AS st, MAP {1: u} AS m, sum(3) OVER () AS total FROM ids"
    dataset = ld.write_dataset(con.sql(query), tmp_path / "t.lance")
    assert dataset.schema.field("u").type == pa.uuid()
    assert dataset.schema.field("total").type == pa.decimal128(38, 0)
    with ld.connect(tmp_path) as ours:
        assert ours.execute("SELECT u, us[1], st.u, m[1] FROM t").fetchall() == [(u,) * 4 for u in [*IDS, None]]
        assert ours.execute("SELECT count(*) FROM t WHERE u = ?", [IDS[2]]).fetchall() == [(1,)]
    assert dataset.count_rows(f"u = '{IDS[2]}'") == 1
    assert dataset.count_rows(f"u IN ('{IDS[2]}', '{IDS[0]}')") == 2
    dataset.update({"u": f"'{IDS[1]}'::UUID"}, where=f"u = '{IDS[0]}'")
    assert dataset.count_rows(f"u = '{IDS[1]}'") == 2


def test_uuids_are_cast_to_and_from_strings(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    source = f"SELECT '{IDS[2]}'::UUID AS u UNION ALL SELECT NULL"
    texts = ld.write_dataset(pa.table({"u": ["a"]}), tmp_path / "texts.lance")
    texts.insert(con.sql(source))
    assert texts.to_table()["u"].to_pylist() == ["a", str(IDS[2]), None]
    ids = ld.write_dataset(con.sql(source), tmp_path / "ids.lance")
    ids.insert(pa.table({"u": [str(IDS[1]), None]}))
    assert ids.to_table()["u"].to_pylist() == [IDS[2], None, IDS[1], None]
    with pytest.raises(InvalidInputError, match="column 'u': not a UUID"):
        ids.insert(pa.table({"u": ["no uuid"]}))
    ids.merge_insert("u").when_matched_update_all().when_not_matched_insert_all().execute(con.sql(f"{source} LIMIT 1"))
    assert ids.count_rows() == 4


NESTED_GEOMETRIES = tuple(map(int, duckdb.__version__.split(".")[:3])) >= (1, 5, 4)


@pytest.mark.skipif(NESTED_GEOMETRIES, reason="DuckDB gives nested geometries to Arrow")
def test_nested_geometries_are_rejected_if_duckdb_cannot_export_them(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    for query in ("['POINT(1 2)'::GEOMETRY]", "{'g': 'POINT(1 2)'::GEOMETRY}"):
        with pytest.raises(UnsupportedError, match="column 'x'"):
            ld.write_dataset(con.sql(f"SELECT {query} AS x"), tmp_path / "t.lance")
    ld.write_dataset(con.sql("SELECT 'POINT(1 2)'::GEOMETRY AS g"), tmp_path / "t.lance")
    with ld.connect(tmp_path) as ours:
        assert ours.execute("SELECT typeof(g), g::VARCHAR FROM t").fetchall() == [("GEOMETRY", "POINT (1 2)")]


@pytest.mark.skipif(not NESTED_GEOMETRIES, reason="needs duckdb 1.5.4")
def test_geometries_stay_geometries(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    query = "SELECT i, ('POINT(' || i || ' 2)')::GEOMETRY AS g, [g] AS gs, {'g': g} AS st FROM range(5) t(i)"
    ld.write_dataset(con.sql(query), tmp_path / "t.lance").create_scalar_index("i", "BTREE")
    with ld.connect(tmp_path) as ours:
        expected = [("GEOMETRY", "POINT (3 2)", "POINT (3 2)", "POINT (3 2)")]
        sql = "SELECT typeof(g), g::VARCHAR, gs[1]::VARCHAR, st.g::VARCHAR FROM t WHERE "
        for condition in ("i = 3", "g = 'POINT(3 2)'::GEOMETRY"):
            assert ours.execute(sql + condition).fetchall() == expected


def test_columns_added_by_sql_keep_their_values(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"x": [1, 2]}), tmp_path / "t.lance")
    dataset.add_columns({"u": f"'{IDS[2]}'::UUID", "h": "x::UHUGEINT + 1", "us": f"['{IDS[1]}'::UUID]"})
    rows = dataset.to_table().to_pylist()
    assert [row["u"] for row in rows] == [IDS[2], IDS[2]]
    assert [row["h"] for row in rows] == [decimal.Decimal(2), decimal.Decimal(3)]
    assert [row["us"] for row in rows] == [[IDS[1]], [IDS[1]]]
    for text in (f"{2**128 - 1}::UHUGEINT", "INTERVAL 1 DAY", "'10:00+02'::TIMETZ", "'01'::BIT", "union_value(n := x)"):
        before = dataset.version
        with pytest.raises((InvalidInputError, UnsupportedError), match=r"bad|SQL"):
            dataset.add_columns({"bad": text})
        assert ld.dataset(dataset.uri).version == before
    with pytest.raises(InvalidInputError, match="38 digits"):
        dataset.to_table(columns={"bad": f"{2**128 - 1}::UHUGEINT"})


def test_merge_sources_keep_their_values(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    dataset = ld.write_dataset(con.sql("SELECT 1 AS k, 5::HUGEINT AS h"), tmp_path / "t.lance")
    merge = dataset.merge_insert("k").when_matched_update_all().when_not_matched_insert_all()
    with pytest.raises(InvalidInputError, match="column 'h' of type UHUGEINT"):
        merge.execute(con.sql(f"SELECT 1 AS k, {2**128 - 1}::UHUGEINT AS h"))
    merge.execute(con.sql(f"SELECT 1 AS k, {NINES}::UHUGEINT AS h"))
    assert ld.dataset(dataset.uri).to_table()["h"].to_pylist() == [decimal.Decimal(NINES)]
