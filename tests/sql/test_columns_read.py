"""Changes read only the referenced columns and have the same effect as on a native table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.changes.target import AddressedTable
from lance_duck.errors import LanceDuckError

TYPES = "(id INTEGER PRIMARY KEY, a INTEGER, s VARCHAR, vec FLOAT[3], k VARCHAR NOT NULL)"
FIRST = "INSERT INTO t SELECT i, i * 2, 's' || i, [i, i, i]::FLOAT[3], 'k' FROM range(6) r(i)"
THREE = "MERGE INTO t USING (VALUES (1, 10, 'x'), (2, 20, 'y'), (9, 90, 'z')) q(id, v, w) ON t.id = q.id WHEN MATCHED "
ONE = "MERGE INTO t USING (SELECT 3 AS id, 'new' AS s, 'q' AS k) q USING (id) WHEN MATCHED AND q.s = 'no' THEN DELETE "
FEW = [
    THREE + "AND v = 10 THEN DELETE WHEN MATCHED THEN UPDATE SET a = v "
    "WHEN NOT MATCHED THEN INSERT (id, s, k) VALUES (q.id, w, 'kk')",
    THREE + "AND v = 10 THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id > 4 THEN UPDATE SET s = 'gone'",
    ONE + "WHEN MATCHED THEN UPDATE BY NAME",
    ONE.replace("3 AS id", "33 AS id") + "WHEN NOT MATCHED THEN INSERT BY NAME",
    ONE.replace("3 AS id", "33 AS id") + "WHEN NOT MATCHED THEN INSERT (id, s) VALUES (q.id, q.s)",
    ONE + "WHEN MATCHED THEN UPDATE SET \"S\" = 'vec'",
    "INSERT INTO t (id, a, k) VALUES (3, 7, 'z'), (50, 1, 'n') "
    "ON CONFLICT (id) DO UPDATE SET a = excluded.a + t.a, s = 'up'",
    "INSERT INTO t (id, a, k) VALUES (4, 7, 'z'), (50, 1, 'n') ON CONFLICT DO NOTHING",
    "INSERT INTO t (id, a, k) VALUES (3, 7, 'z'), (50, 1, 'n') "
    "ON CONFLICT (id) DO UPDATE SET a = excluded.a + t.a RETURNING id, s || 'x', t.a AS b",
    "INSERT INTO t (id, a, k) VALUES (4, 7, 'z'), (50, 1, 'n') ON CONFLICT DO NOTHING RETURNING k, s",
    "INSERT OR IGNORE INTO t (id, k) VALUES (4, 'z'), (50, 'n') RETURNING id",
    "INSERT OR IGNORE INTO t (k, id) VALUES ('z', 4), ('n', 50)",
    "UPDATE t SET s = 'r' || rowid WHERE id = 3",
    "DELETE FROM t WHERE rowid = 1",
]
ALL = [
    ONE + "WHEN MATCHED THEN UPDATE SET s = t::VARCHAR",
    ONE + "WHEN MATCHED THEN UPDATE SET s = array_to_string(t.vec, '-')",
    "UPDATE t SET s = to_json(t) WHERE rowid > 2",
    "UPDATE t SET s = concat(COLUMNS('^vec$')::VARCHAR) WHERE id = 3",
    "UPDATE t SET s = 'r' WHERE rowid = 0 RETURNING id, vec",
    "INSERT OR REPLACE INTO t (id, k) VALUES (4, 'z'), (50, 'n') RETURNING id, s",
    "INSERT OR REPLACE INTO t (id, k) VALUES (4, 'z'), (50, 'n')",
    "INSERT OR IGNORE INTO t (id, k) VALUES (4, 'z'), (50, 'n') RETURNING *",
    "INSERT OR IGNORE INTO t (id, k) VALUES (4, 'z'), (50, 'n') RETURNING t",
    "INSERT OR IGNORE INTO t (id, k) VALUES (4, 'z'), (50, 'n') RETURNING COLUMNS('e')",
]


@pytest.fixture
def native() -> Any:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t {TYPES}")
        connection.execute(FIRST)
        yield connection


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    connection = connect(tmp_path)
    connection.execute(f"CREATE TABLE lance.t {TYPES}")
    connection.execute(FIRST)
    return connection


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of columns that changes have read."""
    seen: set[str] = set()
    read = AddressedTable._reader

    def reader(self: AddressedTable, dataset: Any, wanted: pa.Schema, *rest: Any, **options: Any) -> Any:
        seen.update(wanted.names)
        return read(self, dataset, wanted, *rest, **options)

    monkeypatch.setattr(AddressedTable, "_reader", reader)
    return seen


def done(connection: Any, sql: str) -> tuple[Any, Any]:
    """Return the result of a statement and the rows after it.

    The result is None if the statement is rejected.
    """
    try:
        answer = sorted(map(repr, connection.execute(sql).fetchall()))
    except (duckdb.Error, LanceDuckError):
        answer = None
    return answer, connection.execute("FROM t ORDER BY ALL").fetchall()


@pytest.mark.parametrize("sql", FEW)
def test_an_unreferenced_column_is_not_read(con: ld.Connection, native: Any, names: set[str], sql: str) -> None:
    assert done(con, sql) == done(native, sql)
    assert names
    assert "vec" not in names


@pytest.mark.parametrize("sql", ALL)
def test_whole_rows_and_stars_read_all_columns(con: ld.Connection, native: Any, names: set[str], sql: str) -> None:
    assert done(con, sql) == done(native, sql)


@pytest.mark.parametrize("items", ["t.id, merge_action", "*", "t", "COLUMNS('e')"])
def test_returning_reads_the_whole_row_only_if_requested(
    con: ld.Connection, native: Any, names: set[str], items: str
) -> None:
    sql = f"{ONE} WHEN MATCHED THEN UPDATE SET s = 'r' RETURNING {items}"
    assert done(con, sql) == done(native, sql)
    assert ("vec" in names) == (items != "t.id, merge_action")
