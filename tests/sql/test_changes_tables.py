"""CREATE TABLE, DROP TABLE and COPY … TO of Lance tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, LanceDuckError, UnsupportedError

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
    assert con.execute("CREATE TABLE IF NOT EXISTS lance.fresh AS SELECT 1 AS a").fetchall() == [(0,)]
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
        "RENAME TO other",
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


@pytest.mark.parametrize(
    "sql",
    [
        "COMMENT ON TABLE {t} IS 'people'",
        "COMMENT ON COLUMN {t}.id IS 'key'",
        "CREATE INDEX by_id ON {t} (id)",
        "CREATE UNIQUE INDEX IF NOT EXISTS by_id ON {t} USING btree (id)",
        "COPY {t} FROM 'rows.csv'",
        "VACUUM {t}",
        "VACUUM ANALYZE {t}",
        "OPTIMIZE {t}",
    ],
)
@pytest.mark.parametrize("name", ["trips", "lance.trips", "lance.main.TRIPS"])
def test_what_is_not_supported_names_the_table_and_a_remedy(con: ld.Connection, sql: str, name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"table (trips|TRIPS): .* is not supported on Lance tables; .+"):
        con.execute(sql.format(t=name))


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
        "COPY trips TO E'{f}/x.lance'",
        "COPY trips TO $${f}/x.lance$$",
        "COPY trips TO ('{f}/x.lance')",
        "DROP VIEW trips",
    ],
)
def test_copies_to_odd_names_and_dropped_views_are_refused(con: ld.Connection, folder: Path, sql: str) -> None:
    with pytest.raises(UnsupportedError):
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
