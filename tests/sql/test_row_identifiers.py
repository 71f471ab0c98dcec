"""`rowid`, `_rowid` and `_rowaddr` in plain SQL: `rowid` is `_rowid` in DuckDB's type, and no star shows them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import UnsupportedError

SECOND = 1 << 32  # the first address of fragment 1
ROWS = {"id": [0, 1, 2, 3, 4, 5], "s": ["a", "b", "c", "d", "e", "f"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ld.write_dataset(pa.table(ROWS), tmp_path / "t.lance", max_rows_per_file=3).delete("id = 1")
    stable = ld.write_dataset(pa.table(ROWS), tmp_path / "k.lance", max_rows_per_file=3, enable_stable_row_ids=True)
    stable.update({"s": "'new'"}, where="id = 4")
    ld.write_dataset(pa.table({"id": [2, 5], "w": ["x", "y"]}), tmp_path / "u.lance")
    return tmp_path


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(folder)


QUERIES = [
    ("SELECT rowid, _rowid, _rowaddr, id FROM t WHERE id IN (2, 3)", [(2, 2, 2, 2), (SECOND, SECOND, SECOND, 3)]),
    ("SELECT rowid, _rowid = rowid, _rowaddr >> 32 FROM k WHERE id = 4", [(4, True, 2)]),
    ("SELECT * FROM t WHERE _rowid IN (2, 4294967296)", [(2, "c"), (3, "d")]),
    ("FROM t WHERE rowid = 2", [(2, "c")]),
    ("SELECT rowid, s FROM lance_scan('t') WHERE lance_scan.id = 2", [(2, "c")]),
    ("FROM k WHERE rowid = 4", [(4, "new")]),
    ("SELECT *, rowid FROM t ORDER BY rowid DESC LIMIT 1", [(5, "f", SECOND + 2)]),
    ("SELECT t.*, u.* FROM t JOIN u USING (id) ORDER BY t.rowid", [(2, "c", 2, "x"), (5, "f", 5, "y")]),
    ("SELECT * FROM t a JOIN t b ON a.rowid = b.rowid WHERE a.id = 2", [(2, "c", 2, "c")]),
    ("SELECT * EXCLUDE (s) FROM t WHERE _rowaddr < 3", [(0,), (2,)]),
    ("SELECT * REPLACE (s || rowid AS s) FROM t WHERE id = 2", [(2, "c2")]),
    ("SELECT DISTINCT ON (id) * FROM t WHERE ROWID = 0", [(0, "a")]),
    ("WITH x AS (SELECT rowid, id FROM t) SELECT max(rowid) FROM x", [(SECOND + 2,)]),
    ("SELECT id, (SELECT max(rowid) FROM u WHERE u.id = t.id) FROM t WHERE t.rowid = 2", [(2, 0)]),
    ("SELECT r FROM t, LATERAL (SELECT rowid AS r FROM u WHERE u.id = t.id) WHERE t.rowid > 2", [(1,)]),
    ("SELECT id FROM t WHERE rowid NOT IN (0, -1) AND rowid > -5 AND rowid < 3", [(2,)]),
    ("SELECT count(rowid), min(_rowaddr) FROM lance.t", [(5, 0)]),
    ("SELECT rowid FROM t AT (VERSION => 1) WHERE id = 1", [(1,)]),
    ("SELECT s AS rowid FROM t WHERE id = 2", [("c",)]),
    ("SELECT typeof(rowid), typeof(_rowid), typeof(_rowaddr) FROM t LIMIT 1", [("BIGINT", "UBIGINT", "UBIGINT")]),
]


@pytest.mark.parametrize(("sql", "expected"), QUERIES)
def test_rowid_columns_can_be_selected(con: ld.Connection, sql: str, expected: list[Any]) -> None:
    assert con.execute(sql).fetchall() == expected
    assert con.sql(sql).fetchall() == expected


def test_views_prepared_statements_paths_and_attached_folders_have_row_ids(con: ld.Connection, folder: Path) -> None:
    con.execute("CREATE VIEW memory.main.v AS SELECT rowid AS r, * FROM lance.t")
    con.execute("PREPARE p AS SELECT id FROM t WHERE _rowid = ?")
    con.execute(f"ATTACH '{folder}' AS ns (TYPE lance)")
    con.register("named", ld.dataset(folder / "t.lance"))
    for sql in (
        "SELECT id FROM memory.main.v WHERE r = 2",
        "EXECUTE p(2)",
        f"SELECT id FROM '{folder}/t.lance' WHERE rowid = 2",
        "SELECT id FROM ns.t WHERE t.rowid = 2",
        "SELECT id FROM named WHERE named._rowaddr = 2",
    ):
        assert con.execute(sql).fetchall() == [(2,)], sql
    con.execute("CREATE TABLE lance.copied AS SELECT rowid AS r, id FROM t")
    con.execute("INSERT INTO copied SELECT _rowid, 7 FROM u WHERE _rowaddr = 1")
    assert con.execute("SELECT count(*), max(r), max(id) FROM copied").fetchall() == [(6, SECOND + 2, 7)]


@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("DELETE FROM t WHERE rowid = 2", "a d e f"),
        ("DELETE FROM t AS z WHERE z._rowaddr >= 4294967296", "a c"),
        ("DELETE FROM t WHERE rowid NOT IN (SELECT min(rowid) FROM t GROUP BY id % 2)", "a d"),
        ("DELETE FROM t USING u WHERE t._rowid = u._rowid", "c d e f"),
        ("UPDATE t SET s = 'r' || rowid WHERE _rowid IN (0, 2)", "d e f r0 r2"),
        ("UPDATE t SET s = w FROM u WHERE u.rowid = 1 AND t.id = u.id", "a c d e y"),
        ("UPDATE t SET s = t.id || (to_json(t)->>'s') WHERE _rowaddr = 2", "2c a d e f"),
        ("UPDATE t SET s = '-' WHERE rowid IN (SELECT unnest([0, 2]))", "- - d e f"),
    ],
)
@pytest.mark.parametrize("begin", [False, True])
def test_changes_can_select_rows_by_row_id(con: ld.Connection, sql: str, left: str, begin: bool) -> None:
    if begin:
        con.execute("BEGIN")
    con.execute(sql)
    if begin:
        con.execute("COMMIT")
    assert con.execute("SELECT string_agg(s, ' ' ORDER BY s) FROM t").fetchall() == [(left,)]


def test_rows_of_a_transaction_have_row_ids(con: ld.Connection) -> None:
    con.execute("BEGIN; INSERT INTO t VALUES (9, 'z')")
    con.execute("UPDATE t SET s = 'zz' WHERE rowid = (SELECT max(rowid) FROM t)")
    assert con.execute("SELECT id, s FROM t ORDER BY rowid DESC LIMIT 1").fetchall() == [(9, "zz")]
    con.executemany("DELETE FROM t WHERE rowid = ?", [[0], [2]])
    con.execute("COMMIT")
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(3,), (4,), (5,), (9,)]


def test_rows_requested_by_row_id_are_read_without_a_scan(con: ld.Connection) -> None:
    plan = con.execute("EXPLAIN SELECT s FROM t WHERE _rowid IN (2, 4294967296)").fetchall()[-1][1]
    assert "ByAddress: _rowid" in plan
    assert "0 scanned" in plan


def test_lance_scan_options_add_row_ids_on_a_plain_connection(folder: Path) -> None:
    with duckdb.connect() as plain:
        ld.register(plain)
        scan = f"lance_scan('{folder}/k.lance', with_row_id := true, with_row_address := true)"
        found = plain.execute(f"SELECT * FROM {scan} WHERE _rowid = 4")
        assert [column[0] for column in found.description] == ["id", "s", "_rowid", "_rowaddr"]
        assert found.fetchall() == [(4, "new", 4, 2 * SECOND)]
        one = plain.execute(f"FROM lance_scan('{folder}/k.lance', with_row_id := true, version := 1) WHERE id = 4")
        assert one.fetchall() == [(4, "e", 4)]


def test_a_stored_column_named_rowid_takes_precedence(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    ld.write_dataset(pa.table({"RowId": ["x"], "n": [1]}), tmp_path / "t.lance")
    con = connect(tmp_path)
    assert con.execute("SELECT rowid, _rowaddr, * FROM t").fetchall() == [("x", 0, "x", 1)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COLUMNS('i.*'), rowid FROM t",
        "SELECT t, rowid FROM t",
        "SELECT rowid FROM t NATURAL JOIN u",
        "SELECT lance.t.id, _rowid FROM lance.t",
        "SELECT _rowaddr FROM t AT (TIMESTAMP => now())",
    ],
)
def test_row_ids_are_rejected_where_they_are_not_supported(con: ld.Connection, sql: str) -> None:
    for run in (con.execute, con.sql):
        with pytest.raises(UnsupportedError, match="of a Lance table is not available here"):
            run(sql)


def test_delete_returning_supports_row_ids(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    ld.write_dataset(pa.table({"id": [1, 2, 3, 4], "s": [*"abcd"]}), tmp_path / "t.lance", max_rows_per_file=2)
    con = connect(tmp_path)
    deleted = con.execute("DELETE FROM t WHERE id = 4 RETURNING rowid, _rowaddr, *")
    assert [(name, str(type_)) for name, type_, *_ in deleted.description] == [
        *(("rowid", "BIGINT"), ("_rowaddr", "UBIGINT"), ("id", "BIGINT"), ("s", "VARCHAR"))
    ]
    assert deleted.fetchall() == [(SECOND + 1, SECOND + 1, 4, "d")]
    con.execute("BEGIN")
    using = "DELETE FROM t AS x USING (VALUES (3)) AS v(i) WHERE id = i AND x IS NOT NULL"
    deleted = con.execute(f"{using} RETURNING x.*, x._ROWID + 1, upper(s)")
    assert deleted.fetchall() == [(3, "c", SECOND + 1, "C")]
    con.execute("COMMIT")
    with pytest.raises(UnsupportedError, match="not available in this statement"):  # their addresses change
        con.execute("UPDATE t SET s = 'x' RETURNING rowid")


def test_update_returning_supports_stable_row_ids(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    ld.write_dataset(pa.table({"id": [1, 2], "s": ["a", "b"]}), tmp_path / "t.lance", enable_stable_row_ids=True)
    con = connect(tmp_path)
    for _ in range(2):
        updated = con.execute("UPDATE t SET s = s || '!' WHERE id = 2 RETURNING rowid, length(t.s), *").fetchall()
        assert updated == con.execute("SELECT rowid, length(s), * FROM t WHERE id = 2").fetchall()
    for items in ("_rowaddr", "rowid, _rowaddr"):
        with pytest.raises(UnsupportedError, match="not available in this statement"):
            con.execute(f"UPDATE t SET s = 'x' RETURNING {items}")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t RETURNING t, _rowid",
        "DELETE FROM t RETURNING * EXCLUDE (id), _rowid",
        "DELETE FROM t RETURNING COLUMNS(*), _rowid",
        "INSERT INTO t VALUES (9, 'z') RETURNING rowid",
        "MERGE INTO t USING u ON t.rowid = u.id WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED THEN DELETE RETURNING rowid",
    ],
)
def test_row_ids_are_rejected_in_merge_and_some_returning_clauses(con: ld.Connection, sql: str) -> None:
    before = con.execute("FROM t").fetchall()
    with pytest.raises(UnsupportedError, match="not available in this statement"):
        con.execute(sql)
    assert con.execute("FROM t").fetchall() == before


@pytest.mark.parametrize(
    ("sql", "message"),
    [("SELECT rowid, nope FROM t", '"nope" not found'), ("SELECT rowid FROM t JOIN u USING (id)", "Ambiguous")],
)
def test_errors_quote_the_statement_as_written(con: ld.Connection, sql: str, message: str) -> None:
    with pytest.raises(duckdb.BinderException, match=message) as caught:
        con.execute(sql)
    assert f"LINE 1: {sql}" in str(caught.value)
