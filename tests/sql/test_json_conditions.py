"""Conditions on JSON values reach JSON indexes, and give what native tables give."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.json_conditions import VALUES, conditions

import lance_duck as ld
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

KINDS = sorted(VALUES)


@pytest.fixture(scope="module")
def con(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ld.Connection]:
    folder = tmp_path_factory.mktemp("json")
    with ld.connect(folder) as connection:
        for kind in KINDS:
            values = [*VALUES[kind][0], *VALUES[kind][0], None]
            texts = [
                *(json.dumps({"a": value}) for value in ([1.5, *values] if kind == "float" else values)),
                *[None, "{}"] * 200,  # so that the index leaves few rows
            ]
            rows = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "j": pa.array(texts, pa.json_())})
            ld.write_dataset(rows, folder / f"{kind}.lance", max_rows_per_file=150)
            with_options = "WITH (path = '$.a', target_index_type = 'btree')"
            connection.execute(f"CREATE INDEX ON lance.{kind} USING JSON (j) {with_options}")
            connection.execute(f"CREATE TABLE memory.main.{kind} AS FROM lance.{kind}")
        yield connection


def plan(connection: ld.Connection, sql: str) -> str:
    return "\n".join(text for key, text in connection.execute(f"EXPLAIN {sql}").fetchall() if key == "lance_plan")


def answered(connection: ld.Connection, sql: str) -> str:
    try:
        return plan(connection, sql)
    except Exception as error:  # DuckDB 1 reads id = 0 AND j as a boolean
        return str(error)


def answer(connection: ld.Connection, sql: str) -> object:
    try:
        return connection.execute(sql).fetchall()
    except Exception as error:
        return type(error)


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_random_conditions_give_what_native_tables_give(con: ld.Connection, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    condition = data.draw(conditions(kind)).replace("json_get_", "json_extract_string_of_")
    if "json_extract_string_of_" in condition:  # a function of filters, not of SQL
        return
    both = [f"SELECT id FROM {database}.{kind} WHERE {condition} ORDER BY id" for database in ("lance", "memory.main")]
    assert answer(con, both[0]) == answer(con, both[1]), condition


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(j ->> '$.a' AS BIGINT) = 7",
        "(t.j ->> '$.a')::BIGINT IN (7, 8)",
        "json_extract(j, '$.a')::BIGINT = 7",
        "id < 100 AND (j ->> 'a')::BIGINT = 7",
        "TRY_CAST(json_extract_string(j, 'a') AS BIGINT) > 6",
    ],
)
def test_the_plan_shows_the_index(con: ld.Connection, condition: str) -> None:
    sql = f"SELECT id FROM int AS t WHERE {condition}"
    assert "by j_idx (Json" in plan(con, sql)
    assert "which DuckDB then checks on the remaining rows" in plan(con, sql)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("j ->> '$.a' = '7'", "has values of type int64, not string"),
        ("(j ->> 'a.b')::BIGINT = 7", 'no JSON index on j at $."a.b" for int64'),
        ("(j ->> '$.a'::VARCHAR)::BIGINT = 7", "without an index"),
    ],
)
def test_the_plan_says_why_the_index_is_not_used(con: ld.Connection, condition: str, reason: str) -> None:
    found = plan(con, f"SELECT id FROM int WHERE {condition}")
    assert "by j_idx" not in found
    assert reason in found


def test_an_arrow_after_and_is_only_read_by_duckdb_2(con: ld.Connection) -> None:
    sql = "SELECT id FROM text WHERE id = 0 AND j ->> '$.a' = 'x'"
    assert ("by j_idx" in answered(con, sql)) == SPEAKS_SOURCE
    assert answer(con, sql) == answer(con, sql.replace("FROM text", "FROM memory.main.text"))


def test_changes_find_their_rows_through_the_index(tmp_path: Path) -> None:
    texts = [json.dumps({"a": i}) for i in range(6)]
    ld.write_dataset(pa.table({"id": range(6), "j": pa.array(texts, pa.json_())}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as con:
        con.execute("CREATE INDEX by_a ON t USING JSON (j) WITH (path = 'a', target_index_type = 'bitmap')")
        con.execute("UPDATE t SET id = 100 WHERE (j ->> '$.a')::BIGINT = 3")
        con.execute("DELETE FROM t WHERE (j ->> '$.a')::BIGINT < 2")
        assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(2,), (4,), (5,), (100,)]
