from __future__ import annotations

import math
import shutil
import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

Connect = Callable[..., ld.Connection]


def test_tables_of_a_folder_are_available_by_name(con: ld.Connection) -> None:
    assert con.execute("SHOW TABLES").fetchall() == [("dim",), ("odd name",), ("trips",)]
    assert con.execute("FROM trips ORDER BY id LIMIT 2").fetchall() == [(0, "a"), (1, "b")]
    assert con.execute('SELECT sum(value) FROM "odd name"').fetchall() == [(1.5,)]
    assert con.execute("SELECT count(*) FROM lance.main.TRIPS").fetchall() == [(7,)]
    assert con.execute("DESCRIBE trips").fetchall()[1][:2] == ("city", "VARCHAR")


def test_joins_groups_and_subqueries_work(con: ld.Connection) -> None:
    sql = "SELECT name, count(*) FROM trips JOIN dim USING (city) WHERE id < 5 GROUP BY ALL ORDER BY ALL"
    assert con.sql(sql).fetchall() == [("Aa", 2), ("Bb", 2), ("Cc", 1)]
    sql = "SELECT id FROM trips WHERE city IN (SELECT city FROM dim WHERE name = 'Cc')"
    assert con.sql(sql).fetchall() == [(2,)]
    assert con.sql("SELECT count(*) FROM trips a, trips b").fetchall() == [(49,)]
    assert con.sql("SELECT count(*) FROM trips WHERE id > 3").fetchall() == [(3,)]
    assert con.sql("SELECT EXISTS (FROM trips WHERE city = 'z')").fetchall() == [(True,)]


def test_new_tables_appear_and_dropped_tables_disappear(con: ld.Connection, folder: Path) -> None:
    lance.write_dataset(pa.table({"a": [1]}), folder / "fresh.lance")
    assert con.execute("FROM fresh").fetchall() == [(1,)]
    assert ("fresh",) in con.execute("SHOW TABLES").fetchall()
    shutil.rmtree(folder / "fresh.lance")
    assert ("fresh",) not in con.execute("SHOW TABLES").fetchall()
    with pytest.raises(duckdb.CatalogException, match="fresh"):
        con.execute("FROM fresh")


def test_a_table_without_columns_does_not_affect_others(con: ld.Connection, folder: Path) -> None:
    ld.write_dataset(pa.table({}), folder / "bare.lance")
    lance.write_dataset(pa.table({"a": [1]}), folder / "fresh.lance")
    assert con.execute("FROM fresh").fetchall() == [(1,)]
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    with pytest.raises(UnsupportedError, match="without columns"):
        con.execute("FROM bare")
    with ld.connect(folder) as another:
        assert another.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
    ld.dataset(folder / "bare.lance").add_columns(pa.schema([("b", pa.int64())]))
    assert con.execute("FROM bare").fetchall() == []


def test_each_statement_reads_the_newest_version(con: ld.Connection, folder: Path) -> None:
    lance.dataset(folder / "trips.lance").insert(pa.table({"id": [100], "city": ["q"]}))
    assert con.execute("SELECT count(*), max(id) FROM trips").fetchall() == [(8, 100)]
    lance.write_dataset(pa.table({"other": ["x"]}), folder / "trips.lance", mode="overwrite")
    assert con.execute("FROM trips").fetchall() == [("x",)]


def test_at_selects_a_version_or_tag(con: ld.Connection, folder: Path) -> None:
    def count(source: str, *parameters: Any) -> int:
        return int(con.execute(f"SELECT count(*) FROM {source}", *parameters).fetchall()[0][0])

    assert count("trips") == 7
    assert count("trips AT (VERSION => 1)") == 5
    assert count("lance.trips t AT (VERSION => ?)", [2]) == 8
    assert count("trips AT (VERSION => 'second')") == 8
    assert count(f"'{folder}/trips.lance' AT (VERSION => 1)") == 5
    written = lance.dataset(folder / "trips.lance").versions()[0]["timestamp"]
    assert count(f"trips AT (TIMESTAMP => TIMESTAMP '{written}' + INTERVAL 100 MICROSECONDS)") == 5
    sql = "SELECT trips.id FROM trips AT (VERSION => 1) JOIN dim USING (city) WHERE trips.id = 2"
    assert con.execute(sql).fetchall() == [(2,)]


def test_a_missing_version_raises_not_found(con: ld.Connection) -> None:
    with pytest.raises(NotFoundError, match="99"):
        con.execute("FROM trips AT (VERSION => 99)")
    with pytest.raises(NotFoundError, match="nosuch"):
        con.sql("FROM lance_scan('trips', tag := 'nosuch')")


def test_paths_can_be_used_in_from(con: ld.Connection, folder: Path) -> None:
    path = f"{folder}/trips.lance"
    assert con.execute(f"SELECT count(*) FROM '{path}'").fetchall() == [(7,)]
    assert con.execute(f"SELECT trips.city FROM '{path}' WHERE id = 2").fetchall() == [("c",)]
    assert con.execute(f"SELECT '{path}' FROM '{path}/' t WHERE t.id = 2").fetchall() == [(path,)]
    assert con.execute(f"DESCRIBE '{path}'").fetchall()[0][:2] == ("id", "BIGINT")
    assert con.execute(f"SELECT count(*) FROM dim, '{path}'").fetchall() == [(21,)]
    assert con.execute("SELECT 'nosuch.lance'").fetchall() == [("nosuch.lance",)]
    with pytest.raises(NotFoundError, match="nosuch"):
        con.execute("FROM 'nosuch.lance'")


def test_caller_variables_can_be_queried_as_tables(con: ld.Connection, folder: Path) -> None:
    frame = pa.table({"id": [2, 3]})  # noqa: F841
    opened = ld.dataset(folder / "dim.lance")  # noqa: F841
    assert con.execute("SELECT city FROM trips JOIN frame USING (id) ORDER BY id").fetchall() == [("c",), ("a",)]
    assert con.sql("SELECT count(*) FROM opened").fetchall() == [(3,)]
    query = con.sql("SELECT count(*) FROM (FROM frame)")
    assert query.fetchall() == [(2,)]


def test_a_mapping_names_paths_and_datasets(folder: Path, connect: Connect) -> None:
    old = ld.dataset(folder / "trips.lance", version=1)
    con = connect({"now": folder / "trips.lance", "then": old})
    assert con.execute('SELECT count(*) FROM now UNION ALL SELECT count(*) FROM "then"').fetchall() == [(7,), (5,)]
    assert con.execute('SELECT count(*) FROM "then" AT (VERSION => 2)').fetchall() == [(8,)]
    con.register("again", old)
    assert con.cursor().execute("SELECT count(*) FROM again").fetchall() == [(5,)]
    con.unregister("again")
    with pytest.raises(duckdb.CatalogException):
        con.execute("FROM again")


def test_cursors_and_threads_see_the_tables(con: ld.Connection, folder: Path) -> None:
    failures: list[BaseException] = []

    def work(cursor: ld.Connection) -> None:
        try:
            for i in range(10):
                assert cursor.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]
                assert cursor.execute(f"SELECT max(id) FROM trips AT (VERSION => {1 + i % 2})").fetchall() == [
                    (4 + 3 * (i % 2),)
                ]
                assert len(cursor.sql(f"FROM '{folder}/dim.lance'").fetchall()) == 3
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(con.cursor(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_native_tables_and_lance_tables_can_be_joined(con: ld.Connection) -> None:
    con.execute("CREATE TABLE memory.own AS FROM trips WHERE id < 2")
    con.executemany("INSERT INTO own VALUES (?, ?)", [[7, "u"], [8, "v"]])
    assert con.execute("SELECT count(*) FROM own").fetchall() == [(4,)]
    assert ("own",) in con.cursor().execute("SHOW TABLES").fetchall()
    assert con.table("own").fetchall()[0] == con.table("trips").fetchall()[0] == (0, "a")
    con.begin()
    con.execute("DELETE FROM own")
    con.rollback()
    assert con.execute("SELECT count(*) FROM own").fetchall() == [(4,)]


def test_a_database_file_contains_no_lance_objects(folder: Path, connect: Connect, tmp_path: Path) -> None:
    path = tmp_path / "own.duckdb"
    with connect(folder, database=path) as con:
        con.execute("USE own; CREATE TABLE own AS FROM lance.trips")
        assert ("own",) in con.execute("SHOW TABLES").fetchall()
    with duckdb.connect(str(path)) as con:
        assert con.execute("SHOW TABLES").fetchall() == [("own",)]
        assert con.execute("SELECT count(*) FROM duckdb_functions() WHERE function_name LIKE '%lance%'").fetchall() == [
            (0,)
        ]
    with connect(folder, database=path, read_only=True, config={"threads": 1}) as con:
        assert con.execute("SELECT count(*) FROM own JOIN trips USING (id)").fetchall() == [(7,)]
        assert con.execute("SELECT current_setting('threads')").fetchall() == [(1,)]


def test_explain_shows_pushed_down_filters(con: ld.Connection) -> None:
    plan = con.execute("EXPLAIN SELECT city FROM trips WHERE id = -1").fetchall()[0][1]
    assert "id" in plan.split("Filters")[1]


def test_reading_a_folder_that_is_not_a_table_explains_the_problem(con: ld.Connection, folder: Path) -> None:
    (folder / "empty.lance").mkdir()
    assert ("empty",) not in con.execute("SHOW TABLES").fetchall()
    with pytest.raises(NotFoundError, match="Lance table not found"):
        con.execute("FROM empty")
    lance.write_dataset(pa.table({"a": [1]}), folder / "empty.lance")
    assert con.execute("FROM empty").fetchall() == [(1,)]


def test_a_damaged_file_raises_a_corrupt_error_at_bind_or_scan(con: ld.Connection, folder: Path) -> None:
    for path in (folder / "dim.lance" / "data").iterdir():
        path.write_bytes(path.read_bytes()[:-20])
    for read in (
        lambda: con.execute("FROM dim").fetchall(),
        lambda: con.execute("SELECT max(name) FROM dim").fetchone(),
        lambda: con.execute("SELECT name FROM dim JOIN trips USING (city)").fetchdf(),
    ):
        with pytest.raises(CorruptError):
            read()
    with pytest.raises(duckdb.Error, match="CorruptError"):
        con.sql("FROM dim").fetchall()


@pytest.mark.parametrize(
    ("tables", "error"),
    [
        ({"a": "/nosuch"}, NotFoundError),
        (5, InvalidInputError),
        ("x.lance", InvalidInputError),
    ],
)
def test_paths_that_are_not_folders_are_rejected(tables: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ld.connect(tables)


def test_the_first_table_creates_the_folder(tmp_path: Path) -> None:
    con = ld.connect(tmp_path / "new")
    for sql in ("FROM t", "FROM lance.t", "INSERT INTO t VALUES (1)"):
        with pytest.raises(NotFoundError, match="new: no such folder"):
            con.execute(sql)
    assert con.execute("SELECT 1").fetchone() == (1,)
    assert not (tmp_path / "new").exists()
    con.execute("CREATE TABLE lance.t AS SELECT 5 AS id")
    assert con.execute("FROM t").fetchall() == ld.connect(tmp_path / "new").execute("FROM t").fetchall() == [(5,)]


@pytest.mark.parametrize(
    "sql",
    [
        "FROM lance_vector_search('t', 'v', [1.0, 2.0], k := 1)",
        "FROM lance_fts('t', 'body', 'word')",
        "FROM lance_versions('t')",
        "FROM lance_scan('t')",
        "OPTIMIZE t",
        "SHOW INDEXES ON t",
        "CALL lance_restore('t', 1)",
        "CREATE INDEX i ON t (id)",
    ],
)
def test_statements_report_a_missing_folder(tmp_path: Path, sql: str) -> None:
    with pytest.raises(NotFoundError, match="new: no such folder"):
        ld.connect(tmp_path / "new").execute(sql)


def test_a_missing_folder_is_not_read_only(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"new: no such folder: .*; check the path$"):
        ld.connect(tmp_path / "new", read_only=True)


@pytest.mark.parametrize(("inside", "place"), [(True, "."), (False, "a table"), (True, "../t.lance/")])
def test_a_table_path_cannot_be_connected_as_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool, place: str
) -> None:
    path = tmp_path / ("t.lance" if inside else "a table")
    ld.write_dataset({"x": [1]}, path)
    monkeypatch.chdir(path if inside else tmp_path)
    with pytest.raises(InvalidInputError, match="not a folder of tables; pass the folder that contains it"):
        ld.connect(place)
    ld.write_dataset({"x": [1]}, path / "inner.lance")  # then it is both
    if place != "../t.lance/":
        assert ld.connect(place).sql("SHOW TABLES").fetchall() == [("inner",)]


def test_without_tables_it_is_plain_duckdb_with_lance_scan(folder: Path, connect: Connect) -> None:
    con = connect()
    assert con.execute("SHOW TABLES").fetchall() == []
    assert con.execute("SELECT count(*) FROM lance_scan(?)", [f"{folder}/trips.lance"]).fetchall() == [(7,)]


def test_relations_with_parameters_do_not_change_the_thread_count(folder: Path) -> None:
    con = ld.connect(folder, config={"threads": 3})
    for limit in range(3):
        assert len(con.sql("SELECT id FROM trips WHERE id >= ? LIMIT ?", params=[0, limit]).fetchall()) == limit
    assert con.execute("SELECT current_setting('threads')").fetchall() == [(3,)]
    con.execute("SET lock_configuration = true")
    assert con.sql("SELECT count(*) FROM trips WHERE id >= ?", params=[0]).fetchall() == [(7,)]


VALUES = [
    *(None, True, 5, -5, 2**31, -(2**63), 2**63, 2**64, -(2**64), 2**127, 2**31 - 1, -(2**31) - 1),
    *(1.5, -0.0, 1e300, math.inf, -math.inf, math.nan),
    *map(Decimal, ("-1.50", "0.01", "-0.001", "0", "-12", "123456789012345678.9")),
    *("it's\n", b"\0'", date(2020, 2, 29), UUID(int=7), [], [1, None], [[1.5], []], ["a"]),
]


@pytest.mark.parametrize("sql", ["SELECT typeof(?), ?", "SELECT typeof($2), $1", "SELECT typeof($a), $b, '?$a'"])
@pytest.mark.parametrize("value", VALUES)
def test_relations_with_parameters_are_the_same_if_the_configuration_is_locked(sql: str, value: object) -> None:
    parameters = {"a": value, "b": value} if "$a" in sql else [value, value]
    free, locked = ld.connect(config={"threads": 3}), ld.connect(config={"threads": 3})
    locked.execute("SET lock_configuration = true")
    answers = [repr(con.sql(sql, params=parameters).fetchall()) for con in (free, locked)]
    assert answers[1] == answers[0]


@pytest.mark.parametrize("sql", ["EXPLAIN ANALYZE FROM trips", "SELECT {'a': 1} >= ?", "SELECT ? || ''"])
@pytest.mark.parametrize("threads", [1, 3])
def test_relations_that_need_one_thread_in_duckdb_1_are_refused_if_the_configuration_is_locked(
    folder: Path, threads: int, sql: str
) -> None:
    con = ld.connect(folder, config={"threads": threads})
    con.execute("SET lock_configuration = true")
    parameters = ["a\0b"] if "||" in sql else [{"a": 0}] if "?" in sql else None
    if threads == 1 or SPEAKS_SOURCE:
        assert con.sql(sql, params=parameters).fetchall()
    else:
        with pytest.raises(UnsupportedError, match="found several threads, and a locked configuration"):
            con.sql(sql, params=parameters)
    assert con.execute(sql, parameters).fetchall()


@pytest.mark.parametrize("sql", ["SET lance_nearest = 'off'", "RESET lance_nearest"])
def test_lance_settings_return_the_same_result_as_duckdb_settings(con: ld.Connection, sql: str) -> None:
    con.execute("SELECT id FROM trips")
    description = con.execute("SET threads = 2").description
    con.execute("SELECT id FROM trips")
    assert con.execute(sql).description == description
    assert con.fetchall() == []
    assert repr(con.sql(sql)) == repr(con.sql("SET threads = 2"))
    assert con.execute(f"{sql}; SELECT count(*) FROM trips").fetchall() == [(7,)]


@pytest.mark.parametrize(
    "sql",
    ["SHOW ALL TABLES", "PRAGMA table_info('lance.trips')", "SELECT * FROM duckdb_columns() WHERE NOT internal"],
)
def test_columns_are_listed_from_any_duckdb_thread(con: ld.Connection, sql: str) -> None:
    con.execute("CREATE VIEW near AS FROM lance_versions('trips')")
    for _ in range(8):
        assert con.execute(sql).fetchall()
    assert con.execute("SELECT count(*) FROM trips").fetchall() == [(7,)]


def test_commit_without_a_transaction_does_nothing(con: ld.Connection) -> None:
    assert con.commit() is con
    con.native.begin()
    con.native.execute("CREATE TABLE x AS SELECT 1 AS i")
    con.commit()
    with pytest.raises(duckdb.TransactionException):
        con.rollback()
    assert con.execute("FROM x").fetchall() == [(1,)]


def test_cursors_follow_the_python_db_api(con: ld.Connection) -> None:
    cursor = con.cursor()
    cursor.execute("SELECT 7 AS a, 'x' AS b UNION ALL SELECT 8, 'y' ORDER BY a")
    assert [(name, str(kind)) for name, kind, *_ in cursor.description] == [("a", "INTEGER"), ("b", "VARCHAR")]
    assert (cursor.rowcount, cursor.fetchone(), cursor.fetchmany(5), cursor.fetchone()) == (
        -1,
        (7, "x"),
        [(8, "y")],
        None,
    )
    cursor.executemany("SELECT ?", [[1], [2]])
    assert cursor.fetchall() == [(2,)]
    cursor.close()
    con.commit()


@pytest.mark.skipif(duckdb.__version__ >= "2", reason="DuckDB 2 gives Python's lock away while it computes a relation")
def test_a_parameterised_relation_inside_a_udf_is_rejected_before_a_deadlock(
    tmp_path: Path,
) -> None:
    ld.write_dataset({"id": list(range(200_000))}, tmp_path / "t.lance", max_rows_per_file=50_000)
    with ld.connect(tmp_path) as con, con.cursor() as cursor:
        con.execute("SET threads = 2")

        def by_relation(number: int) -> int:
            return int(cursor.sql("SELECT ?::BIGINT", params=[number]).fetchall()[0][0])

        one_at_a_time = threading.Lock()  # threads must not share a cursor

        def by_execute(number: int) -> int:
            with one_at_a_time:
                return int(cursor.execute("SELECT ?::BIGINT", [number]).fetchall()[0][0])

        con.create_function("by_relation", by_relation, ["BIGINT"], "BIGINT")
        con.create_function("by_execute", by_execute, ["BIGINT"], "BIGINT")
        with pytest.raises(UnsupportedError, match=r"called by DuckDB 1 cannot create a relation.*cursor\.execute"):
            con.execute("SELECT sum(by_relation(id)) FROM t WHERE id % 50000 < 2").fetchall()
        assert con.execute("SELECT sum(by_execute(id)) FROM t WHERE id % 50000 < 2").fetchall() == [(600_004,)]


def test_a_notebook_shows_the_tables_of_a_connection(con: ld.Connection, tmp_path: Path) -> None:
    ld.write_dataset({"x": [1]}, tmp_path / "more" / "a<b.lance")
    con.execute(f"ATTACH '{tmp_path}/more' AS more (TYPE lance)")
    shown = con._repr_html_()
    assert "<tr><td>lance</td><td>main</td><td>trips</td></tr>" in shown
    assert "<tr><td>more</td><td>main</td><td>a&lt;b</td></tr>" in shown


@pytest.mark.parametrize("sql", ["SELECT '\ud83d'", "FROM t WHERE s = '\ud83d'", "INSERT INTO t VALUES ('\ud83d')"])
def test_lone_surrogates_raise_the_same_error_as_in_duckdb(tmp_path: Path, sql: str) -> None:
    ld.write_dataset(pa.table({"s": ["a"]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        with pytest.raises(Exception, match="surrogate") as native:
            con.native.execute(sql)
        with pytest.raises(native.type, match="surrogate"):
            con.execute(sql)
        assert con.execute("FROM t").fetchall() == [("a",)]


def test_an_error_in_a_property_of_a_connection_is_shown(con: ld.Connection) -> None:
    class Counted(type(con)):  # type: ignore[misc]
        @property
        def rowcount(self) -> int:
            return int(None.rows)  # type: ignore[attr-defined]

    con.__class__ = Counted
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'rows'"):
        con.rowcount  # noqa: B018


def test_an_unopened_connection_raises_attribute_errors() -> None:
    con = object.__new__(ld.Connection)
    with pytest.raises(AttributeError):
        con.fetchall()


def test_table_names_are_those_of_the_query(tmp_path: Path) -> None:
    con = ld.connect(str(tmp_path))
    con.execute("CREATE TABLE t AS SELECT 1 AS a; CREATE TABLE memory.n AS FROM t")
    assert con.get_table_names("SELECT * FROM t") == {"t"}
    assert con.get_table_names("FROM main.t JOIN n ON true", qualified=True) == {"main.t", "n"}


def test_errors_name_the_native_database_of_a_file(tmp_path: Path) -> None:
    con = ld.connect(str(tmp_path / "lake"), str(tmp_path / "own.duckdb"))
    for sql, remedy in {
        "CREATE SEQUENCE sq": "CREATE SEQUENCE own.main.sq",
        "CREATE TEMP TABLE tt AS SELECT 1 AS a; CREATE VIEW v AS FROM tt": "CREATE VIEW own.main.v",
    }.items():
        with pytest.raises(UnsupportedError, match=remedy):
            con.execute(sql)
    con.close()


def test_a_database_file_is_open_on_one_connection_of_a_process(tmp_path: Path) -> None:
    con = ld.connect(tmp_path / "lake", tmp_path / "own.duckdb")
    con.execute("CREATE TABLE t AS SELECT 1 AS a")
    with pytest.raises(UnsupportedError, match=r"use the cursor\(\) of that connection, or close it"):
        ld.connect(tmp_path / "lake", tmp_path / "own.duckdb")
    assert con.cursor().execute("FROM t").fetchall() == [(1,)]
    con.close()
    with ld.connect(tmp_path / "lake", tmp_path / "own.duckdb") as again:
        assert again.execute("FROM t").fetchall() == [(1,)]
