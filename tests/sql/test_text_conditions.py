"""Conditions on parts of texts, through an n-gram index, give what plain DuckDB gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld

Pair = tuple[ld.Connection, duckdb.DuckDBPyConnection]

WORDS = ["hello", "Hello", "yellow", "\u0130stanbul", "istanbul", "\u212aelvin", "straße", "it's", "50% off", "a_b"]


def texts(count: int) -> list[str | None]:
    rng = random.Random(4)
    return [None if rng.random() < 0.05 else " ".join(rng.choices(WORDS, k=rng.randrange(4))) for _ in range(count)]


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    table = pa.table({"id": range(600), "s": texts(600), "k": [i % 7 for i in range(600)]})
    dataset = ld.write_dataset(table.slice(0, 500), tmp_path / "t.lance", max_rows_per_file=200)
    dataset.create_scalar_index("s", "NGRAM")
    dataset.insert(table.slice(500))
    with ld.connect(tmp_path) as ours, duckdb.connect() as theirs:
        theirs.register("source", table)
        theirs.execute("CREATE TABLE t AS FROM source")
        yield ours, theirs


CONDITIONS = [
    "contains(s, 'yell')",
    "s LIKE '%ello%yel%'",
    "s LIKE 'Hel%'",
    "s ILIKE '%HELLO%'",
    "s ILIKE '%istan%'",
    "lower(s) LIKE '%kelvin%'",
    "upper(s) LIKE '%KELVIN%'",
    "regexp_matches(s, 'yel+ow')",
    "regexp_matches(s, 'HELLO', 'i')",
    "s ~ '.*(istan|Hell).*'",
    "ends_with(s, 'hello')",
    "suffix(s, 'hello')",
    "starts_with(s, 'yellow')",
    "s GLOB '*traß*'",
    "s LIKE '%50$% off%' ESCAPE '$'",
    "s NOT LIKE '%hello%'",
    "NOT contains(s, 'hello')",
    "contains(s, 'he')",
    "contains(s, 'hello') OR k = 3",
    "contains(s, 'istan') OR s ILIKE '%KELV%'",
    "contains(s, 'istan') AND k = 3 AND id % 2 = 0",
    "contains(s, 'nothing at all')",
]
SELECTS = [
    "SELECT id, s FROM t WHERE {}",
    "SELECT count(*), max(x.s) FROM t AS x WHERE {}",
    "SELECT s, count(*) FROM t WHERE {} GROUP BY s",
    "WITH c AS (SELECT id AS n FROM t WHERE {}) SELECT c.n, t.k FROM c JOIN t ON c.n = t.id",
    "SELECT id FROM t WHERE k = 2 UNION ALL SELECT id FROM t WHERE {}",
    "SELECT id FROM t AS o WHERE EXISTS (SELECT 1 FROM t AS i WHERE i.id = o.id + 1 AND ({}))",
]


def same(pair: Pair, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    found = sorted(pair[0].execute(sql, parameters).fetchall(), key=repr)
    relation = sorted(pair[0].sql(sql, params=parameters).fetchall(), key=repr)
    expected = sorted(pair[1].execute(sql, parameters).fetchall(), key=repr)
    assert found == expected
    assert relation == expected
    return found


@pytest.mark.parametrize("condition", CONDITIONS)
def test_results_equal_those_of_duckdb(pair: Pair, condition: str) -> None:
    for select in SELECTS:
        same(pair, select.format(condition))


def plan(connection: ld.Connection, sql: str) -> str:
    return "\n".join(str(row[-1]) for row in connection.execute(f"EXPLAIN ANALYZE {sql}").fetchall())


def test_plans_name_the_index(pair: Pair) -> None:
    for condition in ("contains(s, 'yell')", "s LIKE '%ello%'", "s ILIKE '%YELL%'", "regexp_matches(s, 'yel.*low')"):
        assert "s_idx (NGram" in plan(pair[0], f"SELECT id FROM t WHERE {condition}")
    for condition in ("contains(s, 'ye')", "NOT contains(s, 'yell')", "s ILIKE '%IS%'"):
        assert "s_idx" not in plan(pair[0], f"SELECT id FROM t WHERE {condition}")


def test_parameters_are_accepted(pair: Pair) -> None:
    assert same(pair, "SELECT id FROM t WHERE contains(s, ?) AND k < ?", ["yellow", 5])
    assert same(pair, "SELECT ? || s FROM t WHERE s ILIKE ?", ["x", "%YELL%"])
    assert same(pair, "SELECT id FROM t WHERE contains(s, $part)", {"part": "yellow"})
    assert same(pair, "SELECT id FROM t WHERE contains(s, ?)", [None]) == []


def test_a_user_macro_takes_precedence_over_a_function(pair: Pair) -> None:
    sql = "SELECT id FROM t WHERE contains(s, 'yellow')"
    assert 0 < len(same(pair, sql)) < 600
    for connection in pair:
        connection.execute("CREATE MACRO contains(a, b) AS a IS NULL")
    assert len(same(pair, sql)) == 600 - sum(text is not None for text in texts(600))


def test_collations_apply_to_string_conditions(pair: Pair) -> None:
    for connection in pair:
        connection.execute("SET default_collation = 'nocase'")
    same(pair, "SELECT id FROM t WHERE contains(s, 'YELLOW')")
    same(pair, "SELECT id FROM t WHERE s = 'YELLOW' AND s LIKE '%ELL%'")


def test_relations_see_later_changes(pair: Pair) -> None:
    relation = pair[0].sql("SELECT id FROM t WHERE contains(s, 'brand new')")
    assert relation.fetchall() == []
    pair[0].execute("INSERT INTO t VALUES (1000, 'a brand new row', 1)")
    assert pair[0].sql("SELECT id FROM t WHERE contains(s, 'brand new')").fetchall() == [(1000,)]


def test_conditions_find_rows_written_in_the_transaction(pair: Pair) -> None:
    ours = pair[0]
    ours.execute("BEGIN")
    ours.execute("INSERT INTO t VALUES (1000, 'a brand new row', 1)")
    assert ours.execute("SELECT id FROM t WHERE contains(s, 'brand new')").fetchall() == [(1000,)]
    ours.execute("ROLLBACK")
    assert ours.execute("SELECT id FROM t WHERE contains(s, 'brand new')").fetchall() == []


def test_the_index_is_created_in_sql(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"s": ["hello", "world"]}), tmp_path / "t.lance")
    with ld.connect(tmp_path) as connection:
        connection.execute("CREATE INDEX parts ON t USING NGRAM (s)")
        assert "parts (NGram" in plan(connection, "SELECT s FROM t WHERE contains(s, 'orl')")
        assert connection.execute("SELECT s FROM t WHERE contains(s, 'orl')").fetchall() == [("world",)]
