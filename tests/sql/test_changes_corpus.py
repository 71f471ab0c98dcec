"""Statements of every clause have the same effect on a Lance table as on a native one, or are rejected by name."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from sql.corpus_support import REFUSED, TABLES, differences, fresh_tables, statements

import lance_duck as ld
from lance_duck.errors import UnsupportedError

PIECE = 60
ONE_ROW_EACH = duckdb.__version__.startswith("2.0.0")


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    for name, table in TABLES.items():
        table.write(folder, name)
    return folder


def pieces() -> list[tuple[str, int]]:
    files = ("delete", "insert", "merge", "mixed", "update", "upsert")
    return [(name, start) for name in files for start in range(0, len(statements(name)), PIECE)]


@pytest.mark.parametrize(("name", "start"), pieces())
def test_statements_have_the_same_result_as_on_a_native_table(
    templates: Path, tmp_path: Path, name: str, start: int
) -> None:
    found = []
    for number, sql in enumerate(statements(name)[start : start + PIECE]):
        folder = tmp_path / str(number)
        folder.mkdir()
        found += differences(templates, folder, sql)
    assert not found, "\n".join(found)


@pytest.mark.skipif(not ONE_ROW_EACH, reason="DuckDB counts and returns each match")
def test_updates_with_several_matches_behave_as_in_duckdb_2(templates: Path, tmp_path: Path) -> None:
    found = []
    for number, sql in enumerate(statements("since_2")):
        folder = tmp_path / str(number)
        folder.mkdir()
        found += differences(templates, folder, sql)
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("sql", "count", "values"),
    [
        ("UPDATE t SET a = u.b FROM u WHERE u.id = t.id", 2, [{100, 101}, {200}, {None}, {5}]),
        ("UPDATE t SET a = v FROM (VALUES (20), (10)) AS q(v)", 4, [{10, 20}] * 4),
        ("UPDATE t SET a = b FROM u WHERE u.id < t.id", 3, [{10}, {100, 101}, {100, 101, 200}, {100, 101, 200}]),
    ],
)
def test_a_row_with_several_matches_is_updated_and_counted_once(
    templates: Path, tmp_path: Path, sql: str, count: int, values: list[set[int | None]]
) -> None:
    list(fresh_tables(templates, tmp_path, f"{sql} t u"))
    with ld.connect(tmp_path) as con:
        assert con.execute(sql).fetchall() == [(count,)]
        after = [a for (a,) in con.execute("SELECT a FROM t ORDER BY id").fetchall()]
    assert all(a in possible for a, possible in zip(after, values, strict=True))


@pytest.mark.parametrize(
    "sql", [sql for sql in statements("since_2") if sql.startswith("MERGE") and "to_json" not in sql]
)
def test_merge_rejects_a_row_with_several_matches_and_changes_nothing(
    templates: Path, tmp_path: Path, sql: str
) -> None:
    list(fresh_tables(templates, tmp_path, sql))
    with ld.connect(tmp_path) as con:
        before = con.execute("FROM t").fetchall()
        with pytest.raises(REFUSED):
            con.execute(sql)
        assert con.execute("FROM t").fetchall() == before


@pytest.mark.parametrize("sql", statements("refused"))
def test_unsupported_statements_are_rejected_and_change_nothing(templates: Path, tmp_path: Path, sql: str) -> None:
    names = list(fresh_tables(templates, tmp_path, sql))
    with ld.connect(tmp_path) as con:
        before = {name: con.execute(f"FROM {name}").fetchall() for name in names if name != "y"}
        with pytest.raises(REFUSED):
            con.execute(sql)
        assert {name: con.execute(f"FROM {name}").fetchall() for name in before} == before


def test_returning_reads_rows_and_functions_of_the_transaction(templates: Path, tmp_path: Path) -> None:
    list(fresh_tables(templates, tmp_path, "v"))
    with ld.connect(tmp_path) as con:
        con.execute("BEGIN")
        con.execute("UPDATE v SET s = v::VARCHAR WHERE len(struct_keys(v)) = 3 AND id < 3")
        returned = con.execute("DELETE FROM v WHERE v::VARCHAR LIKE '%22%' RETURNING upper(s), v.id").fetchall()
        assert returned == [("{'ID': 2, 'A': 22, 'S': V2}", 2)]
        with pytest.raises(UnsupportedError, match="not available in this statement"):
            con.execute("DELETE FROM v RETURNING v, rowid")
        con.execute("ROLLBACK")
        assert con.execute("SELECT s FROM v ORDER BY id").fetchall() == [("v1",), ("v2",), ("v9",)]


NANOSECONDS = pa.schema([("id", pa.int32()), ("v", pa.int32()), ("iv", pa.duration("ns"))])


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE e SET v = 7, iv = iv",
        "UPDATE e SET v = 7, iv = CASE WHEN id = 9 THEN INTERVAL 1 HOUR ELSE iv END",
        "MERGE INTO e USING (SELECT 1 AS id UNION SELECT 2) AS q USING (id) WHEN MATCHED THEN UPDATE SET v = 7",
        "INSERT INTO e (id, v) VALUES (1, 7), (2, 7) ON CONFLICT (id) DO UPDATE SET v = excluded.v",
    ],
)
def test_unchanged_durations_keep_their_nanoseconds(tmp_path: Path, sql: str) -> None:
    first = pa.table({"id": [1, 2], "v": [1, 2], "iv": pa.array([1_500, None], pa.duration("ns"))})
    ld.write_dataset(first.cast(NANOSECONDS), tmp_path / "e.lance")
    with ld.connect(tmp_path) as con:
        con.execute(sql)
    rows = ld.dataset(tmp_path / "e.lance").to_table().sort_by("id")
    assert rows.column("v").to_pylist() == [7, 7]
    assert rows.column("iv").cast(pa.int64()).to_pylist() == [1_500, None]
