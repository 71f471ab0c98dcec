"""Tables that Python and pylance also see; the rest is in `statements/tables.sql` and `statements/lance/tables.sql`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, UnsupportedError

Connect = Callable[..., ld.Connection]


def test_create_table_as_accepts_queries(con: ld.Connection, folder: Path) -> None:
    frame = pa.table({"x": [1]})
    assert con.execute("CREATE TABLE lance.fresh AS SELECT i, i * x AS j FROM range(3) r(i), frame").fetchall() == [
        (3,)
    ]
    assert con.execute("FROM fresh ORDER BY i").fetchall() == [(0, 0), (1, 1), (2, 2)]
    assert lance.dataset(folder / "fresh.lance").count_rows() == 3
    with pytest.raises(AlreadyExistsError):
        con.execute("CREATE TABLE lance.fresh AS SELECT 1 AS a")
    assert con.execute("CREATE TABLE IF NOT EXISTS lance.fresh AS SELECT 1 AS a").fetchall() == []
    con.execute("CREATE OR REPLACE TABLE lance.main.fresh AS SELECT max(i) AS top FROM fresh")
    assert con.execute("FROM fresh").fetchall() == [(2,)]
    assert frame.num_rows == 1
    assert lance.dataset(folder / "fresh.lance").version == 2


def test_create_table_as_accepts_paths(tmp_path: Path, connect: Connect) -> None:
    con, path = connect(), tmp_path / "new.lance"
    con.execute(f"CREATE TABLE '{path}' AS SELECT 1 AS a")
    assert con.execute(f"FROM '{path}'").fetchall() == [(1,)]
    with pytest.raises(UnsupportedError, match="does not have a folder"):
        con.execute("CREATE TABLE lance.fresh AS SELECT 1 AS a")
    con.execute(f"DROP TABLE '{path}'")
    assert not path.exists()


@pytest.mark.parametrize("name", ["trips", "lance.trips", "lance.main.TRIPS", "'trips.lance'"])
def test_comments_are_metadata_that_duckdb_shows(
    con: ld.Connection, folder: Path, connect: Connect, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert con.execute(f"COMMENT ON TABLE {name} IS 'where''s whom'").fetchall() == []
    con.execute(f"COMMENT ON COLUMN {name}.CITY IS 'a city'")
    table = lance.dataset(folder / "trips.lance")
    assert table.schema.field("city").metadata == {b"comment": b"a city"}
    assert ld.dataset(folder / "trips.lance").metadata == {"comment": "where's whom"}
    shown = "SELECT comment FROM duckdb_tables() WHERE table_name = 'trips'"
    columns = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'trips'"
    cons = (connect(folder),) if name.startswith("'") else (con, connect(folder))
    for each in cons:
        assert each.execute(shown).fetchall() == [("where's whom",)]
        assert each.execute(columns).fetchall() == [("id", None), ("city", "a city")]
    con.execute(f"COMMENT ON TABLE {name} IS NULL")
    con.execute("COMMENT ON COLUMN trips.city IS NULL")
    assert con.execute(shown).fetchall() == [(None,)]
    assert ld.dataset(folder / "trips.lance").metadata == {}


@pytest.mark.parametrize(
    ("text", "count"), [("WITH NO DATA", 0), ("with data", 7), ("", 7), ("WITH NO DATA -- none", 0)]
)
def test_create_table_as_copies_columns_and_optionally_rows(con: ld.Connection, text: str, count: int) -> None:
    names = '(n, "the city")'
    con.execute("CREATE TEMP TABLE source AS FROM trips")
    own = con.execute(f"CREATE TABLE own {names} AS FROM source {text}").fetchall()
    assert con.execute(f"CREATE TABLE lance.fresh {names} AS FROM trips {text}").fetchall() == own == [(count,)]
    assert con.execute("FROM fresh ORDER BY 1").fetchall() == con.execute("FROM own ORDER BY 1").fetchall()
    assert [row[:2] for row in con.execute("DESCRIBE fresh").fetchall()] == [("n", "BIGINT"), ("the city", "VARCHAR")]
    con.execute("CREATE TABLE lance.partly (n) AS FROM trips")
    assert [row[0] for row in con.execute("DESCRIBE partly").fetchall()] == ["n", "city"]
    with pytest.raises(duckdb.BinderException, match=r'"wide" has 2 columns available but 3'):
        con.execute("CREATE TABLE lance.wide (a, b, c) AS FROM trips")
    with pytest.raises(InvalidInputError, match="only names"):
        con.execute("CREATE TABLE lance.wide (a INTEGER, b) AS FROM trips")


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", "a\\b", ".."])
def test_table_names_cannot_leave_the_folder(con: ld.Connection, folder: Path, name: str) -> None:
    before = sorted(folder.parent.rglob("*.lance"))
    with pytest.raises(InvalidInputError, match="invalid table name"):
        con.execute(f'CREATE TABLE lance."{name}" AS SELECT 1 AS a')
    assert sorted(folder.parent.rglob("*.lance")) == before


@pytest.mark.parametrize(
    "type_", ["UUID", "UUID[]", "STRUCT(u UUID, n INTEGER)", "DECIMAL(10,2)", "MAP(INTEGER, VARCHAR)"]
)
def test_create_table_as_uses_the_column_types_of_the_query(tmp_path: Path, type_: str) -> None:
    with ld.connect(tmp_path) as con:
        con.execute(f"CREATE TABLE lance.t (c {type_})")
        con.execute(f"CREATE TABLE lance.q AS SELECT NULL::{type_} AS c")
        con.execute("CREATE TABLE lance.alike LIKE t")
        titles = {name: con.execute(f"DESCRIBE {name}").fetchall()[0][1] for name in ("t", "q", "alike")}
    assert set(titles.values()) == {type_}
    assert ld.dataset(tmp_path / "t.lance").schema.equals(ld.dataset(tmp_path / "q.lance").schema)


@pytest.mark.parametrize("name", ["trips", "lance.trips", "'{folder}/trips.lance'", "ns.trips"])
def test_a_table_is_renamed_with_all_that_it_has(con: ld.Connection, folder: Path, name: str) -> None:
    con.execute(f"ATTACH '{folder}' AS ns (TYPE lance); CREATE INDEX by_id ON trips (id)")
    before = con.execute("FROM trips ORDER BY id").fetchall()
    assert con.execute(f'ALTER TABLE {name.format(folder=folder)} RENAME TO "my trips"').fetchall() == []
    assert con.execute('FROM "my trips" ORDER BY id').fetchall() == before
    assert con.execute("SELECT count(*) FROM ns.\"my trips\" AT (VERSION => 'second')").fetchall() == [(8,)]
    assert con.execute("SELECT index_name FROM lance_indexes('my trips')").fetchall() == [("by_id",)]
    assert con.execute("UPDATE \"my trips\" SET city = 'q' WHERE id = 3").fetchall() == [(1,)]
    assert lance.dataset(folder / "my trips.lance").count_rows("city = 'q'") == 1
    assert not (folder / "trips.lance").exists()
    with pytest.raises(duckdb.CatalogException, match="trips does not exist"):
        con.execute("FROM trips")


def test_a_table_is_not_renamed_if_other_names_refer_to_its_path(
    con: ld.Connection, folder: Path, connect: Connect
) -> None:
    con.execute("CALL lance_create_branch('trips', 'dev')")
    for sql in ("ALTER TABLE trips RENAME TO other", "BEGIN; ALTER TABLE trips RENAME TO other"):
        with pytest.raises(UnsupportedError, match="branches dev"):
            con.execute(sql)
    con.execute("ROLLBACK")
    with pytest.raises(UnsupportedError, match=r"passed to connect\(\) by name"):
        connect({"given": folder / "dim.lance"}).execute("ALTER TABLE given RENAME TO other")
    with pytest.raises(UnsupportedError, match="read-only"):
        connect(folder, read_only=True).execute("ALTER TABLE dim RENAME TO other")
    assert con.execute("EXPLAIN ALTER TABLE dim RENAME TO other").fetchall()
    assert sorted(path.name for path in folder.iterdir()) == ["dim.lance", "odd name.lance", "trips.lance"]
