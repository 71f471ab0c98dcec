"""Tables whose columns or fields differ only by case: ambiguous changes are rejected, others are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError

COLUMNS = pa.table({"id": [1, 2, 3], "ID": [10, 20, 30], "s": ["x", "y", "z"]})
TWO = pa.struct([("a", pa.int32()), ("A", pa.int32())])
FIELDS = pa.table({"k": [1, 2], "s": pa.array([{"a": 1, "A": 2}, None], TWO), "l": pa.array([[{"a": 1}], None])})


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    lance.write_dataset(COLUMNS, tmp_path / "t.lance")
    lance.write_dataset(FIELDS, tmp_path / "n.lance")
    return connect(tmp_path)


def rows(tmp_path: Path, name: str = "t") -> list[tuple[object, ...]]:
    table = ld.dataset(tmp_path / f"{name}.lance").to_table()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE t SET "ID" = 5',
        "UPDATE t SET (s, id) = ('q', 1)",
        "UPDATE t SET s = id::VARCHAR",
        "UPDATE t SET s = 'q' WHERE \"id\" = 1",
        "UPDATE t SET s = 'q' WHERE ID_1 = 20",
        "UPDATE t AS x SET s = 'q' WHERE x.Id = 20",
        "UPDATE t SET s = 'q' WHERE t.ID = 20",
        "UPDATE t SET s = 'q' RETURNING *",
        "UPDATE t SET s = 'q' RETURNING s, id",
        "UPDATE t SET s = 'q' RETURNING t",
        "UPDATE t SET s = 'q' FROM (SELECT 1 AS id) o WHERE t.id = o.id",
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t USING (SELECT 1 AS k) o WHERE o.k = ID_1",
        "DELETE FROM t WHERE s = 'x' RETURNING *",
        "INSERT INTO t (id) VALUES (1)",
        "INSERT INTO t (s, \"ID\") SELECT 'q', 1",
        "INSERT INTO t BY NAME SELECT 4 AS id, 'q' AS s",
        "INSERT INTO t VALUES (4, 40, 'q') RETURNING *",
        "INSERT INTO t (s) VALUES ('q') ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t VALUES (4, 40, 'x') ON CONFLICT (s) DO NOTHING",
        "MERGE INTO t USING (SELECT 1 AS k) u ON t.id = u.k WHEN MATCHED THEN DELETE",
        "MERGE INTO t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN UPDATE SET s = 'q'",
        "MERGE INTO t USING (SELECT 'x' AS k) u ON t.s = u.k WHEN MATCHED THEN UPDATE SET id = 1",
        "MERGE INTO t USING (SELECT 7 AS id, 8, 'q' AS k) u ON t.s = u.k WHEN NOT MATCHED THEN INSERT",
        'WITH c AS (SELECT s FROM t WHERE "ID" = 2) DELETE FROM t WHERE s IN (SELECT s FROM c)',
        'DELETE FROM t WHERE s IN (SELECT s FROM (FROM t) q WHERE q."ID" = 2)',
        "UPDATE t SET s = c.k FROM (SELECT s, ID AS k FROM lance.t) c WHERE c.s = t.s",
        'INSERT INTO t (s) SELECT "ID"::VARCHAR FROM t',
        'MERGE INTO t USING (SELECT s, "ID" AS k FROM t) c ON t.s = c.s WHEN MATCHED THEN UPDATE SET s = c.k::VARCHAR',
        'ALTER TABLE t ADD COLUMN k INTEGER DEFAULT "ID"',
        "COPY t FROM '{folder}/f.csv'",
        "COPY t (s, id) FROM '{folder}/f.csv'",
        'ALTER TABLE t DROP COLUMN "ID"',
        "ALTER TABLE t DROP COLUMN IF EXISTS id",
        "ALTER TABLE t RENAME COLUMN id TO other",
        "ALTER TABLE t ALTER COLUMN id TYPE INTEGER",
        "ALTER TABLE t ALTER COLUMN id SET NOT NULL",
        "COMMENT ON COLUMN t.\"ID\" IS 'x'",
        'CREATE INDEX ON t ("ID")',
        "CREATE INDEX ON t USING BTREE (id)",
    ],
)
def test_changes_of_one_of_two_case_variants_are_rejected_and_list_both(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    (tmp_path / "f.csv").write_text("1,2,q\n")
    with pytest.raises(InvalidInputError, match=r"'id', 'ID'.*alter_columns"):
        con.execute(statement.replace("{folder}", str(tmp_path)))
    assert rows(tmp_path) == [(1, 10, "x"), (2, 20, "y"), (3, 30, "z")]
    assert ld.dataset(tmp_path / "t.lance").version == 1
    assert con.execute("SELECT 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("statement", "result", "after"),
    [
        ("UPDATE t SET s = 'q' WHERE s = 'x'", [(1,)], [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")]),
        (
            "UPDATE t SET s = 'q' WHERE s = 'x' RETURNING s, 2 * 3",
            [("q", 6)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        (
            "UPDATE t SET s = o.id FROM (SELECT 'x' AS k, 'q' AS id) o WHERE o.k = t.s",
            [(1,)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        (
            "UPDATE t SET s = upper(s) WHERE s IN (SELECT * FROM (VALUES ('y')))",
            [(1,)],
            [(1, 10, "x"), (2, 20, "Y"), (3, 30, "z")],
        ),
        ("DELETE FROM t WHERE s > 'x' RETURNING s", [("y",), ("z",)], [(1, 10, "x")]),
        (
            "INSERT INTO t VALUES (2 + 2, 40, 'w')",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (4, 40, "w")],
        ),
        (
            "INSERT INTO t SELECT 4, 40, 'w'",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (4, 40, "w")],
        ),
        (
            "INSERT INTO t (s) VALUES ('x'), ('w') ON CONFLICT (s) DO NOTHING",
            [(1,)],
            [(1, 10, "x"), (2, 20, "y"), (3, 30, "z"), (None, None, "w")],
        ),
        (
            "MERGE INTO t USING (SELECT 'x' AS k) u ON t.s = u.k WHEN MATCHED THEN UPDATE SET s = 'q'",
            [(1,)],
            [(1, 10, "q"), (2, 20, "y"), (3, 30, "z")],
        ),
        ("ALTER TABLE t DROP COLUMN s", [], [(1, 10), (2, 20), (3, 30)]),
    ],
)
def test_changes_of_other_columns_keep_both_case_variants(
    con: ld.Connection,
    tmp_path: Path,
    statement: str,
    result: list[tuple[object, ...]],
    after: list[tuple[object, ...]],
) -> None:
    assert sorted(con.execute(statement).fetchall()) == result
    assert rows(tmp_path) == after


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE n SET k = 5 WHERE s.a = 1",
        "UPDATE n SET k = 5 WHERE s['A'] = 2",
        "UPDATE n SET k = 5 WHERE struct_extract(s, 'a') = 1",
        "UPDATE n SET s = NULL",
        "UPDATE n SET k = 5 RETURNING *",
        "UPDATE n SET k = 5 RETURNING s",
        'DELETE FROM n WHERE n.s."A" = 2',
        "INSERT INTO n (s) VALUES ({'a': 1})",
        "MERGE INTO n USING (SELECT 1 AS k) u USING (k) WHEN MATCHED THEN UPDATE SET s = NULL",
        "ALTER TABLE n DROP COLUMN s.a",
        'ALTER TABLE n RENAME COLUMN s."A" TO b',
        *(["ALTER TABLE n ALTER COLUMN s.a TYPE BIGINT"] if duckdb.__version__ >= "2" else []),
        "COMMENT ON COLUMN n.s.a IS 'x'",
        "CREATE INDEX ON n (s.a)",
    ],
)
def test_changes_of_one_of_two_field_case_variants_are_rejected_and_list_both(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match="'a', 'A'"):
        con.execute(statement)
    assert ld.dataset(tmp_path / "n.lance").to_table() == FIELDS


def test_changes_of_other_columns_keep_both_field_case_variants(con: ld.Connection, tmp_path: Path) -> None:
    assert con.execute("UPDATE n SET k = 5 WHERE s IS NULL RETURNING k").fetchall() == [(5,)]
    con.execute("DELETE FROM n WHERE k = 7")
    con.execute("INSERT INTO n (k) VALUES (7)")
    con.execute("ALTER TABLE n ADD COLUMN s.b INTEGER")
    two = [(1, {"a": 1, "A": 2, "b": None}, [{"a": 1}]), (5, None, None), (7, None, None)]
    assert rows(tmp_path, "n") == two


@pytest.mark.parametrize("statement", ['ADD COLUMN "S" INTEGER', 'ADD COLUMN "Id" INTEGER', 'RENAME s TO "iD"'])
def test_statements_cannot_create_names_that_differ_only_by_case(
    con: ld.Connection, tmp_path: Path, statement: str
) -> None:
    with pytest.raises(InvalidInputError, match="already exists"):
        con.execute(f"ALTER TABLE t {statement}")
    assert ld.dataset(tmp_path / "t.lance").schema.names == ["id", "ID", "s"]


def test_a_column_can_be_renamed_to_another_case(con: ld.Connection, tmp_path: Path) -> None:
    con.execute('ALTER TABLE t RENAME COLUMN s TO "S"')
    assert ld.dataset(tmp_path / "t.lance").schema.names == ["id", "ID", "S"]


def test_renaming_one_of_the_columns_resolves_the_ambiguity(con: ld.Connection, tmp_path: Path) -> None:
    ld.dataset(tmp_path / "t.lance").alter_columns({"path": "ID", "name": "other"})
    con.execute("UPDATE t SET other = 5 WHERE id = 1")
    assert rows(tmp_path) == [(1, 5, "x"), (2, 20, "y"), (3, 30, "z")]
