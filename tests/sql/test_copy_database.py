"""COPY FROM DATABASE between native databases and folders of Lance tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.changes.changed_tables import TransactionBlock
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    UnsupportedError,
)

TYPES = [
    ("TINYINT", "-3"),
    ("UBIGINT", "7"),
    ("DOUBLE", "1.5"),
    ("DECIMAL(10,2)", "2.5"),
    ("BOOLEAN", "true"),
    ("VARCHAR", "'x'"),
    ("BLOB", r"'\xAA'::BLOB"),
    ("UUID", "'00000000-0000-0000-0000-000000000001'"),
    ("DATE", "'2024-02-29'"),
    ("TIME", "'12:30:00'"),
    ("TIMESTAMP", "'2024-02-29 12:00:00'"),
    ("TIMESTAMP WITH TIME ZONE", "'2024-02-29 12:00:00+00'"),
    ("INTEGER[]", "[1, NULL]"),
    ("INTEGER[][]", "[[1], []]"),
    ("FLOAT[2]", "[1, 2]"),
    ("STRUCT(a INTEGER, b VARCHAR[])", "{'a': 1, 'b': ['x']}"),
    ("MAP(VARCHAR, INTEGER[])", "MAP {'k': [1]}"),
    ("STRUCT(a INTEGER)[]", "[{'a': 1}, NULL]"),
]


@pytest.fixture
def con(tmp_path: Path) -> Iterator[ld.Connection]:
    """A connection to the folder `lance`, a second folder `other`, and the native databases `a` and `b`."""
    (tmp_path / "lance").mkdir()
    with ld.connect(tmp_path / "lance") as con:
        con.execute(f"ATTACH '{tmp_path}/a.db' AS a")
        con.execute("ATTACH ':memory:' AS b")
        con.execute(f"ATTACH '{tmp_path}/other' AS other (TYPE lance)")
        yield con


def tables(con: ld.Connection, database: str) -> list[str]:
    return [name for (name,) in con.execute(f"SHOW TABLES FROM {database}").fetchall()]


def rows(con: ld.Connection, sql: str) -> list[tuple[Any, ...]]:
    return con.execute(sql).fetchall()


def described(con: ld.Connection, table: str) -> list[tuple[Any, ...]]:
    return [row[:4] for row in con.execute(f"DESCRIBE {table}").fetchall()]


def comments(con: ld.Connection, database: str) -> list[tuple[Any, ...]]:
    sql = f"""SELECT table_name, NULL, comment FROM duckdb_tables() WHERE database_name = '{database}'
        UNION ALL SELECT table_name, column_name, comment FROM duckdb_columns() WHERE database_name = '{database}'"""
    return rows(con, f"FROM ({sql}) WHERE comment IS NOT NULL ORDER BY ALL")


def test_columns_of_all_types_survive_both_directions(con: ld.Connection) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, (type_, _) in enumerate(TYPES))
    con.execute(f"CREATE TABLE a.t ({columns})")
    con.execute(f"INSERT INTO a.t VALUES ({', '.join(value for _, value in TYPES)})")
    con.execute(f"INSERT INTO a.t VALUES ({', '.join('NULL' for _ in TYPES)})")
    for source, target in (("a", "lance"), ("lance", "other"), ("other", "b")):
        assert con.execute(f"COPY FROM DATABASE {source} TO {target}").fetchall() == []
        assert described(con, f"{target}.t") == described(con, "a.t")
        assert rows(con, f"FROM {target}.t") == rows(con, "FROM a.t")


def test_constraints_and_comments_that_both_sides_have_are_copied(con: ld.Connection) -> None:
    con.execute('CREATE TABLE a."T 1" (id INTEGER, "Ä b" VARCHAR NOT NULL, c INTEGER, PRIMARY KEY (id, "Ä b"))')
    con.execute("""INSERT INTO a."T 1" VALUES (1, 'x', NULL)""")
    con.execute("""COMMENT ON TABLE a."T 1" IS 'it''s'; COMMENT ON COLUMN a."T 1"."Ä b" IS 'name'""")
    for source, target in (("a", "lance"), ("lance", "other"), ("other", "b")):
        con.execute(f"COPY FROM DATABASE {source} TO {target}")
        assert described(con, f'{target}."T 1"') == described(con, 'a."T 1"')
        assert comments(con, target) == [("T 1", "Ä b", "name"), ("T 1", None, "it's")]
    with pytest.raises(duckdb.ConstraintException):
        con.execute("""INSERT INTO b."T 1" VALUES (1, 'x', 2)""")


@pytest.mark.parametrize(("source", "target"), [("a", "lance"), ("lance", "b"), ("lance", "other")])
def test_schema_and_data_are_copied_separately(con: ld.Connection, source: str, target: str) -> None:
    con.execute(f"CREATE TABLE {source}.t (x INTEGER NOT NULL)")
    con.execute(f"INSERT INTO {source}.t VALUES (1), (2)")
    with pytest.raises((NotFoundError, duckdb.CatalogException), match="Table with name t does not exist"):
        con.execute(f"COPY FROM DATABASE {source} TO {target} (DATA)")
    assert con.execute(f"COPY FROM DATABASE {source} TO {target} (SCHEMA)").fetchall() == []
    assert described(con, f"{target}.t") == [("x", "INTEGER", "NO", None)]
    assert rows(con, f"FROM {target}.t") == []
    for count in (2, 4):
        assert con.execute(f"copy from database {source} to {target} (data)").fetchall() == [(2,)]
        assert rows(con, f"SELECT count(*) FROM {target}.t") == [(count,)]


def test_a_folder_gets_lance_tables_with_their_indexes_and_types(con: ld.Connection, tmp_path: Path) -> None:
    halves = pa.table({"id": [1, 2], "h": pa.array(np.array([0.5, 1.5], np.float16))})
    ld.write_dataset(halves, tmp_path / "lance" / "t.lance", data_storage_version="2.1", enable_stable_row_ids=True)
    con.execute("CREATE INDEX i ON lance.t (id) USING btree")
    con.execute("COPY FROM DATABASE lance TO other")
    copied = ld.dataset(tmp_path / "other" / "t.lance")
    assert copied.to_table() == halves
    assert (copied.data_storage_version, copied.has_stable_row_ids) == ("2.1", True)
    assert [index.name for index in copied.describe_indices()] == ["i"]


def test_the_database_in_memory_is_copied(con: ld.Connection) -> None:
    con.execute("CREATE TABLE memory.m AS SELECT 1 AS x")
    con.execute("COPY FROM DATABASE memory TO LANCE")
    assert rows(con, "FROM lance.m") == [(1,)]


def test_empty_databases_are_copied(con: ld.Connection) -> None:
    for source, target in (("a", "lance"), ("lance", "b"), ("lance", "other")):
        for option in ("", "(SCHEMA)"):
            assert con.execute(f"COPY FROM DATABASE {source} TO {target} {option}").fetchall() == []
        assert con.execute(f"COPY FROM DATABASE {source} TO {target} (DATA)").fetchall() == [(0,)]


def test_a_warning_lists_what_a_folder_cannot_hold(con: ld.Connection) -> None:
    for sql in (
        "CREATE TABLE a.p (k INTEGER UNIQUE)",
        "CREATE TABLE a.t (x INTEGER DEFAULT 7, y INTEGER, g INTEGER GENERATED ALWAYS AS (x + 1), CHECK (x > 0))",
        "INSERT INTO a.t VALUES (1, 2)",
        "CREATE VIEW a.v AS SELECT 1 AS x",
        "CREATE SCHEMA a.s",
        "CREATE VIEW a.s.v AS SELECT 1 AS x",
        "CREATE SEQUENCE a.q",
        "CREATE MACRO a.m(x) AS x",
        "CREATE TYPE a.mood AS ENUM ('p')",
        "CREATE INDEX i ON a.t (y)",
    ):
        con.execute(sql)
    with pytest.warns(ld.TableWarning) as warned:
        con.execute("COPY FROM DATABASE a TO lance")
    text = "copies tables only, and leaves out: "
    (message,) = (str(each.message).partition(text)[2] for each in warned)
    left_out = "check of t, expression of generated column t.g, index i, macro m, sequence q, type mood, unique of p"
    assert sorted(message.split(", ")) == [*left_out.split(", "), "view s.v", "view v"]
    assert rows(con, "FROM lance.t") == [(1, 2, 2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        con.execute("COPY FROM DATABASE a TO lance (DATA)")


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [
        ("z VARCHAR COLLATE NOCASE", ["collation of T 1.z"]),
        ("z VARCHAR COLLATE NOCASE.NOACCENT NOT NULL DEFAULT 'a', y VARCHAR", ["collation of T 1.z"]),
        ('"a ""(,b" VARCHAR COLLATE NFC, PRIMARY KEY ("a ""(,b")', ['collation of T 1.a "(,b']),
        ("x INTEGER, g AS (x + 1)", ["expression of generated column T 1.g"]),
        ("x VARCHAR, g VARCHAR GENERATED ALWAYS AS (x COLLATE NOCASE)", ["expression of generated column T 1.g"]),
        ('"collate" VARCHAR, "default" STRUCT("generated" INTEGER, "collate" VARCHAR)', []),
        ("x VARCHAR DEFAULT ' collate generated nextval(1) '", []),
        ("x BIGINT DEFAULT nextval('q') + 1, y INTEGER DEFAULT 5", ["default of T 1.x", "sequence q"]),
        ("x VARCHAR, CHECK (x COLLATE NOCASE < 'a')", ["check of T 1"]),
    ],
)
def test_a_warning_names_collations_defaults_of_sequences_and_generated_columns(
    con: ld.Connection, columns: str, left_out: list[str]
) -> None:
    if "'q'" in columns:
        con.execute("CREATE SEQUENCE a.q")
    con.execute("USE a")
    con.execute(f'CREATE TABLE "T 1" ({columns})')
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        con.execute("COPY FROM DATABASE a TO lance")
    names = [name for each in warned for name in str(each.message).partition("leaves out: ")[2].split(", ")]
    assert sorted(names) == left_out


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("CREATE SCHEMA a.s; CREATE TABLE a.s.u (x BIT)", UnsupportedError, "table u, column 'x'"),
        ("CREATE TABLE a.u (x INTEGER, y INTERVAL)", UnsupportedError, "table u, column 'y': .* INTERVAL"),
        ("CREATE TABLE a.u (x STRUCT(b BIT)[])", UnsupportedError, "table u, column 'x'"),
        ("CREATE TABLE a.u (x INTEGER, y ENUM('p'))", UnsupportedError, "table u, column 'y': .* ENUM"),
        ("CREATE TABLE a.u (x STRUCT(e ENUM('p'))[])", UnsupportedError, "table u, column 'x': .* ENUM"),
        ('CREATE TABLE a."u/v" (x INTEGER)', InvalidInputError, "invalid table name.*u/v"),
        ("CREATE TABLE lance.U (x INTEGER); CREATE TABLE a.u (x INTEGER)", AlreadyExistsError, '"u" already exists'),
        ("CREATE TABLE a.u AS SELECT 170141183460469231731687303715884105727 AS x", duckdb.Error, "DECIMAL"),
    ],
)
def test_a_rejected_copy_into_a_folder_leaves_no_table(
    con: ld.Connection, tmp_path: Path, sql: str, error: type[Exception], words: str
) -> None:
    con.execute("CREATE TABLE a.t AS SELECT 1 AS x")
    for each in sql.split("; "):
        con.execute(each)
    before = sorted(tmp_path.rglob("*.lance"))
    with pytest.raises(error, match=words):
        con.execute("COPY FROM DATABASE a TO lance")
    assert sorted(tmp_path.rglob("*.lance")) == before
    assert "t" not in tables(con, "lance")


def test_folders_of_others_are_never_removed(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE a.t AS SELECT 1 AS x; CREATE TABLE a.u AS SELECT 1 AS x")
    notes = tmp_path / "lance" / "u.lance" / "notes.txt"
    notes.parent.mkdir()
    notes.write_text("mine")
    with pytest.raises(AlreadyExistsError):
        con.execute("COPY FROM DATABASE a TO lance")
    assert (notes.read_text(), tables(con, "lance")) == ("mine", [])


def test_an_error_while_files_are_copied_leaves_no_table(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT 1 AS x; CREATE TABLE lance.u AS SELECT 1 AS x")
    (data,) = (tmp_path / "lance" / "u.lance" / "data").iterdir()
    data.unlink()
    with pytest.raises(NotFoundError, match=data.name):
        con.execute("COPY FROM DATABASE lance TO other")
    assert tables(con, "other") == []
    assert list((tmp_path / "other").glob("*")) == []


@pytest.mark.parametrize("begun", [False, True])
def test_a_rejected_copy_into_a_native_database_leaves_no_table(con: ld.Connection, begun: bool) -> None:
    con.execute("CREATE TABLE lance.a AS SELECT 1 AS x")
    con.execute("CREATE TABLE lance.t (x INTEGER)")
    con.execute("CREATE TABLE b.T (y INTEGER)")
    if begun:
        con.execute("BEGIN")
    with pytest.raises(duckdb.CatalogException, match='Table with name "t" already exists!'):
        con.execute("COPY FROM DATABASE lance TO b")
    if begun:
        con.execute("ROLLBACK")
    assert tables(con, "b") == ["T"]


def test_duplicate_keys_are_rejected_by_the_native_table(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t (id INTEGER PRIMARY KEY)")
    ld.dataset(tmp_path / "lance" / "t.lance").insert(pa.table({"id": pa.array([1, 1], pa.int32())}))
    with pytest.raises(duckdb.ConstraintException, match="duplicate key"):
        con.execute("COPY FROM DATABASE lance TO b")
    assert tables(con, "b") == []


def test_rows_of_all_tables_are_added_or_none(con: ld.Connection) -> None:
    con.execute("CREATE TABLE a.t AS SELECT 1 AS x")
    con.execute("CREATE TABLE a.u AS SELECT NULL::INTEGER AS x")
    con.execute("CREATE TABLE lance.t (x INTEGER)")
    con.execute("CREATE TABLE lance.u (x INTEGER NOT NULL)")
    with pytest.raises((LanceDuckError, duckdb.Error)):
        con.execute("COPY FROM DATABASE a TO lance (DATA)")
    assert rows(con, "FROM lance.t UNION ALL FROM lance.u") == []


def test_enums_are_added_to_columns_of_strings(con: ld.Connection) -> None:
    con.execute("CREATE TABLE a.t AS SELECT 'p'::ENUM('p', 'q') AS x")
    con.execute("CREATE TABLE lance.t (x VARCHAR)")
    con.execute("COPY FROM DATABASE a TO lance (DATA)")
    assert rows(con, "FROM lance.t") == [("p",)]


def test_rows_are_added_to_all_tables_in_one_commit(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE SCHEMA a.s; CREATE SCHEMA lance.s")
    for name in ("main.t", "main.u", "s.v"):
        con.execute(f"CREATE TABLE a.{name} AS SELECT 1 AS x; CREATE TABLE lance.{name} (x INTEGER)")
    con.execute("COPY FROM DATABASE a TO lance (DATA)")
    assert [rows(con, f"FROM lance.{name}") for name in ("t", "u", "s.v")] == [[(1,)]] * 3
    assert rows(con, "SELECT outcome, len(tables) FROM lance_commits('lance')") == [("published", 3)]


@pytest.mark.parametrize("changed", ["t", "u", "v"])
def test_a_conflict_of_one_table_adds_no_row_to_any_table(
    con: ld.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    for name in "tuv":
        con.execute(f"CREATE TABLE a.{name} AS SELECT 1 AS x; CREATE TABLE lance.{name} (x INTEGER)")
    commit = TransactionBlock.commit

    def meet(block: TransactionBlock) -> None:
        lance.write_dataset(
            pa.table({"z": pa.array([], "int8")}), tmp_path / f"lance/{changed}.lance", mode="overwrite"
        )
        commit(block)

    monkeypatch.setattr(TransactionBlock, "commit", meet)
    with pytest.raises(CommitConflictError):
        con.execute("COPY FROM DATABASE a TO lance (DATA)")
    assert [rows(con, f"SELECT count(*) FROM lance.{name}") for name in "tuv"] == [[(0,)]] * 3


def test_a_copy_with_an_error_of_a_commit_leaves_no_table(con: ld.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    con.execute("CREATE TABLE a.t AS SELECT 1 AS x; CREATE TABLE a.u AS SELECT 1 AS x")
    commit, blocks = TransactionBlock.commit, []

    def fail(block: TransactionBlock) -> None:
        blocks.append(block)
        if len(blocks) == 2:
            raise CommitConflictError("another writer", where="lance", remedy="repeat it")
        commit(block)

    monkeypatch.setattr(TransactionBlock, "commit", fail)
    with pytest.raises(CommitConflictError, match="lance: another writer; repeat it"):
        con.execute("COPY FROM DATABASE a TO lance")
    assert tables(con, "lance") == []


def test_a_table_that_cannot_be_opened_is_named(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.a AS SELECT 1 AS x")
    con.execute("CREATE TABLE lance.broken AS SELECT 1 AS x")
    (manifest,) = (tmp_path / "lance" / "broken.lance" / "_versions").glob("*.manifest")
    manifest.write_bytes(b"nothing")
    for target in ("b", "other"):
        with pytest.raises(LanceDuckError, match="broken"):
            con.execute(f"COPY FROM DATABASE lance TO {target}")
        assert tables(con, target) == []
    with ld.connect(tmp_path / "lance") as again:
        again.execute("ATTACH ':memory:' AS b")
        with pytest.raises(LanceDuckError, match="broken"):
            again.execute("COPY FROM DATABASE lance TO b")


def test_transactions_include_a_copy_into_a_native_database(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT 1 AS x")
    con.execute("BEGIN")
    con.execute("COPY FROM DATABASE lance TO b")
    assert rows(con, "FROM b.t") == [(1,)]
    con.execute("ROLLBACK")
    assert tables(con, "b") == []
    con.execute("BEGIN")
    with pytest.raises(UnsupportedError, match="cannot run in a transaction"):
        con.execute("COPY FROM DATABASE lance TO other")
    con.execute("ROLLBACK")


def test_read_only_databases_are_sources_only(con: ld.Connection, tmp_path: Path) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT 1 AS x")
    con.execute(f"ATTACH '{tmp_path}/lance' AS fixed (TYPE lance, READ_ONLY)")
    con.execute("COPY FROM DATABASE fixed TO b")
    assert rows(con, "FROM b.t") == [(1,)]
    with pytest.raises(UnsupportedError, match="database fixed is"):
        con.execute("COPY FROM DATABASE b TO fixed")
    with ld.connect(tmp_path / "lance", read_only=True) as reader:
        reader.execute("ATTACH ':memory:' AS b")
        with pytest.raises(UnsupportedError, match="read-only"):
            reader.execute("COPY FROM DATABASE lance TO b")


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("COPY FROM DATABASE lance TO lance", InvalidInputError, "FROM and TO databases are the same"),
        ("COPY FROM DATABASE lance TO b (FOO)", duckdb.ParserException, "FOO"),
        ("COPY FROM DATABASE lance TO nothing", NotFoundError, 'Catalog "nothing" does not exist!'),
        ("COPY FROM DATABASE nothing TO lance", NotFoundError, 'Catalog "nothing" does not exist!'),
    ],
)
def test_wrong_statements_are_rejected(con: ld.Connection, sql: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        con.execute(sql)


def test_an_explained_copy_of_a_database_writes_nothing(con: ld.Connection) -> None:
    con.execute("CREATE TABLE lance.t AS SELECT 1 AS x")
    assert con.execute("EXPLAIN COPY FROM DATABASE lance TO b").fetchall()[-1][0] == "lance_change"
    assert tables(con, "b") == []
