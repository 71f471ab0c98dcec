"""DuckDB's tokenizer runs once per statement."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld

READS = [
    "SELECT g, sum(id) AS s FROM t WHERE g > 2 GROUP BY g",
    "SELECT t.id, x FROM t JOIN u USING (id) WHERE x > g",
    "SELECT count(*) AS n FROM t AT (VERSION => 1)",
    "WITH a AS (FROM t WHERE id < 9) SELECT max(id) FROM a",
    "EXPLAIN SELECT g + 1 FROM t",
    "SELECT * FROM t, u WHERE t.id = u.id ORDER BY u.x DESC LIMIT 2",
    "DESCRIBE t",
    "SELECT rowid, * FROM t AT (VERSION => 1)",
    "SELECT score(t) FROM t WHERE match(s, 'duck')",
    "SELECT t.rowid, t.* FROM t JOIN u USING (id) WHERE match(t.s, 'duck') AND x > 1",
    "SELECT * FROM (SELECT id, s AS words FROM t) AS q WHERE match(q.words, 'duck')",
    "SELECT rowid FROM lance_scan('t', version = 1)",
    "SELECT current_setting('lance_nearest') AS n, id FROM t",
    "SELECT g FROM t WHERE id = 7 AND g IN (1, 7)",
    "BEGIN; SELECT rowid FROM lance.t; ROLLBACK",
]
CHANGES = [
    "UPDATE t SET g = g + 1 WHERE id = 5",
    "DELETE FROM t WHERE id = 6",
    "INSERT INTO u VALUES (100, 3)",
    "INSERT INTO u SELECT id + 200, g FROM t WHERE id < 3",
    "MERGE INTO u USING (SELECT 1 AS id, 4 AS x) AS s ON u.id = s.id WHEN MATCHED THEN UPDATE SET x = s.x",
    "CREATE TABLE lance.w AS SELECT id FROM t",
    "ALTER TABLE u ADD COLUMN y INTEGER",
    "BEGIN; DELETE FROM t WHERE id = 7; ROLLBACK",
]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[ld.Connection]:
    ld.write_dataset(pa.table({"id": range(10), "g": range(10), "s": ["duck", "lake"] * 5}), str(tmp_path / "t.lance"))
    ld.write_dataset(pa.table({"id": range(10), "x": range(10)}), str(tmp_path / "u.lance"))
    with ld.connect(str(tmp_path)) as connection:
        yield connection


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that DuckDB's tokenizer gets."""
    texts: list[str] = []
    tokenize = duckdb.tokenize

    def counted(text: str) -> object:
        texts.append(text)
        return tokenize(text)

    monkeypatch.setattr(duckdb, "tokenize", counted)
    return texts


@pytest.mark.parametrize("sql", READS)
def test_a_reading_statement_is_tokenized_once(con: ld.Connection, cut: list[str], sql: str) -> None:
    sql = f"{sql} /* read once */" if "id = 7" not in sql else sql
    con.execute(sql).fetchall()
    con.execute(sql).fetchall()
    assert cut == [sql]


@pytest.mark.parametrize("sql", CHANGES)
def test_a_changing_statement_is_tokenized_once(con: ld.Connection, cut: list[str], sql: str) -> None:
    """Statements built from its clauses are tokenized as well, but they are different texts."""
    sql = f"{sql} /* changes once */"
    con.execute(sql).fetchall()
    assert (cut[0], cut.count(sql)) == (sql, 1)
    assert len(cut) == len(set(cut))


def test_a_statement_without_lance_tables_is_not_tokenized(con: ld.Connection, cut: list[str]) -> None:
    assert con.execute("SELECT 40 + 2 AS answer").fetchall() == [(42,)]
    assert not cut


@pytest.mark.parametrize(
    "first",
    ["SHOW TABLES", "EXPLAIN ANALYZE SELECT 1", "explain/* */analyze SELECT 1", "SELECT 1", "FROM t", "DESCRIBE t"],
)
def test_the_last_of_several_statements_becomes_the_relation(con: ld.Connection, first: str) -> None:
    """Rows of the first statement are dropped, because DuckDB 2 would keep the connection busy."""
    assert con.sql(f"{first}; SELECT max(id) FROM lance.u").fetchall() == [(9,)]
    assert con.sql("SELECT 1").fetchall() == [(1,)]
