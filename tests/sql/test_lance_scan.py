from __future__ import annotations

from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld


def count(connection: duckdb.DuckDBPyConnection, arguments: str, *parameters: object) -> int:
    return int(connection.execute(f"SELECT count(*) FROM lance_scan({arguments})", *parameters).fetchall()[0][0])


def test_lance_scan_reads_the_newest_version_by_default(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    path = f"{folder}/trips.lance"
    assert count(plain, f"'{path}'") == 7
    assert count(plain, f"'{path}', version := 1") == 5
    assert count(plain, f"'{path}', version := 'second'") == 8
    assert count(plain, f"'{path}', tag := 'second'") == 8
    assert count(plain, "?, version := ?", [path, 2]) == 8
    assert count(plain, f"'{path}', asof := now()") == 7
    lance.dataset(path).insert(pa.table({"id": [100], "city": ["q"]}))
    assert count(plain, f"'{path}'") == 8


def test_filters_and_columns_are_pushed_down(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    sql = f"SELECT city FROM lance_scan('{folder}/trips.lance') WHERE id BETWEEN 3 AND 5 ORDER BY id"
    assert plain.execute(sql).fetchall() == [("a",), ("b",), ("x",)]
    none = f"EXPLAIN SELECT city FROM lance_scan('{folder}/trips.lance') WHERE id = -1"
    assert "Filters" in plain.execute(none).fetchall()[0][1]


def test_lance_scan_works_in_views_joins_and_subqueries(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    path = f"{folder}/trips.lance"
    plain.execute(f"CREATE VIEW v AS FROM lance_scan('{path}')")
    plain.execute(f"CREATE TABLE t AS FROM lance_scan('{path}')")
    plain.execute(f"PREPARE p AS SELECT count(*) FROM lance_scan('{path}') WHERE id > $1")
    assert plain.execute("SELECT (SELECT count(*) FROM v), (SELECT count(*) FROM t)").fetchall() == [(7, 7)]
    assert plain.execute("EXECUTE p(3)").fetchall() == [(3,)]
    assert plain.execute("EXECUTE p(5)").fetchall() == [(1,)]
    assert plain.sql("FROM v").filter("id < 3").aggregate("count(*)").fetchall() == [(3,)]
    assert plain.execute(f"WITH c AS (FROM lance_scan('{path}')) SELECT count(*) FROM c a, c b").fetchall() == [(49,)]


def test_a_view_reads_the_newest_version(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    plain.execute(f"CREATE VIEW v AS FROM lance_scan('{folder}/dim.lance')")
    lance.write_dataset(pa.table({"other": [1]}), folder / "dim.lance", mode="overwrite")
    assert plain.execute(f"FROM lance_scan('{folder}/dim.lance')").fetchall() == [(1,)]


def test_cursors_of_an_in_memory_database_support_lance_scan(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    with plain.cursor() as cursor:
        assert count(cursor, f"'{folder}/trips.lance'") == 7
        ld.register(cursor)
        assert count(cursor, f"'{folder}/trips.lance'") == 7


def test_a_database_file_does_not_store_lance_scan(tmp_path: Path, folder: Path) -> None:
    path = str(tmp_path / "own.duckdb")
    with duckdb.connect(path) as connection:
        assert count(ld.register(connection), f"'{folder}/trips.lance'") == 7
    with duckdb.connect(path, read_only=True) as connection:
        names = "SELECT function_name FROM duckdb_functions() WHERE function_name LIKE '%lance%'"
        assert connection.execute(names).fetchall() == []
        assert count(ld.register(connection), f"'{folder}/trips.lance'") == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'/nosuch.lance'", "Lance table not found"),
        ("'{}', version := 99", "no version 99"),
        ("'{}', tag := 'x'", "no tag 'x'"),
        ("'{}', version := 1, tag := 'second'", "several arguments choose a version"),
        ("'{}', asof := 'yesterday'", "not a timestamp"),
        ("NULL", "needs a path"),
    ],
)
def test_invalid_arguments_raise_clear_errors(
    plain: duckdb.DuckDBPyConnection, folder: Path, arguments: str, message: str
) -> None:
    with pytest.raises(duckdb.Error, match=message):
        count(plain, arguments.format(folder / "trips.lance"))


def test_a_dataset_is_a_table_on_any_connection(folder: Path) -> None:
    trips = ld.dataset(folder / "trips.lance")
    with duckdb.connect() as connection:
        assert connection.execute("SELECT count(*), max(city) FROM trips WHERE id > 2").fetchall() == [(4, "z")]
        connection.register("registered", trips)
        assert connection.execute("SELECT city FROM registered WHERE id = 2").fetchall() == [("c",)]
