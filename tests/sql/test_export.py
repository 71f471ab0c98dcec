"""EXPORT DATABASE writes Lance tables, and IMPORT DATABASE makes native tables of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

ROWS = {
    "id": [1, 2],
    "s": ["a|b", None],
    "b": [b"\0\xff", None],
    "l": [[1], None],
    "st": [{"a": 1, "b": "x"}, None],
    "v": pa.FixedSizeListArray.from_arrays(pa.array([1.0, 2.0, 3.0, 4.0], pa.float32()), 2),
}


@pytest.fixture
def con(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ld.Connection:
    """Lance tables, native tables, and views that read both."""
    monkeypatch.chdir(tmp_path)
    ld.write_dataset(pa.table(ROWS), "data/trips.lance")
    for name in ("odd name", "odd_name"):
        ld.write_dataset({"id": [len(name)]}, f"data/{name}.lance")
    con = ld.connect("data")
    con.execute("CREATE TABLE native AS SELECT 1 AS a; CREATE SCHEMA s; CREATE TABLE s.trips AS SELECT 2 AS b")
    con.execute("CREATE VIEW v AS FROM trips; CREATE VIEW w AS FROM native")
    return con


@pytest.mark.parametrize("options", ["", "(FORMAT parquet)", "(FORMAT csv, DELIMITER '|', HEADER false)"])
@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("EXPORT DATABASE 'out' {}", {"native", "odd name", "odd_name", "trips", "v", "w"}),
        ("EXPORT DATABASE lance TO 'out' {}", {"odd name", "odd_name", "trips"}),
        ("USE lance; EXPORT DATABASE ('o' || 'ut') {}", {"odd name", "odd_name", "trips"}),
    ],
)
def test_an_exported_database_is_imported_with_its_lance_tables(
    con: ld.Connection, sql: str, tables: set[str], options: str
) -> None:
    assert con.execute(sql.format(options)).fetchall() == []
    imported = duckdb.connect()
    imported.execute("IMPORT DATABASE 'out'")
    assert {name for (name,) in imported.execute("SHOW TABLES").fetchall()} == tables
    for name in sorted(tables - {"v", "w", "native"}):
        read = f'FROM main."{name}" ORDER BY id'
        assert imported.execute(read).fetchall() == con.execute(read.replace("main", "lance")).fetchall()
    types = "SELECT column_name, column_type FROM (DESCRIBE {})"
    assert imported.execute(types.format("trips")).fetchall() == con.execute(types.format("lance.trips")).fetchall()
    assert con.execute("SELECT count(*) FROM duckdb_databases() WHERE NOT internal").fetchall() == [(2,)]
    assert not Path("out", "__lance_export").exists()


def test_an_export_of_the_native_database_leaves_the_lance_tables_out(con: ld.Connection) -> None:
    con.execute("EXPORT DATABASE memory TO 'out' (FORMAT parquet)")
    assert {path.name for path in Path("out").glob("*trips*")} == {"s_trips.parquet"}


def test_an_export_of_two_tables_with_one_name_is_refused(con: ld.Connection) -> None:
    con.execute("CREATE TABLE memory.main.Trips AS SELECT 1 AS a")
    with pytest.raises(UnsupportedError, match=r'Trips: .*two tables with one name; .* EXPORT DATABASE "lance" TO'):
        con.execute("EXPORT DATABASE 'out'")
    assert not Path("out").exists()


def test_a_refused_export_writes_nothing(con: ld.Connection) -> None:
    with pytest.raises(UnsupportedError, match="local folder; write each table with COPY"):
        con.execute("EXPORT DATABASE 's3://bucket/out'")
    with pytest.raises(duckdb.Error, match="nope"):
        con.execute("EXPORT DATABASE 'out' (FORMAT nope)")
    with con.begin(), pytest.raises(UnsupportedError, match="COMMIT or ROLLBACK first"):
        con.execute("EXPORT DATABASE 'out'")
