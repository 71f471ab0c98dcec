"""ENUM columns are rejected with a cast that works. Strings that are cast back equal native ENUM columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import lance
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

REJECTED: Final = "Lance cannot store DuckDB type ENUM"
VALUES: Final = ("sad", "ok", "happy")
"""Declared values. Their order differs from the order of their letters."""


@pytest.fixture
def con(tmp_path: Path) -> Iterator[ld.Connection]:
    """A connection with the type `mood`, its native table `n` and an empty folder."""
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE TYPE memory.mood AS ENUM ('sad', 'ok', 'happy')")
        connection.execute(
            "CREATE TABLE memory.n AS "
            "SELECT i AS id, ['sad', 'ok', 'happy', NULL][1 + i % 4]::mood AS s FROM range(8) r(i)"
        )
        yield connection


NESTED: Final = {
    "s": "VARCHAR",
    "[s, NULL]": "VARCHAR[]",
    "[[s], []]": "VARCHAR[][]",
    "[s, s]::mood[2]": "VARCHAR[]",
    "{'a': s, 'b': id}": "STRUCT(a VARCHAR, b BIGINT)",
    "{'order': {'in': [s]}}": 'STRUCT("order" STRUCT("in" VARCHAR[]))',
    "{'ENUM(''x'')': id, 'a\"b': s}": 'STRUCT("ENUM(\'x\')" BIGINT, "a""b" VARCHAR)',
    "[{'a': s}]": "STRUCT(a VARCHAR)[]",
    "CASE WHEN s IS NOT NULL THEN MAP {s: [s]} END": "MAP(VARCHAR, VARCHAR[])",
    "[s]::ENUM('it''s', 'x\"y', 'ok, happy)', 'sad', 'ok', 'happy')[]": "VARCHAR[]",
}
"""Values that contain an ENUM, and the type that stores them."""
NAMES: Final = ("s", "order", 'a "b"', "Ünï")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", NESTED)
def test_the_cast_that_the_error_names_works(con: ld.Connection, tmp_path: Path, value: str, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    query = f"SELECT id, {value} AS {quoted} FROM n"
    with pytest.raises(UnsupportedError, match=REJECTED) as error:
        con.execute(f"CREATE TABLE lance.t AS {query}")
    assert error.value.where == f"column {name!r}"
    cast = str(error.value.remedy).removeprefix("write ").partition(", or declare")[0]
    assert cast == f"{quoted}::{NESTED[value]}"
    assert list(tmp_path.iterdir()) == []
    con.execute(f"CREATE TABLE lance.t AS SELECT id, {cast} AS {quoted} FROM ({query})")
    expected = con.execute(f"SELECT {quoted}, typeof({quoted}) FROM (SELECT {cast} AS {quoted}, id FROM ({query}))")
    rows = sorted(expected.fetchall(), key=repr)
    assert sorted(con.execute(f"SELECT {quoted}, typeof({quoted}) FROM lance.t").fetchall(), key=repr) == rows


UNNAMED: Final = {
    "'ok'::mood": "VARCHAR",
    "[s]": "VARCHAR[]",
    "s::mood": "VARCHAR",
    "([s])[1]": "VARCHAR",
    "CASE WHEN id > 1 THEN s END": "VARCHAR",
    "(SELECT max(s) FROM n)": "VARCHAR",
    "coalesce(s, s)": "VARCHAR",
    "{'a': s}": "STRUCT(a VARCHAR)",
}
"""Expressions without a name, and the type that stores them."""


@pytest.mark.parametrize("value", UNNAMED)
def test_the_error_of_an_unnamed_expression_says_to_cast_and_name_it(con: ld.Connection, value: str) -> None:
    with pytest.raises(UnsupportedError, match=REJECTED) as error:
        con.execute(f"CREATE TABLE lance.t AS SELECT id, {value} FROM n")
    assert str(error.value.remedy).startswith(f"cast the expression to {UNNAMED[value]} and name it; ")
    con.execute(f"CREATE TABLE lance.t AS SELECT id, ({value})::{UNNAMED[value]} AS x FROM n")


@pytest.mark.parametrize("value", ["row(s, 1)", "[row(s, 1)]", "{'a': row(1, s)}"])
def test_the_error_of_a_tuple_has_a_cast_only_if_duckdb_can_parse_it(con: ld.Connection, value: str) -> None:
    with pytest.raises(UnsupportedError, match=REJECTED) as error:
        con.execute(f"CREATE TABLE lance.t AS SELECT {value} AS r FROM n")
    remedy = str(error.value.remedy)
    if duckdb.__version__.startswith("1."):
        assert remedy.startswith("cast the values of the ENUM to VARCHAR, in a struct with named fields; ")
    else:
        cast = remedy.removeprefix("write ").partition(", or declare")[0]
        con.execute(f"CREATE TABLE lance.t AS SELECT {cast} AS r FROM (SELECT {value} AS r FROM n)")


CREATES: Final = (
    "CREATE TABLE lance.t (id BIGINT, s mood)",
    "CREATE TABLE lance.t (s ENUM('a', 'b') NOT NULL)",
    "CREATE TABLE lance.t (s STRUCT(a mood[]))",
    "CREATE TABLE IF NOT EXISTS lance.t (id BIGINT, s mood)",
    "CREATE OR REPLACE TABLE lance.t (id BIGINT, s mood)",
    "CREATE TABLE lance.t AS FROM n",
    "CREATE TABLE lance.t AS FROM n WITH NO DATA",
    "CREATE TABLE lance.t (a, s) AS FROM n",
    "CREATE TABLE lance.t WITH (vector_columns = 'v') AS SELECT s, [1.5, 2] AS v FROM n",
    "CREATE TABLE lance.t WITH (data_storage_version = '2.0') AS FROM n",
    "CREATE TABLE lance.t LIKE n",
    "CREATE TABLE '{}/t.lance' AS FROM n",
    "COPY n TO '{}/t.lance'",
    "COPY n (s) TO '{}/t.lance' (FORMAT lance, MODE append)",
    "COPY (FROM n) TO '{}/t.lance' (FORMAT lance)",
)


@pytest.mark.parametrize("sql", CREATES)
def test_statements_that_create_a_table_reject_enums(con: ld.Connection, tmp_path: Path, sql: str) -> None:
    with pytest.raises(UnsupportedError, match=f"column 's': {REJECTED}; write \"s\"::VARCHAR|STRUCT"):
        con.execute(sql.format(tmp_path))
    assert list(tmp_path.iterdir()) == []
    con.execute("CREATE TABLE lance.t AS SELECT 1 AS id, 'x' AS s")  # the name is free
    assert con.execute("FROM lance.t").fetchall() == [(1, "x")]


def test_prepared_statements_reject_enums(con: ld.Connection, tmp_path: Path) -> None:
    sql = "CREATE TABLE lance.t AS SELECT $1::mood AS s, {'a': [$1::mood]} AS st"
    with pytest.raises(UnsupportedError, match=f"column 's': {REJECTED}"):
        con.execute(sql, ["ok"])
    con.execute(f"PREPARE made AS {sql}")
    with pytest.raises(UnsupportedError, match=f"column 's': {REJECTED}"):
        con.execute("EXECUTE made('ok')")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "action",
    [
        "ADD COLUMN e mood",
        "ADD COLUMN e mood[] DEFAULT ['sad']",
        "ADD COLUMN e ENUM('a', 'b') DEFAULT 'a'",
        "ADD COLUMN IF NOT EXISTS e STRUCT(a mood)",
        "ADD COLUMN st.e mood",
        "ADD COLUMN st.e mood DEFAULT 'ok'",
        "ALTER COLUMN e2 TYPE mood",
        "ALTER e2 SET DATA TYPE ENUM('happy')",
    ],
)
def test_alter_table_rejects_enums(con: ld.Connection, action: str) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT id, s::VARCHAR AS e2, {'a': 1} AS st FROM n")
    before = con.execute("FROM lance.t ORDER BY id").fetchall()
    with pytest.raises(UnsupportedError, match=rf"column '(e2?|st\.e)': {REJECTED}"):
        con.execute(f"ALTER TABLE lance.t {action}")
    assert con.execute("FROM lance.t ORDER BY id").fetchall() == before
    con.execute("ALTER TABLE lance.t ADD COLUMN IF NOT EXISTS e2 mood")  # does nothing, like on native tables
    assert con.execute("FROM lance.t ORDER BY id").fetchall() == before


def test_python_rejects_enums_of_relations(con: ld.Connection, tmp_path: Path) -> None:
    table = ld.write_dataset(pa.table({"id": range(8)}), tmp_path / "t.lance")
    path, new = table.uri, tmp_path / "new.lance"
    calls: dict[str, Callable[[], Any]] = {
        "create": lambda: ld.write_dataset(con.sql("FROM n"), new),
        "create by append": lambda: ld.write_dataset(con.sql("FROM n"), new, mode="append"),
        "overwrite": lambda: ld.write_dataset(con.sql("FROM n"), path, mode="overwrite"),
        "vectors": lambda: ld.write_dataset(con.sql("SELECT s, [1.5] AS v FROM n"), new, vector_columns=["v"]),
        "list": lambda: ld.write_dataset([con.sql("FROM n")], new),
        "function": lambda: ld.write_dataset(lambda: con.sql("FROM n"), new),
        "result of a UDF": lambda: table.add_columns(lambda batch: con.sql("SELECT s FROM n")),
        "fragment": lambda: ld.LanceFragment.create(new, con.sql("FROM n")),
        "columns": lambda: table.add_columns(con.sql("SELECT s FROM n")),
        "join": lambda: table.merge(con.sql("FROM n"), "id"),
        "expression": lambda: table.add_columns({"s": "CASE WHEN id > 1 THEN 'a'::ENUM('b', 'a') END"}),
        "struct": lambda: table.add_columns({"s": "{'e': 'a'::ENUM('b', 'a')}"}),
        "namespace": lambda: ld.connect_namespace("dir", {"root": str(tmp_path)}).create_table(
            "new", con.sql("FROM n")
        ),
    }
    for name, call in calls.items():
        with pytest.raises(UnsupportedError, match=f"column 's': {REJECTED}"):
            call()
        assert not list(new.glob("_versions/*")), name
    assert ld.dataset(path).version == 1
    assert ld.dataset(path).schema == table.schema


def test_enums_are_written_into_columns_of_strings(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT id, s::VARCHAR AS s, [s]::VARCHAR[] AS l FROM n LIMIT 0")
    con.execute("CREATE TABLE memory.theirs AS SELECT id, s::VARCHAR AS s, [s]::VARCHAR[] AS l FROM n LIMIT 0")
    frame = pd.DataFrame({"id": [20, 21], "s": pd.Categorical(["x", None]), "l": [["y"], None]})
    for table in ("lance.t", "theirs"):
        con.execute(f"INSERT INTO {table} SELECT id, s, [s] FROM n")
        con.execute(f"INSERT INTO {table} BY NAME SELECT s, id + 10 AS id FROM n WHERE id < 3")
        con.append(table, frame)
        con.execute(f"UPDATE {table} SET s = 'ok'::mood, l = ['sad'::mood] WHERE id = 11")
        con.execute(
            f"MERGE INTO {table} AS t USING (SELECT id + 6 AS id, s FROM n) AS q ON t.id = q.id "
            "WHEN MATCHED THEN UPDATE SET s = q.s WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, q.s)"
        )
        con.execute(f"DELETE FROM {table} WHERE s = 'happy'::mood AND id > 2")
        with pytest.raises(duckdb.ConversionException):
            con.execute(f"INSERT INTO {table} SELECT 30, 'angry'::mood, NULL")
    table = ld.dataset(tmp_path / "t.lance")
    table.insert(con.sql("SELECT 40 AS id, 'sad'::mood AS s"))
    table.merge_insert("id").when_matched_update_all().execute(con.sql("SELECT 40 AS id, 'ok'::mood AS s"))
    con.execute("INSERT INTO theirs VALUES (40, 'ok', NULL)")
    found, expected = (con.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in ("lance.t", "theirs"))
    assert found == expected
    assert len(found) > 10


def test_frames_keep_their_dictionaries(con: ld.Connection, tmp_path: Path) -> None:
    frames = {
        "pandas": pd.DataFrame({"s": pd.Categorical(["a", "b"], categories=["b", "a"], ordered=True)}),
        "polars": pl.DataFrame({"s": pl.Series(["a", "b"], dtype=pl.Enum(["b", "a"]))}),
        "arrow": pa.table({"s": pa.array(["a", "b"]).dictionary_encode()}),
    }
    for name, frame in frames.items():
        ld.write_dataset(frame, tmp_path / f"{name}.lance")
        assert con.execute(f"SELECT s, typeof(s) FROM lance.{name}").fetchall() == [("a", "VARCHAR"), ("b", "VARCHAR")]
        dataset = ld.dataset(tmp_path / f"{name}.lance")
        dataset.add_columns({"copy": "s", "text": '"s"', "struct": "{'a': [s]}"})
        assert pa.types.is_dictionary(dataset.schema.field("copy").type)
    frame = frames["pandas"]
    assert str(con.sql("FROM frame").types[0]).startswith("ENUM")
    with pytest.raises(UnsupportedError, match=REJECTED):
        con.execute("CREATE TABLE lance.t AS FROM frame")
    con.execute("CREATE TABLE lance.t AS SELECT s::VARCHAR AS s FROM frame")


CONDITIONS: Final = (
    "{s} = '{v}'",
    "{s} <> '{v}'",
    "{s} < '{v}'",
    "{s} < '{v}'::mood",
    "{s} >= '{v}'::mood",
    "{s} = '{v}'::mood",
    "'{v}'::mood > {s}",
    "{s} BETWEEN '{v}'::mood AND '{v}'::mood",
    "{s} IN ('{v}', '{v}')",
    "{s} IN ('{v}'::mood, '{v}'::mood)",
    "{s} NOT IN ('{v}'::mood)",
    "{s} IS NOT DISTINCT FROM '{v}'::mood",
    "{s} IS NULL",
    "{s} LIKE '%a%'",
    "enum_code({s}) > 0",
    "greatest({s}, '{v}'::mood) = {s}",
    "{s} = (SELECT max(n.s) FROM n)",
    "{s} < ANY (SELECT n.s FROM n WHERE n.id < 3)",
    "t.id = {i} AND {s} < '{v}'::mood",
    "t.id IN ({i}, {i}) AND {s} >= '{v}'::mood",
)
QUERIES: Final = (
    "SELECT id, {s} FROM {t} WHERE {c} ORDER BY ALL",
    "SELECT id FROM {t} WHERE {c} ORDER BY {s} DESC NULLS LAST, id LIMIT 3",
    "SELECT min({s}), max({s}), count({s}), count(DISTINCT {s}) FROM {t} WHERE {c}",
    "SELECT max({s}), min({s}) FROM {t}",
    "SELECT DISTINCT {s} AS d FROM {t} WHERE {c} ORDER BY d",
    "SELECT {s} AS k, count(*), arg_max({s}, id) FROM {t} WHERE {c} GROUP BY k ORDER BY k",
    "SELECT id, rank() OVER (ORDER BY {s}), lag({s}) OVER (ORDER BY {s}, id) FROM {t} WHERE {c} ORDER BY id",
    "SELECT id, max({s}) OVER (ORDER BY id) FROM {t} ORDER BY id",
    "SELECT t.id, u.id FROM {t} JOIN n AS u ON {s} < u.s AND {c} ORDER BY ALL",
    "SELECT t.id, u.id FROM {t} JOIN n AS u ON {s} = u.s WHERE {c} ORDER BY ALL",
    "SELECT t.id FROM {t} WHERE EXISTS (SELECT 1 FROM n AS u WHERE u.s > {s}) AND {c} ORDER BY ALL",
    "WITH q AS (SELECT id, {s} AS s FROM {t} WHERE {c}) SELECT a.id, b.id FROM q a JOIN q b ON a.s < b.s ORDER BY ALL",
    "SELECT list({s} ORDER BY {s}), typeof(min({s})), enum_range(min({s})) FROM {t} WHERE {c}",
    "SELECT {s}::VARCHAR || '!' AS x, {s} < '{v}'::mood FROM {t} ORDER BY ALL",
    "SELECT id FROM {t} WHERE NOT ({c}) OR ({c}) IS NULL ORDER BY ALL",
)


def filled(template: str, random: Random) -> str:
    """Return a query with random conditions and values."""
    query = re.sub(r"{c}", lambda _: random.choice(CONDITIONS), template)
    query = re.sub(r"{v}", lambda _: random.choice(VALUES), query)
    return re.sub(r"{i}", lambda _: str(random.randrange(45)), query)


@pytest.mark.parametrize("index", [None, "BTREE", "BITMAP"])
@pytest.mark.parametrize("seed", range(2))
def test_strings_that_are_cast_back_equal_a_native_enum(
    con: ld.Connection, tmp_path: Path, index: str | None, seed: int
) -> None:
    random = Random(f"{index} {seed}")
    con.execute(
        "CREATE TABLE lance.strings AS SELECT i AS id, ['happy', 'sad', NULL, 'ok'][1 + i * i % 7 % 4] AS s "
        "FROM range(40) r(i)"
    )
    lance.dataset(tmp_path / "strings.lance").insert(pa.table({"id": [40, 41, 42], "s": ["sad", "happy", None]}))
    for column in ("s", "id") if index else ():
        con.execute(f"CREATE INDEX {column}_index ON lance.strings USING {index} ({column})")
    con.execute("CREATE TABLE memory.enums AS SELECT id, s::mood AS s FROM lance.strings")
    con.execute("CREATE VIEW memory.moods AS SELECT * REPLACE (s::mood AS s) FROM lance.strings")
    for _ in range(50):
        sql = filled(random.choice(QUERIES), random)
        expected = con.execute(sql.replace("{s}", "t.s").replace("{t}", "enums AS t")).fetchall()
        for table, column in (("moods", "t.s"), ("lance.strings", "t.s::mood")):
            text = sql.replace("{s}", column).replace("{t}", f"{table} AS t")
            assert con.execute(text).fetchall() == expected, text


def test_another_writers_values_fail_only_in_the_cast(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT id, s::VARCHAR AS s FROM n")
    lance.dataset(tmp_path / "t.lance").insert(pa.table({"id": [8], "s": ["angry"]}))
    assert con.execute("SELECT s FROM lance.t WHERE id = 8").fetchall() == [("angry",)]
    with pytest.raises(duckdb.ConversionException, match="angry"):
        con.execute("SELECT max(s::mood) FROM lance.t")
    assert con.execute("SELECT max(try_cast(s AS mood)) FROM lance.t").fetchall() == [("happy",)]
