"""Statements that DuckDB users try on Lance tables work, or are rejected in SQL terms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    IndexExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
)

Rows = Callable[..., list[tuple[object, ...]]]
IN_PYTHON = ("=True", 'mode="', "LanceDataset", "add_columns", '{"name"')
DESCRIBED = ("column_name", "column_type", "null", "key", "default", "extra")


@pytest.mark.parametrize(
    ("sql", "error", "remedy"),
    [
        ("COPY dim TO '{folder}/trips.lance' (MODE create)", AlreadyExistsError, "MODE 'append' adds rows"),
        ("CREATE INDEX taken ON trips (city)", IndexExistsError, "CREATE OR REPLACE INDEX"),
        ("CREATE TABLE lance.trips AS SELECT 1 AS a", AlreadyExistsError, "OR REPLACE"),
        ("ATTACH '{folder}/trips.lance' AS x", UnsupportedError, "read the table with FROM 'name.lance'"),
        ("ATTACH '{folder}/trips.lance' AS x (TYPE lance)", InvalidInputError, "FROM 'folder/name.lance'"),
        ("ALTER TABLE trips RENAME TO dim", AlreadyExistsError, "choose another name, or drop the existing table"),
        ("ALTER TABLE trips ADD PRIMARY KEY (id)", UnsupportedError, "ON CONFLICT (column)"),
        ("CREATE SEQUENCE lance.s", UnsupportedError, "CREATE SEQUENCE memory.main.s"),
        ("REINDEX trips WITH (x = 1)", InvalidInputError, "retrain, memory_limit, mode"),
    ],
)
def test_errors_suggest_the_sql_remedy(
    con: ld.Connection, folder: Path, sql: str, error: type[LanceDuckError], remedy: str
) -> None:
    con.execute("CREATE INDEX taken ON trips (id)")
    databases = con.execute("SHOW DATABASES").fetchall()
    with pytest.raises(error) as failed:
        con.execute(sql.format(folder=folder))
    assert remedy in str(failed.value)
    assert not any(word in str(failed.value) for word in IN_PYTHON)
    assert con.execute("SHOW DATABASES").fetchall() == databases


@pytest.mark.parametrize(
    "sql",
    [
        "OPTIMIZE {name}",
        "OPTIMIZE lance.{name}",
        "REINDEX {name}",
        "SHOW INDEXES ON {name}",
        "SHOW MAINTENANCE ON {name}",
        "ALTER TABLE {name} SET AUTO_CLEANUP (interval = 2)",
        "CALL lance_compact('{name}')",
        "CALL lance_compact({name})",
        "FROM lance_scan('{name}')",
        "FROM lance_versions('{name}')",
        "FROM lance.versions('{name}')",
    ],
)
def test_an_unknown_table_suggests_the_nearest_name(con: ld.Connection, sql: str) -> None:
    with pytest.raises(NotFoundError, match=r"no such table; did you mean 'trips'\?"):
        con.execute(sql.format(name="tripz")).fetchall()
    with pytest.raises(NotFoundError, match="no such table") as failed:
        con.execute(sql.format(name="quite_other")).fetchall()
    assert "did you mean" not in str(failed.value)


@pytest.mark.parametrize("sql", ["DESCRIBE kept", "DESCRIBE lance.kept", "DESCRIBE TABLE kept", "SHOW kept"])
def test_describe_shows_keys_and_not_null(con: ld.Connection, rows: Rows, sql: str) -> None:
    con.execute("CREATE TABLE lance.kept (id INTEGER PRIMARY KEY, s VARCHAR NOT NULL, d DOUBLE)")
    expected = [
        ("id", "INTEGER", "NO", "PRI", None, None),
        ("s", "VARCHAR", "NO", None, None, None),
        ("d", "DOUBLE", "YES", None, None, None),
    ]
    assert rows(con, sql) == expected
    relation = con.sql(sql)
    assert (tuple(relation.columns), relation.fetchall()) == (DESCRIBED, expected)


def test_search_settings_can_be_read(con: ld.Connection, rows: Rows) -> None:
    assert rows(con, "SELECT current_setting('lance_nearest')") == [("auto",)]
    assert con.sql("SELECT current_setting('lance_nearest')").columns == ["current_setting('lance_nearest')"]
    con.execute("SET lance_nprobes = 7")
    assert rows(con, "SELECT current_setting('lance_nprobes') + 1 AS n, current_setting('lance_ef') AS e") == [
        (8, None)
    ]
    with pytest.raises(InvalidInputError, match="did you mean 'lance_nearest'"):
        con.execute("SELECT current_setting('lance_nearst')")


def test_lance_validate_returns_the_problems(con: ld.Connection, rows: Rows, folder: Path) -> None:
    assert rows(con, "CALL lance_validate('trips')") == []
    file = min((folder / "dim.lance" / "data").iterdir())
    file.write_bytes(file.read_bytes()[:40])
    ((place, problem),) = rows(con, "SELECT place, problem FROM lance_validate('dim')")
    assert "fragment 0" in str(place)
    assert problem


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO {t} VALUES (9, 'n') RETURNING id, id, ID",
        "UPDATE {t} SET city = 'n' WHERE id = 1 RETURNING id, id_1, id, id",
        "DELETE FROM {t} WHERE id = 1 RETURNING id, *",
    ],
)
def test_duplicate_column_titles_are_numbered_like_in_duckdb(con: ld.Connection, statement: str) -> None:
    for table in ("lance.titled", "own"):
        con.execute(f"CREATE TABLE {table} AS SELECT 1 AS id, 'a' AS city, 2 AS id_1")
    statement = statement.replace("'n')", "'n', 3)")
    ours, theirs = con.sql(statement.format(t="titled")), con.sql(statement.format(t="own"))
    assert ours.columns == theirs.columns


@pytest.mark.parametrize(
    ("first", "statement"),
    [
        ("CREATE TABLE {t} (a INTEGER)", "CREATE TABLE IF NOT EXISTS {t} AS SELECT 1 AS a"),
        ("CREATE TABLE {t} (a INTEGER)", "CREATE TABLE IF NOT EXISTS {t} (a INTEGER)"),
        ("CREATE TABLE {t} (a INTEGER)", "ALTER TABLE {t} ADD COLUMN b INTEGER"),
        ("CREATE TABLE {t} (a INTEGER)", "COMMENT ON TABLE {t} IS 'x'"),
        ("CREATE TABLE {t} AS SELECT 1 AS a", "CREATE INDEX i ON {t} (a)"),
        ("CREATE TABLE {t} AS SELECT 1 AS a", "TRUNCATE {t}"),
        ("CREATE TABLE {t} AS SELECT 1 AS a", "DROP TABLE {t}"),
    ],
)
def test_results_have_the_same_shape_as_in_duckdb(con: ld.Connection, first: str, statement: str) -> None:
    shapes = []
    for table in ("lance.shaped", "own"):
        con.execute(first.format(t=table))
        answer = con.execute(statement.format(t=table))
        shapes.append(([column[:2] for column in answer.description or ()], answer.fetchall()))
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("sql", ["CREATE TABLE x AS SELECT 1 AS a", "DELETE FROM dataset", "OPTIMIZE dataset"])
def test_dataset_sql_accepts_only_queries(folder: Path, sql: str) -> None:
    with pytest.raises(UnsupportedError, match=r"LanceDataset\.sql cannot run \w+: expected a query"):
        ld.dataset(folder / "trips.lance").sql(sql).build().to_batch_records()


@pytest.mark.parametrize("space", ["\u00a0", "\u2009", "\u3000", "\ufeff"])
def test_spaces_of_web_pages_separate_words(tmp_path: Path, space: str) -> None:
    with ld.connect(tmp_path) as con:
        for sql in (
            "CREATE TABLE t (id INTEGER, s VARCHAR)",
            "INSERT INTO t VALUES (1, 'a b'), (2, 'c')",
            "UPDATE t SET s = 'd' WHERE id = 2",
            "DELETE FROM t WHERE s = 'd'",
        ):
            con.execute(sql.replace(" ", space))
        assert con.execute(f"FROM{space}t").fetchall() == [(1, f"a{space}b")]
