"""Values that a change computes as its source is read, and sources of a table's own types, as in DuckDB's own table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

import lance_duck as ld

ROWS = (
    "SELECT i::INTEGER AS id, (i % 5)::TINYINT AS a, ['x', 'y', NULL][1 + i % 3] AS s, i * 1.5 AS d FROM range(12) r(i)"
)
OTHER = "SELECT i::INTEGER AS id, (i * 100)::INTEGER AS big, 'n' || i AS s FROM range(20) r(i)"
STATEMENTS = [
    # values of unmatched rows may exceed the column type
    "MERGE INTO {t} USING o ON {t}.id = o.id AND o.big < 100 WHEN MATCHED THEN UPDATE SET a = o.big + 1",
    "MERGE INTO {t} USING (FROM o WHERE id > 8) o ON {t}.id = o.id WHEN MATCHED THEN UPDATE SET a = o.big - 890",
    "MERGE INTO {t} USING (SELECT id + 8 AS id, big FROM o) o USING (id) WHEN MATCHED THEN UPDATE SET a = o.big % 100",
    "MERGE INTO {t} USING (SELECT id + 9 AS id, big, s FROM o) o USING (id) "
    "WHEN MATCHED THEN UPDATE SET a = 1 + 1, s = 'same' "
    "WHEN NOT MATCHED THEN INSERT (id, s, d) VALUES (o.id, o.s || '!', o.big * 2)",
    "MERGE INTO {t} q USING o USING (id) WHEN MATCHED THEN UPDATE SET a = CASE WHEN o.big > 300 THEN 1 ELSE q.a END",
    "MERGE INTO {t} USING (SELECT id, NULL AS s FROM o LIMIT 2) o USING (id) "
    "WHEN MATCHED THEN UPDATE SET s = o.s || 'x'",
    "WITH o AS (SELECT 3 AS id, 4 AS v) MERGE INTO {t} USING o USING (id) WHEN MATCHED THEN UPDATE SET a = o.v * 2",
    "MERGE INTO {t} USING o USING (id) WHEN MATCHED THEN UPDATE SET a = o.big * 1000",
    "MERGE INTO {t} USING o USING (id) WHEN MATCHED THEN UPDATE SET a = o.missing + 1",
    "MERGE INTO {t} USING o USING (id) WHEN MATCHED THEN UPDATE SET a = o.s + 1",
    "MERGE INTO {t} USING (SELECT nextval('numbers')::INTEGER AS id) o USING (id) "
    "WHEN MATCHED THEN UPDATE SET s = 'n' || o.id WHEN NOT MATCHED THEN INSERT (id) VALUES (o.id + 1)",
    # columns of the same types by other names and in another order
    "INSERT INTO {t} SELECT * FROM {t} WHERE id < 3",
    "INSERT INTO {t} SELECT id + 100 AS x, a AS x, s AS y, d FROM {t} WHERE id = 4",
    "INSERT INTO {t} (s, id) SELECT s, id FROM {t} WHERE id = 5",
    "INSERT INTO {t} BY NAME SELECT d, id FROM {t} WHERE id = 6",
    "INSERT INTO {t} (id, s) SELECT NULL, s FROM {t} WHERE id = 7",
    "WITH c AS (FROM {t} WHERE id = 8) INSERT INTO {t} FROM c",
    "INSERT INTO {t} SELECT id, a, s FROM {t}",
]


@pytest.fixture
def both(tmp_path: Path) -> tuple[ld.Connection, duckdb.DuckDBPyConnection]:
    ours, native = ld.connect(tmp_path), duckdb.connect()
    for con, place, own in ((ours, "lance.t", "memory."), (native, "t", "")):
        con.execute(f"CREATE TABLE {place} AS {ROWS}")
        con.execute(f"CREATE TABLE {own}o AS {OTHER}")
        con.execute(f"CREATE SEQUENCE {own}numbers START 9")
    return ours, native


def test_changes_have_the_same_result_as_on_a_native_table(both: tuple[Any, Any]) -> None:
    for statement in STATEMENTS:
        outcomes = [_outcome(con, statement.format(t="t")) for con in both]
        assert outcomes[0] == outcomes[1], statement


def test_parameters_are_evaluated_with_the_source(both: tuple[Any, Any]) -> None:
    merge = "MERGE INTO t USING o USING (id) WHEN MATCHED THEN UPDATE SET s = o.s || $text, d = $number * o.big"
    for con in both:
        con.execute(merge, {"text": "?", "number": 3})
    assert _rows(both[0]) == _rows(both[1])


def _outcome(con: Any, sql: str) -> tuple[Any, list[Any]]:
    try:
        answer = con.execute(sql).fetchall()
    except (duckdb.Error, ld.LanceDuckError):
        answer = "refused"
    return answer, _rows(con)


def _rows(con: Any) -> list[Any]:
    return sorted(map(repr, con.execute("FROM t").fetchall()))
