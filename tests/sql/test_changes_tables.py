"""CREATE TABLE, DROP TABLE and COPY … TO of Lance tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError

Connect = Callable[..., ld.Connection]


def test_tables_are_made_of_queries(con: ld.Connection, folder: Path) -> None:
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


def test_tables_are_made_of_columns(con: ld.Connection, folder: Path) -> None:
    con.execute('CREATE TABLE lance.fresh (id BIGINT PRIMARY KEY, "v v" FLOAT[3], s VARCHAR NOT NULL)')
    schema = ld.dataset(folder / "fresh.lance").schema
    assert schema.names == ["id", "v v", "s"]
    assert [field.nullable for field in schema] == [False, True, False]
    con.execute("INSERT INTO fresh VALUES (1, [1, 2, 3], 'a')")
    con.execute("INSERT OR REPLACE INTO fresh VALUES (1, NULL, 'b')")
    assert con.execute("FROM fresh").fetchall() == [(1, None, "b")]
    for column in ("a INT CHECK (a > 1)", "a INT DEFAULT 3", "a INT UNIQUE", "a INT REFERENCES dim (city)"):
        with pytest.raises(UnsupportedError):
            con.execute(f"CREATE TABLE lance.other ({column})")
    with pytest.raises(UnsupportedError, match="INTERVAL"):
        con.execute("CREATE TABLE lance.other AS SELECT INTERVAL 1 DAY AS i")
    assert not (folder / "other.lance").exists()


def test_names_without_our_database_are_tables_of_duckdb(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE TABLE own AS FROM trips")
    con.execute("DROP TABLE own")
    assert not (folder / "own.lance").exists()


def test_tables_are_made_at_paths(tmp_path: Path, connect: Connect) -> None:
    con, path = connect(), tmp_path / "new.lance"
    con.execute(f"CREATE TABLE '{path}' AS SELECT 1 AS a")
    assert con.execute(f"FROM '{path}'").fetchall() == [(1,)]
    with pytest.raises(UnsupportedError, match="no folder"):
        con.execute("CREATE TABLE lance.fresh AS SELECT 1 AS a")
    con.execute(f"DROP TABLE '{path}'")
    assert not path.exists()


def test_dropped_tables_are_gone(con: ld.Connection, folder: Path) -> None:
    con.execute("DROP TABLE trips")
    assert not (folder / "trips.lance").exists()
    con.execute("DROP TABLE IF EXISTS trips")
    with pytest.raises(duckdb.CatalogException):
        con.execute("DROP TABLE trips")
    assert con.execute("SHOW TABLES").fetchall() == [("dim",), ("odd name",)]


def test_copies_write_lance_tables(con: ld.Connection, folder: Path) -> None:
    path = folder / "copy.lance"
    assert con.execute(f"COPY (SELECT id FROM trips WHERE id < 2) TO '{path}'").fetchall() == [(2,)]
    assert con.execute(f"COPY trips (id) TO '{path}' (FORMAT lance, MODE 'append')").fetchall() == [(7,)]
    assert con.execute("SELECT count(*) FROM copy").fetchall() == [(9,)]
    assert con.execute(f"COPY dim TO '{path}' WITH (FORMAT 'lance', MODE overwrite)").fetchall() == [(3,)]
    assert con.execute("SELECT count(name) FROM copy").fetchall() == [(3,)]
    with pytest.raises(AlreadyExistsError):
        con.execute(f"COPY dim TO '{path}' (MODE 'create')")
    for options in ("(FORMAT csv)", "(FORMAT parquet, MODE 'append')", "(MODE 'other')", "(HEADER true)"):
        with pytest.raises((InvalidInputError, UnsupportedError)):
            con.execute(f"COPY dim TO '{path}' {options}")
    con.execute(f"COPY dim TO '{folder}/dim.csv'")
    assert (folder / "dim.csv").read_text(encoding="utf-8").startswith("city,name\n")
    assert path.is_dir()


ALTERATIONS = [
    ("ADD COLUMN x INTEGER", [("id", "BIGINT"), ("city", "VARCHAR"), ("x", "INTEGER")], (0, "a", None)),
    ("ADD x DECIMAL(9, 2) DEFAULT 1 + 0.5", [("id", "BIGINT"), ("city", "VARCHAR"), ("x", "DECIMAL(9,2)")], None),
    ("ADD COLUMN IF NOT EXISTS CITY INT", [("id", "BIGINT"), ("city", "VARCHAR")], (0, "a")),
    ("DROP COLUMN city", [("id", "BIGINT")], (0,)),
    ("DROP COLUMN IF EXISTS nope", [("id", "BIGINT"), ("city", "VARCHAR")], (0, "a")),
    ('RENAME city TO "the city"', [("id", "BIGINT"), ("the city", "VARCHAR")], (0, "a")),
    ("ALTER COLUMN id TYPE INTEGER", [("id", "INTEGER"), ("city", "VARCHAR")], (0, "a")),
    ("ALTER id SET DATA TYPE SMALLINT", [("id", "SMALLINT"), ("city", "VARCHAR")], (0, "a")),
]


@pytest.mark.parametrize(("action", "columns", "first"), ALTERATIONS)
def test_columns_are_altered(
    con: ld.Connection, action: str, columns: list[tuple[str, str]], first: tuple[object, ...] | None
) -> None:
    assert con.execute(f"ALTER TABLE lance.trips {action}").fetchall() == []
    assert [row[:2] for row in con.execute("DESCRIBE trips").fetchall()] == columns
    if first is not None:
        assert con.execute("FROM trips ORDER BY 1 LIMIT 1").fetchall() == [first]


def test_nulls_are_forbidden_and_allowed(con: ld.Connection, folder: Path) -> None:
    con.execute("ALTER TABLE trips ALTER city SET NOT NULL")
    with pytest.raises(InvalidInputError):
        con.execute("INSERT INTO trips VALUES (1, NULL)")
    con.execute("ALTER TABLE trips ALTER city DROP NOT NULL")
    assert con.execute("INSERT INTO trips VALUES (1, NULL)").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "action",
    [
        "RENAME TO dim",
        "RENAME TO 'other.lance'",
        'RENAME TO "other/one"',
        "ADD COLUMN x INT NOT NULL",
        "ADD COLUMN x INT CHECK (x > 1)",
        "ALTER id TYPE VARCHAR USING id::VARCHAR",
        "ALTER city SET DEFAULT 'x'",
        "DROP nope",
        "RENAME nope TO x",
        "ADD COLUMN",
        "ALTER id TYPE nope",
    ],
)
def test_other_alterations_are_refused(con: ld.Connection, folder: Path, action: str) -> None:
    with pytest.raises((duckdb.Error, LanceDuckError)):
        con.execute(f"ALTER TABLE trips {action}")
    assert ld.dataset(folder / "trips.lance").version == 3


def test_tables_are_not_made_or_dropped_where_that_is_refused(
    con: ld.Connection, folder: Path, connect: Connect
) -> None:
    statements = ["CREATE TABLE lance.q AS SELECT 1 AS a", "DROP TABLE trips", f"COPY dim TO '{folder}/q.lance'"]
    for sql in statements:
        assert con.execute(f"EXPLAIN {sql}").fetchall()[-1][0] == "lance_change"
        with pytest.raises(UnsupportedError, match="transaction"):
            con.execute(f"BEGIN; {sql}")
        con.execute("ROLLBACK")
        with pytest.raises(UnsupportedError, match="read-only"):
            connect(folder, read_only=True).execute(sql)
    assert sorted(path.name for path in folder.iterdir()) == ["dim.lance", "odd name.lance", "trips.lance"]


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
    shown = "SELECT comment FROM duckdb_views() WHERE view_name = 'trips'"
    columns = "SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'trips'"
    cons = (connect(folder),) if name.startswith("'") else (con, connect(folder))
    for each in cons:
        assert each.execute(shown).fetchall() == [("where's whom",)]
        assert each.execute(columns).fetchall() == [("id", None), ("city", "a city")]
    con.execute(f"COMMENT ON TABLE {name} IS NULL")
    con.execute("COMMENT ON COLUMN trips.city IS NULL")
    assert con.execute(shown).fetchall() == [(None,)]
    assert ld.dataset(folder / "trips.lance").metadata == {}


def test_comments_that_make_no_sense_are_refused(con: ld.Connection, folder: Path, connect: Connect) -> None:
    for sql in ("COMMENT ON COLUMN trips.nope IS 'x'", "COMMENT ON TABLE trips IS 'x' || 'y'"):
        with pytest.raises(InvalidInputError):
            con.execute(sql)
    with pytest.raises(UnsupportedError, match="read-only"):
        connect(folder, read_only=True).execute("COMMENT ON TABLE trips IS 'x'")
    assert ld.dataset(folder / "trips.lance").version == 3


def test_columns_of_new_tables_are_those_of_others(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE TEMP TABLE own (a INTEGER PRIMARY KEY, b VARCHAR NOT NULL, c DATE)")
    con.execute("CREATE TABLE lance.first LIKE own")
    con.execute("CREATE TABLE lance.second (LIKE lance.first)")
    for name in ("first", "second"):
        schema = ld.dataset(folder / f"{name}.lance").schema
        assert [(field.name, field.nullable) for field in schema] == [("a", False), ("b", False), ("c", True)]
        con.execute(f"INSERT INTO {name} VALUES (1, 'x', NULL)")
        con.execute(f"INSERT OR REPLACE INTO {name} VALUES (1, 'y', NULL)")
        assert con.execute(f"FROM {name}").fetchall() == [(1, "y", None)]


@pytest.mark.parametrize(
    ("text", "count"), [("WITH NO DATA", 0), ("with data", 7), ("", 7), ("WITH NO DATA -- none", 0)]
)
def test_a_query_gives_a_new_table_its_columns_and_perhaps_its_rows(con: ld.Connection, text: str, count: int) -> None:
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


def test_options_of_new_tables_are_those_of_write_dataset(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE TABLE lance.a WITH (data_storage_version = '2.1', max_rows_per_file = 3) AS FROM trips")
    table = ld.dataset(folder / "a.lance")
    assert (table.data_storage_version, len(table.get_fragments())) == ("2.1", 3)
    con.execute("CREATE TABLE lance.b (x INTEGER) WITH (enable_stable_row_ids = true)")
    assert ld.dataset(folder / "b.lance").has_stable_row_ids
    with pytest.raises(InvalidInputError, match="unknown option 'max_row_per_file'"):
        con.execute("CREATE TABLE lance.c (x INTEGER) WITH (max_row_per_file = 3)")
    assert not (folder / "c.lance").exists()


def test_a_table_that_exists_is_left_alone_where_that_is_said(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE TABLE lance.empty (a INTEGER)")
    assert con.execute("CREATE TABLE IF NOT EXISTS lance.empty (b INTEGER)").fetchall() == []
    assert ld.dataset(folder / "empty.lance").schema.names == ["a"]


def test_several_tables_are_dropped_or_none(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE TEMP TABLE own (a INTEGER)")
    with pytest.raises(NotFoundError, match="nope"):
        con.execute("DROP TABLE trips, nope")
    with pytest.raises(UnsupportedError, match="DuckDB's own"):
        con.execute("DROP TABLE IF EXISTS dim, own")
    assert (folder / "trips.lance").is_dir()
    assert (folder / "dim.lance").is_dir()
    con.execute(f"DROP TABLE IF EXISTS trips, nope, lance.dim, '{folder}/nope.lance' CASCADE")
    assert [path.name for path in folder.iterdir()] == ["odd name.lance"]


def test_a_path_without_a_table_is_dropped_where_it_may_miss(con: ld.Connection, folder: Path) -> None:
    assert con.execute(f"DROP TABLE IF EXISTS '{folder}/nope.lance'").fetchall() == []
    with pytest.raises(NotFoundError, match="no such table"):
        con.execute(f"DROP TABLE '{folder}/nope.lance'")


def test_what_is_not_supported_of_lance_tables_works_on_those_of_duckdb(con: ld.Connection) -> None:
    con.execute("CREATE TEMP TABLE own (comment INTEGER)")
    con.execute("COMMENT ON TABLE own IS 'mine'")
    con.execute("CREATE INDEX by_comment ON own (comment)")
    con.execute("VACUUM ANALYZE own")
    assert con.execute("SELECT comment FROM duckdb_tables() WHERE table_name = 'own'").fetchall() == [("mine",)]


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/b", "a\\b", ".."])
def test_names_of_tables_stay_in_the_folder(con: ld.Connection, folder: Path, name: str) -> None:
    before = sorted(folder.parent.rglob("*.lance"))
    with pytest.raises(InvalidInputError, match="name of a table"):
        con.execute(f'CREATE TABLE lance."{name}" AS SELECT 1 AS a')
    assert sorted(folder.parent.rglob("*.lance")) == before


def test_a_name_in_another_case_is_the_same_table(con: ld.Connection) -> None:
    with pytest.raises(AlreadyExistsError):
        con.execute("CREATE TABLE lance.TRIPS AS SELECT 1 AS a")
    con.execute("CREATE OR REPLACE TABLE lance.TRIPS AS SELECT 1 AS a")
    assert con.execute("FROM trips").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE OR REPLACE VIEW lance.trips AS SELECT 1 AS id",
        "CREATE TABLE lance.generated (a INTEGER, b AS (a + 1))",
        "COPY trips TO '{f}/x.lance' CSV HEADER",
        "COPY trips TO '{f}/x.lance' (FORMAT lance) more",
        "DROP VIEW trips",
    ],
)
def test_copies_to_odd_names_and_dropped_views_are_refused(con: ld.Connection, folder: Path, sql: str) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)):
        con.execute(sql.format(f=folder))
    assert not (folder / "x.lance").exists()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_a_table_that_another_connection_made_again_is_the_new_one(
    con: ld.Connection, connect: Connect, folder: Path
) -> None:
    con.execute("FROM dim").fetchall()
    other = connect(folder)
    other.execute("DROP TABLE dim")
    other.execute("CREATE TABLE lance.dim AS SELECT 'q' AS city, 'new' AS name")
    assert con.execute("FROM dim").fetchall() == [("q", "new")]
    con.execute("INSERT INTO dim VALUES ('r', 'more')")
    assert connect(folder).execute("FROM dim ORDER BY ALL").fetchall() == [("q", "new"), ("r", "more")]


def test_a_table_is_dropped_whatever_is_said_of_what_depends_on_it(con: ld.Connection, folder: Path) -> None:
    con.execute("DROP TABLE dim CASCADE")
    assert not (folder / "dim.lance").exists()
    con.execute("CREATE VIEW later AS SELECT 2 AS id")
    assert con.execute("FROM later").fetchall() == [(2,)]


def test_the_database_that_a_new_name_says_counts_after_use(tmp_path: Path) -> None:
    with ld.connect(tmp_path) as con:
        con.execute("CREATE TABLE lance.t AS SELECT 1 AS id")
        con.execute(f"ATTACH '{tmp_path / 'own.db'}' AS own")
        con.execute("USE lance")
        con.execute("CREATE OR REPLACE TABLE own.t AS SELECT 'text' AS z")
        con.execute("CREATE TABLE memory.m AS SELECT 2 AS id")
        con.execute("CREATE TABLE main.n AS SELECT 3 AS id")
        with pytest.raises(duckdb.CatalogException, match="nosuch"):
            con.execute("CREATE TABLE nosuch.x AS SELECT 1 AS id")
        assert con.execute("FROM lance.t").fetchall() == [(1,)]
        assert con.execute("FROM own.t").fetchall() == [("text",)]
    assert sorted(path.name for path in tmp_path.glob("*.lance")) == ["n.lance", "t.lance"]


@pytest.mark.parametrize("type_", ["BIT", "TIMETZ", "INTERVAL", "UNION(a INT, b VARCHAR)", "STRUCT(t TIMETZ)"])
def test_columns_of_types_that_lance_lacks_are_refused(tmp_path: Path, type_: str) -> None:
    with ld.connect(tmp_path) as con, pytest.raises(UnsupportedError, match="column 'c'"):
        con.execute(f"CREATE TABLE lance.t (c {type_})")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "type_", ["UUID", "UUID[]", "STRUCT(u UUID, n INTEGER)", "DECIMAL(10,2)", "MAP(INTEGER, VARCHAR)"]
)
def test_types_of_columns_are_those_that_a_query_gives(tmp_path: Path, type_: str) -> None:
    with ld.connect(tmp_path) as con:
        con.execute(f"CREATE TABLE lance.t (c {type_})")
        con.execute(f"CREATE TABLE lance.q AS SELECT NULL::{type_} AS c")
        con.execute("CREATE TABLE lance.alike LIKE t")
        titles = {name: con.execute(f"DESCRIBE {name}").fetchall()[0][1] for name in ("t", "q", "alike")}
    assert set(titles.values()) == {type_}
    assert ld.dataset(tmp_path / "t.lance").schema.equals(ld.dataset(tmp_path / "q.lance").schema)


@pytest.mark.parametrize(
    "before",
    [
        "SET schema = 'lance.main'",
        "/* all */ set search_path = 'lance.main'",
        "PRAGMA search_path = 'lance.main'",
        "SET threads = 2; SET schema = 'lance.main'",
    ],
)
def test_a_text_that_sets_the_schema_makes_its_tables_there(
    con: ld.Connection, connect: Connect, folder: Path, before: str
) -> None:
    con.execute("FROM trips").fetchall()
    assert con.execute(f"{before}; CREATE TABLE made AS SELECT 1 AS a").fetchall() == [(1,)]
    assert ld.dataset(folder / "made.lance").to_table().to_pylist() == [{"a": 1}]
    with pytest.raises(UnsupportedError, match="read-only"):
        connect(folder, read_only=True).execute(f"{before}; CREATE TABLE more AS SELECT 1 AS a")
    assert not (folder / "more.lance").exists()


def test_a_text_that_resets_the_schema_makes_its_tables_in_duckdb(con: ld.Connection, folder: Path) -> None:
    con.execute("SET schema = 'lance.main'")
    con.execute("RESET schema; CREATE TABLE memory.main.made AS SELECT 1 AS a; INSERT INTO memory.main.made VALUES (2)")
    assert con.execute("FROM memory.main.made").fetchall() == [(1,), (2,)]
    assert not (folder / "made.lance").exists()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("ALTER VIEW lance.trips RENAME TO q", "table trips: ALTER VIEW.*CREATE TABLE AS"),
        ("ALTER VIEW IF EXISTS trips RENAME TO q", "table trips: ALTER VIEW"),
        ("COMMENT ON VIEW trips IS 'x'", "table trips: COMMENT ON VIEW.*COMMENT ON TABLE"),
        ("ALTER DATABASE lance SET ALIAS TO foo", "database lance: ALTER DATABASE.*ATTACH"),
        ("ALTER DATABASE IF EXISTS LANCE SET ALIAS TO foo", "database LANCE: ALTER DATABASE"),
        ("CREATE OR REPLACE VIEW trips AS SELECT 1 AS id", "table trips: CREATE VIEW.*DROP TABLE"),
        ("CREATE OR REPLACE VIEW main.trips AS SELECT 1 AS id", "table trips: CREATE VIEW"),
    ],
)
def test_the_views_that_stand_for_tables_are_not_changed(
    con: ld.Connection, connect: Connect, folder: Path, sql: str, message: str
) -> None:
    for each, expected in ((con, message), (connect(folder, read_only=True), "read-only")):
        each.execute("USE lance")
        for text in (sql, f"SELECT 1; {sql}"):
            with pytest.raises(UnsupportedError, match=expected):
                each.execute(text)
        assert each.execute("SELECT count(*) FROM lance.trips").fetchall() == [(7,)]
        assert each.execute("SELECT comment FROM duckdb_views() WHERE view_name = 'trips'").fetchall() == [(None,)]


def test_views_of_duckdb_are_changed_as_ever(con: ld.Connection, rows: Callable[..., object]) -> None:
    con.execute("CREATE VIEW seen AS SELECT 1 AS a")
    con.execute("COMMENT ON VIEW seen IS 'mine'; ALTER VIEW seen RENAME TO looked")
    assert rows(con, "SELECT comment FROM duckdb_views() WHERE view_name = 'looked'") == [("mine",)]
    con.execute("CREATE OR REPLACE VIEW trips AS SELECT 2 AS own")  # beside the table, in the database of the caller
    assert rows(con, "FROM trips") == [(2,)]
    con.execute(
        "ATTACH ':memory:' AS side; ALTER DATABASE side SET ALIAS TO other; CREATE TABLE other.t AS SELECT 3 AS a"
    )
    assert rows(con, "FROM other.t") == [(3,)]
    con.execute(
        "USE lance; CREATE OR REPLACE TEMP VIEW dim AS SELECT 4 AS own; CREATE VIEW IF NOT EXISTS trips AS SELECT 5"
    )
    assert rows(con, "FROM temp.dim") == [(4,)]
    assert rows(con, "SELECT count(*) FROM lance.trips") == [(7,)]


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


def test_a_table_is_not_renamed_where_its_place_is_known_elsewhere(
    con: ld.Connection, folder: Path, connect: Connect
) -> None:
    with pytest.raises(UnsupportedError, match="transaction"):
        con.execute("BEGIN; ALTER TABLE trips RENAME TO other")
    con.execute("ROLLBACK; CALL lance_create_branch('trips', 'dev')")
    with pytest.raises(UnsupportedError, match="branches dev"):
        con.execute("ALTER TABLE trips RENAME TO other")
    with pytest.raises(UnsupportedError, match="named in connect"):
        connect({"given": folder / "dim.lance"}).execute("ALTER TABLE given RENAME TO other")
    with pytest.raises(UnsupportedError, match="read-only"):
        connect(folder, read_only=True).execute("ALTER TABLE dim RENAME TO other")
    assert con.execute("EXPLAIN ALTER TABLE dim RENAME TO other").fetchall()
    assert sorted(path.name for path in folder.iterdir()) == ["dim.lance", "odd name.lance", "trips.lance"]
