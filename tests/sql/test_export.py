"""EXPORT DATABASE writes Lance tables, and IMPORT DATABASE makes native tables of them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import LanceDuckError, UnsupportedError

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
    con.execute("CREATE TABLE memory.native AS SELECT 1 AS a; CREATE SCHEMA memory.s")
    con.execute("CREATE TABLE memory.s.trips AS SELECT 2 AS b")
    con.execute("CREATE VIEW memory.v AS FROM trips; CREATE VIEW memory.w AS FROM native")
    return con


@pytest.mark.parametrize("options", ["", "(FORMAT parquet)", "(FORMAT csv, DELIMITER '|', HEADER false)"])
@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("EXPORT DATABASE 'out' {}", {"odd name", "odd_name", "trips"}),
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
    con.execute("CREATE TABLE memory.main.Trips AS SELECT 1 AS a; SET search_path = 'memory.main,lance.main'")
    with pytest.raises(UnsupportedError, match=r'Trips: .*two tables with one name; .* EXPORT DATABASE "lance" TO'):
        con.execute("EXPORT DATABASE 'out'")
    assert not Path("out").exists()


@pytest.mark.parametrize("options", ["", "(FORMAT parquet)"])
@pytest.mark.parametrize(
    "columns",
    [
        "id INTEGER PRIMARY KEY, s VARCHAR",
        'a INTEGER, "Ä ""b" VARCHAR, c DATE NOT NULL, PRIMARY KEY (a, "Ä ""b")',
        "a UUID, b BLOB, PRIMARY KEY (a)",
        "a INTEGER NOT NULL, b INTEGER",
    ],
)
def test_keys_are_exported_as_from_a_native_table(con: ld.Connection, columns: str, options: str) -> None:
    described = []
    con.execute("ATTACH ':memory:' AS other")
    for database in ("lance", "other"):
        con.execute(f'CREATE TABLE {database}."K k" ({columns})')
        con.execute(f"EXPORT DATABASE {database} TO '{database}' {options}")
        with duckdb.connect() as imported:
            imported.execute(f"IMPORT DATABASE '{database}'")
            described.append(imported.execute('DESCRIBE "K k"').fetchall())
    assert described[0] == described[1]


def test_an_imported_key_rejects_a_repeated_row(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.k (id INTEGER PRIMARY KEY); INSERT INTO lance.k VALUES (1), (2)")
    con.execute("EXPORT DATABASE lance TO 'out'")
    imported = duckdb.connect()
    imported.execute("IMPORT DATABASE 'out'")
    with pytest.raises(duckdb.ConstraintException, match="id: 2"):
        imported.execute("INSERT INTO k VALUES (2)")


@pytest.mark.parametrize("sql", ["EXPORT DATABASE 'out'", "EXPORT DATABASE lance TO 'out'", "EXPORT DATABASE 'out/'"])
def test_a_second_export_replaces_the_files_of_the_first(con: ld.Connection, sql: str) -> None:
    con.execute(sql)
    before = sorted(Path("out").iterdir())
    con.execute("INSERT INTO odd_name VALUES (100)")
    con.execute(sql)
    assert sorted(Path("out").iterdir()) == before
    imported = duckdb.connect()
    imported.execute("IMPORT DATABASE 'out'")
    assert imported.execute("SELECT id FROM odd_name ORDER BY id").fetchall() == [(8,), (100,)]
    assert imported.execute('SELECT id FROM "odd name"').fetchall() == [(8,)]


@pytest.mark.parametrize("damaged", ["_versions", "data"])
def test_a_failed_export_leaves_no_new_folder(con: ld.Connection, damaged: str) -> None:
    for path in Path("data/trips.lance", damaged).iterdir():
        path.write_bytes(b"")
    with ld.connect("data") as again:
        again.execute("CREATE TABLE memory.native AS SELECT 1 AS a")
        with pytest.raises(LanceDuckError, match=r"trips\.lance"):
            again.execute("EXPORT DATABASE 'out'")
        assert not Path("out").exists()
        Path("kept").mkdir()
        with pytest.raises(LanceDuckError, match=r"trips\.lance"):
            again.execute("EXPORT DATABASE 'kept'")
        assert Path("kept").exists()


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("EXPORT DATABASE 'out' (FORMAT lance)", "lance"),
        ("EXPORT DATABASE lance TO 'out' (HEADER, FORMAT 'LANCE')", "lance"),
        ("EXPORT DATABASE memory TO 'out' (FORMAT Lance)", "memory"),
    ],
)
def test_an_export_in_the_lance_format_names_the_copy_of_a_database(con: ld.Connection, sql: str, source: str) -> None:
    with pytest.raises(UnsupportedError, match="cannot write Lance tables") as raised:
        con.execute(sql)
    assert f"ATTACH 'out' AS copies (TYPE lance), and COPY FROM DATABASE \"{source}\" TO" in str(raised.value)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "sql",
    ["IMPORT DATABASE 'out'", "import database 'out';", "PRAGMA import_database('out')", "USE memory; USE lance; {}"],
)
@pytest.mark.parametrize("method", ["execute", "sql"])
def test_an_import_into_a_lance_database_is_refused(con: ld.Connection, sql: str, method: str) -> None:
    con.execute("EXPORT DATABASE memory TO 'out'; USE lance")
    listed = con.execute("SHOW ALL TABLES").fetchall()
    remedy = 'USE "memory", IMPORT DATABASE, COPY FROM DATABASE "memory" TO "lance"'
    with pytest.raises(UnsupportedError, match=remedy):
        getattr(con, method)(sql.format("IMPORT DATABASE 'out'"))
    with pytest.raises(UnsupportedError, match=remedy):
        con.execute(f"PREPARE p AS {sql}; EXECUTE p" if sql.startswith("IMPORT") else "PRAGMA import_database('out')")
    assert con.execute("SHOW ALL TABLES").fetchall() == listed


def test_imported_tables_are_copied_into_a_folder(con: ld.Connection) -> None:
    with duckdb.connect() as other:
        other.execute("CREATE TABLE a (id INTEGER PRIMARY KEY); INSERT INTO a VALUES (1); EXPORT DATABASE 'out'")
    with ld.connect("new") as new:
        new.execute("USE lance; USE memory; IMPORT DATABASE 'out'; COPY FROM DATABASE memory TO lance")
        assert new.execute("FROM lance.a").fetchall() == [(1,)]
    assert ld.dataset("new/a.lance").count_rows() == 1


def test_a_refused_export_writes_nothing(con: ld.Connection) -> None:
    with pytest.raises(UnsupportedError, match="local folder; write each table with COPY"):
        con.execute("EXPORT DATABASE 's3://bucket/out'")
    with pytest.raises(duckdb.Error, match="nope"):
        con.execute("EXPORT DATABASE 'out' (FORMAT nope)")
    with con.begin(), pytest.raises(UnsupportedError, match="COMMIT or ROLLBACK first"):
        con.execute("EXPORT DATABASE 'out'")


def test_schemas_without_tables_are_exported(tmp_path: Path) -> None:
    con = ld.connect(str(tmp_path / "data"))
    con.execute('CREATE SCHEMA "Empty-1"; CREATE SCHEMA full')
    for tables in (0, 1):
        con.execute(f"EXPORT DATABASE '{tmp_path}/out'")
        native = duckdb.connect()
        native.execute(f"IMPORT DATABASE '{tmp_path}/out'")
        found = native.execute("SELECT schema_name FROM duckdb_schemas() WHERE NOT internal ORDER BY ALL").fetchall()
        assert found == [("Empty-1",), ("full",)]
        listed = native.execute("SELECT function_name FROM duckdb_functions() WHERE NOT internal").fetchall()
        assert (listed, native.execute("SELECT count(*) FROM duckdb_tables()").fetchall()) == ([], [(tables,)])
        con.execute("CREATE TABLE IF NOT EXISTS full.t AS SELECT 1 AS a")
