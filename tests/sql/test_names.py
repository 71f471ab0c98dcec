"""A name resolves in SQL like in DuckDB, and errors equal those of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.run import semi_join_pushdown
from lance_duck.duck.statement.identifiers import parts_of_name


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch) -> ld.Connection:
    """Tables `trips` and `odd name`, with an index; every route is worth it for tables of any size."""
    for name in ("trips", "odd name"):
        rows = pa.table(
            {"id": range(100), "s": ["lance"] * 100, "vec": pa.array([[1.0, 2.0]] * 100, pa.list_(pa.float32(), 2))}
        )
        ld.write_dataset(rows, tmp_path / f"{name}.lance").create_scalar_index("id", "BTREE")
    for name in ("LARGE", "PER_KEY", "SMALLER", "SELECTIVE"):
        monkeypatch.setattr(semi_join_pushdown, name, 0)
    monkeypatch.setattr(ld.LanceDataset, "index_estimate", lambda *_: 1)
    return connect(tmp_path)


ROUTES = [
    "SELECT s FROM {t} WHERE id = 3",
    "SELECT any_value(s) FROM {t}",
    "SELECT s FROM {t} ORDER BY array_distance(vec, [1, 2]::FLOAT[2]), id LIMIT 1",
    "SELECT {a}.s FROM {t} JOIN (VALUES (3)) v(id) ON {a}.id = v.id",
    "SELECT m.s FROM (SELECT 1) one, LATERAL (SELECT s FROM {t} WHERE id = 3) m",
    "PREPARE p AS SELECT s FROM {t} WHERE id = 3; EXECUTE p",
]


def said(con: Any, name: str, sql: str) -> str:
    """Return the rows that a statement finds, or its error."""
    try:
        *first, last = sql.format(t=name, a=name.rpartition(".")[2]).split("; ")
        for statement in first:
            con.execute(statement)
        return str(con.execute(last).fetchone()[0])
    except duckdb.CatalogException as error:
        return str(error)
    finally:
        if "PREPARE" in sql:
            con.execute("DEALLOCATE PREPARE p")


@pytest.mark.parametrize("sql", ROUTES)
def test_a_name_outside_the_search_path_is_unknown(con: ld.Connection, sql: str) -> None:
    assert said(con, "trips", sql) == "lance"
    con.execute("USE memory")
    for name in ("trips", "Trips", "main.trips", '"trips"', "memory.trips", "memory.main.trips"):
        error = said(con, name, sql)
        assert "Table with name" in error, name
        assert 'Did you mean "lance.trips"?' in error, name
    assert said(con, "lance.trips", sql) == said(con, "lance.main.trips", sql) == "lance"
    con.execute("SET search_path = 'lance.main'")
    assert said(con, "trips", sql) == said(con, "LANCE.Trips", sql) == "lance"


@pytest.mark.parametrize("sql", ROUTES)
def test_native_tables_hide_later_entries_of_the_search_path(con: ld.Connection, tmp_path: Path, sql: str) -> None:
    mine = "SELECT 3 AS id, '{}' AS s, [1, 2]::FLOAT[2] AS vec"
    con.execute(f"ATTACH '{tmp_path}/other.db' AS other")
    con.execute(f"CREATE TABLE other.trips AS {mine.format('other')}")
    assert [said(con, name, sql) for name in ("trips", "other.trips", "lance.trips")] == ["lance", "other", "lance"]
    con.execute("USE other")
    assert said(con, "trips", sql) == said(con, "main.trips", sql) == "other"
    con.execute("SET search_path = 'lance,other'")
    assert said(con, "trips", sql) == "lance"
    con.execute("SET search_path = 'other.main,lance.main'")
    assert said(con, "trips", sql) == "other"
    con.execute(f"CREATE TEMP TABLE trips AS {mine.format('temp')}")
    assert [said(con, name, sql) for name in ("trips", "other.trips", "lance.main.trips")] == ["temp", "other", "lance"]
    con.execute("CREATE SCHEMA memory.aside")
    con.execute(f"CREATE TABLE memory.aside.trips AS {mine.format('aside')}")
    con.execute("DROP TABLE temp.trips")
    con.execute("USE memory.aside")
    assert said(con, "trips", sql) == said(con, "aside.trips", sql) == "aside"


@pytest.mark.parametrize("sql", ROUTES[:5])
def test_caller_variables_are_read_if_no_table_matches(con: ld.Connection, sql: str) -> None:
    con.execute("USE memory")
    trips = pa.table({"id": [3], "s": ["variable"], "vec": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    text = sql.format(t="trips", a="trips")
    assert con.execute(text).fetchone() == ("variable",)
    assert con.sql(text).fetchone() == ("variable",) if hasattr(duckdb.DuckDBPyRelation, "fetchone") else True
    assert trips.num_rows == 1


def test_named_queries_hide_tables(con: ld.Connection) -> None:
    for sql in ROUTES[:5]:
        text = "WITH trips AS (SELECT 3 AS id, 'named' AS s, [1, 2]::FLOAT[2] AS vec) " + sql.format(
            t="trips", a="trips"
        )
        assert con.execute(text).fetchall() == [("named",)]


def test_at_is_supported_only_for_lance_tables(con: ld.Connection) -> None:
    travel = "SELECT count(*) FROM {} AT (VERSION => 1)"
    for name in ("trips", "lance.trips", '"odd name"', 'lance.main."odd name"'):
        assert con.execute(travel.format(name)).fetchall() == [(100,)]
    con.execute("CREATE TEMP TABLE trips AS SELECT 1 AS id")
    with pytest.raises(duckdb.BinderException, match="time travel"):
        con.execute(travel.format("trips"))
    assert con.execute(travel.format("lance.trips")).fetchall() == [(100,)]
    con.execute("DROP TABLE temp.trips")
    con.execute("USE memory")
    with pytest.raises(duckdb.BinderException, match="time travel"):
        con.execute(travel.format("trips"))


def test_a_schema_named_like_the_database_makes_names_ambiguous(con: ld.Connection) -> None:
    con.execute("CREATE SCHEMA memory.lance")
    con.execute("USE memory")
    with pytest.raises(duckdb.BinderException, match="Ambiguous"):
        con.execute("SELECT s FROM lance.trips WHERE id = 3")
    assert con.execute("SELECT s FROM lance.main.trips WHERE id = 3").fetchall() == [("lance",)]


def test_connection_table_resolves_names_like_sql(con: ld.Connection) -> None:
    assert con.table("trips").aggregate("count(*)").fetchall() == [(100,)]
    con.execute("CREATE TEMP TABLE trips AS SELECT 1 AS id")
    assert con.table("trips").fetchall() == [(1,)]


def test_qualified_names_are_split_as_in_sql() -> None:
    assert parts_of_name("a") == ("a",)
    assert parts_of_name('A."b.""c,"') == ("A", 'b."c,')
    assert parts_of_name("a,b") == ()
